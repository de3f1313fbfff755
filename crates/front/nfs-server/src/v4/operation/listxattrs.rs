//! LISTXATTRS, RFC 8276 8.4.3. A cookie is the number of names before it.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::listxattrs::{Args, ResOk};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Name;
use nfs_wire::xdr::{Encode, Writer, padding};

use super::xattr;
use crate::operation::Operation;
use crate::status;
use crate::v4::compound::Compound;

/// Bytes of a result without names: cookie, number of names, end.
const FIXED_BYTES: usize = 8 + 4 + 4;

/// A [`ResOk`] that owns its names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Names {
    cookie: u64,
    names: Vec<Vec<u8>>,
    eof: bool,
}

impl Encode for Names {
    fn encode(&self, writer: &mut Writer<'_>) {
        let names = self.names.iter().map(|name| Name(name)).collect();
        ResOk { cookie: self.cookie, names, eof: self.eof }.encode(writer);
    }
}

pub(super) const OPERATION: Operation<Number> = Operation::v4(Number::ListXattrs, "ListXattrs");

pub(super) async fn handle(c: &Compound<'_>, args: Args) -> Result<Names, Status> {
    let object = c.object()?;
    xattr::check(object)?;
    let bytes_max = usize::try_from(args.count).unwrap_or(usize::MAX).min(c.room());
    c.take_room(bytes_max).await;
    let names = object.share.xattr_names(&object.call, &object.node).await.map_err(status::v4)?;
    part(names, args.cookie, bytes_max)
}

/// The names after a cookie that fit.
fn part(names: Vec<Vec<u8>>, cookie: u64, bytes_max: usize) -> Result<Names, Status> {
    let skipped = usize::try_from(cookie).unwrap_or(usize::MAX);
    let total = names.len();
    let mut bytes = FIXED_BYTES;
    let fits = |name: &Vec<u8>| {
        bytes = bytes.saturating_add(4 + name.len() + padding(name.len()));
        bytes <= bytes_max
    };
    let names: Vec<_> = names.into_iter().skip(skipped).take_while(fits).collect();
    let eof = skipped.saturating_add(names.len()) >= total;
    if bytes_max < FIXED_BYTES || (names.is_empty() && !eof) {
        return Err(Status::TooSmall);
    }
    let cookie = cookie.saturating_add(names.len() as u64);
    Ok(Names { cookie, names, eof })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Vec<Vec<u8>> {
        ["one", "three", "two"].map(|name| name.as_bytes().to_vec()).to_vec()
    }

    #[test]
    fn a_part_fills_its_budget_exactly() {
        // 4 + 4, 4 + 8 and 4 + 4 bytes after the 16 that every result has
        for (bytes_max, count, eof) in
            [(24, 1, false), (35, 1, false), (36, 2, false), (43, 2, false), (44, 3, true)]
        {
            let part = part(names(), 0, bytes_max).unwrap();
            assert_eq!((part.names.len(), part.cookie, part.eof), (count, count as u64, eof), "{bytes_max}");
            assert!(part.encode_to_vec().len() <= bytes_max);
        }
        assert_eq!(part(names(), 0, 23), Err(Status::TooSmall));
        assert_eq!(part(vec![], 0, 15), Err(Status::TooSmall));
        assert_eq!(part(vec![], 0, 16), Ok(Names { cookie: 0, names: vec![], eof: true }));
    }

    #[test]
    fn a_cookie_goes_on_behind_it() {
        let rest = part(names(), 2, 1000).unwrap();
        assert_eq!((rest.names, rest.cookie, rest.eof), (vec![b"two".to_vec()], 3, true));
        assert_eq!(part(names(), 3, 1000), Ok(Names { cookie: 3, names: vec![], eof: true }));
        assert!(part(names(), u64::MAX, 1000).unwrap().eof);
    }
}
