//! The number that leads from an object to its streams.

use std::fmt::Write as _;

/// The first byte of the attribute's value. A value of another version is ignored.
const VERSION: u8 = 1;
/// How long a number is, in bytes.
const BYTES: usize = 16;

/// A random number, which no two objects have by accident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamsNumber([u8; BYTES]);

impl StreamsNumber {
    /// The attribute that holds it where the store may write such attributes: nobody else can change it then (xattr(7),
    /// "Trusted extended attributes").
    pub const TRUSTED_XATTR: &str = "trusted.anabranch.streams";
    /// The attribute that holds it elsewhere.
    pub const USER_XATTR: &str = "user.anabranch.streams";
    /// How long the attribute's value is, in bytes.
    pub const XATTR_BYTES: usize = 1 + BYTES;

    /// The number that consists of these bytes, which must be random.
    #[must_use]
    pub const fn new(random: [u8; BYTES]) -> Self {
        Self(random)
    }

    /// The attribute's value: a version, and the number.
    #[must_use]
    pub fn encode(&self) -> [u8; Self::XATTR_BYTES] {
        let mut value = [VERSION; Self::XATTR_BYTES];
        let (_, number) = value.split_at_mut(1);
        number.copy_from_slice(&self.0);
        value
    }

    /// The number in an attribute's value; None for another version or a damaged value.
    #[must_use]
    pub fn decode(value: &[u8]) -> Option<Self> {
        let (&[VERSION], number) = value.split_first_chunk()? else { return None };
        number.try_into().ok().map(Self)
    }

    /// The name of the directory in the depot: 32 hexadecimal digits.
    #[must_use]
    pub fn folder_name(&self) -> String {
        self.0.iter().fold(String::new(), |mut name, byte| {
            let _ = write!(name, "{byte:02x}");
            name
        })
    }

    /// The number whose directory has this name; None for other names.
    #[must_use]
    pub fn of_folder(name: &[u8]) -> Option<Self> {
        let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if name.len() != 2 * BYTES || !name.iter().all(is_digit) {
            return None;
        }
        u128::from_str_radix(std::str::from_utf8(name).ok()?, 16)
            .ok()
            .map(|number| Self(number.to_be_bytes()))
    }

    /// Which of `count` locks guards what has this number.
    #[must_use]
    pub fn lock_of(&self, count: usize) -> usize {
        let [first, ..] = self.0;
        usize::from(first).checked_rem(count).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES_IN_ORDER: [u8; 16] =
        [0x00, 0x01, 0x0a, 0xa0, 0xff, 0x80, 0x7f, 0x10, 8, 9, 0xde, 0xad, 0xbe, 0xef, 14, 15];

    #[test]
    fn the_name_of_the_directory() {
        let number = StreamsNumber::new(BYTES_IN_ORDER);
        assert_eq!(number.folder_name(), "00010aa0ff807f100809deadbeef0e0f");
        assert_eq!(StreamsNumber::of_folder(number.folder_name().as_bytes()), Some(number));
        for other in [
            &b""[..],
            b"00010aa0ff807f100809deadbeef0e0",
            b"00010aa0ff807f100809deadbeef0e0f0",
            b"00010AA0FF807F100809DEADBEEF0E0F",
            b"+0010aa0ff807f100809deadbeef0e0f",
            b"81.01ab00ff",
            b"0123456789abcdef",
        ] {
            assert_eq!(StreamsNumber::of_folder(other), None, "{other:?}");
        }
    }

    #[test]
    fn the_value_on_disk() {
        let number = StreamsNumber::new(BYTES_IN_ORDER);
        let value = number.encode();
        assert_eq!(value[0], 1);
        assert_eq!(value[1..], BYTES_IN_ORDER);
        assert_eq!(StreamsNumber::decode(&value), Some(number));
        assert_eq!(StreamsNumber::decode(&value[..16]), None, "too short");
        assert_eq!(StreamsNumber::decode(&[&value[..], b"x"].concat()), None, "too long");
        let mut other = value;
        other[0] = 2;
        assert_eq!(StreamsNumber::decode(&other), None, "another version");
        assert_eq!(StreamsNumber::decode(b""), None);
    }

    #[test]
    fn every_number_has_a_lock() {
        assert!((0..=255).all(|first| StreamsNumber::new([first; 16]).lock_of(64) < 64));
        assert_eq!(StreamsNumber::new([7; 16]).lock_of(0), 0);
    }
}
