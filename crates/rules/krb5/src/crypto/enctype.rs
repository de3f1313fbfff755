//! The encryption types: four of AES, and no others.

use aws_lc_rs::{cipher, hmac};

/// An encryption type. RC4 and DES are not here: nothing switches them on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Enctype {
    /// aes128-cts-hmac-sha1-96, RFC 3962
    Aes128Sha1,
    /// aes256-cts-hmac-sha1-96, RFC 3962: what Windows uses
    Aes256Sha1,
    /// aes128-cts-hmac-sha256-128, RFC 8009
    Aes128Sha256,
    /// aes256-cts-hmac-sha384-192, RFC 8009
    Aes256Sha384,
}

impl Enctype {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Aes128Sha1, Self::Aes256Sha1, Self::Aes128Sha256, Self::Aes256Sha384];

    /// The type with this number.
    #[must_use]
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|known| i64::from(known.number()) == number)
    }

    /// The number that IANA assigned. RFC 3962 7, RFC 8009 9.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Aes128Sha1 => 17,
            Self::Aes256Sha1 => 18,
            Self::Aes128Sha256 => 19,
            Self::Aes256Sha384 => 20,
        }
    }

    /// The name, as in the configuration of Kerberos.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Aes128Sha1 => "aes128-cts-hmac-sha1-96",
            Self::Aes256Sha1 => "aes256-cts-hmac-sha1-96",
            Self::Aes128Sha256 => "aes128-cts-hmac-sha256-128",
            Self::Aes256Sha384 => "aes256-cts-hmac-sha384-192",
        }
    }

    /// The bytes of a key.
    #[must_use]
    pub const fn key_len(self) -> usize {
        match self {
            Self::Aes128Sha1 | Self::Aes128Sha256 => 16,
            Self::Aes256Sha1 | Self::Aes256Sha384 => 32,
        }
    }

    /// The bytes of a checksum.
    #[must_use]
    pub const fn tag_len(self) -> usize {
        match self {
            Self::Aes128Sha1 | Self::Aes256Sha1 => 12,
            Self::Aes128Sha256 => 16,
            Self::Aes256Sha384 => 24,
        }
    }

    /// The number of the checksum that belongs to the type.
    #[must_use]
    pub const fn checksum_number(self) -> i32 {
        match self {
            Self::Aes128Sha1 => 15,
            Self::Aes256Sha1 => 16,
            Self::Aes128Sha256 => 19,
            Self::Aes256Sha384 => 20,
        }
    }

    /// The bytes of the derived keys for integrity and checksums. That of the key (RFC 3962 6), or half of the
    /// hash (RFC 8009 5).
    pub(super) const fn integrity_key_len(self) -> usize {
        match self {
            Self::Aes128Sha1 | Self::Aes128Sha256 => 16,
            Self::Aes256Sha1 => 32,
            Self::Aes256Sha384 => 24,
        }
    }

    pub(super) const fn family(self) -> Family {
        match self {
            Self::Aes128Sha1 | Self::Aes256Sha1 => Family::Sha1,
            Self::Aes128Sha256 | Self::Aes256Sha384 => Family::Sha2,
        }
    }

    pub(super) fn hmac(self) -> hmac::Algorithm {
        match self {
            Self::Aes128Sha1 | Self::Aes256Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Aes128Sha256 => hmac::HMAC_SHA256,
            Self::Aes256Sha384 => hmac::HMAC_SHA384,
        }
    }

    pub(super) fn cipher(self) -> &'static cipher::Algorithm {
        match self {
            Self::Aes128Sha1 | Self::Aes128Sha256 => &cipher::AES_128,
            Self::Aes256Sha1 | Self::Aes256Sha384 => &cipher::AES_256,
        }
    }
}

/// What derives keys, and what the HMAC covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// RFC 3961 5: keys by encryption, the HMAC over the plain text
    Sha1,
    /// RFC 8009: keys by an HMAC, the HMAC over the encrypted text
    Sha2,
}
