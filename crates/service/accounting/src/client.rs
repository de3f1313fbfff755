//! The machines that calls come from.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

/// The machine that a request came from, as far as its protocol tells. Budgets are divided among clients, and operations are
/// counted per client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Client {
    /// The server itself, or an unknown client.
    #[default]
    Unknown,
    /// The ClientGuid of an SMB connection: the same for all connections of a client.
    Guid([u8; 16]),
    /// The address, without the port: the same for all connections of an NFS client.
    Address(IpAddr),
}

impl Client {
    /// A number that identifies the client.
    #[must_use]
    pub fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

impl std::fmt::Display for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown => f.write_str("unknown"),
            Self::Guid(guid) => guid.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
            Self::Address(address) => address.fmt(f),
        }
    }
}
