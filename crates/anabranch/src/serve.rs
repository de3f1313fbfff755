//! Puts the parts together: state, shares, accounts, sockets, servers; and takes them apart again.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use auth::{Account, AccountList, nt_hash};
use control::{Control, Subject};
use net::Shards;
use share::{Share, ShareId, ShareTable, Terms};
use storage::Storage;
use storage::fault::{Call, Fault, FaultyStore, Rule};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::problem::{Cause, Problem, Result};
use crate::settings::{Settings, ShareGiven, UserGiven};
use crate::state::State;
use crate::{control_access, descriptors, directories, identities, ports, servers};

/// The sockets of a server that is about to start.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub(crate) smb: TcpListener,
    pub(crate) nfs: TcpListener,
    pub(crate) control: TcpListener,
}

/// Where a server listens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addresses {
    pub(crate) smb: SocketAddr,
    pub(crate) nfs: SocketAddr,
    pub(crate) control: SocketAddr,
}

impl Sockets {
    fn listen(settings: &Settings) -> Result<Self> {
        Ok(Self {
            smb: ports::listen(ports::SMB, settings.smb)?,
            nfs: ports::listen(ports::NFS, settings.nfs)?,
            control: ports::listen(ports::CONTROL, settings.control)?,
        })
    }

    pub(crate) fn addresses(&self) -> Result<Addresses> {
        let of = |listener: &TcpListener| listener.local_addr().map_err(serving("cannot read an address"));
        Ok(Addresses { smb: of(&self.smb)?, nfs: of(&self.nfs)?, control: of(&self.control)? })
    }
}

/// Serves until a signal asks to end.
///
/// # Errors
/// What the settings name cannot be used, or the system lacks threads or descriptors.
pub(crate) fn run(settings: Settings) -> Result<()> {
    let prepared = Prepared::new(&settings)?;
    let sockets = Sockets::listen(&settings)?;
    // What clients make gets exactly the mode that they say, in one call. The server's own files exist by now, and
    // get theirs from where they are made.
    rustix::process::umask(rustix::fs::Mode::empty());
    serve(&settings, prepared, sockets, |at| {
        println!("ready smb={} nfs={} control={}", at.smb, at.nfs, at.control);
    })
}

/// What the settings name, found and opened.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) state: State,
    pub(crate) shares: Arc<ShareTable>,
    pub(crate) accounts: AccountList,
    /// How many descriptors each part may take.
    pub(crate) descriptors: descriptors::Allotment,
}

impl Prepared {
    /// # Errors
    /// A directory or the state database cannot be used.
    pub(crate) fn new(settings: &Settings) -> Result<Self> {
        let descriptors = storage_local::raise_descriptor_limit();
        tracing::debug!("this process may have {descriptors} descriptors");
        let descriptors = descriptors::Allotment::of(descriptors, settings.shares.len());
        let mut directories = Vec::new();
        for share in &settings.shares {
            directories.push((share.name.clone(), directories::check(share)?));
        }
        for (one, other) in directories::overlapping(&directories) {
            tracing::warn!(
                "the shares {one} and {other} overlap: locks and share modes do not hold between them"
            );
        }
        let state = State::open(&settings.state)?;
        let shares = open_shares(settings, &directories, &state, descriptors)?;
        let accounts = open_accounts(settings, &directories, &state)?;
        Ok(Self { state, shares, accounts, descriptors })
    }
}

fn open_shares(
    settings: &Settings,
    directories: &[(String, PathBuf)],
    state: &State,
    descriptors: descriptors::Allotment,
) -> Result<Arc<ShareTable>> {
    let open = |(given, (_, directory)): (&ShareGiven, &(String, PathBuf))| {
        let store = servers::open_store(&given.name, directory, state)?;
        let store = settings.bench_metadata_latency.map_or(Arc::clone(&store), |by| slowed(store, by));
        let id = ShareId(state.share_id(&given.name)?);
        let default = share::Settings::new(&given.name);
        let opens_max = default.opens_max.min(descriptors.opens);
        let metadata_cache = given.metadata_cache;
        let settings = share::Settings { terms: terms(given), opens_max, metadata_cache, ..default };
        Ok(Share::new(id, settings, store))
    };
    let shares: Vec<_> = settings.shares.iter().zip(directories).map(open).collect::<Result<_>>()?;
    ShareTable::new(shares).map_err(|e| Problem::new(Cause::Settings, e.to_string(), ""))
}

/// A store whose metadata is far away.
fn slowed(store: Arc<dyn Storage>, by: Duration) -> Arc<dyn Storage> {
    let store = FaultyStore::new(store);
    for call in Call::METADATA {
        store.inject(Rule::always(call, Fault::Slow(Arc::new(move || std::thread::sleep(by)))));
    }
    Arc::new(store)
}

fn terms(given: &ShareGiven) -> Terms {
    let mut terms = Terms::empty();
    terms.set(Terms::READ_ONLY, given.read_only);
    terms.set(Terms::ACCESS_BASED_ENUMERATION, given.access_based_enumeration);
    terms.set(Terms::GUESTS, given.guest);
    terms.set(Terms::CONTINUOUSLY_AVAILABLE, given.continuous_availability);
    terms
}

fn open_accounts(
    settings: &Settings,
    directories: &[(String, PathBuf)],
    state: &State,
) -> Result<AccountList> {
    let first =
        directories.first().map(|(_, directory)| directory.as_path()).unwrap_or_else(|| Path::new("/"));
    let open = |user: &UserGiven| {
        let nt_hash = match &user.password {
            Some(password) => {
                let hash = nt_hash(password);
                state.set_account(&user.name, hash)?;
                hash
            }
            None => state.account(&user.name)?.ok_or_else(|| {
                Problem::new(
                    Cause::Settings,
                    format!("the user {} has no password, and the state database holds none", user.name),
                    "Give it one, once: password = \"...\" in the file, or --user NAME:PASSWORD",
                )
            })?,
        };
        let share::Identity { uid, gid, groups } = identities::of_account(user, first);
        Ok(Account { name: user.name.clone(), nt_hash, uid, gid, groups, disabled: false })
    };
    if settings.users.is_empty() && !settings.shares.iter().any(|share| share.guest) {
        tracing::warn!("there is no user: nobody can log on over SMB (--user NAME:PASSWORD)");
    }
    settings.users.iter().map(open).collect::<Result<_>>().map(AccountList)
}

/// Serves what is prepared on these sockets until SIGTERM or SIGINT; calls `ready` once clients are answered.
pub(crate) fn serve(
    settings: &Settings,
    prepared: Prepared,
    sockets: Sockets,
    ready: impl FnOnce(Addresses),
) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(serving("cannot start a runtime"))?;
    // The handlers stand before anything is served: a signal is never lost.
    let mut end = runtime.block_on(async { Signals::new() })?;
    let addresses = sockets.addresses()?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let shards = Shards::start(cores).map_err(serving("cannot start a shard"))?;
    let servers = servers::Servers::new(settings, &prepared, &sockets.smb)?;
    let control = start_control(settings, &prepared, &servers, sockets.control)?;
    servers.listen(&shards, sockets.smb, sockets.nfs)?;
    let published = control_access::publish(&settings.state, addresses.control)?;
    for share in prepared.shares.present().in_order() {
        tracing::info!("serving the share {}", share.name());
    }
    ready(addresses);
    std::io::stdout().flush().map_err(serving("cannot write to standard output"))?;
    let signal = runtime.block_on(end.received());
    tracing::info!("{signal}: ending");
    drop((published, control));
    shards.shutdown();
    runtime.block_on(servers.smb.close_disconnected());
    tracing::info!("ended");
    Ok(())
}

fn start_control(
    settings: &Settings,
    prepared: &Prepared,
    servers: &servers::Servers,
    listener: TcpListener,
) -> Result<Control> {
    let (smb, nfs) = (Arc::clone(&servers.smb), Arc::clone(&servers.nfs));
    let subject = Subject {
        shares: Arc::clone(&prepared.shares),
        clients: Box::new(move || control::report::clients(&smb, &nfs)),
        token: control_access::make_token(&settings.state)?,
    };
    Control::start(listener, subject).map_err(serving("cannot serve the control address"))
}

/// Turns an error of the system into a [`Problem`].
pub(crate) fn serving<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> Problem {
    move |error| Problem::new(Cause::Serving, format!("{what}: {error}"), "")
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        let catch = |kind| signal(kind).map_err(serving("cannot catch signals"));
        Ok(Self { terminate: catch(SignalKind::terminate())?, interrupt: catch(SignalKind::interrupt())? })
    }

    async fn received(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
