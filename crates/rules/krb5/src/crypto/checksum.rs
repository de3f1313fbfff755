//! Keyed checksums: an HMAC, cut to the length of the encryption type. RFC 3961 5.4, RFC 8009 6.

use std::fmt;

use aws_lc_rs::{constant_time, hmac};

use super::{CryptoError, Enctype};

const TAG_LEN_MAX: usize = 24;

/// A checksum: 12 to 24 bytes.
#[derive(Clone, Copy)]
pub struct Tag {
    bytes: [u8; TAG_LEN_MAX],
    length: usize,
}

impl AsRef<[u8]> for Tag {
    fn as_ref(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

/// Makes and checks the checksums of one key for one purpose.
pub struct ChecksumKey {
    enctype: Enctype,
    key: hmac::Key,
}

impl ChecksumKey {
    pub(super) fn new(enctype: Enctype, key: &[u8]) -> Self {
        Self { enctype, key: hmac::Key::new(enctype.hmac(), key) }
    }

    /// The type of the key.
    #[must_use]
    pub fn enctype(&self) -> Enctype {
        self.enctype
    }

    /// The checksum over all parts.
    #[must_use]
    pub fn tag(&self, parts: &[&[u8]]) -> Tag {
        let mut context = hmac::Context::with_key(&self.key);
        parts.iter().for_each(|part| context.update(part));
        let whole = context.sign();
        let mut bytes = [0; TAG_LEN_MAX];
        bytes.iter_mut().zip(whole.as_ref()).for_each(|(byte, made)| *byte = *made);
        Tag { bytes, length: self.enctype.tag_len() }
    }

    /// Whether this is the checksum over all parts, in constant time.
    ///
    /// # Errors
    /// [`CryptoError`] if it is not.
    pub fn verify(&self, parts: &[&[u8]], tag: &[u8]) -> Result<(), CryptoError> {
        Ok(constant_time::verify_slices_are_equal(self.tag(parts).as_ref(), tag)?)
    }
}

impl fmt::Debug for ChecksumKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChecksumKey").field("enctype", &self.enctype).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::{Key, KeyUsage, hex};

    /// RFC 8009 appendix A, "Sample checksums".
    #[test]
    fn the_vectors_of_the_specification() {
        let vectors = [
            (Enctype::Aes128Sha256, "3705d96080c17728a0e800eab6e0d23c", "d78367186643d67b411cba9139fc1dee"),
            (
                Enctype::Aes256Sha384,
                "6d404d37faf79f9df0d33568d320669800eb4836472ea8a026d16b7182460c52",
                "45ee791567eefca37f4ac1e0222de80d43c3bfa06699672a",
            ),
        ];
        let text = hex("000102030405060708090a0b0c0d0e0f1011121314");
        for (enctype, key, expected) in vectors {
            let key = Key::new(enctype, &hex(key)).unwrap().deriver().unwrap();
            let key = key.checksum_key(KeyUsage(2)).unwrap();
            assert_eq!(key.tag(&[&text]).as_ref(), hex(expected));
            let (front, back) = text.split_at(5);
            assert_eq!(key.verify(&[front, back], &hex(expected)), Ok(()));
            for bit in 0..expected.len() * 4 {
                let mut other = hex(expected);
                other[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(key.verify(&[&text], &other), Err(CryptoError));
            }
            assert_eq!(key.verify(&[&text], &hex(expected)[1..]), Err(CryptoError));
            assert_eq!(key.verify(&[&text], &[]), Err(CryptoError));
        }
    }
}
