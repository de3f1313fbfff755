//! What a client is to be connected to.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// A share of an SMB server. Serialized, it has its password: only for connections that are protected.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmbTarget {
    /// Who logs on.
    pub logon: SmbLogon,
    /// The server.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The share.
    pub share: String,
}

impl fmt::Debug for SmbTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmbTarget({:?}@{}:{}/{})", self.logon, self.host, self.port, self.share)
    }
}

/// How an SMB client proves who it is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SmbLogon {
    /// With a password, by NTLM.
    Password {
        /// The user; may have a domain in front, `DOMAIN;user`.
        user: String,
        /// The user's password.
        password: String,
    },
    /// With the Kerberos ticket in the user's credential cache.
    Ticket,
}

/// Without the password.
impl fmt::Debug for SmbLogon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Password { user, .. } => write!(f, "Password({user})"),
            Self::Ticket => write!(f, "Ticket"),
        }
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
    /// How the user is proved, and calls are protected.
    #[serde(default)]
    pub security: NfsSecurity,
    /// TLS on all connections (RFC 9289).
    #[serde(default)]
    pub tls: Option<NfsTls>,
}

/// How an NFS client says who it is, and how its calls are protected: the `sec=` of a mount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NfsSecurity {
    /// It states a user and a group (AUTH_SYS).
    #[default]
    Sys,
    /// A Kerberos ticket proves the user (RPCSEC_GSS, RFC 2203).
    Krb5,
    /// The same, and nothing can be changed on the way.
    Krb5i,
    /// The same, and nobody else can read it.
    Krb5p,
}

impl NfsSecurity {
    /// All of them, the weakest first.
    pub const ALL: [Self; 4] = [Self::Sys, Self::Krb5, Self::Krb5i, Self::Krb5p];

    /// As mount options and results write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sys => "sys",
            Self::Krb5 => "krb5",
            Self::Krb5i => "krb5i",
            Self::Krb5p => "krb5p",
        }
    }
}

/// TLS of an NFS client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsTls {
    /// A file with the certificates that are trusted, in PEM form. `None`: those that the system trusts.
    pub authority: Option<PathBuf>,
}
