//! Who is connected, and how: the answer of `GET /v1/clients`.
//!
//! These are facts. What follows from them is in [`crate::explain`].

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// All clients.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clients {
    /// What the server offers to SMB clients for further channels.
    pub smb_offer: SmbOffer,
    /// The SMB sessions, the longest-lived first.
    pub smb_sessions: Vec<SmbSession>,
    /// The clients of NFS, by address.
    pub nfs_clients: Vec<NfsClient>,
}

/// What the server offers to SMB clients for further channels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmbOffer {
    /// Whether the server announces SMB2_GLOBAL_CAP_MULTI_CHANNEL.
    pub multichannel: bool,
    /// Channels of one session at most.
    pub max_channels: u32,
    /// What FSCTL_QUERY_NETWORK_INTERFACE_INFO tells.
    pub interfaces: Vec<Interface>,
}

/// An address that clients are told of. [MS-SMB2] 2.2.32.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interface {
    /// The number of the interface that has the address.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
    /// The speed of the interface.
    pub bits_per_second: u64,
    /// Whether the interface spreads its connections over processors (receive side scaling).
    pub rss: bool,
}

/// A logon of a user over SMB, with all its channels.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmbSession {
    /// SessionId, in hexadecimal: it does not fit into a number of JSON.
    pub id: String,
    /// The client's name for itself.
    pub client_guid: String,
    /// The account; empty for a client without a name.
    pub user: String,
    /// As whom the user was let in.
    pub principal: Principal,
    /// The dialect, for example `3.1.1`.
    pub dialect: String,
    /// How messages are signed.
    pub signing: Signing,
    /// How messages are encrypted; none where the dialect or the client cannot.
    pub encryption: Option<Encryption>,
    /// Connections to shares.
    pub trees: u64,
    /// Files, directories and pipes that are open.
    pub opens: u64,
    /// Since the logon.
    pub age_seconds: u64,
    /// Since the last request about a share, on whatever channel.
    pub idle_seconds: u64,
    /// Whether the client announced SMB2_GLOBAL_CAP_MULTI_CHANNEL.
    pub client_multichannel: bool,
    /// Channels that the session may have.
    pub max_channels: u32,
    /// The channels that it has.
    pub channels: Vec<Channel>,
    /// Whether the client asked for the server's interfaces, and how many addresses it was told of last.
    pub addresses_told: Option<u64>,
    /// The bindings of further channels that were refused, by their reason.
    pub refused_bindings: Vec<RefusedBinding>,
}

/// As whom a user was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Principal {
    /// With an account.
    User,
    /// As a guest: without a key.
    Guest,
    /// Without a name: without a key.
    Anonymous,
}

/// How messages are signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signing {
    /// For example `AES-GMAC`.
    pub algorithm: String,
    /// Whether a message without a signature is refused.
    pub required: bool,
}

/// How messages are encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Encryption {
    /// For example `AES-128-GCM`.
    pub cipher: String,
    /// Whether a message that is not encrypted is refused.
    pub required: bool,
}

/// One connection of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// The client's end.
    pub client: SocketAddr,
    /// The server's end.
    pub server: SocketAddr,
    /// The interface of the server's end, as far as it is one that clients are told of.
    pub interface: Option<Interface>,
    /// How long it takes to the client and back, in microseconds, as it was while requests came last.
    #[serde(default)]
    pub round_trip_us: Option<u64>,
    /// Requests about shares that came over it.
    pub requests: u64,
    /// Since the client connected.
    pub age_seconds: u64,
    /// Since the last of the requests.
    pub idle_seconds: u64,
}

/// Bindings that were refused for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedBinding {
    /// For programs: why.
    pub reason: RefusalReason,
    /// For people: why.
    pub message: String,
    /// How often.
    pub count: u64,
}

/// Why a further channel was refused. [MS-SMB2] 3.3.5.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalReason {
    /// The server, or the dialect, has one channel a session.
    NotMultichannel,
    /// Another dialect than that of the session.
    Dialect,
    /// The request was not signed.
    NotSigned,
    /// The session was being authenticated.
    InProgress,
    /// The session's credentials had run out.
    Expired,
    /// The session is that of a guest or of nobody.
    NoKey,
    /// The session was on this connection already.
    AlreadyBound,
    /// Another cipher than that of the session.
    Cipher,
    /// Another signing algorithm than that of the session.
    SigningAlgorithm,
    /// The signature was not that of the session's key.
    Signature,
    /// The authentication failed.
    Authentication,
    /// Another user than that of the session.
    User,
    /// The session had as many channels as it may have.
    TooManyChannels,
    /// The session had ended meanwhile.
    Ended,
}

/// A client of NFS: the connections from one address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsClient {
    /// The client's address.
    pub address: IpAddr,
    /// What it said that it mounted (NFSv3 clients may go without a word).
    pub mounts: Vec<String>,
    /// The shares that it has used, since the server started or the client came.
    #[serde(default)]
    pub shares: Vec<String>,
    /// Its connections: with `nconnect=N` there are N.
    pub connections: Vec<NfsConnection>,
    /// Its NFSv4 sessions: as a rule one, over all of its connections.
    pub sessions: Vec<NfsSession>,
}

/// A session of an NFSv4 client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsSession {
    /// The client's name for itself.
    pub client: String,
    /// Its connections.
    pub connections: u64,
    /// Slots that the client may use: so many requests may be under way.
    pub slots_granted: u32,
    /// Requests under way.
    pub slots_in_use: u32,
    /// The most that were under way at a time.
    pub slots_in_use_max: u32,
    /// The highest slot that was ever used.
    pub slot_highest: Option<u32>,
    /// Whether the server can call the client.
    pub back_channel: bool,
    /// Since the last request.
    pub idle_seconds: u64,
}

/// Calls that moved data, and how much.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsTransfers {
    /// Calls.
    pub calls: u64,
    /// Bytes of all of them.
    pub bytes: u64,
    /// Most bytes of one: as a rule what the client has mounted with (rsize, wsize).
    pub bytes_max: u64,
}

impl NfsTransfers {
    /// With others.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            bytes: self.bytes.saturating_add(other.bytes),
            bytes_max: self.bytes_max.max(other.bytes_max),
        }
    }
}

/// One connection of an NFS client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsConnection {
    /// The client's end.
    pub client: SocketAddr,
    /// The server's end.
    pub server: SocketAddr,
    /// The version of the calls: none before the first call of NFS.
    pub version: Option<u32>,
    /// How long it takes to the client and back, in microseconds, as it was while calls came last.
    #[serde(default)]
    pub round_trip_us: Option<u64>,
    /// Calls that came.
    pub calls: u64,
    /// Calls that are not answered yet.
    pub in_flight: u64,
    /// What was read.
    pub reads: NfsTransfers,
    /// What was written.
    pub writes: NfsTransfers,
    /// Since the client connected.
    pub age_seconds: u64,
    /// Since the last call.
    pub idle_seconds: u64,
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::User => "user",
            Self::Guest => "guest",
            Self::Anonymous => "anonymous",
        })
    }
}

impl NfsClient {
    /// What it has read, over all of its connections.
    #[must_use]
    pub fn reads(&self) -> NfsTransfers {
        self.connections.iter().fold(NfsTransfers::default(), |sum, connection| sum.and(connection.reads))
    }

    /// What it has written.
    #[must_use]
    pub fn writes(&self) -> NfsTransfers {
        self.connections.iter().fold(NfsTransfers::default(), |sum, connection| sum.and(connection.writes))
    }
}

impl SmbSession {
    /// Where the client is: the address of its first channel.
    #[must_use]
    pub fn client(&self) -> Option<IpAddr> {
        self.channels.first().map(|channel| channel.client.ip().to_canonical())
    }

    /// Whether the channels are encrypted as a rule, or only where a share demands it.
    #[must_use]
    pub fn encrypts(&self) -> bool {
        self.encryption.as_ref().is_some_and(|encryption| encryption.required)
    }
}
