//! The bearer token: who has it may ask the control address for more than health and metrics. RFC 6750 section 2.1.

use std::fmt;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// A secret of the server, new at each start. It is in no log.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

impl Token {
    /// A token of these random bytes.
    #[must_use]
    pub fn new(random: [u8; TOKEN_BYTES]) -> Self {
        Self(random.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The token as it is written: hexadecimal digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a header `Authorization` shows this token. How long that takes tells nothing of the token.
    pub(crate) fn is_shown_by(&self, header: &[u8]) -> bool {
        const SCHEME: &[u8] = b"Bearer ";
        let Some((scheme, shown)) = header.split_at_checked(SCHEME.len()) else { return false };
        scheme.eq_ignore_ascii_case(SCHEME) && same(self.0.as_bytes(), shown.trim_ascii())
    }
}

/// Compares all bytes, wherever the first difference is.
fn same(one: &[u8], other: &[u8]) -> bool {
    let differences = one.iter().zip(other).fold(0, |found, (a, b)| found | (a ^ b));
    one.len() == other.len() && std::hint::black_box(differences) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_taken() {
        let token = Token::new([0xab; 32]);
        let text = "ab".repeat(32);
        assert_eq!(token.as_str(), text);
        for header in [format!("Bearer {text}"), format!("bearer {text}"), format!("Bearer  {text} ")] {
            assert!(token.is_shown_by(header.as_bytes()), "{header}");
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
            assert!(!token.is_shown_by(header.as_bytes()), "{header}");
        }
    }

    #[test]
    fn it_is_not_printed() {
        assert_eq!(format!("{:?}", Token::new([1; 32])), "Token(..)");
    }
}
