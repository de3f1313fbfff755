//! What SMB clients store with an object, as stores keep it in one extended attribute: DOS flags, a birth time and a change
//! time.

use crate::{CLOCK_TICK, FileFlags, SetAttributes, Timestamp};

/// The first byte of the value. A value of another version is ignored.
const VERSION: u8 = 1;
/// The second byte tells which parts are present.
const HAS_FLAGS: u8 = 1;
const HAS_BTIME: u8 = 2;
/// Two more times follow: the change time to show, and the time when it was set.
const HAS_CTIME: u8 = 4;
/// The longest value in bytes: version, presence, flags (32 bits), times: seconds (64) and nanoseconds (32) each,
/// little-endian.
pub const DOS_BYTES_MAX: usize = 6 + 3 * 12;

/// The values; None for what was never set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoredDos {
    /// The flags.
    pub flags: Option<FileFlags>,
    /// The birth time.
    pub btime: Option<Timestamp>,
    /// The change time to show, and when it was set.
    pub ctime: Option<(Timestamp, Timestamp)>,
}

impl StoredDos {
    /// What is set is changed, at `now`, and the rest is kept, except for a change time that was set before: this is a
    /// change.
    #[must_use]
    pub fn changed_by(&self, set: &SetAttributes, now: Timestamp) -> Self {
        let ctime = set.ctime.map(|shown| (shown, now));
        Self { flags: set.flags.or(self.flags), btime: set.btime.or(self.btime), ctime }
    }

    /// The value of the attribute.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
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
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
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
    #[must_use]
    pub fn ctime_set(&self, ctime: Timestamp) -> Option<Timestamp> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_value_on_disk() {
        let dos = StoredDos {
            flags: Some(FileFlags::HIDDEN | FileFlags::ARCHIVE),
            btime: Some(Timestamp { secs: -2, nanos: 5 }),
            ctime: None,
        };
        let bytes = dos.encode();
        let expected = b"\x01\x03\x22\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff\x05\0\0\0";
        assert_eq!(bytes, expected);
        assert_eq!(StoredDos::decode(&bytes), Some(dos));
        let shown = Timestamp { secs: 1, nanos: 2 };
        let dos = StoredDos { ctime: Some((shown, Timestamp { secs: 3, nanos: 4 })), ..dos };
        let bytes = dos.encode();
        assert_eq!(bytes.len(), DOS_BYTES_MAX);
        assert_eq!(bytes[18..], *b"\x01\0\0\0\0\0\0\0\x02\0\0\0\x03\0\0\0\0\0\0\0\x04\0\0\0");
        assert_eq!(StoredDos::decode(&bytes), Some(dos));
        assert_eq!(StoredDos::decode(&bytes[..DOS_BYTES_MAX - 1]), Some(StoredDos { ctime: None, ..dos }));
        assert_eq!(dos.ctime_set(Timestamp { secs: 3, nanos: 20_000_004 }), Some(shown));
        assert_eq!(dos.ctime_set(Timestamp { secs: 3, nanos: 20_000_005 }), None, "a later change");
        assert_eq!(StoredDos::decode(&StoredDos::default().encode()), Some(StoredDos::default()));
    }

    #[test]
    fn other_versions_and_damaged_values_are_none() {
        let mut bytes = StoredDos::default().encode();
        bytes[0] = 2;
        assert_eq!(StoredDos::decode(&bytes), None);
        assert_eq!(StoredDos::decode(&StoredDos::default().encode()[..17]), None);
        assert_eq!(StoredDos::decode(b""), None);
        let mut bytes = StoredDos { btime: Some(Timestamp::default()), ..StoredDos::default() }.encode();
        bytes[17] = 0xff;
        assert_eq!(StoredDos::decode(&bytes), Some(StoredDos::default()), "too many nanoseconds");
    }
}
