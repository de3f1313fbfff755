//! The items of the trees of Btrfs, which only the administrator of the machine may search (CAP_SYS_ADMIN).

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::btrfs::{self, SearchKey};

/// `BTRFS_LAST_FREE_OBJECTID`.
pub(crate) const LAST: u64 = 256_u64.wrapping_neg();
/// A search for items whatever their offsets and ages.
pub(crate) const WHATEVER: SearchKey = SearchKey {
    tree: 0,
    min_object: 0,
    max_object: 0,
    min_offset: 0,
    max_offset: u64::MAX,
    min_transid: 0,
    max_transid: u64::MAX,
    min_type: 0,
    max_type: 0,
    items: 0,
    unused: 0,
    unused_too: [0; 4],
};
/// How often a search goes on: more items than anybody has.
const SEARCHES_MAX: usize = 100_000_000;

/// An item of the tree, after its `struct btrfs_ioctl_search_header`.
#[derive(Debug)]
pub(crate) struct Item<'a> {
    pub(crate) object: u64,
    pub(crate) offset: u64,
    pub(crate) kind: u32,
    pub(crate) data: &'a [u8],
}

pub(crate) fn bytes<const N: usize>(data: &[u8], at: usize) -> Option<[u8; N]> {
    data.get(at..)?.first_chunk().copied()
}

pub(crate) fn number(data: &[u8], at: usize) -> Option<u64> {
    bytes(data, at).map(u64::from_le_bytes)
}

/// The first of these items, and what follows it. The header is in the machine's byte order.
fn first_item(found: &[u8]) -> Option<(Item<'_>, &[u8])> {
    let word = |at| bytes(found, at).map(u32::from_ne_bytes);
    let long = |at| bytes(found, at).map(u64::from_ne_bytes);
    let (data, rest) = found.get(32..)?.split_at_checked(usize::try_from(word(28)?).ok()?)?;
    Some((Item { object: long(8)?, offset: long(16)?, kind: word(24)?, data }, rest))
}

/// All items that a search finds, in order, until one breaks off, which is `ECANCELED`. The kinds in it bound the first and the last object only, as the kernel has it.
pub(crate) fn each_item(
    fd: &OwnedFd,
    mut key: SearchKey,
    mut each: impl FnMut(&Item<'_>) -> ControlFlow<()>,
) -> Result<(), Errno> {
    for _ in 0..SEARCHES_MAX {
        let (count, found) = btrfs::search(fd, SearchKey { items: u32::MAX, ..key })?;
        let mut rest = &found[..];
        for _ in 0..count {
            let (item, behind) = first_item(rest).ok_or(Errno::BADMSG)?;
            if each(&item).is_break() {
                return Err(Errno::CANCELED);
            }
            // The search goes on after the last one.
            (key.min_object, key.min_type, key.min_offset) = match item.offset.checked_add(1) {
                Some(offset) => (item.object, item.kind, offset),
                None => (item.object, item.kind.saturating_add(1), 0),
            };
            rest = behind;
        }
        if count == 0 {
            return Ok(());
        }
    }
    Err(Errno::OVERFLOW)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_follow_one_another() {
        let item = |object: u64, data: &[u8]| {
            let length = u32::try_from(data.len()).unwrap();
            let numbers = [1, object, 3].map(u64::to_ne_bytes).concat();
            [&numbers[..], &132_u32.to_ne_bytes(), &length.to_ne_bytes(), data].concat()
        };
        let found = [item(256, b"abc"), item(257, b"")].concat();
        let (first, rest) = first_item(&found).unwrap();
        assert_eq!((first.object, first.offset, first.kind, first.data), (256, 3, 132, &b"abc"[..]));
        let (second, rest) = first_item(rest).unwrap();
        assert_eq!((second.object, second.data.len(), rest.len()), (257, 0, 0));
        assert!(first_item(rest).is_none() && first_item(&found[..34]).is_none(), "cut off");
    }
}
