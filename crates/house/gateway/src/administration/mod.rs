//! Changes shares and users by command, on a running server or in a state directory that no server uses.
//!
//! The configuration takes precedence over shares and users that were created by command. A declared share or user can
//! be changed only in the configuration. If the configuration declares a name that was created by command before, the
//! created one stays in the state database, but is not used while the declaration stands.

mod awaited;
mod client_quotas;
mod clones;
mod cluster;
mod deleted_shares;
mod domain;
mod expiry;
mod identities;
mod places;
mod policies;
mod policy_run;
mod pools;
mod quotas;
mod ransomware;
mod redundancy;
mod refused;
mod reload;
mod replication;
mod replication_source;
mod restores;
mod revert;
mod shares;
mod snapshots;
mod tokens;
mod users;

use self::expiry::Expired;
pub(crate) use client_quotas::ClientQuotas;
pub use client_quotas::QUOTA_CHANGES_MAX;
pub(crate) use tokens::known as known_token;
pub(crate) use users::{check_identity, tell_user};

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};

use control::cluster::ClusterGateways;
use control::configuration::{Configuration, Configured, Reload};
use control::deleted_shares::{DeletedShare, DeletedShares, Purge, Undelete};
use control::domain::Domain;
use control::identities::TestedUser;
use control::policies::{NewPolicy, Policies, Policy, PolicyChange};
use control::pools::{Pool, Pools};
use control::quotas::{NewQuota, Quota, Quotas};
use control::ransomware::{RansomwareAlarm, RansomwareAlarms};
use control::replications::{
    Contents, Destination, Destinations, NewReplication, NewTransfer, Replication, ReplicationAction,
    ReplicationFigures, SourceShare, Transfer,
};
use control::restores::{NewRestore, Restore};
use control::shares::{NewShare, Share, ShareChange, Shares};
use control::snapshots::{NewSnapshot, Snapshot, SnapshotChange, SnapshotFigures, SnapshotRevert, Snapshots};
use control::tokens::{KnownTokens, MadeToken, NewToken, TokenInfo, Tokens};
use control::users::{NewUser, User, UserChange, Users};
use control::{Refusal, RefusalKind};
use nfs_server::NfsServer;
use parking_lot::{Mutex, RwLock};
use share::{AccessLog, ShareTable};
use state::State;

use crate::abandoned::Abandoned;
use crate::accounts::AccountBook;
use crate::admins::Admins;
use crate::control_tls::Identity;
use crate::declared::{Declared, Idle};
use crate::in_time::Silent;
use crate::logged;
use crate::names::NameLookup;
use crate::pool_spaces::PoolSpaces;
use crate::replication::{Remote, Replications};
use crate::snapshots::{Runners, Snapshotting, now};
use crate::ticket_keys::GatewayKeys;
use crate::vservers::Vservers;

/// The most users who can be added by command.
pub(crate) const USERS_MAX: usize = 100_000;

/// The running server.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) shares: Arc<ShareTable>,
    pub(crate) accounts: Arc<AccountBook>,
    pub(crate) smb: Arc<smb_server::Server>,
    pub(crate) nfs: Arc<NfsServer>,
    pub(crate) tokens: Arc<KnownTokens>,
    pub(crate) admins: Arc<Admins>,
    pub(crate) names: NameLookup,
    /// Descriptors that the process may have.
    pub(crate) descriptors: u64,
    /// The TLS identity of the control address; None: it does not use TLS.
    pub(crate) identity: Option<Arc<Identity>>,
    pub(crate) access_log: AccessLog,
    pub(crate) vservers: Arc<Vservers>,
    /// The keys of the gateway.
    pub(crate) ticket_keys: Arc<GatewayKeys>,
}

/// Carries out commands.
#[derive(Debug)]
pub struct Administration {
    /// This value, for the threads that wait for storages. Nothing if no server is running.
    this: Weak<Self>,
    state: Arc<State>,
    /// The shares and users that the configuration declares, replaced as a whole.
    declared: RwLock<Arc<Declared>>,
    /// None: no server is running.
    serving: Option<Serving>,
    /// Why shares are not served. The lock is also held during each change, so that there is only one at a time.
    idle: Mutex<Idle>,
    /// Guards the list of awaited shares, by folded name and directory, for which threads wait, with what they wait for, as far as
    /// they know.
    waiting: Mutex<HashMap<(String, PathBuf), Option<String>>>,
    snapshotting: Arc<Snapshotting>,
    replications: Replications,
    /// The directories in pools that are being removed.
    pub(crate) abandoned: Abandoned,
    /// The deleted shares of pools whose time is over.
    expired: Expired,
    /// The storages of pools that do not answer.
    pub(crate) silent: Arc<Silent>,
    pool_spaces: PoolSpaces,
    /// Who can ask other servers. Nobody, if no server is running.
    remote: OnceLock<Arc<dyn Remote>>,
    /// Who knows the configuration as it was written. Nobody, if it cannot be read again.
    configured: OnceLock<Arc<dyn Configured>>,
    /// The gateway as one of a cluster; nothing if it is none.
    seat: Mutex<Option<Weak<dyn ClusterGateways>>>,
}

impl Administration {
    /// The administration of a running server.
    pub(crate) fn of_server(
        state: Arc<State>,
        declared: Declared,
        serving: Serving,
        idle: Idle,
    ) -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            state,
            declared: RwLock::new(Arc::new(declared)),
            serving: Some(serving),
            idle: Mutex::new(idle),
            waiting: Mutex::default(),
            snapshotting: Arc::default(),
            replications: Replications::default(),
            abandoned: Abandoned::default(),
            expired: Expired::default(),
            silent: Arc::default(),
            pool_spaces: PoolSpaces::default(),
            remote: OnceLock::new(),
            configured: OnceLock::new(),
            seat: Mutex::default(),
        })
    }

    /// The present declarations of the configuration.
    fn declared(&self) -> Arc<Declared> {
        Arc::clone(&self.declared.read())
    }

    /// The administration of a state directory that no server uses. The configuration's declarations are not known
    /// here.
    pub fn of_state(state: State) -> Self {
        Self {
            this: Weak::new(),
            state: Arc::new(state),
            declared: RwLock::default(),
            serving: None,
            idle: Mutex::default(),
            waiting: Mutex::default(),
            snapshotting: Arc::default(),
            replications: Replications::default(),
            abandoned: Abandoned::default(),
            expired: Expired::default(),
            silent: Arc::default(),
            pool_spaces: PoolSpaces::default(),
            remote: OnceLock::new(),
            configured: OnceLock::new(),
            seat: Mutex::default(),
        }
    }

    /// Says who knows the configuration as it was written, and reads it again. Only the first call has an effect.
    pub fn set_configured(&self, configured: Arc<dyn Configured>) {
        let _ = self.configured.set(configured);
    }

    /// Says which gateway of a cluster this is.
    pub(crate) fn set_seat(&self, seat: Weak<dyn ClusterGateways>) {
        *self.seat.lock() = Some(seat);
    }

    fn seat_in_cluster(&self) -> Result<Arc<dyn ClusterGateways>, Refusal> {
        if self.serving.is_none() {
            let what = "only a running server is a gateway of a cluster";
            return Err(Refusal::new(RefusalKind::NotFound, what, "Start the server, and try again."));
        }
        let seat = self.seat.lock().as_ref().and_then(Weak::upgrade);
        seat.ok_or_else(|| {
            let what = "this server is no gateway of a cluster";
            let advice =
                "Give it a name in the configuration (cluster-gateway), and start it again: docs/cluster.md.";
            Refusal::new(RefusalKind::NotFound, what, advice)
        })
    }

    /// Tells the access log that a signal has had something done, or that this was refused.
    pub fn tell_signal(&self, operation: &str, is_done: bool) {
        if let Some(serving) = &self.serving {
            logged::signal(&serving.access_log, operation, is_done);
        }
    }

    /// Who carries out the snapshot policies of this server.
    pub(crate) fn policy_runners(&self) -> Runners {
        Runners::new(Arc::clone(&self.state), Arc::clone(&self.snapshotting))
    }

    fn configured(&self) -> Result<&Arc<dyn Configured>, Refusal> {
        self.configured.get().ok_or_else(|| {
            let what = "this server has no configuration that can be read again";
            Refusal::new(RefusalKind::NotFound, what, "Start one with `anabranch serve --config FILE`.")
        })
    }
}

fn invalid(what: impl Into<String>, advice: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Invalid, what, advice)
}

/// Turns a failure of the state database into a refusal with the same text.
fn failed(state::Error { what, advice }: state::Error) -> Refusal {
    tracing::error!("{what}");
    Refusal::new(RefusalKind::Failed, what, advice)
}

impl control::Administration for Administration {
    fn shares(&self) -> Result<Shares, Refusal> {
        self.all_shares().map(|shares| Shares { shares })
    }

    fn share(&self, name: &str) -> Result<Share, Refusal> {
        self.one_share(name)
    }

    fn create_share(&self, new: NewShare) -> Result<Share, Refusal> {
        self.make_share(&new)
    }

    fn change_share(&self, name: &str, change: ShareChange) -> Result<Share, Refusal> {
        self.set_share(name, &change)
    }

    fn remove_share(&self, name: &str) -> Result<Share, Refusal> {
        self.end_share(name)
    }

    fn deleted_shares(&self) -> Result<DeletedShares, Refusal> {
        self.all_deleted_shares()
    }

    fn undelete_share(&self, id: u32, how: &Undelete) -> Result<Share, Refusal> {
        self.bring_back(id, how)
    }

    fn purge_share(&self, id: u32, how: Purge) -> Result<DeletedShare, Refusal> {
        self.purge(id, how)
    }

    fn snapshots(&self, share: &str) -> Result<Snapshots, Refusal> {
        self.all_snapshots(share)
    }

    fn take_snapshot(&self, share: &str, new: NewSnapshot) -> Result<Snapshot, Refusal> {
        self.enter_snapshot(share, &new)
    }

    fn change_snapshot(&self, share: &str, name: &str, change: SnapshotChange) -> Result<Snapshot, Refusal> {
        self.set_snapshot(share, name, &change)
    }

    fn remove_snapshot(&self, share: &str, name: &str) -> Result<Snapshot, Refusal> {
        self.end_snapshot(share, name)
    }

    fn revert_share(&self, share: &str, revert: SnapshotRevert) -> Result<Snapshot, Refusal> {
        self.revert(share, &revert)
    }

    fn restore(&self, share: &str) -> Result<Restore, Refusal> {
        self.look_at_restore(share)
    }

    fn begin_restore(&self, share: &str, new: NewRestore) -> Result<Restore, Refusal> {
        self.order_restore(share, &new)
    }

    fn cancel_restore(&self, share: &str) -> Result<Restore, Refusal> {
        self.stop_restore(share)
    }

    fn replication(&self, share: &str) -> Result<Replication, Refusal> {
        self.look_at_replication(share)
    }

    fn begin_replication(&self, share: &str, new: NewReplication) -> Result<Replication, Refusal> {
        self.make_replica(share, &new)
    }

    fn change_replication(&self, share: &str, action: ReplicationAction) -> Result<Replication, Refusal> {
        self.order_replication(share, action)
    }

    fn end_replication(&self, share: &str) -> Result<Replication, Refusal> {
        self.leave_replication(share)
    }

    fn replication_figures(&self) -> Option<Vec<ReplicationFigures>> {
        self.all_replication_figures()
    }

    fn destinations(&self, share: &str) -> Result<Destinations, Refusal> {
        self.all_destinations(share)
    }

    fn remove_destination(&self, share: &str, id: &str) -> Result<Destination, Refusal> {
        self.end_destination(share, id)
    }

    fn source_share(&self, share: &str) -> Result<SourceShare, Refusal> {
        self.tell_source(share)
    }

    fn begin_transfer(&self, share: &str, new: &NewTransfer) -> Result<Transfer, Refusal> {
        self.enter_transfer(share, new)
    }

    fn changes(&self, share: &str, destination: &str) -> Result<Contents, Refusal> {
        self.changes_for(share, destination)
    }

    fn objects(&self, share: &str, destination: &str, wanted: &[u8]) -> Result<Contents, Refusal> {
        self.objects_for(share, destination, wanted)
    }

    fn snapshot_figures(&self) -> Vec<SnapshotFigures> {
        self.snapshotting.notes.figures(now())
    }

    fn quotas(&self, share: &str) -> Result<Quotas, Refusal> {
        self.all_quotas(share)
    }

    fn check_quotas(&self, share: &str) -> Result<Quotas, Refusal> {
        self.count_quotas(share)
    }

    fn set_quota(&self, share: &str, subject: &str, new: NewQuota) -> Result<Quota, Refusal> {
        self.enter_quota(share, subject, &new)
    }

    fn remove_quota(&self, share: &str, subject: &str) -> Result<Quota, Refusal> {
        self.end_quota(share, subject)
    }

    fn ransomware_alarms(&self, share: &str) -> Result<RansomwareAlarms, Refusal> {
        self.all_ransomware_alarms(share)
    }

    fn end_ransomware_alarm(&self, share: &str, number: u64) -> Result<RansomwareAlarm, Refusal> {
        self.end_alarm(share, number)
    }

    fn policies(&self) -> Result<Policies, Refusal> {
        self.all_policies().map(|policies| Policies { policies })
    }

    fn policy(&self, name: &str) -> Result<Policy, Refusal> {
        self.one_policy(name)
    }

    fn create_policy(&self, new: NewPolicy) -> Result<Policy, Refusal> {
        self.enter_policy(&new)
    }

    fn change_policy(&self, name: &str, change: PolicyChange) -> Result<Policy, Refusal> {
        self.set_policy(name, &change)
    }

    fn remove_policy(&self, name: &str) -> Result<Policy, Refusal> {
        self.end_policy(name)
    }

    fn cluster_gateways(&self) -> Result<Arc<dyn ClusterGateways>, Refusal> {
        self.seat_in_cluster()
    }

    fn pools(&self) -> Result<Pools, Refusal> {
        self.all_pools()
    }

    fn pool_figures(&self) -> Vec<Pool> {
        self.all_pool_figures()
    }

    fn users(&self) -> Result<Users, Refusal> {
        self.all_users().map(|users| Users { users })
    }

    fn user(&self, name: &str) -> Result<User, Refusal> {
        self.one_user(name)
    }

    fn add_user(&self, new: NewUser) -> Result<User, Refusal> {
        self.enter_user(&new)
    }

    fn change_user(&self, name: &str, change: UserChange) -> Result<User, Refusal> {
        self.set_user(name, &change)
    }

    fn remove_user(&self, name: &str) -> Result<User, Refusal> {
        self.end_user(name)
    }

    fn test_user(&self, name: &str) -> Result<TestedUser, Refusal> {
        self.test(name)
    }

    fn domain(&self) -> Result<Domain, Refusal> {
        self.of_domains()
    }

    fn tokens(&self) -> Result<Tokens, Refusal> {
        self.all_tokens().map(|tokens| Tokens { tokens })
    }

    fn make_token(&self, new: NewToken) -> Result<MadeToken, Refusal> {
        self.enter_token(&new)
    }

    fn remove_token(&self, name: &str) -> Result<TokenInfo, Refusal> {
        self.end_token(name)
    }

    fn configuration(&self) -> Result<Configuration, Refusal> {
        self.configured().map(|configured| configured.configuration())
    }

    fn reload(&self) -> Result<Reload, Refusal> {
        self.configured()?.reload()
    }

    fn reloads(&self) -> Reload {
        let none = || Reload { last_succeeded: true, ..Reload::default() };
        self.configured.get().map_or_else(none, |configured| configured.reloads())
    }
}
