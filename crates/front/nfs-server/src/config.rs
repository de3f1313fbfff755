//! Settings of this server.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use nfs_proto::duplicate_request;
use nfs_proto::v4::lease::LeaseTimes;
use nfs_proto::v4::{client, session};
use nfs_wire::v3::types::WriteVerifier;
use share::{AccessLog, Gone, Share, ShareTable, Squash, Terms};

use crate::groups::UserDirectory;
use crate::nlm::locking::NetworkLocks;
use crate::tls::Tls;
use crate::v4::client_records::ClientRecords;
use crate::v4::owner::OwnerNames;

/// The most bytes of one READ or WRITE.
pub const TRANSFER_BYTES_MAX: u32 = 1 << 20;

/// The most bytes of one call: a WRITE and what precedes its data.
pub const RECORD_BYTES_MAX: usize = TRANSFER_BYTES_MAX as usize + 8 * 1024;

/// The most calls of one connection that wait for the device or for another client. Each may hold a buffer of
/// [`TRANSFER_BYTES_MAX`].
pub const PENDING_CALLS_MAX: usize = 256;

/// How long an NFSv4 client may take to answer a callback, unless [`Config`] says otherwise.
const CALLBACK_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection without state may be silent, unless [`Config`] says otherwise.
const SILENCE: Duration = Duration::from_secs(300);

/// Settings of a server.
#[derive(Debug)]
pub struct Config {
    /// The shares that are served: each share NAME as `/NAME`. The table may change while clients work.
    pub shares: Arc<ShareTable>,
    /// How the users of NFS clients are mapped, unless the rules of a share say otherwise.
    pub squashing: Squashing,
    /// Who knows the groups of users of AUTH_SYS, where this machine decides them; None: nobody does, and they are in no group then.
    pub user_directory: Option<Arc<dyn UserDirectory>>,
    /// Who knows the owners of files by name; None: owners are numbers.
    pub owner_names: Option<Arc<dyn OwnerNames>>,
    /// Whether encryption is required. Then shares are served over TLS only.
    pub encryption_required: bool,
    /// TLS; None: there is none, and shares that require encryption are not served.
    pub tls: Option<Arc<Tls>>,
    /// The secret key of the filehandles. Clients keep filehandles over a restart of the server, so the key must be
    /// kept, too.
    pub file_handle_key: [u8; 16],
    /// Distinguishes this run of the server from earlier ones: data that was written and not committed may be lost
    /// between runs (RFC 1813 3.3.7).
    pub write_verifier: WriteVerifier,
    /// The most connections at a time.
    pub connections_max: usize,
    /// The most connections of one address; `None`: the last quarter is for addresses that hold less than a quarter.
    pub connections_per_address: Option<usize>,
    /// How long a connection may be silent to which no NFSv4 session is bound. The Linux client closes its own after
    /// this time.
    pub silence: Duration,
    /// The limits of the duplicate request cache.
    pub repeated_calls: duplicate_request::CallCacheLimits,
    /// How long NFSv4 clients keep their state without renewing their lease.
    pub lease_times: LeaseTimes,
    /// How long an NFSv4 client may take to answer a callback.
    pub callback_timeout: Duration,
    /// The most NFSv4 clients, and sessions of each.
    pub clients: client::ClientLimits,
    /// The store that records NFSv4 clients, which may then reclaim what they hold after a restart. Without it they may
    /// not.
    pub client_records: Option<Arc<dyn ClientRecords>>,
    /// The limits of an NFSv4 session.
    pub sessions: session::SessionLimits,
    /// The access log, for what concerns no share.
    pub access_log: AccessLog,
    /// Locks for clients of NFSv3 (NLM), and the status monitor (NSM); None: these programs are not there.
    pub network_locks: Option<NetworkLocks>,
    /// The addresses on which the server listens. NFSv4 clients that ask get the addresses that they stand for.
    pub listen: Vec<IpAddr>,
}

impl Config {
    /// The defaults, for a server of this table of shares.
    #[must_use]
    pub fn new(
        shares: Arc<ShareTable>,
        squashing: Squashing,
        file_handle_key: [u8; 16],
        write_verifier: WriteVerifier,
    ) -> Self {
        Self {
            shares,
            squashing,
            user_directory: None,
            owner_names: None,
            encryption_required: false,
            tls: None,
            file_handle_key,
            write_verifier,
            connections_max: 65_536,
            connections_per_address: None,
            silence: SILENCE,
            repeated_calls: duplicate_request::CallCacheLimits::default(),
            lease_times: LeaseTimes::default(),
            clients: client::ClientLimits::default(),
            sessions: session::SessionLimits::default(),
            client_records: None,
            network_locks: None,
            callback_timeout: CALLBACK_TIMEOUT,
            access_log: AccessLog::default(),
            listen: Vec::new(),
        }
    }
}

/// The user and group nobody, as most systems number them.
const NOBODY: u32 = 65534;

/// Which users' stated identity is not believed, and which identity they get instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Squashing {
    /// Who is squashed, unless a share's rule for a client says otherwise.
    pub squash: Squash,
    /// The identity of squashed users, and of callers without credentials.
    pub anonymous: Anonymous,
    /// Who says in which groups users of AUTH_SYS are, unless a share says otherwise.
    pub groups: GroupsBy,
}

/// Who says in which groups users of AUTH_SYS are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum GroupsBy {
    /// The client.
    #[default]
    Client,
    /// This machine.
    Server,
}

impl Squashing {
    /// Who says in which groups users of AUTH_SYS are, in a share.
    pub(crate) fn groups_in(&self, share: &Share) -> GroupsBy {
        let terms = share.terms();
        if terms.contains(Terms::GROUPS_OF_SERVER) {
            GroupsBy::Server
        } else if terms.contains(Terms::GROUPS_OF_CLIENT) {
            GroupsBy::Client
        } else {
            self.groups
        }
    }
}

impl Default for Squashing {
    /// The superuser of a client is nobody.
    fn default() -> Self {
        let anonymous = Anonymous { uid: NOBODY, gid: NOBODY };
        Self { squash: Squash::Root, anonymous, groups: GroupsBy::Client }
    }
}

/// The identity of squashed users.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anonymous {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// The exports: the current shares under their NFS names.
#[derive(Debug)]
pub(crate) struct Exports {
    pub(crate) shares: Arc<ShareTable>,
}

impl Exports {
    pub(crate) fn new(shares: Arc<ShareTable>) -> Self {
        Self { shares }
    }

    /// The export with exactly this name: in NFS, names that differ in case are different.
    pub(crate) fn by_name(&self, name: &[u8]) -> Option<Arc<Share>> {
        let name = std::str::from_utf8(name).ok()?;
        self.shares.present().by_name(name).filter(|share| share.name() == name).cloned()
    }

    /// Whether an export of this name is not served because its store does not answer.
    pub(crate) fn is_awaited(&self, name: &[u8]) -> bool {
        self.shares.present().awaited().any(|(_, awaited)| awaited.as_bytes() == name)
    }

    /// Where the export with exactly this name has gone.
    pub(crate) fn gone(&self, name: &[u8]) -> Option<Arc<Gone>> {
        let name = std::str::from_utf8(name).ok()?;
        self.shares.present().gone_by_name(name).filter(|gone| gone.name == name).cloned()
    }

    /// All exports in the order of their names.
    pub(crate) fn in_order(&self) -> Vec<Arc<Share>> {
        self.shares.present().in_order()
    }
}
