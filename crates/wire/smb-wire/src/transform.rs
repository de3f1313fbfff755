//! The TRANSFORM_HEADER of encrypted messages, [MS-SMB2] 2.2.41.

use std::ops::Range;

use crate::codec::{Put, Reader, WireError};

/// Bytes of a transform header.
pub const LEN: usize = 52;

/// The first four bytes of an encrypted message.
pub const PROTOCOL_ID: [u8; 4] = [0xFD, b'S', b'M', b'B'];

/// The part of the header that the signature covers in addition to the message ("additional authenticated data",
/// [MS-SMB2] 3.1.4.3): everything from the nonce on.
pub const AAD: Range<usize> = 20..52;

/// The place of the signature (the AEAD tag).
pub const SIGNATURE: Range<usize> = 4..20;

/// `Flags` (SMB 3.1.1) or `EncryptionAlgorithm` (SMB 3.0, 3.0.2). Both define only this value: "encrypted" or
/// "AES-128-CCM".
pub const FLAG_ENCRYPTED: u16 = 0x0001;

/// A transform header.
#[doc(alias = "SMB2_TRANSFORM_HEADER")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransformHeader {
    /// The AEAD tag.
    pub signature: [u8; 16],
    /// 11 (CCM) or 12 (GCM) bytes of nonce, then zeros.
    pub nonce: [u8; 16],
    /// Bytes of the plaintext message, which equals the number of bytes after this header.
    pub original_message_size: u32,
    /// [`FLAG_ENCRYPTED`].
    pub flags: u16,
    /// The session whose key was used.
    pub session_id: u64,
}

impl TransformHeader {
    /// Decodes the transform header at the start of a frame.
    ///
    /// # Errors
    /// [`WireError::Truncated`], [`WireError::ProtocolId`]; [`WireError::Invalid`] when the flags are not
    /// [`FLAG_ENCRYPTED`]; [`WireError::OutOfBounds`] when the number of bytes after the header differs from
    /// `OriginalMessageSize`.
    pub fn decode(frame: &[u8]) -> Result<Self, WireError> {
        let (fixed, message) = frame.split_first_chunk::<LEN>().ok_or(WireError::Truncated)?;
        let mut r = Reader::new(fixed);
        if r.array::<4>()? != PROTOCOL_ID {
            return Err(WireError::ProtocolId);
        }
        let (signature, nonce, original_message_size) = (r.array()?, r.array()?, r.u32()?);
        r.skip(2)?;
        let (flags, session_id) = (r.u16()?, r.u64()?);
        if flags != FLAG_ENCRYPTED {
            return Err(WireError::Invalid("Flags of the transform header"));
        }
        if message.len() != original_message_size as usize {
            return Err(WireError::OutOfBounds("OriginalMessageSize"));
        }
        Ok(Self { signature, nonce, original_message_size, flags, session_id })
    }

    /// The header in wire form.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[0..4].copy_from_slice(&PROTOCOL_ID);
        bytes[4..20].copy_from_slice(&self.signature);
        bytes[20..36].copy_from_slice(&self.nonce);
        bytes[36..40].copy_from_slice(&self.original_message_size.to_le_bytes());
        bytes[42..44].copy_from_slice(&self.flags.to_le_bytes());
        bytes[44..52].copy_from_slice(&self.session_id.to_le_bytes());
        bytes
    }

    /// Appends the header.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        out.put(&self.to_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(flags: u16, size: u32) -> Vec<u8> {
        let header = TransformHeader {
            signature: [1; 16],
            nonce: [2; 16],
            original_message_size: size,
            flags,
            session_id: 3,
        };
        [header.to_bytes().to_vec(), vec![0; 10]].concat()
    }

    #[test]
    fn size_flags_and_protocol_are_checked() {
        assert!(TransformHeader::decode(&frame(1, 10)).is_ok());
        for size in [9, 11, u32::MAX] {
            let error = WireError::OutOfBounds("OriginalMessageSize");
            assert_eq!(TransformHeader::decode(&frame(1, size)), Err(error));
        }
        for flags in [0, 2, 3] {
            assert!(matches!(TransformHeader::decode(&frame(flags, 10)), Err(WireError::Invalid(_))));
        }
        assert_eq!(TransformHeader::decode(&frame(1, 10)[..51]), Err(WireError::Truncated));
        let mut other = frame(1, 10);
        other[..4].copy_from_slice(&crate::compression::PROTOCOL_ID);
        assert_eq!(TransformHeader::decode(&other), Err(WireError::ProtocolId));
    }

    #[test]
    fn the_authenticated_part_starts_at_the_nonce() {
        let bytes = frame(1, 10);
        assert_eq!(bytes[AAD][..16], [2; 16]);
        assert_eq!(bytes[SIGNATURE], [1; 16]);
        assert_eq!(AAD.end, LEN);
    }
}
