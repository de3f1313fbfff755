//! What a client is to be connected to.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A share of an SMB server. Serialized, it has its password: only for connections that are protected.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmbTarget {
    /// Who logs on; may have a domain in front, `DOMAIN;user`.
    pub user: String,
    /// The user's password.
    pub password: String,
    /// The server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The share.
    pub share: String,
}

impl fmt::Debug for SmbTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmbTarget({}@{}:{}/{})", self.user, self.host, self.port, self.share)
    }
}

/// An export of an NFS server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsTarget {
    /// The server.
    pub host: String,
    /// The port that answers NFS, and MOUNT if `mount_port` does not say otherwise.
    pub port: u16,
    /// The port that answers MOUNT.
    pub mount_port: Option<u16>,
    /// The exported path.
    pub path: String,
    /// NFSv4.1 rather than NFSv3.
    pub v41: bool,
    /// The user and group that the client says it is.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}
