//! What SMB clients store with an object: DOS flags, a birth time and a change time, in one extended attribute.

use std::time::SystemTime;

use rustix::fs::XattrFlags;
use rustix::io::Errno;
use storage::{
    CLOCK_TICK, Capabilities, Error, FileFlags, FileKind, Result, SetAttributes, Timestamp, from_errno,
};

use crate::attributes::{ctime_of, is_settled, stat};
use crate::node::LocalNode;
use crate::store::Reach;

/// The attribute's full name.
pub(crate) const DOS_XATTR: &str = "user.anabranch.dos";
/// The first byte of the value. A value of another version is ignored.
const VERSION: u8 = 1;
/// The second byte tells which parts are present.
const HAS_FLAGS: u8 = 1;
const HAS_BTIME: u8 = 2;
/// Two more times follow: the change time to show, and the time when it was set.
const HAS_CTIME: u8 = 4;
/// Version, presence, flags (32 bits), times: seconds (64) and nanoseconds (32) each, little-endian.
const BYTES_MAX: usize = 6 + 3 * 12;

/// The values; None for what was never set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Dos {
    pub(crate) flags: Option<FileFlags>,
    pub(crate) btime: Option<Timestamp>,
    /// The change time to show, and when it was set.
    ctime: Option<(Timestamp, Timestamp)>,
}

/// The values as last read. They are valid until the object's change time moves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownDos {
    dos: Dos,
    /// None: read within a tick of the last change, so another change may have the same time.
    as_of: Option<Timestamp>,
}

impl Dos {
    fn encode(&self) -> Vec<u8> {
        let has = |bit, present| if present { bit } else { 0 };
        let present = has(HAS_FLAGS, self.flags.is_some())
            | has(HAS_BTIME, self.btime.is_some())
            | has(HAS_CTIME, self.ctime.is_some());
        let mut bytes = vec![VERSION, present];
        bytes.extend_from_slice(&self.flags.unwrap_or_default().bits().to_le_bytes());
        let later = self.ctime.map_or([None, None], |(shown, set)| [Some(shown), Some(set)]);
        for time in [Some(self.btime.unwrap_or_default())].into_iter().chain(later).flatten() {
            bytes.extend_from_slice(&time.secs.to_le_bytes());
            bytes.extend_from_slice(&time.nanos.to_le_bytes());
        }
        bytes
    }

    /// Decodes a value; None for another version or a damaged value.
    fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[VERSION, present], rest) = bytes.split_first_chunk()? else { return None };
        let (flags, mut rest) = rest.split_first_chunk()?;
        let flags = FileFlags::from_bits_truncate(u32::from_le_bytes(*flags));
        let btime = decode_time(&mut rest)?;
        let (shown, set) = (decode_time(&mut rest), decode_time(&mut rest));
        let ctime = shown.flatten().zip(set.flatten());
        Some(Self {
            flags: (present & HAS_FLAGS != 0).then_some(flags),
            btime: btime.filter(|_| present & HAS_BTIME != 0),
            ctime: ctime.filter(|_| present & HAS_CTIME != 0),
        })
    }

    /// The change time to show, if setting it was the last change of the object. The file system's clock ticks: changes
    /// within a tick cannot be told apart.
    pub(crate) fn ctime_set(&self, ctime: Timestamp) -> Option<Timestamp> {
        let nanos = |time: Timestamp| i128::from(time.secs) * 1_000_000_000 + i128::from(time.nanos);
        let (shown, set) = self.ctime?;
        (nanos(ctime).abs_diff(nanos(set)) <= CLOCK_TICK.as_nanos()).then_some(shown)
    }
}

/// Takes a time off the front; None inside for an invalid time.
fn decode_time(rest: &mut &[u8]) -> Option<Option<Timestamp>> {
    let (secs, behind) = rest.split_first_chunk()?;
    let (nanos, behind) = behind.split_first_chunk()?;
    *rest = behind;
    let time = Timestamp { secs: i64::from_le_bytes(*secs), nanos: u32::from_le_bytes(*nanos) };
    Some(Some(time).filter(|time| time.nanos < 1_000_000_000))
}

impl KnownDos {
    /// For a new object, which has none of this, if it was not changed since then.
    pub(crate) fn none(ctime: Option<Timestamp>) -> Self {
        Self { dos: Dos::default(), as_of: ctime }
    }
}

impl LocalNode {
    /// Whether flags can be stored with this object.
    pub(crate) fn carries_dos(&self) -> bool {
        matches!(self.kind, FileKind::Regular | FileKind::Directory)
            && self.store.capabilities.contains(Capabilities::XATTRS)
    }

    /// The values of an object that was last changed at `ctime`.
    pub(crate) fn dos(&self, ctime: Timestamp, reach: Reach) -> Result<Dos> {
        let known = *self.dos.lock();
        match known {
            Some(known) if known.as_of == Some(ctime) => return Ok(known.dos),
            // The values lie beside the inode, which has just been changed, so they are in memory.
            Some(_) => {}
            None if reach == Reach::Device || self.store.is_in_memory => {}
            None => return Err(Error::WouldBlock),
        }
        let dos = self.read_dos()?;
        *self.dos.lock() = Some(KnownDos { dos, as_of: is_settled(ctime).then_some(ctime) });
        Ok(dos)
    }

    fn read_dos(&self) -> Result<Dos> {
        let mut bytes = [0; BYTES_MAX + 1];
        match self.fetch_xattr(DOS_XATTR, &mut bytes) {
            Ok(count) => Ok(bytes.get(..count).and_then(Dos::decode).unwrap_or_default()),
            // RANGE: too long for this version. ACCESS: a server without privileges, and a file that it may not read;
            // the other attributes are still useful.
            Err(Errno::NODATA | Errno::RANGE | Errno::OPNOTSUPP | Errno::ACCESS) => Ok(Dos::default()),
            Err(errno) => Err(from_errno(errno)),
        }
    }

    /// Sets what is given and keeps the rest, except for a change time that was set before: this is a change.
    pub(crate) fn set_dos(&self, set: &SetAttributes) -> Result<()> {
        // The lock is held throughout: of two concurrent changes, neither may undo the other.
        let mut known = self.dos.lock();
        let old = self.read_dos()?;
        let ctime = set.ctime.map(|shown| (shown, now()));
        let dos = Dos { flags: set.flags.or(old.flags), btime: set.btime.or(old.btime), ctime };
        self.put_xattr(DOS_XATTR, &dos.encode(), XattrFlags::empty()).map_err(from_errno)?;
        *known = Some(KnownDos { dos, as_of: Some(ctime_of(&stat(&self.fd)?)) });
        Ok(())
    }
}

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp { secs: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanos: since.subsec_nanos() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_on_disk() {
        let dos = Dos {
            flags: Some(FileFlags::HIDDEN | FileFlags::ARCHIVE),
            btime: Some(Timestamp { secs: -2, nanos: 5 }),
            ctime: None,
        };
        let bytes = dos.encode();
        let expected = b"\x01\x03\x22\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\x05\0\0\0";
        assert_eq!(bytes, expected);
        assert_eq!(Dos::decode(&bytes), Some(dos));
        let shown = Timestamp { secs: 1, nanos: 2 };
        let dos = Dos { ctime: Some((shown, Timestamp { secs: 3, nanos: 4 })), ..dos };
        let bytes = dos.encode();
        assert_eq!(bytes.len(), BYTES_MAX);
        assert_eq!(bytes[18..], *b"\x01\0\0\0\0\0\0\0\x02\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0");
        assert_eq!(Dos::decode(&bytes), Some(dos));
        assert_eq!(Dos::decode(&bytes[..BYTES_MAX - 1]), Some(Dos { ctime: None, ..dos }));
        assert_eq!(dos.ctime_set(Timestamp { secs: 3, nanos: 20_000_004 }), Some(shown));
        assert_eq!(dos.ctime_set(Timestamp { secs: 3, nanos: 20_000_005 }), None, "a later change");
        assert_eq!(Dos::decode(&Dos::default().encode()), Some(Dos::default()));
    }

    #[test]
    fn other_versions_and_damaged_values_are_none() {
        let mut bytes = Dos::default().encode();
        bytes[0] = 2;
        assert_eq!(Dos::decode(&bytes), None);
        assert_eq!(Dos::decode(&Dos::default().encode()[..17]), None);
        assert_eq!(Dos::decode(b""), None);
        let mut bytes = Dos { btime: Some(Timestamp::default()), ..Dos::default() }.encode();
        bytes[17] = 0xff;
        assert_eq!(Dos::decode(&bytes), Some(Dos::default()), "too many nanoseconds");
    }
}
