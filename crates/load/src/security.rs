//! How messages of SMB are protected.

use serde::{Deserialize, Serialize};
use smb_proto::dialect::{Cipher, SigningAlgorithm};
use smb_wire::negotiate::SecurityMode;

/// How messages are protected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Names", try_from = "Names")]
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

/// The same in words.
#[derive(Serialize, Deserialize)]
struct Names {
    algorithms: Vec<String>,
    ciphers: Vec<String>,
    require_signing: bool,
    encrypt: bool,
}

impl From<Security> for Names {
    fn from(security: Security) -> Self {
        Self {
            algorithms: security.algorithms.iter().map(|algorithm| algorithm.name().to_owned()).collect(),
            ciphers: security.ciphers.iter().map(|cipher| cipher.name().to_owned()).collect(),
            require_signing: security.require_signing,
            encrypt: security.encrypt,
        }
    }
}

impl TryFrom<Names> for Security {
    type Error = String;

    fn try_from(names: Names) -> Result<Self, String> {
        let all = Self::default();
        let unknown = |name: &String| format!("there is no {name}");
        let algorithm = |name: &String| {
            all.algorithms.iter().copied().find(|a| a.name() == name).ok_or_else(|| unknown(name))
        };
        let cipher = |name: &String| {
            all.ciphers.iter().copied().find(|c| c.name() == name).ok_or_else(|| unknown(name))
        };
        Ok(Self {
            algorithms: names.algorithms.iter().map(algorithm).collect::<Result<_, _>>()?,
            ciphers: names.ciphers.iter().map(cipher).collect::<Result<_, _>>()?,
            require_signing: names.require_signing,
            encrypt: names.encrypt,
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ways_can_be_told_to_a_worker() {
        for (_, security) in securities() {
            let text = serde_json::to_string(&security).unwrap();
            assert_eq!(serde_json::from_str::<Security>(&text).unwrap(), security, "{text}");
        }
        let unknown = r#"{"algorithms":["ROT13"],"ciphers":[],"require_signing":false,"encrypt":false}"#;
        assert!(serde_json::from_str::<Security>(unknown).is_err());
    }
}
