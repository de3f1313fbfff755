//! Which clients are connected, and how: the answer of `GET /v1/clients`.
//!
//! These are facts. [`crate::explain`] has the conclusions.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

/// All clients: those of the server itself, and of the vservers of a cluster that it serves.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clients {
    /// What the server offers to SMB clients that want further channels.
    pub smb_offer: SmbOffer,
    /// What each vserver offers to them, by its name.
    #[serde(default)]
    pub vserver_smb_offers: BTreeMap<String, SmbOffer>,
    /// The SMB sessions, oldest first.
    pub smb_sessions: Vec<SmbSession>,
    /// The NFS clients, by address.
    pub nfs_clients: Vec<NfsClient>,
}

/// What the server offers to SMB clients that want further channels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmbOffer {
    /// Whether the server announces SMB2_GLOBAL_CAP_MULTI_CHANNEL.
    pub multichannel: bool,
    /// The most channels of one session.
    pub max_channels: u32,
    /// The interfaces reported by FSCTL_QUERY_NETWORK_INTERFACE_INFO.
    pub interfaces: Vec<Interface>,
}

/// An address that is reported to clients. [MS-SMB2] 2.2.32.5.
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
    /// The vserver of which it is a session; none: the server itself.
    #[serde(default)]
    pub vserver: Option<String>,
    /// SessionId, in hexadecimal: a JSON number cannot hold it.
    pub id: String,
    /// The GUID by which the client identifies itself.
    pub client_guid: String,
    /// The account; empty for a client without a name.
    pub user: String,
    /// How the user was admitted.
    pub principal: Principal,
    /// The dialect, for example `3.1.1`.
    pub dialect: String,
    /// How messages are signed.
    pub signing: Signing,
    /// How messages are encrypted; none where the dialect or the client does not support it.
    pub encryption: Option<Encryption>,
    /// Connections to shares.
    pub trees: u64,
    /// Files, directories and pipes that are open.
    pub opens: u64,
    /// How the user last logged on.
    #[serde(default)]
    pub mechanism: Option<Mechanism>,
    /// Seconds until the user's ticket ends; none without a ticket.
    #[serde(default)]
    pub expires_in_seconds: Option<u64>,
    /// Seconds since the logon.
    pub age_seconds: u64,
    /// Seconds since the last request about a share, on any channel.
    pub idle_seconds: u64,
    /// Whether the client announced SMB2_GLOBAL_CAP_MULTI_CHANNEL.
    pub client_multichannel: bool,
    /// The most channels of the session.
    pub max_channels: u32,
    /// The channels of the session.
    pub channels: Vec<Channel>,
    /// How many addresses the server last reported to the client; none if the client never asked for the interfaces.
    pub addresses_told: Option<u64>,
    /// Bindings of further channels that were refused, by reason.
    pub refused_bindings: Vec<RefusedBinding>,
}

/// How a user was admitted.
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

/// With what a user has logged on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// A ticket of a domain or of a KDC.
    Kerberos,
    /// A password, with which the client got a ticket of this server.
    Iakerb,
    /// A password, or nothing.
    Ntlm,
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

/// What carries the connection of an SMB client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// QUIC, which encrypts.
    Quic,
}

/// One connection of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Channel {
    /// The client's end.
    pub client: SocketAddr,
    /// The server's end.
    pub server: SocketAddr,
    /// What carries the connection.
    #[serde(default)]
    pub transport: Transport,
    /// The interface of the server's end, if it is reported to clients.
    pub interface: Option<Interface>,
    /// The round trip time to the client in microseconds, at the time of the last requests.
    #[serde(default)]
    pub round_trip_us: Option<u64>,
    /// Requests about shares that arrived on the channel.
    pub requests: u64,
    /// Seconds since the client connected.
    pub age_seconds: u64,
    /// Seconds since the last of these requests.
    pub idle_seconds: u64,
}

/// Bindings that were refused for the same reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedBinding {
    /// For programs: the reason.
    pub reason: RefusalReason,
    /// For people: the reason.
    pub message: String,
    /// The number of refusals.
    pub count: u64,
}

/// Why a further channel was refused. [MS-SMB2] 3.3.5.5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalReason {
    /// The server or the dialect allows one channel per session.
    NotMultichannel,
    /// The connection's dialect differs from the session's.
    Dialect,
    /// The request was not signed.
    NotSigned,
    /// The session was being authenticated.
    InProgress,
    /// The session's credentials had expired.
    Expired,
    /// The session is a guest or anonymous session.
    NoKey,
    /// The session already had this connection as a channel.
    AlreadyBound,
    /// The connection's cipher differs from the session's.
    Cipher,
    /// The connection's signing algorithm differs from the session's.
    SigningAlgorithm,
    /// The signature was not made with the session's key.
    Signature,
    /// The authentication failed.
    Authentication,
    /// The user differs from the session's.
    User,
    /// The session had as many channels as it may have.
    TooManyChannels,
    /// The session had ended meanwhile.
    Ended,
}

/// An NFS client: the connections from one address to the server itself, or to one vserver.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsClient {
    /// The vserver of which it is a client; none: the server itself.
    #[serde(default)]
    pub vserver: Option<String>,
    /// The client's address.
    pub address: IpAddr,
    /// What the client has reported as mounted (NFSv3 clients may unmount without a message).
    pub mounts: Vec<String>,
    /// The shares that the client has used, since the server started or the client connected.
    #[serde(default)]
    pub shares: Vec<String>,
    /// The client's connections: N of them with `nconnect=N`.
    pub connections: Vec<NfsConnection>,
    /// The client's NFSv4 sessions: usually one, which uses all connections.
    pub sessions: Vec<NfsSession>,
    /// The users of the client who have shown tickets of Kerberos that have not ended, by name; 100 at most.
    #[serde(default)]
    pub users: Vec<String>,
    /// The hosts at this address that hold NFSv3 locks.
    #[serde(default)]
    pub lock_hosts: Vec<NfsLockHost>,
}

/// A host that holds NFSv3 locks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsLockHost {
    /// The name by which the host calls itself.
    pub name: String,
    /// Files in which it holds locks or share reservations.
    pub files: u64,
}

/// A session of an NFSv4 client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsSession {
    /// The name by which the client calls itself.
    pub client: String,
    /// Connections of the session.
    pub connections: u64,
    /// Slots that the client may use, which limits the requests under way.
    pub slots_granted: u32,
    /// Requests under way.
    pub slots_in_use: u32,
    /// The most requests that were under way at the same time.
    pub slots_in_use_max: u32,
    /// The highest slot that was ever used.
    pub slot_highest: Option<u32>,
    /// Whether the server can send requests to the client.
    pub back_channel: bool,
    /// Seconds since the last request.
    pub idle_seconds: u64,
}

/// Calls that moved data, and the amount of data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsTransfers {
    /// Calls.
    pub calls: u64,
    /// Bytes of all calls.
    pub bytes: u64,
    /// The most bytes of one call: usually the size with which the client has mounted (rsize, wsize).
    pub bytes_max: u64,
}

impl NfsTransfers {
    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            bytes: self.bytes.saturating_add(other.bytes),
            bytes_max: self.bytes_max.max(other.bytes_max),
        }
    }
}

/// TLS of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tls {
    /// The version: `1.3`.
    pub version: String,
    /// The cipher suite, for example `TLS_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// The client's certificate, which was verified; none if the client has shown none.
    pub certificate: Option<TlsCertificate>,
}

/// The certificate of a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TlsCertificate {
    /// Its DNS names.
    pub names: Vec<String>,
    /// Its SHA-256 in hexadecimal digits.
    pub fingerprint: String,
}

/// One connection of an NFS client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NfsConnection {
    /// The client's end.
    pub client: SocketAddr,
    /// The server's end.
    pub server: SocketAddr,
    /// The version of the calls; none before the first NFS call.
    pub version: Option<u32>,
    /// The minor version of its NFSv4 calls, if it has sent any.
    #[serde(default)]
    pub minor_version: Option<u32>,
    /// TLS; none if the connection is not encrypted by it.
    #[serde(default)]
    pub tls: Option<Tls>,
    /// How the calls that have come so far were secured: some of `sys`, `krb5`, `krb5i` and `krb5p`.
    #[serde(default)]
    pub security: Vec<String>,
    /// The round trip time to the client in microseconds, at the time of the last calls.
    #[serde(default)]
    pub round_trip_us: Option<u64>,
    /// Calls that have arrived.
    pub calls: u64,
    /// Calls that have not been answered yet.
    pub in_flight: u64,
    /// Reads.
    pub reads: NfsTransfers,
    /// Writes.
    pub writes: NfsTransfers,
    /// Seconds since the client connected.
    pub age_seconds: u64,
    /// Seconds since the last call.
    pub idle_seconds: u64,
}

impl Clients {
    /// These, and those of a vserver.
    #[must_use]
    pub fn with_vserver(mut self, name: &str, of_vserver: Self) -> Self {
        let vserver = || Some(name.to_owned());
        let sessions = of_vserver.smb_sessions.into_iter();
        self.smb_sessions.extend(sessions.map(|session| SmbSession { vserver: vserver(), ..session }));
        self.smb_sessions.sort_by_key(|session| Reverse(session.age_seconds));
        let clients = of_vserver.nfs_clients.into_iter();
        self.nfs_clients.extend(clients.map(|client| NfsClient { vserver: vserver(), ..client }));
        self.nfs_clients.sort_by_key(|client| client.address);
        self.vserver_smb_offers.insert(name.to_owned(), of_vserver.smb_offer);
        self
    }

    /// Those of the server itself.
    #[must_use]
    pub fn without_vservers(mut self) -> Self {
        self.smb_sessions.retain(|session| session.vserver.is_none());
        self.nfs_clients.retain(|client| client.vserver.is_none());
        self
    }

    /// What the server, or the vserver, offers to the client of this session.
    #[must_use]
    pub fn smb_offer_to(&self, session: &SmbSession) -> &SmbOffer {
        let of_vserver = session.vserver.as_ref().and_then(|name| self.vserver_smb_offers.get(name));
        of_vserver.unwrap_or(&self.smb_offer)
    }
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
    /// What the client has read, over all of its connections.
    #[must_use]
    pub fn reads(&self) -> NfsTransfers {
        self.connections.iter().fold(NfsTransfers::default(), |sum, connection| sum.and(connection.reads))
    }

    /// What the client has written, over all of its connections.
    #[must_use]
    pub fn writes(&self) -> NfsTransfers {
        self.connections.iter().fold(NfsTransfers::default(), |sum, connection| sum.and(connection.writes))
    }
}

impl SmbSession {
    /// The client's address: that of its first channel.
    #[must_use]
    pub fn client(&self) -> Option<IpAddr> {
        self.channels.first().map(|channel| channel.client.ip().to_canonical())
    }

    /// Whether all messages are encrypted, not only those about shares that require it.
    #[must_use]
    pub fn encrypts(&self) -> bool {
        self.encryption.as_ref().is_some_and(|encryption| encryption.required)
    }
}
