//! The data types that every message uses: FILETIME and GUID ([MS-DTYP] 2.3.3, 2.3.4), FileId ([MS-SMB2] 2.2.14.1).

use std::fmt;

use crate::codec::{Put, Reader, WireError};

/// 100-nanosecond units since 1601-01-01 UTC.
#[doc(alias = "FILETIME")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileTime(pub u64);

/// Seconds from 1601-01-01 to 1970-01-01.
const UNIX_EPOCH_SECONDS: i64 = 11_644_473_600;

const UNITS_PER_SECOND: u64 = 10_000_000;

impl FileTime {
    /// No time. In [MS-FSCC] FileBasicInformation: leave this time unchanged.
    pub const UNSET: Self = Self(0);

    /// In FileBasicInformation: stop updating this time for operations on this open.
    pub const SUSPEND_UPDATES: Self = Self(u64::MAX);

    /// In FileBasicInformation: update this time again for operations on this open.
    pub const RESUME_UPDATES: Self = Self(u64::MAX - 1);

    /// The latest time; [MS-DTYP] and Windows treat a FILETIME as a signed number.
    pub const MAX: Self = Self(i64::MAX as u64);

    /// The time as seconds and nanoseconds since 1970-01-01 UTC.
    #[must_use]
    pub fn to_unix(self) -> (i64, u32) {
        let seconds = i64::try_from(self.0 / UNITS_PER_SECOND).unwrap_or(i64::MAX);
        let nanos = u32::try_from((self.0 % UNITS_PER_SECOND).saturating_mul(100)).unwrap_or(0);
        (seconds.saturating_sub(UNIX_EPOCH_SECONDS), nanos)
    }

    /// The time `seconds` + `nanos` since 1970-01-01 UTC, truncated to 100 nanoseconds. A time before 1601 or after
    /// [`Self::MAX`] becomes the nearest valid time; nanoseconds beyond a second are cut off.
    #[must_use]
    pub fn from_unix(seconds: i64, nanos: u32) -> Self {
        let units = u64::from(nanos.min(999_999_999) / 100);
        match u64::try_from(seconds.saturating_add(UNIX_EPOCH_SECONDS)) {
            Err(_) => Self(0),
            Ok(seconds) => {
                Self(seconds.saturating_mul(UNITS_PER_SECOND).saturating_add(units).min(Self::MAX.0))
            }
        }
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, WireError> {
        r.u64().map(Self)
    }

    pub(crate) fn put(self, out: &mut Vec<u8>) {
        out.put_u64(self.0);
    }
}

/// A GUID, as its 16 bytes on the wire.
#[doc(alias = "GUID")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Guid(pub [u8; 16]);

impl Guid {
    /// All zeros.
    pub const ZERO: Self = Self([0; 16]);

    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, WireError> {
        r.array().map(Self)
    }

    pub(crate) fn put(self, out: &mut Vec<u8>) {
        out.put(&self.0);
    }
}

/// `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`; the first three groups are little-endian numbers.
impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g, h, i, j, k, l, m, n, o, p, q] = self.0;
        write!(
            f,
            "{d:02x}{c:02x}{b:02x}{a:02x}-{g:02x}{e:02x}-{i:02x}{h:02x}-{j:02x}{k:02x}-\
             {l:02x}{m:02x}{n:02x}{o:02x}{p:02x}{q:02x}"
        )
    }
}

impl fmt::Debug for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The identifier of an open.
#[doc(alias = "SMB2_FILEID")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct FileId {
    /// The half that survives a disconnection.
    pub persistent: u64,
    /// The half that does not survive a disconnection.
    pub volatile: u64,
}

impl FileId {
    /// In a related request: the file of the previous request. In some IOCTLs: no file.
    pub const ANY: Self = Self { persistent: u64::MAX, volatile: u64::MAX };

    #[inline]
    pub(crate) fn read(r: &mut Reader<'_>) -> Result<Self, WireError> {
        Ok(Self { persistent: r.u64()?, volatile: r.u64()? })
    }

    pub(crate) fn put(self, out: &mut Vec<u8>) {
        out.put_u64(self.persistent);
        out.put_u64(self.volatile);
    }
}

/// `persistent:volatile` in hexadecimal.
impl fmt::Debug for FileId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}:{:x}", self.persistent, self.volatile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        // 1970-01-01, 2000-01-01 00:00:00.1234567, 1969-12-31 23:59:59.5
        assert_eq!(FileTime::from_unix(0, 0).0, 116_444_736_000_000_000);
        assert_eq!(FileTime::from_unix(946_684_800, 123_456_789).0, 125_911_584_001_234_567);
        assert_eq!(FileTime::from_unix(-1, 500_000_000).0, 116_444_735_995_000_000);
        assert_eq!(FileTime(116_444_735_995_000_000).to_unix(), (-1, 500_000_000));
    }

    #[test]
    fn times_out_of_range_become_the_nearest() {
        assert_eq!(FileTime::from_unix(i64::MIN, 0), FileTime(0));
        assert_eq!(FileTime::from_unix(-UNIX_EPOCH_SECONDS - 1, 999_999_999), FileTime(0));
        assert_eq!(FileTime::from_unix(-UNIX_EPOCH_SECONDS, 0), FileTime(0));
        assert_eq!(FileTime::from_unix(i64::MAX, 999_999_999), FileTime::MAX);
        assert_eq!(FileTime::from_unix(0, u32::MAX), FileTime::from_unix(0, 999_999_999));
        let (seconds, nanos) = FileTime::SUSPEND_UPDATES.to_unix();
        assert!(seconds > 0 && nanos < 1_000_000_000);
    }

    #[test]
    fn guids_show_their_first_groups_swapped() {
        let guid =
            Guid([0x04, 0x5d, 0x88, 0x8a, 0xeb, 0x1c, 0xc9, 0x11, 0x9f, 0xe8, 8, 0, 0x2b, 0x10, 0x48, 0x60]);
        assert_eq!(guid.to_string(), "8a885d04-1ceb-11c9-9fe8-08002b104860");
    }
}
