//! LOCK, [MS-SMB2] 2.2.26 and 2.2.27.

use bitflags::bitflags;

use crate::codec::{Put, Reader, WireError, len_u16};
use crate::dtyp::FileId;

bitflags! {
    /// `Flags` of a lock element.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct LockFlags: u32 {
        /// SMB2_LOCKFLAG_SHARED_LOCK
        const SHARED_LOCK = 0x0000_0001;
        /// SMB2_LOCKFLAG_EXCLUSIVE_LOCK
        const EXCLUSIVE_LOCK = 0x0000_0002;
        /// SMB2_LOCKFLAG_UNLOCK
        const UNLOCK = 0x0000_0004;
        /// SMB2_LOCKFLAG_FAIL_IMMEDIATELY
        const FAIL_IMMEDIATELY = 0x0000_0010;
        const _ = !0;
    }
}

/// One range to lock or unlock.
#[doc(alias = "SMB2_LOCK_ELEMENT")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockElement {
    /// Offset of the first byte.
    pub offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// The operation.
    pub flags: LockFlags,
}

/// A LOCK request.
#[doc(alias = "SMB2_LOCK_REQUEST")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `LockSequenceNumber`, 4 bits (not in SMB 2.0.2).
    pub lock_sequence_number: u8,
    /// `LockSequenceIndex`, 28 bits (not in SMB 2.0.2); 0 means none.
    pub lock_sequence_index: u32,
    /// The open.
    pub file_id: FileId,
    /// At least one range.
    pub locks: Vec<LockElement>,
}

impl Request {
    /// Decodes the body of `message`.
    ///
    /// # Errors
    /// [`WireError::Truncated`] or [`WireError::StructureSize`]; [`WireError::Invalid`] without a lock
    /// element.
    pub fn decode(message: &[u8]) -> Result<Self, WireError> {
        // StructureSize counts the fixed part (24 bytes) and the first lock element.
        let mut r = Reader::body::<48>(message, 48)?;
        let count = r.len16()?;
        let lock_sequence = r.u32()?;
        let file_id = FileId::read(&mut r)?;
        if count == 0 {
            return Err(WireError::Invalid("LockCount"));
        }
        let mut list = Reader::new(message.get(64 + 24..).ok_or(WireError::Truncated)?);
        let mut list = Reader::new(list.bytes(count.saturating_mul(24))?);
        let mut locks = Vec::with_capacity(count);
        while !list.is_empty() {
            let (offset, length) = (list.u64()?, list.u64()?);
            let flags = LockFlags::from_bits_retain(list.u32()?);
            list.skip(4)?;
            locks.push(LockElement { offset, length, flags });
        }
        let [number, ..] = (lock_sequence & 0xF).to_le_bytes();
        Ok(Self { lock_sequence_number: number, lock_sequence_index: lock_sequence >> 4, file_id, locks })
    }

    /// Appends the body.
    ///
    /// # Errors
    /// [`WireError::TooLong`], also for a lock sequence that does not fit.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), WireError> {
        if self.lock_sequence_number > 0xF || self.lock_sequence_index > 0x0FFF_FFFF {
            return Err(WireError::TooLong("LockSequence"));
        }
        out.put_u16(48);
        out.put_u16(len_u16(self.locks.len(), "Locks")?);
        out.put_u32(u32::from(self.lock_sequence_number) | self.lock_sequence_index << 4);
        self.file_id.put(out);
        for lock in &self.locks {
            out.put_u64(lock.offset);
            out.put_u64(lock.length);
            out.put_u32(lock.flags.bits());
            out.put_u32(0);
        }
        Ok(())
    }
}

empty_body! {
    /// All ranges are locked, or all are unlocked.
    #[doc(alias = "SMB2_LOCK_RESPONSE")]
    Response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_lock_and_room_for_all() {
        let message = |count: u8, length: usize| {
            let mut message = vec![0; 64];
            message.extend([48, 0, count, 0, 0x21, 0, 0, 0]);
            message.resize(64 + length, 0);
            message
        };
        let request = Request::decode(&message(1, 48)).unwrap();
        assert_eq!((request.lock_sequence_number, request.lock_sequence_index), (1, 2));
        assert_eq!(Request::decode(&message(0, 48)), Err(WireError::Invalid("LockCount")));
        assert_eq!(Request::decode(&message(2, 48 + 23)), Err(WireError::Truncated));
        assert_eq!(Request::decode(&message(2, 48 + 24)).unwrap().locks.len(), 2);
        assert_eq!(Request::decode(&message(1, 47)), Err(WireError::Truncated));
    }

    #[test]
    fn a_lock_sequence_has_4_and_28_bits() {
        let request = |number, index| Request {
            lock_sequence_number: number,
            lock_sequence_index: index,
            file_id: FileId::ANY,
            locks: Vec::new(),
        };
        assert!(request(15, 0x0FFF_FFFF).encode(&mut Vec::new()).is_ok());
        assert!(request(16, 0).encode(&mut Vec::new()).is_err());
        assert!(request(0, 0x1000_0000).encode(&mut Vec::new()).is_err());
    }
}
