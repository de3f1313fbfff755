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
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
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
