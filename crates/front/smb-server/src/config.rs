//! Settings of this server, as given by an administrator.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

pub use auth::Ntlm;
use krb5::ChannelBindingRule;
use share::{AccessLog, Identity, Terms};
pub use smb_proto::dialect::Dialect;
pub use smb_proto::durable::Timeouts;
pub use smb_proto::session::Protection;

use crate::directory::{Directory, NoDirectory};

/// The user and the group nobody.
const NOBODY: u32 = 65_534;

/// Settings of the SMB server. `Config::default()` is the configuration of an unconfigured server.
#[derive(Debug, Clone)]
pub struct Config {
    /// The server's name in NTLM and in share listings: a NetBIOS name in upper case.
    pub server_name: String,
    /// The GUID by which the server identifies itself, stable over restarts; `None` for a new one at each start.
    pub server_guid: Option<[u8; 16]>,
    /// Whether messages may or must be signed, in sessions that have a key.
    pub signing: Protection,
    /// Whether messages may or must be encrypted.
    pub encryption: Protection,
    /// Whether messages over QUIC must be encrypted wherever messages must be, although QUIC encrypts. If not, a client may
    /// agree with the server that they need not: the reverse of DisableEncryptionOverSecureTransport.
    pub encryption_over_quic: bool,
    /// Whether logons over QUIC must be bound to their connection.
    pub channel_binding: ChannelBinding,
    /// The identity of guests and anonymous clients on the shares: nobody.
    pub guest: Identity,
    /// The dialects offered, oldest to newest.
    pub dialects: RangeInclusive<Dialect>,
    /// Whether an anonymous client may connect to IPC$, even if no share admits it.
    pub anonymous_ipc: bool,
    /// Whether NTLM is offered and accepted. Without it there are neither guests nor anonymous clients.
    pub ntlm: Ntlm,
    /// The mode of files that SMB clients create.
    pub file_mode: u32,
    /// The mode of directories that SMB clients create.
    pub directory_mode: u32,
    /// The addresses that are reported to clients for further channels.
    pub interfaces: Interfaces,
    /// How long opens are kept whose clients have lost their connection.
    pub durable: Timeouts,
    /// What clients may use.
    pub limits: Limits,
    /// The access log, for logons.
    pub access_log: AccessLog,
    /// Who SIDs and names stand for.
    pub directory: Arc<dyn Directory>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            server_name: "ANABRANCH".to_owned(),
            server_guid: None,
            signing: Protection::Required,
            encryption: Protection::Enabled,
            encryption_over_quic: true,
            channel_binding: ChannelBinding::default(),
            guest: Identity::unix(NOBODY, NOBODY, Vec::new()),
            dialects: Dialect::Smb202..=Dialect::Smb311,
            anonymous_ipc: false,
            ntlm: Ntlm::On,
            file_mode: 0o644,
            directory_mode: 0o755,
            interfaces: Interfaces::default(),
            durable: Timeouts::default(),
            limits: Limits::default(),
            access_log: AccessLog::default(),
            directory: Arc::new(NoDirectory),
        }
    }
}

impl Config {
    /// IsMultiChannelCapable
    pub(crate) fn offers_multichannel(&self) -> bool {
        self.limits.channels_per_session_max > 1
    }

    /// Whether guests may connect to shares with these terms: anonymous clients, and users without an account. Guests
    /// have no key, so they cannot be asked to sign. Where the server or the share requires encryption, guests are not
    /// admitted.
    pub(crate) fn lets_guests_in(&self, terms: Terms) -> bool {
        self.encryption != Protection::Required
            && terms.contains(Terms::GUESTS)
            && !terms.contains(Terms::ENCRYPTED)
    }
}

/// Whether a logon must be bound to the connection through which it comes (channel binding: RFC 5929 4, RFC 4121 4.1.1.2,
/// [MS-NLMP] 2.2.2.1). That is possible over QUIC alone: TCP has no certificate to which a client could be bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ChannelBinding {
    /// What clients say of their channel is not looked at.
    Off,
    /// A client that binds itself must be bound to this connection; one that does not is accepted.
    #[default]
    Accepted,
    /// Every client over QUIC must be bound to its connection.
    Required,
}

impl ChannelBinding {
    /// The rule for a channel; None: there is none.
    pub(crate) fn rule(self) -> Option<ChannelBindingRule> {
        match self {
            Self::Off => None,
            Self::Accepted => Some(ChannelBindingRule::IfSent),
            Self::Required => Some(ChannelBindingRule::Required),
        }
    }
}

/// The addresses that FSCTL_QUERY_NETWORK_INTERFACE_INFO reports to clients. None, by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// The addresses on which the server listens; an unspecified address means all. Of the machine's addresses, those on
    /// which a client can reach the server are reported.
    pub listen: Vec<IpAddr>,
    /// Addresses given by the administrator. If there are any, no others are reported.
    pub given: Vec<GivenInterface>,
}

/// An address given by the administrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenInterface {
    /// The address.
    pub address: IpAddr,
    /// The link speed in bits per second; `None` for the kernel's value.
    pub link_speed: Option<u64>,
    /// Whether several channels to the address are useful; if not set, the kernel decides.
    pub rss: bool,
}

/// A network interface of the server, as FSCTL_QUERY_NETWORK_INTERFACE_INFO reports it to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface {
    /// The number of the interface; the same for all addresses of one interface.
    pub index: u32,
    /// An address on which the server can be reached.
    pub address: IpAddr,
    /// The link speed in bits per second.
    pub link_speed: u64,
    /// Whether several channels to the address are useful (receive side scaling).
    pub rss: bool,
}

/// What clients may use. A request that would exceed a limit fails; others are not affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections of all clients together.
    pub connections_max: usize,
    /// Connections of one address; `None`: the last quarter is for addresses that hold less than a quarter.
    pub connections_per_address: Option<usize>,
    /// Sessions of all clients together, counted from the logon.
    pub sessions_max: usize,
    /// Sessions of one connection, including those that are being set up.
    pub sessions_per_connection_max: usize,
    /// Sessions of one connection that are being set up.
    pub logons_per_connection_max: usize,
    /// Channels of one session; 1 switches multichannel off.
    pub channels_per_session_max: usize,
    /// Tree connects of one session.
    pub trees_per_session_max: usize,
    /// Opens of one session.
    pub opens_per_session_max: usize,
    /// Opens of all clients together that are kept while their clients have no connection. Persistent opens are
    /// counted, but never refused: they have a limit of their own.
    pub disconnected_opens_max: usize,
    /// Persistent opens of all clients together. Further opens become durable only.
    pub persistent_opens_max: usize,
    /// Requests of one connection that wait for locks or change notifications.
    pub pending_requests_max: usize,
    /// Requests in one compound.
    pub compound_max: usize,
    /// Bytes of one READ, WRITE or transaction, since SMB 2.1.
    pub io_bytes_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 65_536,
            connections_per_address: None,
            sessions_max: 65_536,
            sessions_per_connection_max: 256,
            logons_per_connection_max: 32,
            channels_per_session_max: 4,
            trees_per_session_max: 1024,
            opens_per_session_max: 65_536,
            disconnected_opens_max: 16_384,
            persistent_opens_max: 16_384,
            pending_requests_max: 4096,
            compound_max: 64,
            io_bytes_max: 8 << 20,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_come_to_the_shares_that_say_so_and_need_no_key() {
        let config = Config::default();
        assert!(config.lets_guests_in(Terms::GUESTS) && !config.lets_guests_in(Terms::empty()));
        assert!(!config.lets_guests_in(Terms::GUESTS | Terms::ENCRYPTED));
        assert_eq!(config.signing, Protection::Required, "which guests cannot");
        let encrypting = Config { encryption: Protection::Required, ..Config::default() };
        assert!(!encrypting.lets_guests_in(Terms::GUESTS));
        let config = Config { encryption: Protection::Off, ..config };
        assert!(!config.lets_guests_in(Terms::GUESTS | Terms::ENCRYPTED));
    }

    #[test]
    fn nobody_has_no_rights_of_anybody() {
        assert_eq!(Config::default().guest, Identity::unix(65_534, 65_534, vec![]));
    }
}
