//! The NFS server: NFSv3 with MOUNT, NLM and NSM, and NFSv4.0 to NFSv4.2 on one port, on top of [`net`] and [`share`].
//!
//! Each procedure has a file with the name of its codec in [`nfs_wire`]. Anything that the two protocols must agree on
//! is in [`share`]. State that only NFS has (filehandles, repeated calls, exports) is in [`nfs_proto`].
//!
//! ```no_run
//! # fn shares() -> std::sync::Arc<share::ShareTable> { std::sync::Arc::default() }
//! # fn random<const N: usize>() -> [u8; N] { [0; N] }
//! use anabranch_nfs_server::{Config, NfsServer, Squashing};
//!
//! let server = NfsServer::new(Config::new(
//!     shares(),
//!     Squashing::default(), // users are believed, but for the superuser
//!     random(), // the key of the filehandles: the same at every start, or those of clients are void
//!     random(), // the write verifier: another one at every start
//! ));
//! let shards = net::Shards::start(2)?;
//! shards.listen(std::net::TcpListener::bind("127.0.0.1:2049")?, server)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod attributes;
mod call;
mod config;
mod connection;
mod counted;
mod credentials;
mod exclusive;
mod front;
mod groups;
mod gss;
mod listing;
mod logged;
mod mount;
mod name;
mod new_object;
mod nlm;
mod nsm;
mod object;
mod operation;
mod operations;
pub mod portmap;
mod received;
mod repeated;
mod reply;
mod rquota;
mod run;
mod serve;
mod server;
mod snapshots;
mod standing;
mod starttls;
mod status;
mod tls;
mod traffic;
mod v3;
mod v4;

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use net::Origin;
use net::{ConnectionLimits, Outbox, Peer, Repeats, Service};
use nfs_proto::filehandle::FileHandleCodec;
use share::{OpenKey, Share, ShareId};

pub use config::{
    Anonymous, Config, GroupsBy, PENDING_CALLS_MAX, RECORD_BYTES_MAX, Squashing, TRANSFER_BYTES_MAX,
};
pub use connection::Connection;
pub use front::{NFS3, NFS4};
pub use groups::{Groups, UserDirectory, UserGroups};
pub use gss::{ContextCounts, KerberosKeys};
pub use mount::mounted::{MOUNTS_MAX, Mounted};
pub use net::Secured;
pub use nfs_proto::nlm::hosts::HostLimits;
pub use nfs_proto::v4::recovery::ClientRecord;
pub use nfs_wire::record_mark::FRAGMENTS_MAX;
pub use nlm::locking::NetworkLocks;
pub use nlm::records::{HostRecord, HostRecords};
pub use nlm::report::LockHost;
pub use operations::operations;
pub use snapshots::FOLDER as SNAPSHOT_FOLDER;
pub use tls::{APPLICATION_PROTOCOL, Demand, Tls};
pub use traffic::{ConnectionReport, Sizes};
pub use v4::client_records::ClientRecords;
pub use v4::open_files::OpenFile;
pub use v4::owner::OwnerNames;
pub use v4::state::SessionReport;

use config::Exports;
use gss::Gss;
use mount::mounted::MountTable;
use nlm::state::NlmState;
use repeated::RepeatedCalls;
use server::ServerState;
use traffic::Connections;

/// The server.
#[derive(Debug)]
pub struct NfsServer {
    state: Arc<ServerState>,
    connections: ConnectionLimits,
    silence: Duration,
}

impl NfsServer {
    /// A server for these shares. Pass it to [`net::Shards::listen`].
    #[must_use]
    pub fn new(config: Config) -> Arc<Self> {
        let v4 = v4::state::V4State::new(&config);
        let nlm = config
            .network_locks
            .as_ref()
            .map(|locks| Arc::new(NlmState::new(&config, locks, Instant::now())));
        let connections =
            ConnectionLimits { max: config.connections_max, of_one_address: config.connections_per_address };
        let state = ServerState {
            exports: Exports::new(config.shares),
            access_log: config.access_log,
            squashing: config.squashing,
            encryption_required: config.encryption_required,
            user_directory: config.user_directory,
            owner_names: config.owner_names,
            gss: Gss::default(),
            tls: config.tls,
            encrypted: Repeats::default(),
            file_handles: FileHandleCodec::new(&config.file_handle_key),
            write_verifier: config.write_verifier,
            repeated: Arc::new(RepeatedCalls::new(config.repeated_calls)),
            repeated_writes: Arc::new(RepeatedCalls::new(config.repeated_calls)),
            mounts: MountTable::default(),
            connections: Connections::default(),
            v4,
            nlm,
        };
        Arc::new(Self { state: Arc::new(state), connections, silence: config.silence })
    }

    /// Accepts Kerberos tickets with these keys from now on; None: no more. What began with others goes on.
    pub fn use_kerberos(&self, keys: Option<KerberosKeys>) {
        self.state.gss.use_keys(keys);
    }

    /// Whether clients can come with a flavor that encrypts.
    #[must_use]
    pub fn can_encrypt(&self) -> bool {
        self.state.gss.is_offered()
    }

    /// The tickets that were refused lately, the last one first.
    #[must_use]
    pub fn refused_tickets(&self) -> Vec<auth::RefusedTicket> {
        self.state.gss.refused_tickets()
    }

    /// The contexts of clients with tickets.
    #[must_use]
    pub fn context_counts(&self) -> ContextCounts {
        self.state.gss.counts()
    }

    /// Holds back other clients in this share while clients reclaim what they held before the start. To be called
    /// before a share that was awaited is entered.
    pub fn await_reclaims(&self, share: &Share) {
        self.state.v4.recovery.await_reclaims(share, Instant::now());
        if let Some(nlm) = &self.state.nlm {
            nlm.await_reclaims(share);
        }
    }

    /// Ends everything that clients have in a share that was withdrawn from the table: mounts, and NFSv4 opens, locks
    /// and delegations. Their filehandles become stale, their stateids unknown. If another server has the share, clients of NFSv4
    /// are told.
    pub async fn end_share(&self, share: &Share) {
        self.state.mounts.forget_share(share.name());
        let has_gone = self.state.exports.shares.present().gone_by_id(share.id()).is_some();
        self.state.v4.end_share(share, has_gone).await;
        if let Some(nlm) = &self.state.nlm {
            nlm.end_share(share.id()).await;
        }
    }

    /// Revokes the opens, locks and delegations of NFSv4 clients in a share that its current rules no longer allow.
    /// This happens at once, so that other clients need not wait. To be called when the rules have changed, or the
    /// meaning of names in them.
    pub async fn reconsider(&self, share: &Share) {
        self.state.reconsider(share).await;
        if let Some(nlm) = &self.state.nlm {
            nlm.reconsider(share).await;
        }
    }

    /// The hosts that hold NFSv3 locks, by their addresses.
    #[must_use]
    pub fn lock_hosts(&self) -> Vec<LockHost> {
        self.state.lock_hosts()
    }

    /// The mounts that clients have reported: an NFSv3 client may unmount without a message.
    #[must_use]
    pub fn mounts(&self) -> Vec<Mounted> {
        self.state.mounts.all()
    }

    /// Removes NFSv4 clients that are gone for good, distributes slots among the others, and tells hosts with NFSv3 locks that
    /// the server has restarted, for ever. Pass it to
    /// [`net::Shards::spawn`].
    pub async fn look_after_clients(&self) {
        let hosts = async {
            if let Some(nlm) = &self.state.nlm {
                nlm.look_after_hosts().await;
            }
        };
        tokio::join!(self.state.v4.look_after_clients(), v4::slots::look_after_slots(&self.state), hosts);
    }

    /// The files that NFSv4 clients have open, and their delegations; and the files in which clients of NFSv3 hold locks.
    #[must_use]
    pub fn open_files(&self) -> Vec<OpenFile> {
        let mut files = self.state.open_files();
        files.extend(self.state.files_of_hosts());
        files
    }

    /// Revokes an open or a delegation of an NFSv4 client (RFC 8881 8.5), with the other opens of its open-owner for the
    /// file and the locks under them. Returns false if no client has such an open.
    pub async fn close_file(&self, share: ShareId, key: OpenKey) -> bool {
        self.state.revoke_open(share, key).await || self.state.close_file_of_host(share, key).await
    }

    /// Ends the connections from an address, the sessions, opens, locks and delegations of the NFSv4 clients there, and the
    /// locks of NFSv3 clients, and their security contexts. They
    /// may connect again. Returns the number of clients that held something, and of connections.
    pub async fn disconnect(&self, address: IpAddr) -> (usize, usize) {
        let clients = self.state.expire_clients_at(address).await;
        let hosts = match &self.state.nlm {
            Some(nlm) => nlm.end_hosts_at(address).await,
            None => 0,
        };
        self.state.gss.end_contexts_of(Origin::from(address));
        (clients + hosts, self.state.connections.end_from(address))
    }

    /// The sessions of NFSv4 clients.
    #[must_use]
    pub fn sessions(&self) -> Vec<SessionReport> {
        let sessions = self.state.v4.clients().into_iter().flat_map(|client| client.sessions());
        sessions.map(|session| session.report()).collect()
    }

    /// The users with tickets, with the addresses of their clients (IPv6: of the client's network), in order. A user is there until the
    /// ticket ends.
    #[must_use]
    pub fn users(&self) -> Vec<(Origin, Arc<str>)> {
        self.state.gss.users()
    }

    /// The current connections, by the client's address.
    #[must_use]
    pub fn connections(&self) -> Vec<ConnectionReport> {
        self.state.connections.report()
    }
}

impl Service for NfsServer {
    type Connection = Connection;

    fn connected(&self, peer: Peer, outbox: Outbox) -> Rc<Connection> {
        Rc::new(Connection::new(Arc::clone(&self.state), peer, &outbox))
    }

    fn limits(&self) -> net::Limits {
        net::Limits {
            frame_bytes: RECORD_BYTES_MAX,
            fragments: FRAGMENTS_MAX,
            pending_frames: PENDING_CALLS_MAX,
            silence: self.silence,
            ..net::Limits::default()
        }
    }

    fn connections(&self) -> ConnectionLimits {
        self.connections
    }

    fn name(&self) -> &'static str {
        "nfs"
    }
}
