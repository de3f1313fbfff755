//! The length prefix of the Direct TCP transport, [MS-SMB2] 2.1: a zero byte and a big-endian length of 24
//! bits.

use crate::codec::WireError;

/// Bytes of the prefix.
pub const PREFIX_LEN: usize = 4;

/// The most bytes that a frame can have.
pub const FRAME_BYTES_MAX: usize = 0xFF_FFFF;

/// The number of bytes in the frame after this prefix.
///
/// # Errors
/// [`WireError::Invalid`] when the first byte is not zero. Nothing after it can be interpreted.
pub const fn decode_prefix(prefix: [u8; PREFIX_LEN]) -> Result<usize, WireError> {
    match prefix {
        [0, high, middle, low] => Ok(u32::from_le_bytes([low, middle, high, 0]) as usize),
        _ => Err(WireError::Invalid("the transport's length prefix")),
    }
}

/// The prefix of a frame of `length` bytes.
///
/// # Errors
/// [`WireError::TooLong`] above [`FRAME_BYTES_MAX`].
pub fn encode_prefix(length: usize) -> Result<[u8; PREFIX_LEN], WireError> {
    match u32::try_from(length).map(u32::to_le_bytes) {
        Ok([low, middle, high, 0]) => Ok([0, high, middle, low]),
        _ => Err(WireError::TooLong("frame")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_has_24_bits_and_the_first_byte_is_zero() {
        assert_eq!(decode_prefix([0, 1, 2, 3]), Ok(0x01_0203));
        assert_eq!(decode_prefix([0, 0xFF, 0xFF, 0xFF]), Ok(FRAME_BYTES_MAX));
        assert!(decode_prefix([0x85, 0, 0, 0]).is_err());
        assert_eq!(encode_prefix(0x01_0203), Ok([0, 1, 2, 3]));
        assert!(encode_prefix(FRAME_BYTES_MAX + 1).is_err());
    }
}
