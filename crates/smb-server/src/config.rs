//! Settings of this server, as an administrator gives them.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use share::{Identity, Terms};
pub use smb_proto::dialect::Dialect;
pub use smb_proto::durable::Timeouts;
pub use smb_proto::session::Protection;

/// The user and the group that nobody is.
const NOBODY: u32 = 65_534;

/// Settings of the SMB server. `Config::default()` is what a server without a configuration uses.
#[derive(Debug, Clone)]
pub struct Config {
    /// The name that the server gives itself in NTLM and in share listings: a NetBIOS name, upper case.
    pub server_name: String,
    /// The server's name for itself on the wire, stable over restarts; `None`: a new one at each start.
    pub server_guid: Option<[u8; 16]>,
    /// Whether messages may or must be signed: those of sessions that have a key.
    pub signing: Protection,
    /// Whether messages may or must be encrypted.
    pub encryption: Protection,
    /// Who guests and clients without a name are to the shares: nobody.
    pub guest: Identity,
    /// The dialects offered, oldest to newest.
    pub dialects: RangeInclusive<Dialect>,
    /// Whether a client that gives no name may connect to IPC$, even if no share lets it in.
    pub anonymous_ipc: bool,
    /// The mode of files that SMB clients make.
    pub file_mode: u32,
    /// The mode of directories that SMB clients make.
    pub directory_mode: u32,
    /// Which addresses clients are told of for further channels.
    pub interfaces: Interfaces,
    /// For how long opens are kept whose clients have lost their connection.
    pub durable: Timeouts,
    /// What clients may take up.
    pub limits: Limits,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            server_name: "ANABRANCH".to_owned(),
            server_guid: None,
            signing: Protection::Required,
            encryption: Protection::Enabled,
            guest: Identity { uid: NOBODY, gid: NOBODY, groups: Vec::new() },
            dialects: Dialect::Smb202..=Dialect::Smb311,
            anonymous_ipc: false,
            file_mode: 0o644,
            directory_mode: 0o755,
            interfaces: Interfaces::default(),
            durable: Timeouts::default(),
            limits: Limits::default(),
        }
    }
}

impl Config {
    /// IsMultiChannelCapable
    pub(crate) fn offers_multichannel(&self) -> bool {
        self.limits.channels_per_session_max > 1
    }

    /// Whether guests may connect to shares of these terms: clients without a name, and users without an account. They
    /// have no key, so nobody can ask them to sign; where encryption is required, of the server or of the share, there are
    /// no guests.
    pub(crate) fn lets_guests_in(&self, terms: Terms) -> bool {
        self.encryption != Protection::Required
            && terms.contains(Terms::GUESTS)
            && !terms.contains(Terms::ENCRYPTED)
    }
}

/// Which addresses FSCTL_QUERY_NETWORK_INTERFACE_INFO tells clients of. None, by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interfaces {
    /// Where the server listens, an unspecified address meaning all: of the machine's addresses, those on which a client
    /// can reach it are told.
    pub listen: Option<IpAddr>,
    /// Those that the administrator names; if any, no others are told.
    pub given: Vec<GivenInterface>,
}

/// An address that the administrator names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenInterface {
    /// The address.
    pub address: IpAddr,
    /// Its speed, in bits per second; `None`: what the kernel says.
    pub link_speed: Option<u64>,
    /// Whether several channels to it are of use; else what the kernel says.
    pub rss: bool,
}

/// A network interface of the server: FSCTL_QUERY_NETWORK_INTERFACE_INFO tells clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface {
    /// The number of the interface; addresses of one interface have the same.
    pub index: u32,
    /// An address on which the server can be reached.
    pub address: IpAddr,
    /// Its speed, in bits per second.
    pub link_speed: u64,
    /// Whether several channels to it are of use (receive side scaling).
    pub rss: bool,
}

/// What clients may take up. Beyond a limit the request fails; the others go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections of all clients together.
    pub connections_max: usize,
    /// Connections of one address; `None`: the last quarter is for addresses that hold less than a quarter.
    pub connections_per_address: Option<usize>,
    /// Sessions of all clients together, from the logon on.
    pub sessions_max: usize,
    /// Sessions of one connection, those that are being set up included.
    pub sessions_per_connection_max: usize,
    /// Sessions of one connection that are being set up.
    pub logons_per_connection_max: usize,
    /// Channels of one session; 1 switches multichannel off.
    pub channels_per_session_max: usize,
    /// Tree connects of one session.
    pub trees_per_session_max: usize,
    /// Opens of one session.
    pub opens_per_session_max: usize,
    /// Opens of all clients together that are kept while their clients have no connection. Persistent ones count, and are
    /// never too many: they have their own limit.
    pub disconnected_opens_max: usize,
    /// Persistent opens of all clients together. Further opens are durable only.
    pub persistent_opens_max: usize,
    /// Requests of one connection that wait for something (locks, change notifications).
    pub pending_requests_max: usize,
    /// Requests in one compound.
    pub compound_max: usize,
    /// Bytes of one READ, WRITE or transaction, from SMB 2.1 on.
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
        let Identity { uid, gid, groups } = Config::default().guest;
        assert_eq!((uid, gid, groups), (65_534, 65_534, vec![]));
    }
}
