//! Administration of shares and users: what the API asks for, and the interface that carries it out.

use std::sync::Arc;

use axum::http::StatusCode;

use crate::cluster::ClusterGateways;
use crate::configuration::{Configuration, Reload};
use crate::deleted_shares::{DeletedShare, DeletedShares, Purge, Undelete};
use crate::domain::Domain;
use crate::identities::TestedUser;
use crate::policies::{NewPolicy, Policies, Policy, PolicyChange};
use crate::pools::{Pool, Pools};
use crate::quotas::{NewQuota, Quota, Quotas};
use crate::ransomware::{RansomwareAlarm, RansomwareAlarms};
use crate::replications::{
    Contents, Destination, Destinations, NewReplication, NewTransfer, Replication, ReplicationAction,
    ReplicationFigures, SourceShare, Transfer,
};
use crate::restores::{NewRestore, Restore};
use crate::shares::{NewShare, Share, ShareChange, Shares};
use crate::snapshots::{NewSnapshot, Snapshot, SnapshotChange, SnapshotFigures, SnapshotRevert, Snapshots};
use crate::tokens::{MadeToken, NewToken, TokenInfo, Tokens};
use crate::users::{NewUser, User, UserChange, Users};

/// Carries out what the API asks for. The calls wait for the disk, so they are made on threads of their own.
pub trait Administration: Send + Sync {
    /// All shares, by name.
    ///
    /// # Errors
    /// [`Refusal`], as for all calls here.
    fn shares(&self) -> Result<Shares, Refusal>;
    /// One share.
    ///
    /// # Errors
    /// There is no share with this name.
    fn share(&self, name: &str) -> Result<Share, Refusal>;
    /// Creates a share and serves it.
    ///
    /// # Errors
    /// The name is taken or invalid, the directory cannot be served, or the pool has no room.
    fn create_share(&self, new: NewShare) -> Result<Share, Refusal>;
    /// Changes a share that was created by command.
    ///
    /// # Errors
    /// There is no share with this name, the configuration declares it, or a value is invalid.
    fn change_share(&self, name: &str, change: ShareChange) -> Result<Share, Refusal>;
    /// Stops serving a share that was created by command. Its directory is not changed, and it can be brought back for some time.
    ///
    /// # Errors
    /// There is no share with this name, or the configuration declares it.
    fn remove_share(&self, name: &str) -> Result<Share, Refusal>;
    /// The removed shares that can be brought back.
    ///
    /// # Errors
    /// [`Refusal`].
    fn deleted_shares(&self) -> Result<DeletedShares, Refusal>;
    /// Brings a removed share back as it was, under its number.
    ///
    /// # Errors
    /// There is no such share, its name or its directory is in use, or the directory cannot be served.
    fn undelete_share(&self, id: u32, how: &Undelete) -> Result<Share, Refusal>;
    /// Ends the time in which a removed share can be brought back. If the server made its directory in a pool, that is removed, unless
    /// it is to be kept.
    ///
    /// # Errors
    /// There is no such share, a snapshot of it is protected, or its directory is not what the server made.
    fn purge_share(&self, id: u32, how: Purge) -> Result<DeletedShare, Refusal>;
    /// The snapshots of a share that is served.
    ///
    /// # Errors
    /// The share is not served, or its storage has no snapshots.
    fn snapshots(&self, share: &str) -> Result<Snapshots, Refusal>;
    /// Takes a snapshot of a share.
    ///
    /// # Errors
    /// Those of [`Administration::snapshots`], a value is invalid, there are too many, or there is no space.
    fn take_snapshot(&self, share: &str, new: NewSnapshot) -> Result<Snapshot, Refusal>;
    /// Protects a snapshot for longer.
    ///
    /// # Errors
    /// There is no such snapshot, another program made it, or it is protected for longer already.
    fn change_snapshot(&self, share: &str, name: &str, change: SnapshotChange) -> Result<Snapshot, Refusal>;
    /// Removes a snapshot.
    ///
    /// # Errors
    /// There is no such snapshot, another program made it, or it is protected.
    fn remove_snapshot(&self, share: &str, name: &str) -> Result<Snapshot, Refusal>;
    /// Makes a share what it was when a snapshot was taken. Its clients lose what they have open. Returns the snapshot of what it
    /// held until now.
    ///
    /// # Errors
    /// There is no such snapshot, the share cannot go back, or there is no space.
    fn revert_share(&self, share: &str, revert: SnapshotRevert) -> Result<Snapshot, Refusal>;
    /// The restore of a share that goes on, or was the last.
    ///
    /// # Errors
    /// There is no such share, or nothing was restored into it.
    fn restore(&self, share: &str) -> Result<Restore, Refusal>;
    /// Begins to restore a file or a directory from a snapshot. It goes on after this call, also after a restart of the server.
    ///
    /// # Errors
    /// There is no such snapshot or path, something is in the place, or a restore goes on.
    fn begin_restore(&self, share: &str, new: NewRestore) -> Result<Restore, Refusal>;
    /// Has the restore of a share stop. What was restored stays.
    ///
    /// # Errors
    /// Nothing is being restored.
    fn cancel_restore(&self, share: &str) -> Result<Restore, Refusal>;
    /// How the replica is that a share is.
    ///
    /// # Errors
    /// There is no such share, or it is no replica.
    fn replication(&self, share: &str) -> Result<Replication, Refusal>;
    /// Makes a share a replica.
    ///
    /// # Errors
    /// The share is not empty or cannot go back to a snapshot, or the source cannot be asked.
    fn begin_replication(&self, share: &str, new: NewReplication) -> Result<Replication, Refusal>;
    /// Brings a replica up to date, makes it writable, or makes it a replica again.
    ///
    /// # Errors
    /// The share is no replica, or not in the state for that.
    fn change_replication(&self, share: &str, action: ReplicationAction) -> Result<Replication, Refusal>;
    /// Makes a share an ordinary one, as the replica was last complete.
    ///
    /// # Errors
    /// The share is no replica.
    fn end_replication(&self, share: &str) -> Result<Replication, Refusal>;
    /// How the replicas are. None: the records of them cannot be read. This waits for the state database, and for nothing else.
    fn replication_figures(&self) -> Option<Vec<ReplicationFigures>>;
    /// The servers that replicate a share.
    ///
    /// # Errors
    /// There is no such share.
    fn destinations(&self, share: &str) -> Result<Destinations, Refusal>;
    /// Forgets a server that replicates a share. Its snapshots are removed.
    ///
    /// # Errors
    /// There is no such server.
    fn remove_destination(&self, share: &str, id: &str) -> Result<Destination, Refusal>;
    /// Whether a share can be replicated.
    ///
    /// # Errors
    /// There is no such share, or it has no snapshots.
    fn source_share(&self, share: &str) -> Result<SourceShare, Refusal>;
    /// Takes the snapshot that a destination is to have, or goes on with one.
    ///
    /// # Errors
    /// Those of taking a snapshot, or the share has as many destinations as it can have.
    fn begin_transfer(&self, share: &str, new: &NewTransfer) -> Result<Transfer, Refusal>;
    /// What is different in the snapshot that a destination is to have.
    ///
    /// # Errors
    /// No transfer was begun, or its snapshot is gone.
    fn changes(&self, share: &str, destination: &str) -> Result<Contents, Refusal>;
    /// What objects of this snapshot consist of.
    ///
    /// # Errors
    /// Those of [`Administration::changes`], or it is not understood what is asked for.
    fn objects(&self, share: &str, destination: &str, wanted: &[u8]) -> Result<Contents, Refusal>;
    /// What is known of the snapshots of each share, by name. This never waits.
    fn snapshot_figures(&self) -> Vec<SnapshotFigures>;
    /// The quotas of a share, and who holds how much.
    ///
    /// # Errors
    /// There is no share with this name.
    fn quotas(&self, share: &str) -> Result<Quotas, Refusal>;
    /// Has all files of a share counted again, in the background.
    ///
    /// # Errors
    /// There is no such share, it has no quotas, or is not served.
    fn check_quotas(&self, share: &str) -> Result<Quotas, Refusal>;
    /// Sets a quota of a share. `subject` is written as in [`Quota::subject`].
    ///
    /// # Errors
    /// There is no share with this name, the configuration declares it, a value is invalid, or there are too many.
    fn set_quota(&self, share: &str, subject: &str, new: NewQuota) -> Result<Quota, Refusal>;
    /// Removes a quota of a share.
    ///
    /// # Errors
    /// There is no such share or quota, or the configuration declares it.
    fn remove_quota(&self, share: &str, subject: &str) -> Result<Quota, Refusal>;
    /// The ransomware alarms of a share that last.
    ///
    /// # Errors
    /// No share of this name is served.
    fn ransomware_alarms(&self, share: &str) -> Result<RansomwareAlarms, Refusal>;
    /// Ends a ransomware alarm of a share. Returns it as it was.
    ///
    /// # Errors
    /// There is no such alarm, or no share of this name is served.
    fn end_ransomware_alarm(&self, share: &str, number: u64) -> Result<RansomwareAlarm, Refusal>;
    /// All snapshot policies, by name.
    ///
    /// # Errors
    /// [`Refusal`].
    fn policies(&self) -> Result<Policies, Refusal>;
    /// One snapshot policy.
    ///
    /// # Errors
    /// There is no policy with this name.
    fn policy(&self, name: &str) -> Result<Policy, Refusal>;
    /// Creates a snapshot policy.
    ///
    /// # Errors
    /// The name is taken, a value is invalid, or there are too many.
    fn create_policy(&self, new: NewPolicy) -> Result<Policy, Refusal>;
    /// Changes the rules of a snapshot policy that was created by command, for all shares that have it.
    ///
    /// # Errors
    /// There is no policy with this name, the configuration declares it, or a value is invalid.
    fn change_policy(&self, name: &str, change: PolicyChange) -> Result<Policy, Refusal>;
    /// Removes a snapshot policy that was created by command. The snapshots that it has taken stay.
    ///
    /// # Errors
    /// There is no policy with this name, the configuration declares it, or a share has it.
    fn remove_policy(&self, name: &str) -> Result<Policy, Refusal>;
    /// The pools: directories in which the server makes those of shares.
    ///
    /// # Errors
    /// No server is running.
    fn pools(&self) -> Result<Pools, Refusal>;
    /// The pools, for metrics. Waits for no storage: their capacity is the last that is known, and none if neither that nor why there is none.
    fn pool_figures(&self) -> Vec<Pool>;
    /// The gateway, as one of a cluster.
    ///
    /// # Errors
    /// No server is running, or its configuration makes it no gateway of a cluster.
    fn cluster_gateways(&self) -> Result<Arc<dyn ClusterGateways>, Refusal>;
    /// All users, by name.
    ///
    /// # Errors
    /// [`Refusal`].
    fn users(&self) -> Result<Users, Refusal>;
    /// One user.
    ///
    /// # Errors
    /// There is no user with this name.
    fn user(&self, name: &str) -> Result<User, Refusal>;
    /// Adds a user.
    ///
    /// # Errors
    /// The name is taken or invalid, or the password is invalid.
    fn add_user(&self, new: NewUser) -> Result<User, Refusal>;
    /// Changes a user who was added by command. The sessions of a user who is disabled end.
    ///
    /// # Errors
    /// There is no user with this name, the configuration declares the user, or a value is invalid.
    fn change_user(&self, name: &str, change: UserChange) -> Result<User, Refusal>;
    /// Removes a user who was added by command, and ends the user's sessions.
    ///
    /// # Errors
    /// There is no user with this name, or the configuration declares the user.
    fn remove_user(&self, name: &str) -> Result<User, Refusal>;
    /// What a user becomes on this server. The name may be that of an account (`alice`), that of a user of a domain
    /// (`alice@EXAMPLE.ORG`, `EXAMPLE\\alice`), or a SID.
    ///
    /// # Errors
    /// The text can be no user's name, or no server is running.
    fn test_user(&self, name: &str) -> Result<TestedUser, Refusal>;
    /// By which rule users of domains have numbers here, and how those do who are asked for users and groups. May wait for the
    /// directory of the domain.
    ///
    /// # Errors
    /// No server is running.
    fn domain(&self) -> Result<Domain, Refusal>;
    /// All tokens that were made, by name.
    ///
    /// # Errors
    /// [`Refusal`].
    fn tokens(&self) -> Result<Tokens, Refusal>;
    /// Makes a token, which is accepted from now on.
    ///
    /// # Errors
    /// The name is taken or invalid, or there are too many tokens.
    fn make_token(&self, new: NewToken) -> Result<MadeToken, Refusal>;
    /// Withdraws a token, which is no longer accepted from now on.
    ///
    /// # Errors
    /// There is no token with this name.
    fn remove_token(&self, name: &str) -> Result<TokenInfo, Refusal>;
    /// The configuration in effect.
    ///
    /// # Errors
    /// The server has none, or is only starting.
    fn configuration(&self) -> Result<Configuration, Refusal>;
    /// Reads the configuration again, and uses it.
    ///
    /// # Errors
    /// Something is wrong with it, and nothing has changed; or the server has none.
    fn reload(&self) -> Result<Reload, Refusal>;
    /// What became of the attempts to read the configuration again. This never waits.
    fn reloads(&self) -> Reload;
}

/// The kind of a refusal. Programs see these names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// There is no such share, snapshot, policy, user or token.
    NotFound,
    /// The name is taken.
    NameTaken,
    /// The configuration declares the share or user, and must be changed instead.
    Declared,
    /// A value is invalid.
    Invalid,
    /// The directory cannot be served.
    Directory,
    /// The share would lie inside another one, or contain it.
    Overlap,
    /// The plan may not be changed in this way now.
    Plan,
    /// The same operation is already under way.
    Busy,
    /// A share has it.
    InUse,
    /// The maximum number is reached.
    TooMany,
    /// The storage of the share has no snapshots.
    NoSnapshots,
    /// Nobody may remove it yet.
    Protected,
    /// The pool has no room for it.
    PoolFull,
    /// The server failed.
    Failed,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The kind, for programs.
    pub kind: RefusalKind,
    /// What was wrong, and where.
    pub what: String,
    /// What to do; may be empty.
    pub advice: String,
}

impl Refusal {
    /// A refusal.
    #[must_use]
    pub fn new(kind: RefusalKind, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { kind, what: what.into(), advice: advice.into() }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self.kind {
            RefusalKind::NotFound => StatusCode::NOT_FOUND,
            RefusalKind::NameTaken
            | RefusalKind::Declared
            | RefusalKind::Overlap
            | RefusalKind::Plan
            | RefusalKind::Busy
            | RefusalKind::InUse
            | RefusalKind::TooMany
            | RefusalKind::NoSnapshots
            | RefusalKind::Protected
            | RefusalKind::PoolFull => StatusCode::CONFLICT,
            RefusalKind::Invalid | RefusalKind::Directory => StatusCode::UNPROCESSABLE_ENTITY,
            RefusalKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub(crate) fn code(&self) -> &'static str {
        match self.kind {
            RefusalKind::NotFound => "not-found",
            RefusalKind::NameTaken => "name-taken",
            RefusalKind::Declared => "declared",
            RefusalKind::Invalid => "invalid",
            RefusalKind::Directory => "directory",
            RefusalKind::Overlap => "overlap",
            RefusalKind::Plan => "plan",
            RefusalKind::Busy => "busy",
            RefusalKind::InUse => "in-use",
            RefusalKind::TooMany => "too-many",
            RefusalKind::NoSnapshots => "no-snapshots",
            RefusalKind::Protected => "protected",
            RefusalKind::PoolFull => "pool-full",
            RefusalKind::Failed => "failed",
        }
    }
}
