//! Finds and opens everything that the settings name: all of a gateway but its sockets.

use std::path::Path;
use std::sync::Arc;

use share::{AccessLog, ShareTable, Terms};
use state::State;
use state::lock::Lock;

use crate::accounts::AccountBook;
use crate::declared::{Declared, Idle};
use crate::problem::{Cause, Problem, Result};
use crate::settings::{Settings, same_share_name};
use crate::{accounts, descriptors, logged, moved, opening, without_ntlm};

/// Everything that the settings name, found and opened. It owns the state directory until it, or the gateway made of
/// it, is dropped.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) settings: Settings,
    pub(crate) state: Arc<State>,
    pub(crate) shares: Arc<ShareTable>,
    pub(crate) accounts: Arc<AccountBook>,
    /// The distribution of the descriptors.
    pub(crate) descriptors: descriptors::Allotment,
    /// The total number of descriptors.
    pub(crate) descriptors_max: u64,
    pub(crate) declared: Declared,
    pub(crate) idle: Idle,
    pub(crate) access_log: AccessLog,
}

/// Checks that there is, or may be, a share to serve: one is declared, or may have been created by command.
///
/// # Errors
/// There is no share.
pub fn check_something_to_serve(settings: &Settings) -> Result<()> {
    let is_given = !settings.shares.is_empty() || !settings.moved.is_empty();
    if is_given || settings.cluster.is_some() || state::exists(&settings.state) {
        return Ok(());
    }
    Err(Problem::new(
        Cause::Settings,
        "there is no share to serve",
        "Pass --share NAME=DIR, declare a share in the file given by --config, or create one: anabranch share create NAME DIR",
    ))
}

impl Prepared {
    /// The state directory, as the settings name it.
    #[must_use]
    pub fn state_directory(&self) -> &Path {
        &self.settings.state
    }

    /// Finds and opens everything that the settings name, for a gateway that may have `descriptors_max` descriptors. Of
    /// several gateways in one process, each gets a part of the descriptors of the process.
    ///
    /// # Errors
    /// There is nothing to serve, or a directory or the state database cannot be used.
    pub fn new(settings: &Settings, descriptors_max: u64) -> Result<Self> {
        Self::opened(settings, descriptors_max, State::open)
    }

    /// The same, if this process has the lock on the state directory already.
    ///
    /// # Errors
    /// Those of [`Prepared::new`].
    pub fn under_lock(settings: &Settings, descriptors_max: u64, lock: Lock) -> Result<Self> {
        Self::opened(settings, descriptors_max, |directory| State::open_locked(lock, directory))
    }

    fn opened(
        settings: &Settings,
        descriptors_max: u64,
        open: impl FnOnce(&Path) -> state::Result<State>,
    ) -> Result<Self> {
        check_something_to_serve(settings)?;
        let mut declared = opening::declare(settings, &settings.state, None)?;
        let access_log = AccessLog::default();
        logged::use_settings(&access_log, settings, &declared)?;
        let state = Arc::new(without_ntlm::apply(settings, open(&settings.state)?)?);
        opening::check_stay(&declared, &state)?;
        let made = state.made_shares()?;
        let descriptors = descriptors::Allotment::of(descriptors_max, declared.shares.len() + made.len());
        tracing::info!(
            "of {descriptors_max} descriptors (ulimit -Hn) {} are for connections of SMB, {} for those of NFS",
            descriptors.smb_connections,
            descriptors.nfs_connections
        );
        let (shares, idle) = opening::open_all(&declared, &state, descriptors.opens, &access_log)?;
        let is_made = |name: &str| made.iter().any(|record| same_share_name(&record.name, name));
        moved::tell(&shares, state.server(), &settings.moved, is_made)?;
        let is_of_cluster = settings.cluster.is_some();
        if !is_of_cluster && shares.present().is_empty() && shares.present().awaited().next().is_none() {
            tracing::warn!(
                "there is no share to serve: pass --share NAME=DIR, or create a share with `anabranch share create`"
            );
        }
        declared.accounts = accounts::declared(settings, &state)?;
        let accounts = accounts::open(&declared, &state)?;
        if accounts.is_empty() && !shares.present().iter().any(|share| share.terms().contains(Terms::GUESTS))
        {
            tracing::warn!(
                "there is no user: nobody can log on over SMB (`anabranch user add`, or --password-file NAME=FILE)"
            );
        }
        let settings = settings.clone();
        Ok(Self {
            settings,
            state,
            shares,
            accounts,
            descriptors,
            descriptors_max,
            declared,
            idle,
            access_log,
        })
    }
}
