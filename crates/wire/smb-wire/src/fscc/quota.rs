//! Lists of quotas: FILE_QUOTA_INFORMATION ([MS-FSCC] 2.4.41) and FILE_GET_QUOTA_INFORMATION (2.4.41.1).

use acl::Sid;

use super::next_entry::{DoesNotFit, Entries, EntryWriter};
use crate::codec::{Put, Reader, WireError, len_u32};
use crate::dtyp::FileTime;

/// Bytes of the longest SID: [`acl::SUB_AUTHORITIES_MAX`] sub-authorities.
const SID_BYTES_MAX: usize = 68;

/// What the files of a user occupy, and may occupy.
#[doc(alias = "FILE_QUOTA_INFORMATION")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// When the quota was changed. Ignored in a SET_INFO.
    pub change_time: FileTime,
    /// Bytes that are occupied. Ignored in a SET_INFO.
    pub used: i64,
    /// The user is warned above so many bytes; [`NO_LIMIT`]: never.
    pub threshold: i64,
    /// The most bytes; [`NO_LIMIT`], or [`DELETE`] in a SET_INFO.
    pub limit: i64,
    /// The user.
    pub sid: Sid,
}

/// A limit that limits nothing.
pub const NO_LIMIT: i64 = -1;
/// A limit that removes the quota.
pub const DELETE: i64 = -2;

/// Starts a list of quotas of at most `limit` bytes at the end of `out`. Entries are aligned to 8 bytes.
pub const fn writer(out: &mut Vec<u8>, limit: usize) -> EntryWriter<'_> {
    EntryWriter::new(out, limit, 8)
}

impl Quota {
    /// Appends the quota to a list.
    ///
    /// # Errors
    /// [`DoesNotFit`].
    pub fn push(&self, list: &mut EntryWriter<'_>) -> Result<(), DoesNotFit> {
        let sid_length = len_u32(self.sid.byte_len(), "SidLength").map_err(|_| DoesNotFit)?;
        list.push(|out| {
            out.put_u32(sid_length);
            self.change_time.put(out);
            for bytes in [self.used, self.threshold, self.limit] {
                out.put_u64(bytes.cast_unsigned());
            }
            self.sid.encode_into(out);
        })
    }

    /// The quotas of a list.
    pub fn list(list: &[u8]) -> impl Iterator<Item = Result<Self, WireError>> {
        Entries::new(list).map(|entry| {
            let mut r = Reader::new(entry?);
            r.skip(4)?;
            let sid_length = r.len32()?;
            Ok(Self {
                change_time: FileTime::read(&mut r)?,
                used: r.u64()?.cast_signed(),
                threshold: r.u64()?.cast_signed(),
                limit: r.u64()?.cast_signed(),
                sid: sid(&mut r, sid_length)?,
            })
        })
    }
}

/// The users in a FILE_GET_QUOTA_INFORMATION list: those whose quotas a QUERY_INFO asks for.
pub fn sids(list: &[u8]) -> impl Iterator<Item = Result<Sid, WireError>> {
    Entries::new(list).map(|entry| {
        let mut r = Reader::new(entry?);
        r.skip(4)?;
        let length = r.len32()?;
        sid(&mut r, length)
    })
}

/// Starts a FILE_GET_QUOTA_INFORMATION list of at most `limit` bytes at the end of `out`. Entries are aligned to 4 bytes.
pub const fn sid_writer(out: &mut Vec<u8>, limit: usize) -> EntryWriter<'_> {
    EntryWriter::new(out, limit, 4)
}

/// Appends a user to such a list.
///
/// # Errors
/// [`DoesNotFit`].
pub fn push_sid(list: &mut EntryWriter<'_>, sid: &Sid) -> Result<(), DoesNotFit> {
    let length = len_u32(sid.byte_len(), "SidLength").map_err(|_| DoesNotFit)?;
    list.push(|out| {
        out.put_u32(length);
        sid.encode_into(out);
    })
}

/// A SID that has so many bytes.
pub(crate) fn sid(r: &mut Reader<'_>, length: usize) -> Result<Sid, WireError> {
    if length > SID_BYTES_MAX {
        return Err(WireError::TooLong("SidLength"));
    }
    let sid = Sid::decode(r.bytes(length)?)?;
    if sid.byte_len() == length { Ok(sid) } else { Err(WireError::Invalid("SidLength")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(text: &str) -> Sid {
        text.parse().unwrap()
    }

    #[test]
    fn a_quota_is_laid_out_as_specified() {
        let quota = Quota {
            change_time: FileTime(0x0102),
            used: 4096,
            threshold: NO_LIMIT,
            limit: 1 << 30,
            sid: user("S-1-22-1-1000"),
        };
        let mut out = Vec::new();
        let mut list = writer(&mut out, 4096);
        quota.push(&mut list).unwrap();
        quota.push(&mut list).unwrap();
        // [MS-FSCC] 2.4.41: NextEntryOffset, SidLength, ChangeTime, QuotaUsed, QuotaThreshold, QuotaLimit, Sid.
        let mut entry = vec![56, 0, 0, 0, 16, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0];
        entry.extend([0xFF; 8]);
        entry.extend([0, 0, 0, 0x40, 0, 0, 0, 0]);
        entry.extend([1, 2, 0, 0, 0, 0, 0, 22, 1, 0, 0, 0, 0xE8, 3, 0, 0]);
        assert_eq!(&out[..56], entry);
        assert_eq!(out.len(), 112);
        assert_eq!(Quota::list(&out).collect::<Result<Vec<_>, _>>(), Ok(vec![quota, quota]));
    }

    #[test]
    fn a_sid_has_the_length_that_is_told() {
        let mut out = Vec::new();
        push_sid(&mut sid_writer(&mut out, 100), &user("S-1-5-21-1-2-3-1000")).unwrap();
        assert_eq!(sids(&out).collect::<Vec<_>>(), [Ok(user("S-1-5-21-1-2-3-1000"))]);
        for (length, error) in [
            (27, WireError::Truncated),
            (29, WireError::Truncated),
            (68, WireError::Truncated),
            (69, WireError::TooLong("SidLength")),
            (0, WireError::Truncated),
            (u8::MAX, WireError::TooLong("SidLength")),
        ] {
            out[4] = length;
            assert_eq!(sids(&out).collect::<Vec<_>>(), [Err(error)], "{length}");
        }
        out.extend([0; 4]);
        out[4] = 32;
        assert_eq!(sids(&out).collect::<Vec<_>>(), [Err(WireError::Invalid("SidLength"))]);
        // More sub-authorities than a SID has.
        (out[4], out[9]) = (28, 16);
        assert!(sids(&out).next().unwrap().is_err());
    }
}
