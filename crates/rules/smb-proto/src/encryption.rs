//! Encryption of messages. [MS-SMB2] 2.2.41, 3.1.4.3, 3.3.5.2.1.1.
//!
//! A message is sealed in place: the buffer has [`TRANSFORM_HEADER_LEN`] bytes of room in front, which become the SMB2
//! TRANSFORM_HEADER. Keys are prepared once per session. With AES-GCM nothing is copied or allocated per message.

use std::sync::atomic::{AtomicU64, Ordering};

use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};

use smb_wire::WireError;
use smb_wire::transform::{self, AAD, FLAG_ENCRYPTED, SIGNATURE, TransformHeader};

use crate::ccm::{self, CcmKey};
use crate::dialect::Cipher;

/// Bytes of the SMB2 TRANSFORM_HEADER: the room that [`Sealer::seal`] needs in front of a message.
pub const TRANSFORM_HEADER_LEN: usize = transform::LEN;

/// Why a message could not be sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// There is no message after the room for the header, or the message has 4 GiB or more.
    #[error("the message's length does not fit a transform header")]
    Length,
    /// The cipher does not accept a key of this length.
    #[error("the key does not fit the cipher")]
    Key,
    /// The cryptographic library refused.
    #[error("the cryptographic library failed")]
    Library,
}

/// Why an encrypted message is refused. In every case the server disconnects ([MS-SMB2] 3.3.5.2.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The frame is not a complete transform header followed by an encrypted message of the announced size.
    #[error("not an encrypted message: {0}")]
    Malformed(WireError),
    /// There is no message after the header.
    #[error("an encrypted message of no bytes")]
    Empty,
    /// The message is not what the peer sealed with this key.
    #[error("the message does not authenticate")]
    Forged,
}

/// Session.EncryptionKey (the sender's side): seals messages. Shared by all channels of the session, because no nonce
/// may be used twice within a session.
pub struct Sealer {
    aead: Aead,
    session_id: u64,
    salt: [u8; 4],
    sealed: AtomicU64,
}

/// Session.DecryptionKey (the receiver's side): opens messages.
pub struct Opener {
    aead: Aead,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sealer(session {:#x})", self.session_id)
    }
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Opener")
    }
}

impl Sealer {
    /// Prepares the key for `session_id`.
    ///
    /// `salt` is random. It fills the part of every nonce that is not the counter (all four bytes with GCM, three with
    /// CCM).
    ///
    /// # Errors
    /// [`SealError::Key`] when the key is not `cipher.key_len()` long.
    pub fn new(cipher: Cipher, key: &[u8], session_id: u64, salt: [u8; 4]) -> Result<Self, SealError> {
        Ok(Self { aead: Aead::new(cipher, key)?, session_id, salt, sealed: AtomicU64::new(0) })
    }

    /// Seals a frame in place: [`TRANSFORM_HEADER_LEN`] bytes of room, then the message (header and payload, or a whole
    /// compound).
    ///
    /// # Errors
    /// [`SealError::Length`] when there is no message. After any error the frame must not be sent.
    pub fn seal(&self, frame: &mut [u8]) -> Result<(), SealError> {
        let (header, message) =
            frame.split_first_chunk_mut::<TRANSFORM_HEADER_LEN>().ok_or(SealError::Length)?;
        let original_message_size = u32::try_from(message.len()).map_err(|_| SealError::Length)?;
        if message.is_empty() {
            return Err(SealError::Length);
        }
        let nonce = self.next_nonce();
        *header = TransformHeader {
            signature: [0; 16],
            nonce,
            original_message_size,
            flags: FLAG_ENCRYPTED,
            session_id: self.session_id,
        }
        .to_bytes();
        let authenticated = header.get(AAD).ok_or(SealError::Length)?;
        let tag = self.aead.seal(&nonce, authenticated, message)?;
        header.get_mut(SIGNATURE).ok_or(SealError::Length)?.copy_from_slice(&tag);
        Ok(())
    }

    /// A counter, then the salt: never the same twice for this key (that would take 2^64 messages).
    fn next_nonce(&self) -> [u8; 16] {
        let counter = self.sealed.fetch_add(1, Ordering::Relaxed);
        let bytes = counter.to_le_bytes().into_iter().chain(self.salt);
        let mut nonce = [0; 16];
        for (byte, value) in nonce.iter_mut().zip(bytes.take(self.aead.nonce_len())) {
            *byte = value;
        }
        nonce
    }
}

impl Opener {
    /// Prepares the key.
    ///
    /// # Errors
    /// [`SealError::Key`] when the key is not `cipher.key_len()` long.
    pub fn new(cipher: Cipher, key: &[u8]) -> Result<Self, SealError> {
        Ok(Self { aead: Aead::new(cipher, key)? })
    }

    /// Opens a whole frame in place and returns the message, the part of `frame` after the transform header.
    ///
    /// The session was found by [`session_id`]. The caller checks that the message inside belongs to it.
    ///
    /// # Errors
    /// [`OpenError`]. The content of the frame is undefined after an error.
    pub fn open<'a>(&self, frame: &'a mut [u8]) -> Result<&'a mut [u8], OpenError> {
        let TransformHeader { signature, nonce, .. } =
            TransformHeader::decode(frame).map_err(OpenError::Malformed)?;
        let (header, message) = frame
            .split_first_chunk_mut::<TRANSFORM_HEADER_LEN>()
            .ok_or(OpenError::Malformed(WireError::Truncated))?;
        if message.is_empty() {
            return Err(OpenError::Empty);
        }
        let authenticated = header.get(AAD).ok_or(OpenError::Malformed(WireError::Truncated))?;
        self.aead.open(&nonce, authenticated, &signature, message)?;
        Ok(message)
    }
}

/// The SessionId in a frame's transform header, which names the session whose key opens the frame. `None` when the
/// frame is not an encrypted message of the announced size.
pub fn session_id(frame: &[u8]) -> Option<u64> {
    TransformHeader::decode(frame).ok().map(|header| header.session_id)
}

/// A prepared key of one of the four ciphers.
enum Aead {
    Gcm(Box<LessSafeKey>),
    Ccm(Box<CcmKey>),
}

impl Aead {
    fn new(cipher: Cipher, key: &[u8]) -> Result<Self, SealError> {
        if key.len() != cipher.key_len() {
            return Err(SealError::Key);
        }
        let gcm = |algorithm| {
            let unbound = UnboundKey::new(algorithm, key).map_err(|_| SealError::Key)?;
            Ok(Self::Gcm(Box::new(LessSafeKey::new(unbound))))
        };
        match cipher {
            Cipher::Aes128Gcm => gcm(&AES_128_GCM),
            Cipher::Aes256Gcm => gcm(&AES_256_GCM),
            Cipher::Aes128Ccm | Cipher::Aes256Ccm => {
                Ok(Self::Ccm(Box::new(CcmKey::new(key).map_err(|_| SealError::Key)?)))
            }
        }
    }

    fn nonce_len(&self) -> usize {
        match self {
            Self::Gcm(_) => 12,
            Self::Ccm(_) => ccm::NONCE_LEN,
        }
    }

    /// Seals `message` and returns its tag; `aad` is authenticated with it.
    fn seal(&self, nonce: &[u8; 16], aad: &[u8], message: &mut [u8]) -> Result<[u8; 16], SealError> {
        match self {
            Self::Gcm(key) => {
                let mut tag = [0; 16];
                let sealed = key
                    .seal_in_place_separate_tag(gcm_nonce(nonce), Aad::from(aad), message)
                    .map_err(|_| SealError::Library)?;
                tag.copy_from_slice(sealed.as_ref());
                Ok(tag)
            }
            Self::Ccm(key) => key.seal(ccm_nonce(nonce), aad, message).map_err(|_| SealError::Library),
        }
    }

    /// Opens a message sealed by [`Self::seal`].
    fn open(
        &self,
        nonce: &[u8; 16],
        aad: &[u8],
        tag: &[u8; 16],
        message: &mut [u8],
    ) -> Result<(), OpenError> {
        match self {
            Self::Gcm(key) => key
                .open_in_place_separate_tag(gcm_nonce(nonce), Aad::from(aad), tag, message)
                .map(|_| ())
                .map_err(|_| OpenError::Forged),
            Self::Ccm(key) => key.open(ccm_nonce(nonce), aad, tag, message).map_err(|_| OpenError::Forged),
        }
    }
}

/// The part of the header's nonce that AES-GCM uses. [MS-SMB2] 2.2.41.
fn gcm_nonce([nonce @ .., _, _, _, _]: &[u8; 16]) -> Nonce {
    Nonce::assume_unique_for_key(*nonce)
}

/// The part of the header's nonce that AES-CCM uses.
fn ccm_nonce([nonce @ .., _, _, _, _, _]: &[u8; 16]) -> &[u8; ccm::NONCE_LEN] {
    nonce
}

#[cfg(test)]
mod tests;
