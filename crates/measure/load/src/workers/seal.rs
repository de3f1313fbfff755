//! What protects messages between a coordinator and a worker over TCP.
//!
//! Both have the same token. Each sends a random number; from the three come two keys (HKDF-SHA256, RFC 5869), one for each direction,
//! and every message is encrypted with AES-256-GCM under the number of messages before it. Who has another token cannot open the
//! first message. A token that somebody learns later opens what was recorded before.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};

use crate::fault::{Fault, Result};
use crate::result::ProblemKind;

/// Bytes of the random number of each side.
pub(super) const RANDOM_BYTES: usize = 32;
/// Characters that a token has at least: it is all that stands between the network and the load.
const TOKEN_BYTES_MIN: usize = 16;

/// What a coordinator and its workers have in common.
#[derive(Clone)]
pub struct Token(Vec<u8>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// Why a file holds no token.
#[derive(Debug, thiserror::Error)]
pub enum NoToken {
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Others may read it.
    #[error("others may read it: chmod 600")]
    Open,
    /// It can be guessed.
    #[error("it has fewer than {TOKEN_BYTES_MIN} characters; make one with: openssl rand -hex 32")]
    Short,
}

impl Token {
    /// The token in a file, without blanks around it.
    ///
    /// # Errors
    /// It cannot be read, others may read it, or it is too short.
    pub fn load(path: &Path) -> std::result::Result<Self, NoToken> {
        if fs::metadata(path)?.permissions().mode() & 0o077 != 0 {
            return Err(NoToken::Open);
        }
        let token = fs::read(path)?.trim_ascii().to_vec();
        if token.len() < TOKEN_BYTES_MIN { Err(NoToken::Short) } else { Ok(Self(token)) }
    }
}

/// One direction of a connection.
pub(super) struct Seal {
    key: LessSafeKey,
    messages: u64,
}

/// The seal of what goes to the worker, and that of what goes to the coordinator.
pub(super) fn seals(token: &Token, coordinator: &[u8], worker: &[u8]) -> Result<(Seal, Seal)> {
    let secret = Salt::new(HKDF_SHA256, &[coordinator, worker].concat()).extract(&token.0);
    let seal = |direction: &[u8]| {
        let direction = [direction];
        let key = secret.expand(&direction, &AES_256_GCM).map_err(|_| broken())?;
        Ok::<_, Fault>(Seal { key: LessSafeKey::new(key.into()), messages: 0 })
    };
    Ok((seal(b"anabranch bench: to the worker")?, seal(b"anabranch bench: to the coordinator")?))
}

fn broken() -> Fault {
    Fault::new(ProblemKind::ThisMachine, "a message cannot be encrypted")
}

impl Seal {
    /// Each message has a nonce of its own: their number in this direction, whose key is of this connection only.
    fn nonce(&mut self) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[NONCE_LEN - 8..].copy_from_slice(&self.messages.to_be_bytes());
        self.messages += 1;
        Nonce::assume_unique_for_key(nonce)
    }

    pub(super) fn seal(&mut self, message: &mut Vec<u8>) -> Result<()> {
        let nonce = self.nonce();
        self.key.seal_in_place_append_tag(nonce, Aad::empty(), message).map_err(|_| broken())
    }

    /// `None`: it was not sealed with the same token, or not in this place.
    pub(super) fn open<'m>(&mut self, message: &'m mut [u8]) -> Option<&'m [u8]> {
        let nonce = self.nonce();
        self.key.open_in_place(nonce, Aad::empty(), message).ok().map(|opened| &*opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Token {
        Token(text.as_bytes().to_vec())
    }

    #[test]
    fn messages_are_opened_once_in_their_order_by_who_has_the_token() {
        let sides = |text| seals(&token(text), b"coordinator", b"worker").unwrap();
        let ((mut here, _), (mut there, mut back), (mut other, _)) =
            (sides("one"), sides("one"), sides("two"));
        let mut messages = [b"first".to_vec(), b"second".to_vec()];
        messages.iter_mut().for_each(|message| here.seal(message).unwrap());
        assert_ne!(&messages[0][..5], b"first");
        assert_eq!(other.open(&mut messages[0].clone()), None, "another token");
        assert_eq!(back.open(&mut messages[0].clone()), None, "the other direction");
        assert_eq!(there.open(&mut messages[0].clone()), Some(&b"first"[..]));
        assert_eq!(there.open(&mut messages[0].clone()), None, "again");
        let (mut later, _) = sides("one");
        assert_eq!(later.open(&mut messages[1].clone()), None, "out of order");
        let mut changed = messages[0].clone();
        changed[2] ^= 1;
        assert_eq!(sides("one").0.open(&mut changed), None, "changed");
    }

    #[test]
    fn a_token_is_long_and_of_its_owner_only() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let load = |text: &str, mode| {
            fs::write(file.path(), text).unwrap();
            fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).unwrap();
            Token::load(file.path())
        };
        assert_eq!(load("0123456789abcdef\n", 0o600).unwrap().0, b"0123456789abcdef");
        assert!(matches!(load("0123456789abcde\n", 0o600), Err(NoToken::Short)));
        assert!(matches!(load("0123456789abcdef\n", 0o640), Err(NoToken::Open)));
        assert!(matches!(Token::load(Path::new("/nonexistent")), Err(NoToken::Io(_))));
    }
}
