//! Puts the parts together: state, shares, accounts, sockets, servers; and takes them apart again.

use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use auth::{Account, nt_hash};
use control::tokens::KnownTokens;
use control::{Control, Subject};
use net::Shards;
use share::{ShareTable, Terms};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::accounts::AccountBook;
use crate::administration::{Administration, Declared, DeclaredShare, Idle, Serving};
use crate::problem::{Cause, Problem, Result};
use crate::settings::{Settings, UserGiven};
use crate::state::State;
use crate::{
    administration, burst_credits, control_access, descriptors, directories, identities, opening, ports,
    servers, state,
};

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
    pub(crate) state: Arc<State>,
    pub(crate) shares: Arc<ShareTable>,
    pub(crate) accounts: Arc<AccountBook>,
    /// How many descriptors each part may take.
    pub(crate) descriptors: descriptors::Allotment,
    /// Of how many in all.
    descriptors_max: u64,
    declared: Declared,
    idle: Idle,
}

impl Prepared {
    /// # Errors
    /// A directory or the state database cannot be used.
    pub(crate) fn new(settings: &Settings) -> Result<Self> {
        let descriptors_max = storage_local::raise_descriptor_limit();
        tracing::debug!("this process may have {descriptors_max} descriptors");
        if settings.shares.is_empty() && !state::exists(&settings.state) {
            return Err(Problem::new(
                Cause::Settings,
                "there is no share to serve",
                "Pass --share NAME=DIR, name one in the file given by --config, or make one: anabranch share create NAME DIR",
            ));
        }
        let mut declared = declare_shares(settings)?;
        let state = State::open(&settings.state)?;
        let made = state.made_shares()?;
        let descriptors = descriptors::Allotment::of(descriptors_max, declared.shares.len() + made.len());
        let (shares, idle) = opening::open_all(&declared, &state, descriptors.opens)?;
        if shares.present().is_empty() {
            tracing::warn!(
                "there is no share to serve: pass --share NAME=DIR, or make one with `anabranch share create`"
            );
        }
        declared.accounts = declared_accounts(settings, &declared, &state)?;
        let accounts = open_accounts(&declared, &state)?;
        if accounts.is_empty() && !shares.present().iter().any(|share| share.terms().contains(Terms::GUESTS))
        {
            tracing::warn!(
                "there is no user: nobody can log on over SMB (`anabranch user add`, or --user NAME:PASSWORD)"
            );
        }
        let state = Arc::new(state);
        Ok(Self { state, shares, accounts, descriptors, descriptors_max, declared, idle })
    }
}

fn declare_shares(settings: &Settings) -> Result<Declared> {
    let mut shares = Vec::new();
    let mut directories = Vec::new();
    for given in &settings.shares {
        let directory = directories::check(&given.name, &given.directory, given.terms)?;
        directories.push((given.name.clone(), directory.clone()));
        shares.push(DeclaredShare { given: given.clone(), directory });
    }
    for (one, other) in directories::overlapping(&directories) {
        tracing::warn!(
            "the shares {one} and {other} overlap: locks and share modes do not hold between them"
        );
    }
    let (shares_in, accounts_in) = (settings.shares_in.clone(), settings.users_in.clone());
    Ok(Declared {
        shares,
        shares_in,
        accounts: Vec::new(),
        accounts_in,
        metadata_latency: settings.bench_metadata_latency,
        is_uncounted: !settings.bench_accounting,
    })
}

fn declared_accounts(settings: &Settings, declared: &Declared, state: &State) -> Result<Vec<Account>> {
    let first = declared.shares.first().map_or_else(|| Path::new("/"), |share| share.directory.as_path());
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
    settings.users.iter().map(open).collect()
}

/// The accounts that the configuration declares, and those added by command whose names are free.
fn open_accounts(declared: &Declared, state: &State) -> Result<Arc<AccountBook>> {
    let book = AccountBook::default();
    for user in state.added_users()? {
        let account = administration::account(&user);
        if account.disabled && !user.disabled {
            tracing::warn!(
                "the user {} is not on this machine any more, and cannot log on: give it a uid",
                user.name
            );
        }
        book.enter(account);
    }
    for account in &declared.accounts {
        if book.take(&account.name).is_some() {
            let (name, place) = (&account.name, &declared.accounts_in);
            tracing::warn!("{place} declares a user {name}, who goes before the one added by command");
        }
        book.enter(account.clone());
    }
    Ok(Arc::new(book))
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
    let servers = servers::Servers::new(settings, &prepared, &sockets.smb, &sockets.nfs)?;
    let shares = Arc::clone(&prepared.shares);
    let state = Arc::clone(&prepared.state);
    burst_credits::keep(&shares.present(), &state, burst_credits::RESERVE)?;
    let control = start_control(settings, prepared, &servers, sockets.control)?;
    servers.listen(&shards, sockets.smb, sockets.nfs)?;
    let published = control_access::publish(&settings.state, addresses.control)?;
    for share in shares.present().in_order() {
        tracing::info!("serving the share {}", share.name());
    }
    ready(addresses);
    std::io::stdout().flush().map_err(serving("cannot write to standard output"))?;
    let signal = runtime.block_on(until_the_end(&mut end, &shares, &state));
    tracing::info!("{signal}: ending");
    drop((published, control));
    shards.shutdown();
    runtime.block_on(servers.smb.close_disconnected());
    burst_credits::keep(&shares.present(), &state, Duration::ZERO)?;
    tracing::info!("ended");
    Ok(())
}

/// Waits for a signal, and meanwhile writes down what changes by itself.
async fn until_the_end(end: &mut Signals, shares: &ShareTable, state: &State) -> &'static str {
    let mut interval = tokio::time::interval(burst_credits::INTERVAL);
    loop {
        tokio::select! {
            signal = end.received() => return signal,
            _ = interval.tick() => {
                if let Err(problem) = burst_credits::keep(&shares.present(), state, burst_credits::RESERVE) {
                    tracing::error!("{}", problem.what);
                }
            }
        }
    }
}

fn start_control(
    settings: &Settings,
    prepared: Prepared,
    servers: &servers::Servers,
    listener: TcpListener,
) -> Result<Control> {
    let Prepared { state, shares, accounts, descriptors_max, declared, idle, .. } = prepared;
    let (smb, nfs) = (Arc::clone(&servers.smb), Arc::clone(&servers.nfs));
    let own = control_access::make_token(&settings.state)?;
    let made = state.made_tokens()?.iter().map(administration::known_token).collect();
    let tokens = Arc::new(KnownTokens::new(&own, made));
    let of_server = Serving {
        shares: Arc::clone(&shares),
        accounts,
        smb: Arc::clone(&smb),
        nfs: Arc::clone(&nfs),
        tokens: Arc::clone(&tokens),
        descriptors: descriptors_max,
    };
    let subject = Subject {
        shares,
        administration: Arc::new(Administration::of_server(state, declared, of_server, idle)),
        clients: Box::new(move || control::report::clients(&smb, &nfs)),
        tokens,
        names: settings.control_names.clone(),
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
