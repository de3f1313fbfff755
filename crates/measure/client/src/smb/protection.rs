//! The keys of a channel: those that a server has, the other way round.

use smb_proto::dialect::{Cipher, Dialect, SigningAlgorithm};
use smb_proto::encryption::{Opener, Sealer};
use smb_proto::keys::{SessionKeys, channel_signing_key};
use smb_proto::preauth::PreauthHash;
use smb_proto::signing::SigningKey;

use crate::{Fault, Result};

/// What a session signs and encrypts with, whichever channel a message takes.
#[derive(Clone, Copy)]
pub(super) struct Keys {
    session: SessionKeys,
    session_id: u64,
    cipher: Option<Cipher>,
}

/// What one channel signs and encrypts with.
pub(super) struct Protection {
    pub(super) signing: SigningKey,
    pub(super) sealer: Option<Sealer>,
    pub(super) opener: Option<Opener>,
}

impl Keys {
    pub(super) fn new(cipher: Option<Cipher>, key: &[u8], preauth: &PreauthHash, session_id: u64) -> Self {
        Self { session: SessionKeys::derive(Dialect::Smb311, cipher, key, preauth), session_id, cipher }
    }

    pub(super) fn cipher(&self) -> Option<Cipher> {
        self.cipher
    }

    /// For the session's first channel, and for a message of a further one that is not bound yet.
    pub(super) fn protection(&self, algorithm: SigningAlgorithm, channel: u32) -> Result<Protection> {
        self.with_signing(algorithm, &self.session.signing, channel)
    }

    /// For a further channel, which signs with a key of its own ([MS-SMB2] 3.2.5.3.3).
    pub(super) fn of_channel(
        &self,
        algorithm: SigningAlgorithm,
        key: &[u8],
        preauth: &PreauthHash,
        channel: u32,
    ) -> Result<Protection> {
        self.with_signing(algorithm, &channel_signing_key(Dialect::Smb311, key, preauth), channel)
    }

    /// All channels encrypt with the session's keys; the channel's number in the nonce keeps the nonces apart.
    fn with_signing(&self, algorithm: SigningAlgorithm, key: &[u8; 16], channel: u32) -> Result<Protection> {
        let broken = |_| Fault::protocol("the cryptographic library failed");
        // What the server decrypts with is what a client encrypts with.
        let sealer = self.cipher.zip(self.session.decryption);
        let sealer = sealer
            .map(|(cipher, key)| Sealer::new(cipher, key.as_bytes(), self.session_id, channel.to_le_bytes()));
        let opener = self.cipher.zip(self.session.encryption);
        let opener = opener.map(|(cipher, key)| Opener::new(cipher, key.as_bytes()));
        Ok(Protection {
            signing: SigningKey::new(algorithm, key)
                .map_err(|_| Fault::protocol("the cryptographic library failed"))?,
            sealer: sealer.transpose().map_err(broken)?,
            opener: opener.transpose().map_err(broken)?,
        })
    }
}
