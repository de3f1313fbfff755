//! Key derivation. [MS-SMB2] 3.1.4.2 (the function), 3.3.5.5.3 (labels and contexts).
//!
//! From the key that authentication produces, SMB 3 derives one key for each purpose, with SP800-108 in counter mode
//! over HMAC-SHA256 (r = 32). SMB 2.x derives none: the session key signs.

use aws_lc_rs::hmac;

use crate::dialect::{Cipher, Dialect};
use crate::preauth::PreauthHash;

/// A derived key of 16 or 32 bytes. Its `Debug` output shows none of them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key {
    bytes: [u8; 32],
    len: usize,
}

impl Key {
    fn zeroed(len: usize) -> Self {
        Self { bytes: [0; 32], len: len.min(32) }
    }

    /// The 16 or 32 bytes of the key.
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn as_bytes_mut(&mut self) -> &mut [u8] {
        self.bytes.get_mut(..self.len).unwrap_or_default()
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({} bytes)", self.len)
    }
}

/// Session.SessionKey: "the first 16 bytes of the cryptographic key ... right-padded with zero bytes" that
/// authentication established. [MS-SMB2] 3.3.5.5.3.
pub fn session_key(authenticated: &[u8]) -> [u8; 16] {
    let mut key = [0; 16];
    for (byte, given) in key.iter_mut().zip(authenticated) {
        *byte = *given;
    }
    key
}

/// The keys of a session, as the server sees them. A client uses the same values with [`SessionKeys::encryption`] and
/// [`SessionKeys::decryption`] exchanged.
#[derive(Clone, Copy)]
pub struct SessionKeys {
    /// Session.SigningKey and the first Channel.SigningKey
    pub signing: [u8; 16],
    /// Session.ApplicationKey
    pub application: [u8; 16],
    /// Session.EncryptionKey: server to client. SMB 3.x only, with a cipher
    pub encryption: Option<Key>,
    /// Session.DecryptionKey: client to server
    pub decryption: Option<Key>,
}

impl std::fmt::Debug for SessionKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionKeys").field("encryption", &self.encryption).finish_non_exhaustive()
    }
}

impl SessionKeys {
    /// Derives a session's keys.
    ///
    /// `authenticated` is the whole key that authentication produced (Session.FullSessionKey): 16 bytes with NTLM, more
    /// with Kerberos. `preauth` is the session's chain ([`PreauthHash`]); only SMB 3.1.1 uses it.
    pub fn derive(
        dialect: Dialect,
        cipher: Option<Cipher>,
        authenticated: &[u8],
        preauth: &PreauthHash,
    ) -> Self {
        let key = session_key(authenticated);
        if !dialect.is_smb3() {
            return Self { signing: key, application: key, encryption: None, decryption: None };
        }
        let labels = Labels::of(dialect, preauth);
        let cipher_key = |purpose: Purpose<'_>| {
            cipher.map(|cipher| {
                let mut derived = Key::zeroed(cipher.key_len());
                let input = if cipher.key_len() == 32 { authenticated } else { &key };
                kdf(input, purpose, derived.as_bytes_mut());
                derived
            })
        };
        Self {
            signing: derive_16(&key, labels.signing),
            application: derive_16(&key, labels.application),
            encryption: cipher_key(labels.server_out),
            decryption: cipher_key(labels.server_in),
        }
    }
}

/// Channel.SigningKey of a channel that binds to an existing session: derived from the key of the binding's own
/// authentication and, in SMB 3.1.1, from the binding's own preauthentication chain. [MS-SMB2] 3.3.5.5.3.
pub fn channel_signing_key(dialect: Dialect, authenticated: &[u8], preauth: &PreauthHash) -> [u8; 16] {
    let key = session_key(authenticated);
    if dialect.is_smb3() { derive_16(&key, Labels::of(dialect, preauth).signing) } else { key }
}

/// The "Label" and "Context" of one derived key, with their terminating zero bytes.
#[derive(Clone, Copy)]
struct Purpose<'a> {
    label: &'a [u8],
    context: &'a [u8],
}

/// The labels and contexts of a dialect. [MS-SMB2] 3.3.5.5.3.
struct Labels<'a> {
    signing: Purpose<'a>,
    application: Purpose<'a>,
    server_out: Purpose<'a>,
    server_in: Purpose<'a>,
}

impl<'a> Labels<'a> {
    fn of(dialect: Dialect, preauth: &'a PreauthHash) -> Self {
        if dialect >= Dialect::Smb311 {
            let context = preauth.as_bytes().as_slice();
            return Self {
                signing: Purpose { label: b"SMBSigningKey\0", context },
                application: Purpose { label: b"SMBAppKey\0", context },
                server_out: Purpose { label: b"SMBS2CCipherKey\0", context },
                server_in: Purpose { label: b"SMBC2SCipherKey\0", context },
            };
        }
        Self {
            signing: Purpose { label: b"SMB2AESCMAC\0", context: b"SmbSign\0" },
            application: Purpose { label: b"SMB2APP\0", context: b"SmbRpc\0" },
            server_out: Purpose { label: b"SMB2AESCCM\0", context: b"ServerOut\0" },
            // the blank before the zero byte is in the specification
            server_in: Purpose { label: b"SMB2AESCCM\0", context: b"ServerIn \0" },
        }
    }
}

fn derive_16(key: &[u8], purpose: Purpose<'_>) -> [u8; 16] {
    let mut derived = [0; 16];
    kdf(key, purpose, &mut derived);
    derived
}

/// SP800-108 5.1, counter mode. One round of HMAC-SHA256 gives 32 bytes, the most that is ever needed.
///
/// 'L' is the length of the wanted key in bits. [MS-SMB2] 3.1.4.2 ties L to the cipher; actual servers and clients keep
/// 128 for the signing and application keys when the cipher has 256 (see testdata/SOURCES.md).
fn kdf(key: &[u8], purpose: Purpose<'_>, out: &mut [u8]) {
    debug_assert!(out.len() == 16 || out.len() == 32);
    let bits: [u8; 4] = if out.len() == 32 { [0, 0, 1, 0] } else { [0, 0, 0, 128] };
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    context.update(&[0, 0, 0, 1]);
    context.update(purpose.label);
    context.update(&[0]);
    context.update(purpose.context);
    context.update(&bits);
    for (byte, derived) in out.iter_mut().zip(context.sign().as_ref()) {
        *byte = *derived;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    /// "SMB 2 and SMB 3 security in Windows 10: the anatomy of signing and cryptographic keys" (Microsoft, 2017), key
    /// derivation example for SMB 3.0 multichannel. The SMB 3.1.1 example is in tests/captures.rs.
    #[test]
    fn microsofts_example_of_smb_3_0() {
        let session_key = key("7CD451825D0450D235424E44BA6E78CC");
        let preauth = PreauthHash::new();
        let keys = SessionKeys::derive(Dialect::Smb300, Some(Cipher::Aes128Ccm), &session_key, &preauth);
        assert_eq!(keys.signing.to_vec(), key("0B7E9C5CAC36C0F6EA9AB275298CEDCE"));
        assert_eq!(keys.application.to_vec(), key("BB23A4575AA26C721AF525AF15A87B4F"));
        // the example is the client's: its EncryptionKey is the server's DecryptionKey
        assert_eq!(keys.decryption.unwrap().as_bytes(), key("FAD27796665B313EBB578F388632B4F7"));
        assert_eq!(keys.encryption.unwrap().as_bytes(), key("B0F0427F7CEB416D1D9DCC0CD4F99447"));
        let second = key("4E01A2B313BCF660CC250BEF021AEDE6");
        let channel = channel_signing_key(Dialect::Smb300, &second, &preauth);
        assert_eq!(channel.to_vec(), key("BA1A17DBBFEC349BCA105563D598952F"));
    }

    /// "Encryption in SMB 3.0: A protocol perspective" (Microsoft, 2012).
    #[test]
    fn microsofts_example_of_encryption_in_smb_3_0() {
        let session_key = key("B4546771B515F766A86735532DD6C4F0");
        let (dialect, cipher) = (Dialect::Smb300, Some(Cipher::Aes128Ccm));
        let keys = SessionKeys::derive(dialect, cipher, &session_key, &PreauthHash::new());
        assert_eq!(keys.signing.to_vec(), key("F773CD23C18FD1E08EE510CADA7CF852"));
        assert_eq!(keys.decryption.unwrap().as_bytes(), key("261B72350558F2E9DCF613070383EDBF"));
        assert_eq!(keys.encryption.unwrap().as_bytes(), key("8FE2B57EC34D2DB5B1A9727F526BBDB5"));
        assert_eq!(keys.application.to_vec(), key("77432F808CE99156B5BC6A3676D730D1"));
    }

    #[test]
    fn smb_2_signs_with_the_session_key_and_a_short_key_is_padded() {
        let keys = SessionKeys::derive(Dialect::Smb210, None, &[7; 8], &PreauthHash::new());
        assert_eq!(keys.signing, [7, 7, 7, 7, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert!(keys.encryption.is_none() && keys.decryption.is_none());
        assert_eq!(channel_signing_key(Dialect::Smb202, &[9; 32], &PreauthHash::new()), [9; 16]);
    }

    /// OpenSSL's KBKDF (counter mode, HMAC-SHA256) over the same key, labels and contexts; testdata/SOURCES.md has the
    /// command.
    #[test]
    fn a_key_of_32_bytes_gives_what_openssl_derives() {
        let full: Vec<u8> = (0..32).collect();
        let derive = |cipher| SessionKeys::derive(Dialect::Smb311, Some(cipher), &full, &PreauthHash::new());
        for cipher in [Cipher::Aes256Ccm, Cipher::Aes256Gcm] {
            let keys = derive(cipher);
            let (out, into) = (keys.encryption.unwrap(), keys.decryption.unwrap());
            assert_eq!(
                out.as_bytes(),
                key("D1896BF4E3D46F392978099F8E19C1DC7F1E15C86454C0AAD7196D30640E4714")
            );
            assert_eq!(
                into.as_bytes(),
                key("1E63F9CBD3A0F6859EFDDCA3BB4812FDF7C9A01907BD15E549B6641FFD9C4854")
            );
            assert_eq!(keys.signing.to_vec(), key("2FAB293C2407AEE00540E02B1C496633"));
            assert_eq!(keys.application.to_vec(), key("4384848B0D711CF97E9B0AD70D06DF83"));
        }
        for cipher in [Cipher::Aes128Ccm, Cipher::Aes128Gcm] {
            let keys = derive(cipher);
            assert_eq!(keys.encryption.unwrap().as_bytes(), key("8771E17377878E77B6D5D005055DA91B"));
            assert_eq!(keys.decryption.unwrap().as_bytes(), key("2F792EA11306D36224F28512E7203C1A"));
            assert_eq!(keys.signing.to_vec(), key("2FAB293C2407AEE00540E02B1C496633"));
        }
    }

    #[test]
    fn a_long_key_counts_as_a_whole_only_for_256_bit_ciphers() {
        let (short, mut long) = ([5; 16], [5; 32]);
        long[31] = 1;
        let derive =
            |cipher, key: &[u8]| SessionKeys::derive(Dialect::Smb311, Some(cipher), key, &PreauthHash::new());
        let of_128 = (derive(Cipher::Aes128Gcm, &short), derive(Cipher::Aes128Gcm, &long));
        assert_eq!(of_128.0.encryption, of_128.1.encryption);
        let of_256 = (derive(Cipher::Aes256Gcm, &short), derive(Cipher::Aes256Gcm, &long));
        assert_ne!(of_256.0.encryption, of_256.1.encryption);
        assert_eq!(of_256.0.signing, of_256.1.signing);
        assert_eq!(of_256.0.encryption.unwrap().as_bytes().len(), 32);
        let shown = format!("{:?}", of_256.0);
        assert_eq!(shown, "SessionKeys { encryption: Some(Key(32 bytes)), .. }");
    }
}
