//! Keys for one purpose each, derived from a key. RFC 3961 5.1, 5.3, RFC 8009 3, 5.

use aws_lc_rs::hmac;
use zeroize::Zeroizing;

use super::checksum::ChecksumKey;
use super::cts::{BLOCK, Encryptor};
use super::enctype::Family;
use super::nfold::nfold;
use super::seal::{Opener, Sealer};
use super::{CryptoError, Enctype, Key};

/// What a key is used for: the "key usage number" of RFC 3961 5.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUsage(pub u32);

impl KeyUsage {
    /// The encrypted part of a ticket. RFC 4120 7.5.1.
    pub const TICKET: Self = Self(2);
    /// The time by which a client proves its password to a KDC. RFC 4120 7.5.1.
    pub const AS_REQ_TIMESTAMP: Self = Self(1);
    /// The encrypted part of an AS-REP. RFC 4120 7.5.1.
    pub const AS_REP: Self = Self(3);
    /// The checksum over a TGS-REQ. RFC 4120 7.5.1.
    pub const TGS_REQ_CHECKSUM: Self = Self(6);
    /// The authenticator in a TGS-REQ. RFC 4120 7.5.1.
    pub const TGS_REQ_AUTHENTICATOR: Self = Self(7);
    /// The encrypted part of a TGS-REP, with the key of the session. RFC 4120 7.5.1.
    pub const TGS_REP_SESSION: Self = Self(8);
    /// The encrypted part of a TGS-REP, with the client's subkey. RFC 4120 7.5.1.
    pub const TGS_REP_SUBKEY: Self = Self(9);
    /// The checksum over all tokens of IAKERB. draft-ietf-kitten-iakerb-03 5 (IAKERB-FINISHED).
    pub const IAKERB_FINISHED: Self = Self(41);
    /// The same of MIT up to 1.20 (KRB5_KEYUSAGE_IAKERB_FINISHED in its krb5.h).
    pub const IAKERB_FINISHED_MIT: Self = Self(42);
    /// The authenticator of an AP-REQ. RFC 4120 7.5.1.
    pub const AP_REQ_AUTHENTICATOR: Self = Self(11);
    /// The encrypted part of an AP-REP. RFC 4120 7.5.1.
    pub const AP_REP: Self = Self(12);
    /// KERB_NON_KERB_CKSUM_SALT: the signatures of a PAC. [MS-PAC] 2.8.
    pub const PAC: Self = Self(17);
    /// KG-USAGE-ACCEPTOR-SEAL. RFC 4121 2.
    pub const ACCEPTOR_SEAL: Self = Self(22);
    /// KG-USAGE-ACCEPTOR-SIGN. RFC 4121 2.
    pub const ACCEPTOR_SIGN: Self = Self(23);
    /// KG-USAGE-INITIATOR-SEAL. RFC 4121 2.
    pub const INITIATOR_SEAL: Self = Self(24);
    /// KG-USAGE-INITIATOR-SIGN. RFC 4121 2.
    pub const INITIATOR_SIGN: Self = Self(25);
}

/// Derives keys from one key.
pub struct Deriver {
    enctype: Enctype,
    base: Base,
}

#[expect(clippy::large_enum_variant, reason = "it lives on the stack, while keys are derived")]
enum Base {
    Sha1(Encryptor),
    Sha2(hmac::Key),
}

const KEY_LEN_MAX: usize = 32;
type KeyBytes = Zeroizing<[u8; KEY_LEN_MAX]>;

impl Key {
    /// What derives keys from this key.
    ///
    /// # Errors
    /// [`CryptoError`] if the library refuses.
    pub fn deriver(&self) -> Result<Deriver, CryptoError> {
        let enctype = self.enctype();
        let base = match enctype.family() {
            Family::Sha1 => Base::Sha1(Encryptor::new(enctype, self.as_bytes())?),
            Family::Sha2 => Base::Sha2(hmac::Key::new(enctype.hmac(), self.as_bytes())),
        };
        Ok(Deriver { enctype, base })
    }
}

impl Deriver {
    /// What encrypts for this purpose.
    ///
    /// # Errors
    /// [`CryptoError`] if the library refuses.
    pub fn sealer(&self, usage: KeyUsage) -> Result<Sealer, CryptoError> {
        let key = self.encryption_key(usage)?;
        let encryptor = Encryptor::new(self.enctype, first(&key, self.enctype.key_len()))?;
        Ok(Sealer::new(self.enctype, encryptor, self.mac_key(usage, Purpose::Integrity)?))
    }

    /// What decrypts for this purpose.
    ///
    /// # Errors
    /// [`CryptoError`] if the library refuses.
    pub fn opener(&self, usage: KeyUsage) -> Result<Opener, CryptoError> {
        let key = self.encryption_key(usage)?;
        let decryptor = super::cts::Decryptor::new(self.enctype, first(&key, self.enctype.key_len()))?;
        Ok(Opener::new(self.enctype, decryptor, self.mac_key(usage, Purpose::Integrity)?))
    }

    /// What makes checksums for this purpose.
    ///
    /// # Errors
    /// [`CryptoError`] if the library refuses.
    pub fn checksum_key(&self, usage: KeyUsage) -> Result<ChecksumKey, CryptoError> {
        self.mac_key(usage, Purpose::Checksum)
    }

    fn encryption_key(&self, usage: KeyUsage) -> Result<KeyBytes, CryptoError> {
        self.derive(&constant(usage, Purpose::Encryption), self.enctype.key_len())
    }

    fn mac_key(&self, usage: KeyUsage, purpose: Purpose) -> Result<ChecksumKey, CryptoError> {
        let length = self.enctype.integrity_key_len();
        let key = self.derive(&constant(usage, purpose), length)?;
        Ok(ChecksumKey::new(self.enctype, first(&key, length)))
    }

    /// A key of this length from a constant.
    pub(super) fn derive(&self, constant: &[u8], length: usize) -> Result<KeyBytes, CryptoError> {
        match &self.base {
            Base::Sha1(base) => by_encryption(base, constant, length),
            Base::Sha2(base) => by_hmac(base, constant, length),
        }
    }
}

/// DK of RFC 3961 5.1: the folded constant is encrypted, and what comes out again, until there is enough.
fn by_encryption(base: &Encryptor, constant: &[u8], length: usize) -> Result<KeyBytes, CryptoError> {
    let mut key = Zeroizing::new([0; KEY_LEN_MAX]);
    let mut block = Zeroizing::new([0; BLOCK]);
    nfold(constant, block.as_mut_slice());
    for part in key.chunks_mut(BLOCK).take(length.div_ceil(BLOCK)) {
        base.block(&mut block)?;
        part.copy_from_slice(block.as_slice());
    }
    Ok(key)
}

/// KDF-HMAC-SHA2 of RFC 8009 3: `K1 = HMAC-SHA-256(key, 0x00000001 | label | 0x00 | k)`, cut to k bits.
fn by_hmac(base: &hmac::Key, label: &[u8], length: usize) -> Result<KeyBytes, CryptoError> {
    let bits = u32::try_from(length.saturating_mul(8)).map_err(|_| CryptoError)?;
    let mut context = hmac::Context::with_key(base);
    let parts: [&[u8]; 4] = [&[0, 0, 0, 1], label, &[0], &bits.to_be_bytes()];
    parts.iter().for_each(|part| context.update(part));
    let tag = context.sign();
    let mut key = Zeroizing::new([0; KEY_LEN_MAX]);
    key.iter_mut().zip(tag.as_ref()).take(length).for_each(|(byte, derived)| *byte = *derived);
    Ok(key)
}

#[derive(Clone, Copy)]
enum Purpose {
    Checksum,
    Encryption,
    Integrity,
}

/// The usage in four bytes, the most significant first, and a byte for the purpose. RFC 3961 5.3, RFC 8009 5.
fn constant(usage: KeyUsage, purpose: Purpose) -> [u8; 5] {
    let [a, b, c, d] = usage.0.to_be_bytes();
    let purpose = match purpose {
        Purpose::Checksum => 0x99,
        Purpose::Encryption => 0xaa,
        Purpose::Integrity => 0x55,
    };
    [a, b, c, d, purpose]
}

fn first(key: &KeyBytes, length: usize) -> &[u8] {
    key.get(..length).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::hex;

    /// RFC 8009 appendix A for the types 19 and 20; for 17 and 18, what MIT krb5 1.22 tests itself with
    /// (`crypto_tests/t_derive.c`).
    #[test]
    fn known_keys_are_derived() {
        let vectors = [
            (
                Enctype::Aes128Sha1,
                "42263c6e89f4fc28b8df68ee09799f15",
                [
                    "34280a382bc92769b2da2f9ef066854b",
                    "5b14fc4e250e14ddf9dccf1af6674f53",
                    "4ed31063621684f09ae8d89991af3e8f",
                ],
            ),
            (
                Enctype::Aes256Sha1,
                "fe697b52bc0d3ce14432ba036a92e65bbb52280990a2fa27883998d72af30161",
                [
                    "bfab388bdcb238e9f9c98d6a878304f04d30c82556375ac507a7a852790f4674",
                    "c7cfd9cd75fe793a586a542d87e0d1396f1134a104bb1a9190b8c90ada3ddf37",
                    "97151b4c76945063e2eb0529dc067d97d7bba90776d8126d91f34f3101aea8ba",
                ],
            ),
            (
                Enctype::Aes128Sha256,
                "3705d96080c17728a0e800eab6e0d23c",
                [
                    "b31a018a48f54776f403e9a396325dc3",
                    "9b197dd1e8c5609d6e67c3e37c62c72e",
                    "9fda0e56ab2d85e1569a688696c26a6c",
                ],
            ),
            (
                Enctype::Aes256Sha384,
                "6d404d37faf79f9df0d33568d320669800eb4836472ea8a026d16b7182460c52",
                [
                    "ef5718be86cc84963d8bbb5031e9f5c4ba41f28faf69e73d",
                    "56ab22bee63d82d7bc5227f6773f8ea7a5eb1c825160c38312980c442e5c7e49",
                    "69b16514e3cd8e56b82010d5c73012b622c4d00ffc23ed1f",
                ],
            ),
        ];
        for (enctype, base, expected) in vectors {
            let deriver = Key::new(enctype, &hex(base)).unwrap().deriver().unwrap();
            let purposes = [Purpose::Checksum, Purpose::Encryption, Purpose::Integrity];
            for (purpose, expected) in purposes.into_iter().zip(expected) {
                let expected = hex(expected);
                let key = deriver.derive(&constant(KeyUsage(2), purpose), expected.len()).unwrap();
                assert_eq!(first(&key, expected.len()), expected, "{enctype:?}");
            }
        }
    }
}
