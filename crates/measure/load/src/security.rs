//! How messages of SMB are protected, by the names that rows have.

use client::{Cipher, SigningAlgorithm};

pub use client::Security;

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
