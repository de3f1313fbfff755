//! What the settings mean to the stores and to the two servers.

use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;

use net::Shards;
use nfs_proto::export::{Anonymous, ClientRule, Export};
use nfs_proto::v4::lease::LeaseTimes;
use nfs_server::{ExportRules, NfsServer};
use share::Terms;
use smb_server::{Interfaces, Protection};
use storage::Storage;
use storage_local::{LocalOptions, LocalState, LocalStore};

use crate::nfs_clients::Known;
use crate::persistent_opens::Kept;
use crate::problem::{Cause, Problem, Result};
use crate::serve::{Prepared, serving};
use crate::settings::{Requirement, Settings, Squash};
use crate::state::State;

/// The store of a share's directory.
///
/// # Errors
/// The directory cannot be opened.
pub(crate) fn open_store(name: &str, directory: &Path, state: &State) -> Result<Arc<dyn Storage>> {
    let kept = LocalState { database: state.database(), name: name.to_lowercase() };
    let options = LocalOptions { state: Some(kept), ..LocalOptions::default() };
    let store = LocalStore::open(directory, options).map_err(|e| {
        Problem::new(Cause::Directory, format!("share {name}: cannot serve {}: {e}", directory.display()), "")
    })?;
    Ok(Arc::new(store))
}

/// The two servers, ready to be given connections.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) smb: Arc<smb_server::Server>,
    pub(crate) nfs: Arc<NfsServer>,
}

impl Servers {
    /// # Errors
    /// The state cannot be read, or the system has no random numbers.
    pub(crate) fn new(
        settings: &Settings,
        prepared: &Prepared,
        smb: &TcpListener,
        nfs: &TcpListener,
    ) -> Result<Self> {
        let accounts = Arc::clone(&prepared.accounts);
        let config = smb_config(settings, smb, prepared)?;
        let smb = smb_server::Server::new(config, Arc::clone(&prepared.shares), accounts as _);
        let kept = Arc::new(Kept(prepared.state.database()));
        smb.keep_persistent_opens(kept).map_err(|e| {
            Problem::new(Cause::State, format!("the persistent opens of SMB clients: {e}"), "")
        })?;
        Ok(Self { smb, nfs: NfsServer::new(nfs_config(settings, nfs, prepared)?) })
    }

    /// Hands the listening sockets to the servers.
    pub(crate) fn listen(&self, shards: &Shards, smb: TcpListener, nfs: TcpListener) -> Result<()> {
        let listen = |result: std::io::Result<()>| result.map_err(serving("cannot listen"));
        let scavenged = Arc::clone(&self.smb);
        listen(shards.spawn(async move { scavenged.scavenge().await }))?;
        let looked_after = Arc::clone(&self.nfs);
        listen(shards.spawn(async move { looked_after.look_after_clients().await }))?;
        listen(shards.listen(smb, Arc::new(smb_server::Service::new(Arc::clone(&self.smb)))))?;
        listen(shards.listen(nfs, Arc::clone(&self.nfs)))
    }
}

fn smb_config(
    settings: &Settings,
    listener: &TcpListener,
    prepared: &Prepared,
) -> Result<smb_server::Config> {
    warn_of_guests(settings);
    let default = smb_server::Limits::default();
    let limits = smb_server::Limits {
        connections_max: default.connections_max.min(prepared.descriptors.smb_connections),
        channels_per_session_max: usize::try_from(settings.max_channels).unwrap_or(usize::MAX),
        ..default
    };
    Ok(smb_server::Config {
        server_guid: Some(prepared.state.server_guid()?),
        signing: protection(settings.smb_signing),
        encryption: protection(settings.smb_encryption),
        interfaces: interfaces(settings, listener),
        limits,
        ..smb_server::Config::default()
    })
}

fn warn_of_guests(settings: &Settings) {
    let required = [settings.smb_signing, settings.smb_encryption].contains(&Requirement::Required);
    if required && settings.shares.iter().any(|share| share.terms.contains(Terms::GUESTS)) {
        tracing::warn!("guests have no key to sign or encrypt with, as is required: none is let in");
    }
}

fn protection(wanted: Requirement) -> Protection {
    match wanted {
        Requirement::Off => Protection::Off,
        Requirement::Enabled => Protection::Enabled,
        Requirement::Required => Protection::Required,
    }
}

/// What clients are told of: the addresses that are given, else those of the machine on which SMB listens.
fn interfaces(settings: &Settings, listener: &TcpListener) -> Interfaces {
    let given = settings.smb_interfaces.iter().map(|given| smb_server::GivenInterface {
        address: given.address,
        link_speed: given.link_speed,
        rss: given.rss,
    });
    Interfaces { listen: listener.local_addr().map(|at| at.ip()).ok(), given: given.collect() }
}

fn nfs_config(
    settings: &Settings,
    listener: &TcpListener,
    prepared: &Prepared,
) -> Result<nfs_server::Config> {
    let squash = match settings.nfs_squash {
        Squash::None => nfs_proto::export::Squash::None,
        Squash::Root => nfs_proto::export::Squash::Root,
        Squash::All => nfs_proto::export::Squash::All,
    };
    let mut rule = ClientRule { squash, ..ClientRule::default() };
    if let Some((uid, gid)) = settings.nfs_anonymous {
        rule.anonymous = Anonymous { uid, gid };
    }
    let rules = ExportRules { general: Export { rules: vec![rule] }, ..ExportRules::default() };
    let key = prepared.state.nfs_handle_key()?;
    let mut verifier = [0; 8];
    getrandom::fill(&mut verifier)
        .map_err(|e| Problem::new(Cause::Serving, format!("no random numbers: {e}"), ""))?;
    let config = nfs_server::Config::new(Arc::clone(&prepared.shares), rules, key, verifier);
    let connections_max = config.connections_max.min(prepared.descriptors.nfs_connections);
    let client_records: Option<Arc<dyn nfs_server::ClientRecords>> =
        Some(Arc::new(Known(prepared.state.database())));
    let lease_times = LeaseTimes { lease: settings.nfs_lease, ..config.lease_times };
    let listen = listener.local_addr().map(|at| at.ip()).ok();
    Ok(nfs_server::Config { connections_max, client_records, lease_times, listen, ..config })
}
