//! The bearer token. Its holder may ask the control address for more than health and metrics. RFC 6750 section 2.1.

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// The number of random bytes in a token.
const TOKEN_BYTES: usize = 32;

/// A secret that identifies its holder. It is never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

/// SHA-256 of a token in its written form, or of the hash of a password. The 32 random bytes of a token cannot be recovered
/// from it by guessing, however fast; that of a password is kept in memory only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(shown: &[u8]) -> Self {
        let mut bytes = [0; 32];
        bytes
            .iter_mut()
            .zip(digest(&SHA256, shown).as_ref())
            .for_each(|(byte, of_digest)| *byte = *of_digest);
        Self(bytes)
    }

    /// The first half, in hexadecimal: enough to tell texts apart.
    pub(crate) fn short(&self) -> String {
        self.0.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Token {
    /// A token from these random bytes.
    #[must_use]
    pub fn new(random: [u8; TOKEN_BYTES]) -> Self {
        Self(random.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The written form of the token: hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The digest that is stored to recognise the token.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }

    /// The token in the value of an `Authorization` header.
    pub(crate) fn shown(header: &[u8]) -> Option<&[u8]> {
        const SCHEME: &[u8] = b"Bearer ";
        let (scheme, shown) = header.split_at_checked(SCHEME.len())?;
        scheme.eq_ignore_ascii_case(SCHEME).then(|| shown.trim_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_taken() {
        let token = Token::new([0xab; 32]);
        let text = "ab".repeat(32);
        assert_eq!(token.as_str(), text);
        let is_shown_by =
            |header: &str| Token::shown(header.as_bytes()).map(Digest::of) == Some(token.digest());
        for header in [format!("Bearer {text}"), format!("bearer {text}"), format!("Bearer  {text} ")] {
            assert!(is_shown_by(&header), "{header}");
        }
        for header in [
            String::new(),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            text.clone(),
            format!("Basic {text}"),
            format!("Bearer {}", &text[1..]),
            format!("Bearer {text}0"),
            format!("Bearer {}", text.to_uppercase()),
            format!("Bearer {}ac", &text[2..]),
        ] {
            assert!(!is_shown_by(&header), "{header}");
        }
    }

    /// FIPS 180-2 appendix B.1.
    #[test]
    fn the_digest_is_sha_256() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let written: String = Digest::of(b"abc").0.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(written, expected);
    }

    #[test]
    fn it_is_not_printed() {
        assert_eq!(format!("{:?}", Token::new([1; 32])), "Token(..)");
    }
}
