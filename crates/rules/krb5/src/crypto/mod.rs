//! Encryption types of Kerberos: AES with CBC and ciphertext stealing, and an HMAC. RFC 3961, RFC 3962, RFC 8009.

mod checksum;
mod cts;
mod derive;
mod enctype;
mod key;
mod nfold;
mod seal;
mod string_to_key;

pub use checksum::{ChecksumKey, Tag};
pub use derive::{Deriver, KeyUsage};
pub use enctype::Enctype;
pub use key::{Key, KeyError};
pub use seal::{CONFOUNDER_LEN, Opener, Sealer};
pub use string_to_key::string_to_key;

/// The bytes are not what the key's owner made, or the library refused. It is one error for all causes: what it was is
/// nobody's business but an attacker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the integrity check failed")]
pub struct CryptoError;

impl From<aws_lc_rs::error::Unspecified> for CryptoError {
    fn from(_: aws_lc_rs::error::Unspecified) -> Self {
        Self
    }
}

/// The bytes of a hexadecimal text.
#[cfg(test)]
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| u8::try_from(c.to_digit(16).unwrap()).unwrap())
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
