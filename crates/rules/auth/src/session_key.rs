//! The key that an authentication establishes.

/// The fewest bytes of a session key: those of NTLM, and of Kerberos with AES-128.
const LEN_MIN: usize = 16;
/// The most bytes of a session key: Kerberos with AES-256.
const LEN_MAX: usize = 32;

/// The key that an authentication establishes between client and server, as a whole: 16 bytes with NTLM, 16 or 32 with
/// Kerberos. [MS-SMB2] calls it Session.FullSessionKey. Its `Debug` output shows no byte of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SessionKey {
    bytes: [u8; LEN_MAX],
    len: usize,
}

impl SessionKey {
    /// A key of these bytes; `None` unless there are 16 to 32 of them.
    #[must_use]
    pub fn new(given: &[u8]) -> Option<Self> {
        if given.len() < LEN_MIN {
            return None;
        }
        let mut bytes = [0; LEN_MAX];
        bytes.get_mut(..given.len())?.copy_from_slice(given);
        Some(Self { bytes, len: given.len() })
    }

    /// All bytes of the key.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl From<[u8; LEN_MIN]> for SessionKey {
    fn from(given: [u8; LEN_MIN]) -> Self {
        let mut bytes = [0; LEN_MAX];
        for (byte, given) in bytes.iter_mut().zip(given) {
            *byte = given;
        }
        Self { bytes, len: LEN_MIN }
    }
}

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SessionKey({} bytes)", self.len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_keeps_all_of_its_bytes_and_shows_none() {
        let long: Vec<u8> = (0xa0..0xc0).collect();
        for len in 0..=40 {
            let given = long.iter().cycle().take(len).copied().collect::<Vec<u8>>();
            let key = SessionKey::new(&given);
            assert_eq!(key.is_some(), (16..=32).contains(&len), "{len}");
            if let Some(key) = key {
                assert_eq!(key.as_bytes(), given);
                assert_eq!(format!("{key:?}"), format!("SessionKey({len} bytes)"));
            }
        }
        assert_eq!(Some(SessionKey::from([7; 16])), SessionKey::new(&[7; 16]));
    }
}
