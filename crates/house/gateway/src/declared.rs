//! The declarations of the configuration.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use auth::{Account, same_name};
use state::PoolDirectory;

use crate::cephfs::Cluster;
use crate::replication::Mirrors;
use crate::retention::Retention;
use crate::settings::{
    COMMAND_LINE, Encryption, PolicySettings, PoolSettings, ShareSettings, same_share_name,
};

/// The declarations of the configuration.
#[derive(Debug, Default, Clone)]
pub(crate) struct Declared {
    /// The declared shares, with different names.
    pub(crate) shares: Vec<DeclaredShare>,
    /// The place of these declarations: a file, or the command line.
    pub(crate) shares_in: String,
    /// The shares that are declared in other places.
    pub(crate) shares_elsewhere: Vec<(String, String)>,
    /// The declared snapshot policies.
    pub(crate) policies: Vec<PolicySettings>,
    /// The place of these declarations.
    pub(crate) policies_in: String,
    /// The declared pools.
    pub(crate) pools: Vec<PoolSettings>,
    /// The place of these declarations.
    pub(crate) pools_in: String,
    /// The declared accounts, with their passwords.
    pub(crate) accounts: Vec<Account>,
    /// The place of these declarations.
    pub(crate) accounts_in: String,
    /// The accounts that are declared in other places.
    pub(crate) accounts_elsewhere: Vec<(String, String)>,
    /// The Ceph cluster in which shares may lie.
    pub(crate) ceph: Arc<Cluster>,
    /// What clients of replicas see.
    pub(crate) mirrors: Arc<Mirrors>,
    /// For how long a share that is removed can be brought back.
    pub(crate) retention: Retention,
    /// What of encryption concerns all shares.
    pub(crate) encryption: Encryption,
    /// For measurements: how much slower the metadata of all shares is.
    pub(crate) metadata_latency: Option<Duration>,
    /// For measurements: the cost of calls is not counted.
    pub(crate) is_uncounted: bool,
}

/// A share that the configuration declares.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DeclaredShare {
    /// The settings as declared.
    pub(crate) given: ShareSettings,
    /// The absolute path of the directory, or where it is in CephFS.
    pub(crate) directory: PathBuf,
    /// Whether the storage did not answer when the directory was looked up. A symbolic link may lead to another
    /// directory.
    pub(crate) is_unseen: bool,
}

/// Why shares that should be served are not, by folded name.
pub(crate) type Idle = HashMap<String, String>;

impl Declared {
    /// The share of this name.
    pub(crate) fn share(&self, name: &str) -> Option<&DeclaredShare> {
        self.shares.iter().find(|share| same_share_name(&share.given.name, name))
    }

    /// The snapshot policy of this name.
    pub(crate) fn policy(&self, name: &str) -> Option<&PolicySettings> {
        self.policies.iter().find(|declared| declared.policy.name().eq_ignore_ascii_case(name))
    }

    /// The pool of this name.
    pub(crate) fn pool(&self, name: &str) -> Option<&PoolSettings> {
        self.pools.iter().find(|pool| same_share_name(&pool.name, name))
    }

    /// The pool in which the server made this directory: the one that is declared there now, whatever its name was then, or the one
    /// of the name that is remembered.
    pub(crate) fn pool_of(&self, directory: &Path, made: &PoolDirectory) -> Option<&PoolSettings> {
        let there = self.pools.iter().find(|pool| directory.parent() == Some(pool.directory.as_path()));
        there.or_else(|| self.pool(&made.pool))
    }

    /// The name of that pool; of one that is declared no more, the name that is remembered.
    pub(crate) fn pool_name(&self, directory: &Path, made: &PoolDirectory) -> String {
        self.pool_of(directory, made).map_or_else(|| made.pool.clone(), |pool| pool.name.clone())
    }

    /// The account of this name.
    pub(crate) fn account(&self, name: &str) -> Option<&Account> {
        self.accounts.iter().find(|account| same_name(&account.name, name))
    }

    /// The place where the share of this name is declared.
    pub(crate) fn share_place(&self, name: &str) -> &str {
        let elsewhere = self.shares_elsewhere.iter().find(|(share, _)| same_share_name(share, name));
        elsewhere.map_or(&self.shares_in, |(_, place)| place)
    }

    /// The place where the account of this name is declared.
    pub(crate) fn account_place(&self, name: &str) -> &str {
        let elsewhere = self.accounts_elsewhere.iter().find(|(account, _)| same_name(account, name));
        elsewhere.map_or(&self.accounts_in, |(_, place)| place)
    }

    /// Advice on how to change a declaration that was made in this place.
    pub(crate) fn advice(&self, place: &str) -> String {
        if place == COMMAND_LINE {
            return format!("Change it there, and start the server again ({place}).");
        }
        format!("Change it there, and send the server SIGHUP, which reads it again ({place}).")
    }
}
