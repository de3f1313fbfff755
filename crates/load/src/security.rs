//! How messages of SMB are protected.

use smb_proto::dialect::{Cipher, SigningAlgorithm};
use smb_wire::negotiate::SecurityMode;

/// How messages are protected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Security {
    /// Signing algorithms that are offered, the favourite first.
    pub algorithms: Vec<SigningAlgorithm>,
    /// Ciphers that are offered, the favourite first.
    pub ciphers: Vec<Cipher>,
    /// Messages are signed also where the server does not ask for it.
    pub require_signing: bool,
    /// Messages are encrypted also where the server does not ask for it.
    pub encrypt: bool,
}

impl Default for Security {
    /// What clients of today offer; signed and encrypted where the server wants it.
    fn default() -> Self {
        use SigningAlgorithm::{AesCmac, AesGmac, HmacSha256};
        let ciphers = vec![Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::Aes128Ccm, Cipher::Aes256Ccm];
        Self {
            algorithms: vec![AesGmac, AesCmac, HmacSha256],
            ciphers,
            require_signing: false,
            encrypt: false,
        }
    }
}

impl Security {
    pub(crate) fn mode(&self) -> SecurityMode {
        if self.require_signing { SecurityMode::SIGNING_REQUIRED } else { SecurityMode::SIGNING_ENABLED }
    }
}

impl Security {
    /// Messages are signed or encrypted whatever the server says.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.require_signing || self.encrypt
    }
}

/// Ways to protect messages, by the name that rows have them under.
#[must_use]
pub fn securities() -> Vec<(&'static str, Security)> {
    let all = Security::default();
    let signed = |algorithm| Security { algorithms: vec![algorithm], require_signing: true, ..all.clone() };
    let sealed = |cipher| Security { ciphers: vec![cipher], encrypt: true, ..all.clone() };
    vec![
        ("none", all.clone()),
        ("HMAC-SHA256", signed(SigningAlgorithm::HmacSha256)),
        ("AES-128-CMAC", signed(SigningAlgorithm::AesCmac)),
        ("AES-128-GMAC", signed(SigningAlgorithm::AesGmac)),
        ("AES-128-CCM", sealed(Cipher::Aes128Ccm)),
        ("AES-128-GCM", sealed(Cipher::Aes128Gcm)),
        ("AES-256-CCM", sealed(Cipher::Aes256Ccm)),
        ("AES-256-GCM", sealed(Cipher::Aes256Gcm)),
    ]
}
