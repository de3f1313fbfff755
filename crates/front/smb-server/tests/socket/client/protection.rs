//! A client's keys: those of the server, the other way round.

use smb_proto::dialect::{Cipher, Dialect, SigningAlgorithm};
use smb_proto::encryption::{Opener, Sealer, TRANSFORM_HEADER_LEN};
use smb_proto::keys::{SessionKeys, channel_signing_key};
use smb_proto::preauth::PreauthHash;
use smb_proto::signing::{Sender, SigningKey};

pub(crate) struct Protection {
    keys: SessionKeys,
    session_id: u64,
    cipher: Option<Cipher>,
    signing: SigningKey,
    sealer: Option<Sealer>,
    opener: Option<Opener>,
}

impl Protection {
    pub(crate) fn new(
        dialect: Dialect,
        cipher: Option<Cipher>,
        algorithm: SigningAlgorithm,
        session_key: &[u8],
        preauth: &PreauthHash,
        session_id: u64,
    ) -> Self {
        let keys = SessionKeys::derive(dialect, cipher, session_key, preauth);
        Self::with_keys(keys, cipher, session_id, SigningKey::new(algorithm, &keys.signing).unwrap())
    }

    /// What the session's own connection signs and encrypts with, for another connection.
    pub(crate) fn of_session(&self) -> Self {
        let signing = SigningKey::new(self.algorithm(), &self.keys.signing).unwrap();
        Self::with_keys(self.keys, self.cipher, self.session_id, signing)
    }

    /// The same for a further channel, which signs with a key of its own.
    pub(crate) fn of_channel(
        &self,
        dialect: Dialect,
        algorithm: SigningAlgorithm,
        authenticated: &[u8],
        preauth: &PreauthHash,
    ) -> Self {
        let key = channel_signing_key(dialect, authenticated, preauth);
        let signing = SigningKey::new(algorithm, &key).unwrap();
        Self::with_keys(self.keys, self.cipher, self.session_id, signing)
    }

    fn with_keys(keys: SessionKeys, cipher: Option<Cipher>, session_id: u64, signing: SigningKey) -> Self {
        let sealer = cipher
            .zip(keys.decryption)
            .map(|(cipher, key)| Sealer::new(cipher, key.as_bytes(), session_id, [9; 4]).unwrap());
        let opener =
            cipher.zip(keys.encryption).map(|(cipher, key)| Opener::new(cipher, key.as_bytes()).unwrap());
        Self { keys, session_id, cipher, signing, sealer, opener }
    }

    pub(crate) fn algorithm(&self) -> SigningAlgorithm {
        self.signing.algorithm()
    }

    pub(crate) fn sign(&self, message: &mut [u8]) {
        self.signing.sign(message, Sender::Client).unwrap();
    }

    /// Panics unless the server has signed the message.
    pub(crate) fn verify(&self, message: &mut [u8]) {
        self.signing.verify(message, Sender::Server).expect("the server's signature");
    }

    /// The message in an encrypted frame.
    pub(crate) fn seal(&self, message: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; TRANSFORM_HEADER_LEN];
        frame.extend_from_slice(message);
        self.sealer.as_ref().expect("a cipher").seal(&mut frame).unwrap();
        frame
    }

    /// The message of an encrypted frame.
    pub(crate) fn open(&self, frame: &mut [u8]) -> Vec<u8> {
        self.opener.as_ref().expect("a cipher").open(frame).expect("the server's encryption").to_vec()
    }
}
