//! Where a run was made: what its figures depend on besides the server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where a run was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// The target as it was given, without its password.
    pub target: String,
    /// How it was spoken to.
    pub protocol: Protocol,
    /// The machine that made the load.
    pub client: Host,
    /// Server and client are one machine, or the target is a directory of it: no NIC, no RSS and no link were involved, so
    /// absolute figures say nothing about a network.
    pub loopback: bool,
    /// Time of the smallest request without a load, in microseconds: the median of several.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub round_trip_us: Option<f64>,
    /// What server and client agreed on.
    #[serde(default)]
    pub negotiated: Negotiated,
    /// Which server it is, as far as one can know, such as `Anabranch` or `Samba`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<String>,
    /// What else matters, by name (mount options of a mounted directory, its file system, limits of a link).
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
}

/// A way to speak to a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// SMB 3.1.1.
    #[serde(rename = "smb")]
    Smb,
    /// NFS version 3.
    #[serde(rename = "nfs3")]
    Nfs3,
    /// NFS version 4.1.
    #[serde(rename = "nfs4.1")]
    Nfs41,
    /// A directory of this machine, mounted or local.
    #[serde(rename = "dir")]
    Directory,
}

impl Protocol {
    /// Its name, as in result files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Smb => "smb",
            Self::Nfs3 => "nfs3",
            Self::Nfs41 => "nfs4.1",
            Self::Directory => "dir",
        }
    }
}

/// A machine.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Host {
    /// The CPU's name as the kernel has it.
    pub cpu: String,
    /// Logical CPUs that the run could use.
    pub cpus: u32,
    /// Memory in bytes.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Operating system and kernel release, such as `Linux 6.1.0`.
    pub kernel: String,
    /// CPU features that signing and encryption use and that are there (`aes`, `vaes`, `avx512f`, `pclmulqdq`, `sha_ni`).
    #[serde(default)]
    pub cpu_features: Vec<String>,
    /// Its network interfaces that are up.
    #[serde(default)]
    pub interfaces: Vec<Interface>,
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Interface {
    /// Its name, or its address where only that is known.
    pub name: String,
    /// Its speed in megabit a second, if it has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub speed_mbit: Option<u64>,
    /// Receive queues: more than one is what RSS needs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub receive_queues: Option<u32>,
    /// It spreads what it receives over CPUs (RSS), as far as one can know.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rss: Option<bool>,
    /// Its kernel driver, if it has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub driver: Option<String>,
    /// The way to the target goes over it.
    #[serde(default)]
    pub used: bool,
}

/// What server and client agreed on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Negotiated {
    /// Such as `SMB 3.1.1` or `NFSv4.1`.
    #[serde(default)]
    pub dialect: String,
    /// What the server says it is, where it does (`nfs_impl_id4` of NFSv4.1).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<String>,
    /// The signing algorithm, such as `AES-128-GMAC`, where messages are signed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub signing: Option<String>,
    /// The cipher, such as `AES-128-GCM`, where messages are encrypted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cipher: Option<String>,
    /// The most channels or connections that a row used and got.
    #[serde(default)]
    pub connections: u32,
    /// The most that a row asked for, where it got fewer.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub connections_asked: Option<u32>,
    /// The addresses of the server that connections went to.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub addresses: Vec<String>,
    /// The largest read in bytes.
    #[serde(default)]
    pub read_bytes_max: u32,
    /// The largest write in bytes.
    #[serde(default)]
    pub write_bytes_max: u32,
    /// Requests that may be under way: credits of a connection, or slots of an NFSv4 session.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub requests_max: Option<u32>,
    /// The interfaces that the server has told of (`FSCTL_QUERY_NETWORK_INTERFACE_INFO`), by address.
    #[serde(default)]
    pub server_interfaces: Vec<Interface>,
}

impl From<client::Negotiated> for Negotiated {
    fn from(agreed: client::Negotiated) -> Self {
        Self {
            dialect: agreed.dialect,
            server: agreed.server,
            signing: agreed.signing,
            cipher: agreed.cipher,
            connections: agreed.connections,
            connections_asked: agreed.connections_asked,
            addresses: Vec::new(),
            read_bytes_max: agreed.read_bytes_max,
            write_bytes_max: agreed.write_bytes_max,
            requests_max: agreed.requests_max,
            server_interfaces: agreed.server_interfaces.iter().map(Interface::from).collect(),
        }
    }
}

impl From<&client::ServerInterface> for Interface {
    fn from(interface: &client::ServerInterface) -> Self {
        Self {
            name: interface.address.to_string(),
            speed_mbit: Some(interface.bits_per_second / 1_000_000),
            rss: Some(interface.rss),
            ..Self::default()
        }
    }
}
