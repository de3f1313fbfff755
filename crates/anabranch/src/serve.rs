//! `anabranch serve`: a gateway until a signal asks to end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway::{Addresses, Gateway, Prepared, Sockets, check_something_to_serve};
use service_address::Raised;
use state::lock::Lock;
use supervisor::Supervisor;

use crate::around::Around;
use crate::problem::{Result, serving};
use crate::process::{HANGUP, Process, Signals};
use crate::reload::{OnHangUp, Reloader};
use crate::remote::OverControl;
use crate::settings::Settings;
use crate::sources::Sources;
use crate::standby::{self, Standby};
use crate::supervised::{Report, TakingOver};
use crate::{log, port_mapper, ports, state_directory};

/// How often it is said how many lines of the log were lost.
pub(crate) const LOST_LINES_INTERVAL: Duration = Duration::from_secs(5);

/// Where clients reach the server.
#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) sockets: Sockets,
    /// The addresses that this machine has while it serves.
    pub(crate) raised: Raised,
}

fn listen(settings: &Settings) -> Result<Sockets> {
    let nfs = ports::listen_at_all(ports::NFS, &settings.nfs)?;
    let portmap = port_mapper::listen(settings.gateway.portmap, &nfs)?;
    Ok(Sockets {
        smb: ports::listen_at_all(ports::SMB, &settings.smb)?,
        smb_quic: ports::listen_to_quic(ports::SMB_QUIC, &settings.smb_quic)?,
        nfs,
        control: ports::listen(ports::CONTROL, settings.control)?,
        portmap,
    })
}

/// Serves until a signal asks to end; where the settings say so, as soon as no other server has the state directory.
///
/// # Errors
/// What the settings name cannot be used, or the system lacks threads or descriptors.
pub(crate) fn run(settings: Settings, sources: Sources) -> Result<()> {
    check_something_to_serve(&settings.gateway)?;
    if !settings.is_state_given {
        state_directory::confirm_default()?;
    }
    if !settings.waits_for_state {
        let prepared = prepare(&settings)?;
        return start(&settings, sources, prepared, Process::begin);
    }
    let mut process = Process::begin()?;
    let Some((Standby { settings, sources }, lock)) =
        standby::wait(&mut process, Standby { settings, sources })?
    else {
        return Ok(());
    };
    let taking_over = TakingOver::begin(&process.supervisor);
    let prepared = prepare_under(&settings, lock)?;
    start(&settings, sources, prepared, || {
        drop(taking_over);
        Ok(process)
    })
}

/// Serves what is prepared on the sockets that the settings name. `begin` returns what reaches the process.
fn start(
    settings: &Settings,
    sources: Sources,
    prepared: Prepared,
    begin: impl FnOnce() -> Result<Process>,
) -> Result<()> {
    let mut raised = service_address::raise(&settings.service_addresses)?;
    let sockets = listen(settings)?;
    // Who connects now is answered soon: the sockets listen.
    // A process that is stopped keeps the lock on its state, so the addresses are nobody else's when it goes on.
    raised.announce(|| true);
    // What clients make gets exactly the mode that they say, in one call. The server's own files exist by now, and
    // get theirs from where they are made.
    rustix::process::umask(rustix::fs::Mode::empty());
    serve(Some(sources), prepared, Reached { sockets, raised }, begin()?, |at| {
        let (smb, nfs) = (part(&at.smb), part(&at.nfs));
        // Who sees the ready line finds in the log what was said before.
        log::finish();
        let over_quic = match &at.smb_quic[..] {
            [] => String::new(),
            at => format!(" smb-quic={}", part(at)),
        };
        let line = format!("ready smb={smb} nfs={nfs} control={}{over_quic}\n", at.control);
        log::say(std::io::stdout(), &line);
    })
}

/// A protocol in the ready line: its addresses with commas between them, in the order of the settings.
fn part(at: &[SocketAddr]) -> String {
    if at.is_empty() {
        return "off".to_owned();
    }
    at.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(",")
}

/// Finds and opens what the settings name, with all descriptors that this process may have.
///
/// # Errors
/// A directory or the state database cannot be used.
pub(crate) fn prepare(settings: &Settings) -> Result<Prepared> {
    let descriptors = storage_local::raise_descriptor_limit();
    Ok(Prepared::new(&settings.gateway, descriptors)?)
}

/// The same, with the lock on the state directory.
fn prepare_under(settings: &Settings, lock: Lock) -> Result<Prepared> {
    let descriptors = storage_local::raise_descriptor_limit();
    Ok(Prepared::under_lock(&settings.gateway, descriptors, lock)?)
}

/// Serves what is prepared on these sockets until SIGTERM or SIGINT; calls `ready` once clients are answered. SIGHUP has the
/// `sources` read again, or ends it where there are none.
pub(crate) fn serve(
    sources: Option<Sources>,
    prepared: Prepared,
    reached: Reached,
    process: Process,
    ready: impl FnOnce(&Addresses),
) -> Result<()> {
    let Reached { sockets, mut raised } = reached;
    let Process { runtime, mut signals, supervisor } = process;
    let program = Arc::new(Around { state: prepared.state_directory().to_owned() });
    let gateway = Gateway::start(prepared, sockets, program)?;
    gateway.administration().set_remote(Arc::new(OverControl));
    let on_hang_up = sources.map(|sources| reloads(sources, &gateway, supervisor.clone())).transpose();
    let on_hang_up = on_hang_up.map_err(serving("cannot start a thread"))?;
    ready(gateway.addresses());
    let signal = runtime.block_on(until_the_end(&mut signals, on_hang_up.as_ref(), &gateway, &supervisor));
    supervisor.stopping(&format!("{signal}: ending"));
    tracing::info!("{signal}: ending");
    // The next machine may have the addresses when it has the state.
    gateway.stop_and(|| raised.withdraw())?;
    tracing::info!("ended");
    Ok(())
}

/// Has the configuration read again when somebody asks for it over the control address, or by the returned value.
fn reloads(sources: Sources, gateway: &Gateway, supervisor: Supervisor) -> std::io::Result<OnHangUp> {
    let reloader = Arc::new(Reloader::new(sources, gateway.administration(), supervisor));
    gateway.administration().set_configured(Arc::clone(&reloader) as _);
    OnHangUp::start(reloader)
}

/// Waits for a signal. Meanwhile has the configuration read again when one asks for that, and tells the service manager
/// how the gateway is.
async fn until_the_end(
    signals: &mut Signals,
    on_hang_up: Option<&OnHangUp>,
    gateway: &Gateway,
    supervisor: &Supervisor,
) -> &'static str {
    let mut report = Report::begin(supervisor.clone(), &gateway.health());
    let mut look = tokio::time::interval(report.interval());
    let mut interval = tokio::time::interval(LOST_LINES_INTERVAL);
    loop {
        tokio::select! {
            signal = signals.received() => match (signal, on_hang_up) {
                (HANGUP, Some(on_hang_up)) => on_hang_up.ask(),
                (signal, _) => return signal,
            },
            _ = look.tick() => report.tell(&gateway.health()),
            _ = interval.tick() => log::tell_lost_lines(),
        }
    }
}
