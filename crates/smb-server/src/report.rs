//! What an administrator may know of the sessions: plain values, as they were at one moment.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use smb_proto::dialect::{Cipher, Dialect, SigningAlgorithm};
pub use smb_proto::session::{BindingRefusal, Principal};

/// What the server offers to its clients for further channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// How many channels a session may have; 1: SMB2_GLOBAL_CAP_MULTI_CHANNEL is not announced.
    pub channels_max: usize,
    /// The addresses that clients are told of.
    pub interfaces: Vec<crate::Interface>,
}

/// A session, with its channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Session.SessionId
    pub id: u64,
    /// Session.UserName; empty for an anonymous session.
    pub user: String,
    /// What kind of a user that is.
    pub principal: Principal,
    /// When the user logged on.
    pub since: SystemTime,
    /// Connection.ClientGuid, the same on all channels.
    pub client_guid: [u8; 16],
    /// The dialect of all channels.
    pub dialect: Dialect,
    /// What messages are signed with.
    pub signing_algorithm: SigningAlgorithm,
    /// Whether every message must be signed (those that are encrypted are not).
    pub signing_required: bool,
    /// What messages are encrypted with; `None`: nothing can be encrypted.
    pub cipher: Option<Cipher>,
    /// Whether every message must be encrypted. A share may demand it all the same.
    pub encryption_required: bool,
    /// Whether the client announced SMB2_GLOBAL_CAP_MULTI_CHANNEL when it connected first.
    pub client_multichannel: bool,
    /// Whether that was confirmed: the server offers it, and the dialect has it.
    pub multichannel: bool,
    /// How many channels it may have.
    pub channels_max: usize,
    /// Its channels, oldest first.
    pub channels: Vec<Channel>,
    /// The client's last FSCTL_QUERY_NETWORK_INTERFACE_INFO; `None`: it never asked.
    pub interfaces_asked: Option<InterfacesAsked>,
    /// Bindings of further channels that were refused, by their reason; no reason twice.
    pub refused_bindings: Vec<RefusedBinding>,
    /// Its tree connects.
    pub trees: usize,
    /// What it has open.
    pub opens: usize,
}

/// A connection of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channel {
    /// The server's number for the connection: it occurs in the log.
    pub connection: u64,
    /// The client's address.
    pub peer: SocketAddr,
    /// The server's address.
    pub local: SocketAddr,
    /// The number of the shard that serves it, from 0.
    pub shard: usize,
    /// When the client connected.
    pub since: SystemTime,
    /// How long it takes to the client and back, as it was while requests came last; none where the kernel does not say.
    pub round_trip: Option<Duration>,
    /// Requests that came over it, about shares: not those that only ask whether the server is there.
    pub requests: u64,
    /// Since the last of them, or since the client connected.
    pub idle: Duration,
}

/// What a client was told of the server's interfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterfacesAsked {
    /// When it asked last.
    pub at: SystemTime,
    /// How many addresses it was given.
    pub addresses: usize,
    /// How many of them are of interfaces with receive side scaling: a client opens several channels to those, and one to
    /// each of the others.
    pub rss_addresses: usize,
}

/// Bindings that were refused for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RefusedBinding {
    /// Why.
    pub reason: BindingRefusal,
    /// How often.
    pub count: u64,
    /// When last.
    pub last: SystemTime,
}
