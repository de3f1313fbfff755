//! What server and client have agreed on.

use std::net::IpAddr;

/// What server and client have agreed on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Negotiated {
    /// Such as `SMB 3.1.1` or `NFSv4.1`.
    pub dialect: String,
    /// What the server says it is, where it does (`nfs_impl_id4` of NFSv4.1).
    pub server: Option<String>,
    /// The signing algorithm, such as `AES-128-GMAC`, where messages are signed.
    pub signing: Option<String>,
    /// The cipher, such as `AES-128-GCM`, where messages are encrypted.
    pub cipher: Option<String>,
    /// Channels or connections that were made.
    pub connections: u32,
    /// Those that were asked for, where there are fewer.
    pub connections_asked: Option<u32>,
    /// The largest read in bytes.
    pub read_bytes_max: u32,
    /// The largest write in bytes.
    pub write_bytes_max: u32,
    /// Requests that may be under way: credits of a connection, or slots of an NFSv4 session.
    pub requests_max: Option<u32>,
    /// The interfaces that the server has told of (`FSCTL_QUERY_NETWORK_INTERFACE_INFO`).
    pub server_interfaces: Vec<ServerInterface>,
}

/// A network interface that a server has told of ([MS-SMB2] 2.2.32.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerInterface {
    /// Its address.
    pub address: IpAddr,
    /// Its speed in bits a second.
    pub bits_per_second: u64,
    /// It spreads what it receives over CPUs (RSS).
    pub rss: bool,
}
