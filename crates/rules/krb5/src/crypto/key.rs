//! Keys that nobody sees.

use std::fmt;

use zeroize::Zeroizing;

use super::Enctype;

const KEY_LEN_MAX: usize = 32;

/// The bytes cannot be a key of this type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key of {} has {} bytes, not {given}", .enctype.name(), .enctype.key_len())]
pub struct KeyError {
    /// The type of the key
    pub enctype: Enctype,
    /// The number of bytes that there were
    pub given: usize,
}

/// A key with its type. Its memory is overwritten when it is dropped, and it is never shown.
#[derive(Clone)]
pub struct Key {
    enctype: Enctype,
    bytes: Zeroizing<[u8; KEY_LEN_MAX]>,
}

impl Key {
    /// A key from its bytes.
    ///
    /// # Errors
    /// [`KeyError`] if the number of bytes is wrong.
    pub fn new(enctype: Enctype, bytes: &[u8]) -> Result<Self, KeyError> {
        let wrong = KeyError { enctype, given: bytes.len() };
        let mut own = Zeroizing::new([0; KEY_LEN_MAX]);
        match own.get_mut(..enctype.key_len()) {
            Some(place) if place.len() == bytes.len() => place.copy_from_slice(bytes),
            _ => return Err(wrong),
        }
        Ok(Self { enctype, bytes: own })
    }

    /// A key of which the first bytes of `random` are the bytes.
    #[must_use]
    pub fn from_random(enctype: Enctype, random: &[u8; KEY_LEN_MAX]) -> Self {
        let mut bytes = Zeroizing::new([0; KEY_LEN_MAX]);
        for (byte, random) in bytes.iter_mut().zip(random).take(enctype.key_len()) {
            *byte = *random;
        }
        Self { enctype, bytes }
    }

    /// The type.
    #[must_use]
    pub fn enctype(&self) -> Enctype {
        self.enctype
    }

    /// The bytes: 16 or 32.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.enctype.key_len()).unwrap_or_default()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("enctype", &self.enctype).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_length_of_their_type() {
        for enctype in Enctype::ALL {
            for given in 0..40 {
                let key = Key::new(enctype, &vec![7; given]);
                assert_eq!(key.is_ok(), given == enctype.key_len(), "{enctype:?} {given}");
                assert_eq!(key.map(|key| key.as_bytes().len()).unwrap_or(given), given);
            }
        }
        let error = Key::new(Enctype::Aes256Sha1, &[1; 16]).unwrap_err();
        assert_eq!(error.to_string(), "a key of aes256-cts-hmac-sha1-96 has 32 bytes, not 16");
    }

    #[test]
    fn a_key_shows_nothing() {
        let shown = format!("{:?}", Key::new(Enctype::Aes128Sha1, &[0xab; 16]).unwrap());
        assert_eq!(shown, "Key { enctype: Aes128Sha1, .. }");
    }
}
