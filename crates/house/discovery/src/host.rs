//! The server that is announced.

use std::net::IpAddr;

/// A server that can be announced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// The name of the machine, without a domain.
    pub name: String,
    /// What identifies the server: the same after a restart.
    pub id: [u8; 16],
    /// Where SMB listens: addresses (0.0.0.0 and [::] stand for all) and the port. None: it does not.
    pub smb: Option<Listening>,
    /// Where NFS listens.
    pub nfs: Option<Listening>,
}

/// Where a protocol listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listening {
    /// The addresses.
    pub addresses: Vec<IpAddr>,
    /// The port of the first of them.
    pub port: u16,
}
