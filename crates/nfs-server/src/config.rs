//! Settings of this server.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use nfs_proto::duplicate_request;
use nfs_proto::export::Export;
use nfs_proto::v4::lease::LeaseTimes;
use nfs_proto::v4::{client, session};
use nfs_wire::v3::types::WriteVerifier;
use share::{Share, ShareId, ShareTable};

use crate::ClientRecords;

/// Most bytes of one READ or WRITE.
pub const TRANSFER_BYTES_MAX: u32 = 1 << 20;

/// Most bytes of one call: a WRITE and what stands in front of its data.
pub(crate) const RECORD_BYTES_MAX: usize = TRANSFER_BYTES_MAX as usize + 8 * 1024;

/// Most calls of one connection that wait for the device or for somebody else: each may hold a buffer of
/// [`TRANSFER_BYTES_MAX`].
pub(crate) const PENDING_CALLS_MAX: usize = 256;

/// How long an NFSv4 client may take to answer a callback, unless [`Config`] says otherwise.
const CALLBACK_TIMEOUT: Duration = Duration::from_secs(10);

/// Settings of a server.
#[derive(Debug)]
pub struct Config {
    /// What it serves: each share NAME as `/NAME`. It may change while clients work.
    pub shares: Arc<ShareTable>,
    /// Who may use shares over NFS.
    pub exports: ExportRules,
    /// The secret key of the filehandles. Clients keep filehandles over a restart of the server, so it must too.
    pub file_handle_key: [u8; 16],
    /// Tells this run of the server from earlier ones: written data that was not committed may be lost with them
    /// (RFC 1813 3.3.7).
    pub write_verifier: WriteVerifier,
    /// Most connections at a time.
    pub connections_max: usize,
    /// How many repeated calls are recognised.
    pub repeated_calls: duplicate_request::Limits,
    /// How long NFSv4 clients keep their state without a word.
    pub lease_times: LeaseTimes,
    /// How long an NFSv4 client may take to answer a callback.
    pub callback_timeout: Duration,
    /// How many NFSv4 clients there may be, and sessions of each.
    pub clients: client::Limits,
    /// Where NFSv4 clients are written down that may reclaim what they hold after a restart; without, they may not.
    pub client_records: Option<Arc<dyn ClientRecords>>,
    /// What an NFSv4 session may have.
    pub sessions: session::Limits,
    /// The address on which the server listens: NFSv4 clients that ask are told of those that it stands for.
    pub listen: Option<IpAddr>,
}

impl Config {
    /// The defaults, for the shares of this table.
    #[must_use]
    pub fn new(
        shares: Arc<ShareTable>,
        exports: ExportRules,
        file_handle_key: [u8; 16],
        write_verifier: WriteVerifier,
    ) -> Self {
        Self {
            shares,
            exports,
            file_handle_key,
            write_verifier,
            connections_max: 4096,
            repeated_calls: duplicate_request::Limits::default(),
            lease_times: LeaseTimes::default(),
            clients: client::Limits::default(),
            sessions: session::Limits::default(),
            client_records: None,
            callback_timeout: CALLBACK_TIMEOUT,
            listen: None,
        }
    }
}

/// Who may use which share over NFS, and who their users are.
#[derive(Debug, Default)]
pub struct ExportRules {
    /// For all shares but those below.
    pub general: Export,
    /// For these shares.
    pub particular: HashMap<ShareId, Export>,
}

impl ExportRules {
    /// The same rules for all shares.
    #[must_use]
    pub fn general(export: Export) -> Self {
        Self { general: export, particular: HashMap::new() }
    }
}

/// The exports: the shares there are now, with the rules for each.
#[derive(Debug)]
pub(crate) struct Exports {
    pub(crate) shares: Arc<ShareTable>,
    rules: ExportRules,
}

impl Exports {
    pub(crate) fn new(shares: Arc<ShareTable>, rules: ExportRules) -> Self {
        Self { shares, rules }
    }

    /// Who may use a share over NFS.
    pub(crate) fn rules_of(&self, share: &Share) -> &Export {
        self.rules.particular.get(&share.id()).unwrap_or(&self.rules.general)
    }

    /// The export of this name, which is exact: to NFS names that differ in case are different ones.
    pub(crate) fn by_name(&self, name: &[u8]) -> Option<Arc<Share>> {
        let name = std::str::from_utf8(name).ok()?;
        self.shares.present().by_name(name).filter(|share| share.name() == name).cloned()
    }

    /// All exports in the order of their names.
    pub(crate) fn in_order(&self) -> Vec<Arc<Share>> {
        self.shares.present().in_order()
    }
}
