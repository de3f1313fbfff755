//! Dialects and the algorithms that a connection agrees on. [MS-SMB2] 2.2.3, 2.2.3.1.

/// A dialect of SMB 2 or 3, ordered by age: newer dialects are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// SMB 2.0.2
    Smb202,
    /// SMB 2.1
    Smb210,
    /// SMB 3.0
    Smb300,
    /// SMB 3.0.2
    Smb302,
    /// SMB 3.1.1
    Smb311,
}

impl Dialect {
    /// Every dialect, oldest first.
    pub const ALL: [Self; 5] = [Self::Smb202, Self::Smb210, Self::Smb300, Self::Smb302, Self::Smb311];

    /// The dialect with this revision number, if it belongs to SMB 2 or 3 (the wildcard 0x02FF does not).
    pub fn from_revision(revision: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|dialect| dialect.revision() == revision)
    }

    /// The number on the wire: DialectRevision.
    pub fn revision(self) -> u16 {
        match self {
            Self::Smb202 => 0x0202,
            Self::Smb210 => 0x0210,
            Self::Smb300 => 0x0300,
            Self::Smb302 => 0x0302,
            Self::Smb311 => 0x0311,
        }
    }

    /// The version as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smb202 => "2.0.2",
            Self::Smb210 => "2.1",
            Self::Smb300 => "3.0",
            Self::Smb302 => "3.0.2",
            Self::Smb311 => "3.1.1",
        }
    }

    /// Whether this is one of "the SMB 3.x dialect family".
    pub fn is_smb3(self) -> bool {
        self >= Self::Smb300
    }
}

/// An encryption cipher of SMB2_ENCRYPTION_CAPABILITIES. [MS-SMB2] 2.2.3.1.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cipher {
    /// AES-128-CCM, the only cipher of SMB 3.0 and 3.0.2
    Aes128Ccm,
    /// AES-128-GCM
    Aes128Gcm,
    /// AES-256-CCM
    Aes256Ccm,
    /// AES-256-GCM
    Aes256Gcm,
}

impl Cipher {
    /// Every cipher, in the order in which this server prefers them.
    pub const ALL: [Self; 4] = [Self::Aes128Gcm, Self::Aes256Gcm, Self::Aes128Ccm, Self::Aes256Ccm];

    /// The cipher with this identifier.
    pub fn from_id(id: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|cipher| cipher.id() == id)
    }

    /// The number on the wire.
    pub fn id(self) -> u16 {
        match self {
            Self::Aes128Ccm => 0x0001,
            Self::Aes128Gcm => 0x0002,
            Self::Aes256Ccm => 0x0003,
            Self::Aes256Gcm => 0x0004,
        }
    }

    /// The name as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes128Ccm => "AES-128-CCM",
            Self::Aes128Gcm => "AES-128-GCM",
            Self::Aes256Ccm => "AES-256-CCM",
            Self::Aes256Gcm => "AES-256-GCM",
        }
    }

    /// Bytes of an encryption key.
    pub fn key_len(self) -> usize {
        match self {
            Self::Aes128Ccm | Self::Aes128Gcm => 16,
            Self::Aes256Ccm | Self::Aes256Gcm => 32,
        }
    }

    /// How many bytes of the nonce field in the transform header the cipher uses. [MS-SMB2] 2.2.41.
    pub fn nonce_len(self) -> usize {
        match self {
            Self::Aes128Ccm | Self::Aes256Ccm => 11,
            Self::Aes128Gcm | Self::Aes256Gcm => 12,
        }
    }
}

/// A signing algorithm of SMB2_SIGNING_CAPABILITIES. [MS-SMB2] 2.2.3.1.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SigningAlgorithm {
    /// HMAC-SHA256, first 16 bytes: SMB 2.0.2 and 2.1
    HmacSha256,
    /// AES-128-CMAC: the default of SMB 3.x
    AesCmac,
    /// AES-128-GMAC: SMB 3.1.1, when negotiated
    AesGmac,
}

impl SigningAlgorithm {
    /// Every algorithm, in the order in which this server prefers them.
    pub const ALL: [Self; 3] = [Self::AesGmac, Self::AesCmac, Self::HmacSha256];

    /// The algorithm with this identifier.
    pub fn from_id(id: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.id() == id)
    }

    /// The number on the wire.
    pub fn id(self) -> u16 {
        match self {
            Self::HmacSha256 => 0x0000,
            Self::AesCmac => 0x0001,
            Self::AesGmac => 0x0002,
        }
    }

    /// The name as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::HmacSha256 => "HMAC-SHA256",
            Self::AesCmac => "AES-CMAC",
            Self::AesGmac => "AES-GMAC",
        }
    }

    /// The algorithm with which a dialect signs when none is negotiated. [MS-SMB2] 3.1.4.1.
    pub fn default_of(dialect: Dialect) -> Self {
        if dialect.is_smb3() { Self::AesCmac } else { Self::HmacSha256 }
    }
}
