//! Keys from passwords. RFC 3962 4, RFC 8009 4.

use std::num::NonZeroU32;

use aws_lc_rs::pbkdf2;
use zeroize::Zeroizing;

use super::enctype::Family;
use super::{CryptoError, Enctype, Key};

/// RFC 3962 4: "If the string-to-key parameters are not supplied, the value used is 00 00 10 00".
const ROUNDS_SHA1: NonZeroU32 = NonZeroU32::new(4096).unwrap();
/// RFC 8009 4: "default is decimal 32768".
const ROUNDS_SHA2: NonZeroU32 = NonZeroU32::new(32_768).unwrap();

/// The key of a user with this password. The salt is the realm with the components of the user's name behind it, unless
/// the realm has another (RFC 4120 4). It takes milliseconds, so it has no place on a shard.
///
/// # Errors
/// [`CryptoError`] if the library refuses.
pub fn string_to_key(enctype: Enctype, password: &str, salt: &[u8]) -> Result<Key, CryptoError> {
    let rounds = match enctype.family() {
        Family::Sha1 => ROUNDS_SHA1,
        Family::Sha2 => ROUNDS_SHA2,
    };
    with_rounds(enctype, password, salt, rounds)
}

fn with_rounds(
    enctype: Enctype,
    password: &str,
    salt: &[u8],
    rounds: NonZeroU32,
) -> Result<Key, CryptoError> {
    let mut bytes = Zeroizing::new([0; 32]);
    let place = bytes.get_mut(..enctype.key_len()).ok_or(CryptoError)?;
    match enctype.family() {
        Family::Sha1 => pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA1, rounds, salt, password.as_bytes(), place),
        Family::Sha2 => {
            // RFC 8009 4: "saltp = enctype-name | 0x00 | salt"
            let salt = [enctype.name().as_bytes(), &[0], salt].concat();
            pbkdf2::derive(hash(enctype), rounds, &salt, password.as_bytes(), place);
        }
    }
    let base = Key::new(enctype, place).map_err(|_| CryptoError)?;
    let derived = base.deriver()?.derive(b"kerberos", enctype.key_len())?;
    Ok(Key::from_random(enctype, &derived))
}

fn hash(enctype: Enctype) -> pbkdf2::Algorithm {
    match enctype {
        Enctype::Aes128Sha1 | Enctype::Aes256Sha1 => pbkdf2::PBKDF2_HMAC_SHA1,
        Enctype::Aes128Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
        Enctype::Aes256Sha384 => pbkdf2::PBKDF2_HMAC_SHA384,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::hex;

    /// RFC 3962 appendix B.
    #[test]
    fn the_vectors_of_rfc_3962() {
        let x = "X".repeat(64);
        let longer = "X".repeat(65);
        let vectors: [(&str, &[u8], u32, &str, &str); 7] = [
            (
                "password",
                b"ATHENA.MIT.EDUraeburn",
                1,
                "42263c6e89f4fc28b8df68ee09799f15",
                "fe697b52bc0d3ce14432ba036a92e65bbb52280990a2fa27883998d72af30161",
            ),
            (
                "password",
                b"ATHENA.MIT.EDUraeburn",
                2,
                "c651bf29e2300ac27fa469d693bdda13",
                "a2e16d16b36069c135d5e9d2e25f896102685618b95914b467c67622225824ff",
            ),
            (
                "password",
                b"ATHENA.MIT.EDUraeburn",
                1200,
                "4c01cd46d632d01e6dbe230a01ed642a",
                "55a6ac740ad17b4846941051e1e8b0a7548d93b0ab30a8bc3ff16280382b8c2a",
            ),
            (
                "password",
                &[0x12, 0x34, 0x56, 0x78, 0x78, 0x56, 0x34, 0x12],
                5,
                "e9b23d52273747dd5c35cb55be619d8e",
                "97a4e786be20d81a382d5ebc96d5909cabcdadc87ca48f574504159f16c36e31",
            ),
            (
                &x,
                b"pass phrase equals block size",
                1200,
                "59d1bb789a828b1aa54ef9c2883f69ed",
                "89adee3608db8bc71f1bfbfe459486b05618b70cbae22092534e56c553ba4b34",
            ),
            (
                &longer,
                b"pass phrase exceeds block size",
                1200,
                "cb8005dc5f90179a7f02104c0018751d",
                "d78c5c9cb872a8c9dad4697f0bb5b2d21496c82beb2caeda2112fceea057401b",
            ),
            (
                "\u{1d11e}",
                b"EXAMPLE.COMpianist",
                50,
                "f149c1f2e154a73452d43e7fe62a56e5",
                "4b6d9839f84406df1f09cc166db4b83c571848b784a3d6bdc346589a3e393f9e",
            ),
        ];
        for (password, salt, rounds, short, long) in vectors {
            for (enctype, expected) in [(Enctype::Aes128Sha1, short), (Enctype::Aes256Sha1, long)] {
                let key = with_rounds(enctype, password, salt, NonZeroU32::new(rounds).unwrap()).unwrap();
                assert_eq!(key.as_bytes(), hex(expected), "{password} {rounds}");
            }
        }
    }

    /// RFC 8009 appendix A: 32,768 rounds, which are the default.
    #[test]
    fn the_vectors_of_rfc_8009() {
        let salt = [&hex("10df9dd783e5bc8acea1730e74355f61")[..], b"ATHENA.MIT.EDUraeburn"].concat();
        let vectors = [
            (Enctype::Aes128Sha256, "089bca48b105ea6ea77ca5d2f39dc5e7"),
            (Enctype::Aes256Sha384, "45bd806dbf6a833a9cffc1c94589a222367a79bc21c413718906e9f578a78467"),
        ];
        for (enctype, expected) in vectors {
            assert_eq!(string_to_key(enctype, "password", &salt).unwrap().as_bytes(), hex(expected));
        }
    }
}
