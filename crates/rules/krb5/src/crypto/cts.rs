//! AES in CBC mode with ciphertext stealing and an initial vector of zeros, in place. RFC 3962 5, RFC 8009 5.
//!
//! The last two blocks are always exchanged (CBC-CS3); a text of one block is encrypted as it is.

use aws_lc_rs::cipher::{
    DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;

use super::{CryptoError, Enctype};

/// The bytes of a block.
pub(super) const BLOCK: usize = 16;

type Block = [u8; BLOCK];
const ZEROS: Block = [0; BLOCK];

/// Encrypts.
pub(super) struct Encryptor(EncryptingKey);

/// Decrypts.
pub(super) struct Decryptor(DecryptingKey);

impl Encryptor {
    pub(super) fn new(enctype: Enctype, key: &[u8]) -> Result<Self, CryptoError> {
        Ok(Self(EncryptingKey::cbc(UnboundCipherKey::new(enctype.cipher(), key)?)?))
    }

    /// Encrypts whole blocks in place. The initial vector of the next blocks is the last block.
    fn blocks(&self, initial: &Block, blocks: &mut [u8]) -> Result<(), CryptoError> {
        let context = EncryptionContext::Iv128(FixedLength::from(initial));
        self.0.less_safe_encrypt(blocks, context)?;
        Ok(())
    }

    /// Encrypts one block.
    pub(super) fn block(&self, block: &mut Block) -> Result<(), CryptoError> {
        self.blocks(&ZEROS, block)
    }

    /// Encrypts a text of one block or more.
    pub(super) fn encrypt(&self, text: &mut [u8]) -> Result<(), CryptoError> {
        let Some((head, tail)) = split_last(text) else { return Err(CryptoError) };
        self.blocks(&ZEROS, head)?;
        let Some(stolen) = head.last_chunk_mut::<BLOCK>() else { return self.blocks(&ZEROS, tail) };
        let mut last = ZEROS;
        last.iter_mut().zip(tail.iter()).for_each(|(padded, byte)| *padded = *byte);
        self.blocks(stolen, &mut last)?;
        tail.iter_mut().zip(stolen.iter()).for_each(|(place, byte)| *place = *byte);
        *stolen = last;
        Ok(())
    }
}

impl Decryptor {
    pub(super) fn new(enctype: Enctype, key: &[u8]) -> Result<Self, CryptoError> {
        Ok(Self(DecryptingKey::cbc(UnboundCipherKey::new(enctype.cipher(), key)?)?))
    }

    fn blocks(&self, initial: &Block, blocks: &mut [u8]) -> Result<(), CryptoError> {
        let context = DecryptionContext::Iv128(FixedLength::from(initial));
        self.0.decrypt(blocks, context)?;
        Ok(())
    }

    /// Decrypts a text of one block or more.
    pub(super) fn decrypt(&self, text: &mut [u8]) -> Result<(), CryptoError> {
        let Some((head, tail)) = split_last(text) else { return Err(CryptoError) };
        let Some((head, exchanged)) = head.split_last_chunk_mut::<BLOCK>() else {
            return self.blocks(&ZEROS, tail);
        };
        let initial = head.last_chunk::<BLOCK>().copied().unwrap_or(ZEROS);
        self.blocks(&ZEROS, head)?;
        // what is in `exchanged` is the last block, encrypted; decrypted and without its vector, it has the end of the
        // text, and the end of the encrypted block before it, which was stolen
        let mut stolen = *exchanged;
        self.blocks(&ZEROS, &mut stolen)?;
        let mut before = stolen;
        for ((byte, end), before) in tail.iter_mut().zip(stolen).zip(before.iter_mut()) {
            *before = *byte;
            *byte ^= end;
        }
        self.blocks(&initial, &mut before)?;
        *exchanged = before;
        Ok(())
    }
}

/// Whole blocks, and the last 1 to 16 bytes. `None` if there is less than one block.
fn split_last(text: &mut [u8]) -> Option<(&mut [u8], &mut [u8])> {
    let last = text.len().checked_sub(BLOCK)?.checked_rem(BLOCK)?;
    let last = if last == 0 { BLOCK } else { last };
    text.split_at_mut_checked(text.len().checked_sub(last)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::hex;

    /// RFC 3962 appendix B.
    #[test]
    fn the_vectors_of_the_specification() {
        let text = b"I would like the General Gau's Chicken, please, and wonton soup.";
        let vectors = [
            (17, "c6353568f2bf8cb4d8a580362da7ff7f 97"),
            (31, "fc00783e0efdb2c1d445d4c8eff7ed22 97687268d6ecccc0c07b25e25ecfe5"),
            (32, "39312523a78662d5be7fcbcc98ebf5a8 97687268d6ecccc0c07b25e25ecfe584"),
            (
                47,
                "97687268d6ecccc0c07b25e25ecfe584 b3fffd940c16a18c1b5549d2f838029e 39312523a78662d5be7fcbcc98ebf5",
            ),
            (
                48,
                "97687268d6ecccc0c07b25e25ecfe584 9dad8bbb96c4cdc03bc103e1a194bbd8 39312523a78662d5be7fcbcc98ebf5a8",
            ),
            (
                64,
                "97687268d6ecccc0c07b25e25ecfe584 39312523a78662d5be7fcbcc98ebf5a8 \
                 4807efe836ee89a526730dbc2f7bc840 9dad8bbb96c4cdc03bc103e1a194bbd8",
            ),
        ];
        let key = b"chicken teriyaki";
        for (length, expected) in vectors {
            let mut bytes = text[..length].to_vec();
            Encryptor::new(Enctype::Aes128Sha1, key).unwrap().encrypt(&mut bytes).unwrap();
            assert_eq!(bytes, hex(expected), "{length}");
            Decryptor::new(Enctype::Aes128Sha1, key).unwrap().decrypt(&mut bytes).unwrap();
            assert_eq!(bytes, &text[..length]);
        }
    }

    #[test]
    fn every_length_from_one_block_comes_back() {
        let (key, text) = ([7; 32], [0x5a; 100]);
        let encryptor = Encryptor::new(Enctype::Aes256Sha384, &key).unwrap();
        let decryptor = Decryptor::new(Enctype::Aes256Sha384, &key).unwrap();
        for length in 0..text.len() {
            let mut bytes = text[..length].to_vec();
            if length < BLOCK {
                assert_eq!(encryptor.encrypt(&mut bytes), Err(CryptoError));
                assert_eq!(decryptor.decrypt(&mut bytes), Err(CryptoError));
                continue;
            }
            encryptor.encrypt(&mut bytes).unwrap();
            assert_ne!(bytes, &text[..length]);
            decryptor.decrypt(&mut bytes).unwrap();
            assert_eq!(bytes, &text[..length]);
        }
    }
}
