//! Puts the parts together: state, shares, accounts, sockets, servers; and takes them apart again.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use control::tokens::KnownTokens;
use control::{Control, Counters, StuckShard, Subject};
use net::Shards;
use share::{ShareTable, Terms};
use state::{State, burst_credits};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::accounts::AccountBook;
use crate::administration::{Administration, Declared, Idle, Serving};
use crate::held_up::HeldUp;
use crate::name_service::System;
use crate::names::NameLookup;
use crate::problem::{Cause, Problem, Result};
use crate::reload::Reloader;
use crate::settings::{Requirement, Settings};
use crate::sources::Sources;
use crate::{
    accounts, administration, control_access, control_tls, descriptors, log, opening, ports, servers,
    state_directory,
};

/// How long closing what clients that are away have open may take at the end.
const CLEAN_UP: Duration = Duration::from_secs(20);

/// The sockets of a server that is about to start.
#[derive(Debug)]
pub(crate) struct Sockets {
    /// None: the protocol is off.
    pub(crate) smb: Option<TcpListener>,
    /// Likewise.
    pub(crate) nfs: Option<TcpListener>,
    pub(crate) control: TcpListener,
}

/// Where a server listens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Addresses {
    /// None: the protocol is off.
    pub(crate) smb: Option<SocketAddr>,
    /// Likewise.
    pub(crate) nfs: Option<SocketAddr>,
    pub(crate) control: SocketAddr,
}

impl Sockets {
    fn listen(settings: &Settings) -> Result<Self> {
        let listen =
            |role, address: Option<SocketAddr>| address.map(|at| ports::listen(role, at)).transpose();
        Ok(Self {
            smb: listen(ports::SMB, settings.smb)?,
            nfs: listen(ports::NFS, settings.nfs)?,
            control: ports::listen(ports::CONTROL, settings.control)?,
        })
    }

    pub(crate) fn addresses(&self) -> Result<Addresses> {
        let of = |listener: &TcpListener| listener.local_addr().map_err(serving("cannot read an address"));
        Ok(Addresses {
            smb: self.smb.as_ref().map(of).transpose()?,
            nfs: self.nfs.as_ref().map(of).transpose()?,
            control: of(&self.control)?,
        })
    }
}

/// Serves until a signal asks to end.
///
/// # Errors
/// What the settings name cannot be used, or the system lacks threads or descriptors.
pub(crate) fn run(settings: &Settings, sources: Sources) -> Result<()> {
    let prepared = Prepared::new(settings)?;
    let sockets = Sockets::listen(settings)?;
    // What clients make gets exactly the mode that they say, in one call. The server's own files exist by now, and
    // get theirs from where they are made.
    rustix::process::umask(rustix::fs::Mode::empty());
    serve(settings, Some(sources), prepared, sockets, |at| {
        let (smb, nfs) = (part(at.smb), part(at.nfs));
        // Who sees the ready line finds in the log what was said before.
        log::finish();
        log::say(std::io::stdout(), &format!("ready smb={smb} nfs={nfs} control={}\n", at.control));
    })
}

/// A protocol in the ready line.
fn part(at: Option<SocketAddr>) -> String {
    at.map_or_else(|| "off".to_owned(), |at| at.to_string())
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
        if settings.shares.is_empty() && !state::exists(&settings.state) {
            return Err(Problem::new(
                Cause::Settings,
                "there is no share to serve",
                "Pass --share NAME=DIR, name one in the file given by --config, or make one: anabranch share create NAME DIR",
            ));
        }
        if !settings.is_state_given {
            state_directory::confirm_default()?;
        }
        let mut declared = opening::declare(settings, &settings.state, None)?;
        let state = Arc::new(State::open(&settings.state)?);
        let made = state.made_shares()?;
        let descriptors = descriptors::Allotment::of(descriptors_max, declared.shares.len() + made.len());
        tracing::info!(
            "of {descriptors_max} descriptors (ulimit -Hn) {} are for connections of SMB, {} for those of NFS",
            descriptors.smb_connections,
            descriptors.nfs_connections
        );
        let (shares, idle) = opening::open_all(&declared, &state, descriptors.opens)?;
        if shares.present().is_empty() && shares.present().awaited().next().is_none() {
            tracing::warn!(
                "there is no share to serve: pass --share NAME=DIR, or make one with `anabranch share create`"
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
        Ok(Self { state, shares, accounts, descriptors, descriptors_max, declared, idle })
    }
}

/// Whether no share may be served in the clear.
pub(crate) fn encryption_required(settings: &Settings) -> bool {
    settings.smb_encryption == Requirement::Required
}

/// Serves what is prepared on these sockets until SIGTERM or SIGINT; calls `ready` once clients are answered. SIGHUP has the
/// `sources` read again, or ends it where there are none.
pub(crate) fn serve(
    settings: &Settings,
    sources: Option<Sources>,
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
    let servers = servers::Servers::new(settings, &prepared, addresses)?;
    let shares = Arc::clone(&prepared.shares);
    let state = Arc::clone(&prepared.state);
    burst_credits::keep(&shares.present(), &state, burst_credits::RESERVE)?;
    let tls = control_tls(settings, addresses.control)?;
    let tls_config = tls.as_ref().map(|tls| Arc::clone(&tls.config));
    let (control, administration) =
        start_control(settings, prepared, &servers, &shards, sockets.control, tls_config)?;
    administration.await_stores();
    let reloader = sources.map(|sources| Reloader::start(sources, administration)).transpose();
    let reloader = reloader.map_err(serving("cannot start a thread"))?;
    state.keep_copy();
    servers.listen(&shards, sockets.smb, sockets.nfs)?;
    let published = control_access::publish(
        &settings.state,
        addresses.control,
        tls.as_ref().map(|tls| tls.pem.as_str()),
    )?;
    for share in shares.present().in_order() {
        tracing::info!("serving the share {}", share.name());
        opening::tell_withheld(&share, encryption_required(settings));
    }
    let held_up = HeldUp::watch(shards.keeper(), Arc::clone(&shares));
    let held_up = held_up.map_err(serving("cannot start a thread"))?;
    ready(addresses);
    let signal = runtime.block_on(until_the_end(&mut end, reloader.as_ref(), &shares, &state));
    tracing::info!("{signal}: ending");
    drop((published, control, held_up));
    shards.shutdown();
    let closed = async { tokio::time::timeout(CLEAN_UP, servers.smb.close_disconnected()).await };
    if runtime.block_on(closed).is_err() {
        tracing::error!("opens of clients that are away are left as they are: a storage does not answer");
    }
    burst_credits::keep(&shares.present(), &state, Duration::ZERO)?;
    state.keep_copy();
    tracing::info!("ended");
    Ok(())
}

/// Waits for a signal, and meanwhile writes down what changes by itself.
async fn until_the_end(
    signals: &mut Signals,
    reloader: Option<&Reloader>,
    shares: &ShareTable,
    state: &Arc<State>,
) -> &'static str {
    let mut interval = tokio::time::interval(burst_credits::INTERVAL);
    let mut copies = tokio::time::interval(state::copies::INTERVAL);
    // One was made at the start: the first tick is at once.
    copies.tick().await;
    loop {
        tokio::select! {
            signal = signals.received() => match (signal, reloader) {
                (HANGUP, Some(reloader)) => reloader.ask(),
                (signal, _) => return signal,
            },
            _ = interval.tick() => {
                log::tell_lost_lines();
                shares.present().iter().for_each(|share| share.review_alarms());
                if let Err(problem) = burst_credits::keep(&shares.present(), state, burst_credits::RESERVE) {
                    tracing::error!("{}", problem.what);
                }
            }
            _ = copies.tick() => {
                let state = Arc::clone(state);
                // A disk that hangs holds up no signal.
                std::thread::spawn(move || state.keep_copy());
            }
        }
    }
}

/// The certificate of the control address, where it has one; its fingerprint is told.
fn control_tls(settings: &Settings, address: SocketAddr) -> Result<Option<control_tls::Shown>> {
    let files = settings.control_certificate.as_ref();
    let shown = control_tls::shown(files, address, &settings.control_names, &settings.state)?;
    if let Some(shown) = &shown {
        tracing::info!(
            "the control address speaks HTTPS, with the certificate SHA-256 {}",
            shown.fingerprint
        );
    }
    Ok(shown)
}

fn start_control(
    settings: &Settings,
    prepared: Prepared,
    servers: &servers::Servers,
    shards: &Shards,
    listener: TcpListener,
    tls: Option<Arc<rustls::ServerConfig>>,
) -> Result<(Control, Arc<Administration>)> {
    let Prepared { state, shares, accounts, descriptors_max, declared, idle, .. } = prepared;
    let (smb, nfs) = (Arc::clone(&servers.smb), Arc::clone(&servers.nfs));
    let (refused, pulse) = (shards.refused_connections(), shards.pulse());
    let logons = Arc::clone(&servers.smb);
    let of_clients = Arc::clone(&shares);
    let own = control_access::make_token(&settings.state)?;
    let made = state.made_tokens()?.iter().map(administration::known_token).collect();
    let tokens = Arc::new(KnownTokens::new(&own, made));
    let names = NameLookup::start(Arc::clone(&shares), Arc::clone(&accounts), System, servers.changed());
    let names = names.map_err(serving("cannot start a thread"))?;
    names.look_again();
    let of_server = Serving {
        shares: Arc::clone(&shares),
        accounts,
        smb: Arc::clone(&smb),
        nfs: Arc::clone(&nfs),
        tokens: Arc::clone(&tokens),
        names,
        descriptors: descriptors_max,
    };
    let administration = Arc::new(Administration::of_server(state, declared, of_server, idle));
    let subject = Subject {
        shares,
        administration: Arc::clone(&administration) as _,
        clients: Box::new(move || control::report::clients(&smb, &nfs, &of_clients)),
        counters: Box::new(move || {
            let logons = logons.logon_counts();
            Counters {
                refused_connections: refused.load(Ordering::Relaxed),
                lost_log_lines: log::lost_lines(),
                failed_logons: logons.failed,
                unheard_logons: logons.unheard,
            }
        }),
        stuck_shards: Box::new(move || {
            pulse.stuck().into_iter().map(|(shard, silent)| StuckShard { shard, silent }).collect()
        }),
        tokens,
        names: settings.control_names.clone(),
        tls,
    };
    let control = Control::start(listener, subject).map_err(serving("cannot serve the control address"))?;
    Ok((control, administration))
}

/// Turns an error of the system into a [`Problem`].
pub(crate) fn serving<E: std::fmt::Display>(what: &str) -> impl Fn(E) -> Problem {
    move |error| Problem::new(Cause::Serving, format!("{what}: {error}"), "")
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

/// The signal that has the configuration read again.
const HANGUP: &str = "SIGHUP";

impl Signals {
    fn new() -> Result<Self> {
        let catch = |kind| signal(kind).map_err(serving("cannot catch signals"));
        Ok(Self {
            terminate: catch(SignalKind::terminate())?,
            interrupt: catch(SignalKind::interrupt())?,
            hangup: catch(SignalKind::hangup())?,
        })
    }

    async fn received(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hangup.recv() => HANGUP,
        }
    }
}
