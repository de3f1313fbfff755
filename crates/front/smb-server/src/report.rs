//! Reports of the sessions for administrators: plain values, at one moment.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub use auth::Mechanism;
pub use net::Transport;
use share::{Open, Share};
use smb_proto::dialect::{Cipher, Dialect, SigningAlgorithm};
pub use smb_proto::session::{BindingRefusal, Principal};

/// The server's offer to its clients for further channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The most channels of a session. With 1, SMB2_GLOBAL_CAP_MULTI_CHANNEL is not announced.
    pub channels_max: usize,
    /// The addresses that are reported to clients.
    pub interfaces: Vec<crate::Interface>,
}

/// A session, with its channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Session.SessionId
    pub id: u64,
    /// Session.UserName; empty for an anonymous session.
    pub user: String,
    /// The kind of user.
    pub principal: Principal,
    /// When the user logged on.
    pub since: SystemTime,
    /// How the user last logged on.
    pub mechanism: Mechanism,
    /// When the user's ticket ends; None: there is none.
    pub expires: Option<SystemTime>,
    /// Connection.ClientGuid, the same on all channels.
    pub client_guid: [u8; 16],
    /// The dialect of all channels.
    pub dialect: Dialect,
    /// The algorithm that signs messages.
    pub signing_algorithm: SigningAlgorithm,
    /// Whether every message must be signed (encrypted messages are not signed).
    pub signing_required: bool,
    /// The cipher that encrypts messages; `None` if encryption is not possible.
    pub cipher: Option<Cipher>,
    /// Whether every message must be encrypted. If not, a share may still demand it.
    pub encryption_required: bool,
    /// Whether the client announced SMB2_GLOBAL_CAP_MULTI_CHANNEL when it first connected.
    pub client_multichannel: bool,
    /// Whether that was confirmed: the server offers it, and the dialect supports it.
    pub multichannel: bool,
    /// The most channels of the session.
    pub channels_max: usize,
    /// The channels of the session, oldest first.
    pub channels: Vec<Channel>,
    /// The client's last FSCTL_QUERY_NETWORK_INTERFACE_INFO; `None` if it never asked.
    pub interfaces_asked: Option<InterfacesAsked>,
    /// Bindings of further channels that were refused, one entry for each reason.
    pub refused_bindings: Vec<RefusedBinding>,
    /// The number of tree connects.
    pub trees: usize,
    /// The number of opens.
    pub opens: usize,
}

/// A file or directory that a client has open.
#[derive(Debug, Clone)]
pub struct OpenFile {
    /// Session.SessionId; None: the open is kept for a client that has no session.
    pub session: Option<u64>,
    /// The user of the session, or the user who must come for the open; empty for an anonymous session.
    pub user: String,
    /// The address of the client's oldest channel.
    pub client: Option<IpAddr>,
    /// The share.
    pub share: Arc<Share>,
    /// The open.
    pub open: Arc<Open>,
    /// The path from the share's root as the client named it when it opened the file, with backslashes.
    pub name: String,
    /// Whether the object is a directory.
    pub is_directory: bool,
}

/// A connection of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// The server's number for the connection, which also appears in the log.
    pub connection: u64,
    /// The client's address.
    pub peer: SocketAddr,
    /// The server's address.
    pub local: SocketAddr,
    /// What carries the connection.
    pub transport: Transport,
    /// The number of the shard that serves it, from 0.
    pub shard: usize,
    /// When the client connected.
    pub since: SystemTime,
    /// The round trip time to the client, at the time of the last requests; None if the kernel does not report it.
    pub round_trip: Option<Duration>,
    /// Requests about shares that arrived over the channel, not counting those that only check whether the server is
    /// alive.
    pub requests: u64,
    /// The time since the last of these requests, or since the client connected.
    pub idle: Duration,
}

/// The reports of the server's interfaces to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfacesAsked {
    /// When the client last asked.
    pub at: SystemTime,
    /// How many addresses the client was given.
    pub addresses: usize,
    /// How many of the addresses belong to interfaces with receive side scaling: a client opens several channels to
    /// these, and one to each of the others.
    pub rss_addresses: usize,
}

/// Bindings that were refused for the same reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedBinding {
    /// The reason.
    pub reason: BindingRefusal,
    /// The number of refusals.
    pub count: u64,
    /// When the last one was refused.
    pub last: SystemTime,
}
