//! Encryption with integrity, in place. RFC 3961 5.3, RFC 8009 5.

use std::fmt;

use super::checksum::{ChecksumKey, Tag};
use super::cts::{BLOCK, Decryptor, Encryptor};
use super::enctype::Family;
use super::{CryptoError, Enctype};

/// The bytes of a confounder, which comes before each encrypted text.
pub const CONFOUNDER_LEN: usize = BLOCK;

/// RFC 8009 5: the HMAC covers the initial vector, which is always zero here.
const INITIAL_VECTOR: [u8; BLOCK] = [0; BLOCK];

/// Encrypts with one key for one purpose.
pub struct Sealer {
    enctype: Enctype,
    encryptor: Encryptor,
    integrity: ChecksumKey,
}

/// Decrypts with one key for one purpose.
pub struct Opener {
    enctype: Enctype,
    decryptor: Decryptor,
    integrity: ChecksumKey,
}

impl Sealer {
    pub(super) fn new(enctype: Enctype, encryptor: Encryptor, integrity: ChecksumKey) -> Self {
        Self { enctype, encryptor, integrity }
    }

    /// The type of the key.
    #[must_use]
    pub fn enctype(&self) -> Enctype {
        self.enctype
    }

    /// Encrypts a confounder with the text behind it in place. The tag comes behind them.
    ///
    /// # Errors
    /// [`CryptoError`] if there is no room for a confounder.
    pub fn seal(&self, text: &mut [u8]) -> Result<Tag, CryptoError> {
        match self.enctype.family() {
            Family::Sha1 => {
                let tag = self.integrity.tag(&[text]);
                self.encryptor.encrypt(text)?;
                Ok(tag)
            }
            Family::Sha2 => {
                self.encryptor.encrypt(text)?;
                Ok(self.integrity.tag(&[&INITIAL_VECTOR, text]))
            }
        }
    }

    /// What `confounder` and `text` are encrypted to, with the tag.
    ///
    /// # Errors
    /// As [`Self::seal`].
    pub fn sealed(&self, confounder: &[u8; CONFOUNDER_LEN], text: &[u8]) -> Result<Vec<u8>, CryptoError> {
        let length = CONFOUNDER_LEN.saturating_add(text.len()).saturating_add(self.enctype.tag_len());
        let mut whole = Vec::with_capacity(length);
        whole.extend_from_slice(confounder);
        whole.extend_from_slice(text);
        let tag = self.seal(&mut whole)?;
        whole.extend_from_slice(tag.as_ref());
        Ok(whole)
    }
}

impl Opener {
    pub(super) fn new(enctype: Enctype, decryptor: Decryptor, integrity: ChecksumKey) -> Self {
        Self { enctype, decryptor, integrity }
    }

    /// The type of the key.
    #[must_use]
    pub fn enctype(&self) -> Enctype {
        self.enctype
    }

    /// Decrypts in place, and returns the text behind the confounder. If the tag is wrong, the content is undefined.
    ///
    /// With the types of RFC 3962 the tag is of the plain text, so decryption comes first. It does the same for every
    /// content, and both ways have one error.
    ///
    /// # Errors
    /// [`CryptoError`] if this was not encrypted with the key, or was changed.
    pub fn open<'a>(&self, sealed: &'a mut [u8]) -> Result<&'a mut [u8], CryptoError> {
        let length = sealed.len().checked_sub(self.enctype.tag_len()).ok_or(CryptoError)?;
        let (text, tag) = sealed.split_at_mut_checked(length).ok_or(CryptoError)?;
        match self.enctype.family() {
            Family::Sha1 => {
                self.decryptor.decrypt(text)?;
                self.integrity.verify(&[text], tag)?;
            }
            Family::Sha2 => {
                self.integrity.verify(&[&INITIAL_VECTOR, text], tag)?;
                self.decryptor.decrypt(text)?;
            }
        }
        text.get_mut(CONFOUNDER_LEN..).ok_or(CryptoError)
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("enctype", &self.enctype).finish_non_exhaustive()
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").field("enctype", &self.enctype).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::{Key, KeyUsage, hex};

    const KEY_128: &str = "3705d96080c17728a0e800eab6e0d23c";
    const KEY_256: &str = "6d404d37faf79f9df0d33568d320669800eb4836472ea8a026d16b7182460c52";

    fn pair(enctype: Enctype, key: &[u8]) -> (Sealer, Opener) {
        let deriver = Key::new(enctype, key).unwrap().deriver().unwrap();
        (deriver.sealer(KeyUsage(2)).unwrap(), deriver.opener(KeyUsage(2)).unwrap())
    }

    /// RFC 8009 appendix A, "Sample encryptions": the texts have 0, 6, 16 and 21 bytes.
    #[test]
    fn the_vectors_of_the_specification() {
        let vectors = [
            (
                Enctype::Aes128Sha256,
                KEY_128,
                0,
                "ef85fb890bb8472f4dab20394dca781dad877eda39d50c870c0d5a0a8e48c718",
            ),
            (
                Enctype::Aes128Sha256,
                KEY_128,
                6,
                "84d7f30754ed987bab0bf3506beb09cfb55402cef7e6877ce99e247e52d16ed4421dfdf8976c",
            ),
            (
                Enctype::Aes128Sha256,
                KEY_128,
                16,
                "3517d640f50ddc8ad3628722b3569d2ae07493fa8263254080ea65c1008e8fc295fb4852e7d83e1e7c48c37eebe6b0d3",
            ),
            (
                Enctype::Aes128Sha256,
                KEY_128,
                21,
                "720f73b18d9859cd6ccb4346115cd336c70f58edc0c4437c5573544c31c813bce1e6d072c186b39a413c2f92ca9b83\
                 34a287ffcbfc",
            ),
            (
                Enctype::Aes256Sha384,
                KEY_256,
                0,
                "41f53fa5bfe7026d91faf9be959195a058707273a96a40f0a01960621ac612748b9bbfbe7eb4ce3c",
            ),
            (
                Enctype::Aes256Sha384,
                KEY_256,
                6,
                "4ed7b37c2bcac8f74f23c1cf07e62bc7b75fb3f637b9f559c7f664f69eab7b6092237526ea0d1f61cb20d69d10f2",
            ),
            (
                Enctype::Aes256Sha384,
                KEY_256,
                16,
                "bc47ffec7998eb91e8115cf8d19dac4bbbe2e163e87dd37f49beca92027764f68cf51f14d798c2273f35df574d1f93\
                 2e40c4ff255b36a266",
            ),
            (
                Enctype::Aes256Sha384,
                KEY_256,
                21,
                "40013e2df58e8751957d2878bcd2d6fe101ccfd556cb1eae79db3c3ee86429f2b2a602ac86fef6ecb647d6295fae07\
                 7a1feb517508d2c16b4192e01f62",
            ),
        ];
        for (enctype, key, length, expected) in vectors {
            let (sealer, opener) = pair(enctype, &hex(key));
            let text: Vec<u8> = (0..length).collect();
            let mut sealed = hex(expected);
            assert_eq!(opener.open(&mut sealed).unwrap(), text, "{enctype:?} {length}");
            // the confounder is what decrypting left before the text
            let confounder = *sealed.first_chunk().unwrap();
            assert_eq!(sealer.sealed(&confounder, &text).unwrap(), hex(expected));
        }
    }

    #[test]
    fn what_was_changed_or_cut_does_not_open() {
        for enctype in Enctype::ALL {
            let (sealer, opener) = pair(enctype, &vec![9; enctype.key_len()]);
            let whole = sealer.sealed(&[3; CONFOUNDER_LEN], b"twenty bytes of text").unwrap();
            assert_eq!(opener.open(&mut whole.clone()).unwrap(), b"twenty bytes of text");
            for bit in 0..whole.len() * 8 {
                let mut other = whole.clone();
                other[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(opener.open(&mut other), Err(CryptoError), "{enctype:?} {bit}");
            }
            for length in 0..whole.len() {
                assert_eq!(
                    opener.open(&mut whole[..length].to_vec()),
                    Err(CryptoError),
                    "{enctype:?} {length}"
                );
            }
        }
    }

    #[test]
    fn another_purpose_is_another_key() {
        for enctype in Enctype::ALL {
            let deriver = Key::new(enctype, &vec![9; enctype.key_len()]).unwrap().deriver().unwrap();
            let mut sealed = deriver.sealer(KeyUsage(11)).unwrap().sealed(&[3; 16], b"text").unwrap();
            assert_eq!(deriver.opener(KeyUsage(12)).unwrap().open(&mut sealed), Err(CryptoError));
        }
    }
}
