//! SMB2_QUERY_QUOTA_INFO: which quotas a QUERY_INFO asks for. [MS-SMB2] 2.2.37.1.

use acl::Sid;

use crate::codec::{Put, Reader, WireError, len_u32};
use crate::fscc::quota;

/// The quotas that a client asks for.
#[doc(alias = "SMB2_QUERY_QUOTA_INFO")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryQuota<'a> {
    /// Whether one quota at most is returned.
    pub return_single: bool,
    /// Whose quotas.
    pub of: Of<'a>,
}

/// Whose quotas are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of<'a> {
    /// Those of the users in this FILE_GET_QUOTA_INFORMATION list ([`quota::sids`]).
    Listed(&'a [u8]),
    /// Those of all users, from this one.
    From(Sid),
    /// Those of all users, from the first.
    First,
    /// Those of all users that come after what this open was told last.
    Next,
}

impl<'a> QueryQuota<'a> {
    /// Bytes without SIDs.
    pub const FIXED_LEN: usize = 16;

    /// Decodes the structure.
    ///
    /// # Errors
    /// [`WireError`], also for a list of users whose length is no multiple of 4 ([MS-FSA] 2.1.5.21).
    pub fn decode(bytes: &'a [u8]) -> Result<Self, WireError> {
        let mut r = Reader::new(bytes);
        let (return_single, restart) = (r.u8()? != 0, r.u8()? != 0);
        r.skip(2)?;
        let (list_length, start_length, start_offset) = (r.len32()?, r.len32()?, r.len32()?);
        let of = if list_length > 0 {
            if !list_length.is_multiple_of(4) {
                return Err(WireError::Invalid("SidListLength"));
            }
            Of::Listed(r.bytes(list_length)?)
        } else if start_length > 0 {
            r.skip(start_offset)?;
            Of::From(quota::sid(&mut r, start_length)?)
        } else if restart && start_offset == 0 {
            Of::First
        } else {
            // 3.3.5.20.4: with any of the other fields, RestartScan is ignored.
            Of::Next
        };
        Ok(Self { return_single, of })
    }

    /// Appends the structure.
    ///
    /// # Errors
    /// [`WireError::TooLong`].
    pub fn encode_into(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        let mut start = Vec::new();
        let (list, restart): (&[u8], bool) = match &self.of {
            Of::Listed(list) => (list, false),
            Of::From(sid) => {
                sid.encode_into(&mut start);
                (&[], false)
            }
            Of::First => (&[], true),
            Of::Next => (&[], false),
        };
        out.put(&[self.return_single.into(), restart.into(), 0, 0]);
        out.put_u32(len_u32(list.len(), "SidListLength")?);
        out.put_u32(len_u32(start.len(), "StartSidLength")?);
        out.put_u32(0);
        out.put(list);
        out.put(&start);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(single: u8, restart: u8, lengths: [u32; 3], sids: &[u8]) -> Vec<u8> {
        let mut bytes = vec![single, restart, 0, 0];
        lengths.iter().for_each(|length| bytes.put_u32(*length));
        bytes.put(sids);
        bytes
    }

    #[test]
    fn what_is_asked_for_is_what_the_lengths_say() {
        let sid: Sid = "S-1-22-1-7".parse().unwrap();
        let mut encoded = Vec::new();
        sid.encode_into(&mut encoded);
        let of = |bytes: &[u8]| QueryQuota::decode(bytes).map(|query| format!("{:?}", query.of));
        let told = |of: Of<'_>| Ok(format!("{of:?}"));
        assert_eq!(of(&request(0, 1, [0, 0, 0], &[])), told(Of::First));
        assert_eq!(of(&request(0, 0, [0, 0, 0], &[])), told(Of::Next));
        assert_eq!(of(&request(0, 1, [0, 0, 8], &[])), told(Of::Next));
        assert_eq!(of(&request(0, 1, [0, 16, 0], &encoded)), told(Of::From(sid)));
        let behind = [&[0; 4], &encoded[..]].concat();
        assert_eq!(of(&request(0, 1, [0, 16, 4], &behind)), told(Of::From(sid)));
        // A list is read although there is a start as well.
        assert_eq!(of(&request(1, 1, [8, 16, 0], &[9; 24])), told(Of::Listed(&[9; 8])));
        for (lengths, sids) in [
            ([6, 0, 0], &[0; 8][..]),
            ([12, 0, 0], &[0; 8]),
            ([u32::MAX - 3, 0, 0], &[0; 8]),
            ([0, 16, 1], &encoded),
            ([0, 16, u32::MAX], &encoded),
            ([0, 15, 0], &encoded),
            ([0, u32::MAX, 0], &encoded),
        ] {
            assert!(of(&request(0, 1, lengths, sids)).is_err(), "{lengths:?}");
        }
        assert!(of(&[0; 15]).is_err() && of(&[]).is_err());
    }

    #[test]
    fn what_is_written_is_read() {
        for of in [Of::Listed(&[1, 2, 3, 4]), Of::From(Sid::EVERYONE), Of::First, Of::Next] {
            for return_single in [false, true] {
                let (query, mut bytes) = (QueryQuota { return_single, of }, Vec::new());
                query.encode_into(&mut bytes).unwrap();
                assert_eq!(QueryQuota::decode(&bytes), Ok(query));
            }
        }
    }
}
