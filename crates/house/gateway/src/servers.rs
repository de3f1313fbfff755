//! Configures the two servers from the settings.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use net::{Listener, Listeners};
use nfs_proto::v4::lease::LeaseTimes;
use nfs_server::portmap::{Portmapper, Registration};
use nfs_server::{Anonymous, HostLimits, NetworkLocks, NfsServer, Squashing, Tls};
use share::Terms;
use smb_server::Interfaces;
use state::{LockHostTable, NfsClientTable, PersistentOpenTable};
use storage::{StoreThread, View};

use crate::iakerb;
use crate::kerberos;
use crate::kerberos::{DomainNumbers, Tickets};
use crate::names::Changed;
use crate::prepared::Prepared;
use crate::problem::{Cause, Problem, Result, serving};
use crate::settings::{Portmap, Settings};
use crate::sid_names::SidNames;
use crate::sockets::{Addresses, PortmapSockets};
use crate::user_groups::GroupsHere;
use crate::waiting::wait_for;
use crate::without_ntlm;

/// Restores the persistent opens of SMB clients, before any client is served.
fn restore(smb: &Arc<smb_server::Server>, kept: Arc<PersistentOpenTable>) -> std::io::Result<()> {
    let smb = Arc::clone(smb);
    let restored = StoreThread::spawn("restore", move |thread| {
        smb.keep_persistent_opens(kept, thread.may_wait(View::FRESH))
    })?;
    restored.join().unwrap_or_else(|fault| std::panic::resume_unwind(fault))
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
        at: &Addresses,
        tls: Option<Arc<Tls>>,
    ) -> Result<Self> {
        let accounts = Arc::clone(&prepared.accounts);
        let config = smb_config(settings, &at.smb, prepared)?;
        let smb = smb_server::Server::new(config, Arc::clone(&prepared.shares), accounts as _);
        let nfs = NfsServer::new(nfs_server::Config { tls, ..nfs_config(settings, &at.nfs, prepared)? });
        let numbers = DomainNumbers::new(&settings.kerberos, &prepared.state, &prepared.accounts)?;
        let keys = kerberos::keys(settings, &numbers.numbering)?;
        prepared.accounts.use_tickets(Tickets::of(&settings.kerberos, numbers, keys.as_ref()));
        for warning in without_ntlm::warnings(settings, keys.is_some()) {
            tracing::warn!("{warning}");
        }
        nfs.use_kerberos(keys.as_ref().map(|keys| kerberos::nfs_keys(keys, &prepared.accounts)));
        smb.use_kerberos(keys);
        smb.use_iakerb(iakerb::kdc(settings)?).map_err(|e| iakerb::no_kdc(&e))?;
        let kept = Arc::new(PersistentOpenTable(prepared.state.store()));
        restore(&smb, kept).map_err(|e| {
            Problem::new(Cause::State, format!("the persistent opens of SMB clients: {e}"), "")
        })?;
        Ok(Self { smb, nfs })
    }

    /// The reaction to a change of a share's rules: clients that the rules no longer admit, or admit differently, lose
    /// their opens. This runs on a separate thread, because a store may hang.
    pub(crate) fn changed(&self) -> Changed {
        let (smb, nfs) = (Arc::clone(&self.smb), Arc::clone(&self.nfs));
        Box::new(move |share, asked| {
            let (smb, nfs, share) = (Arc::clone(&smb), Arc::clone(&nfs), Arc::clone(share));
            let reconsider = move || {
                let reconsidered = wait_for(async {
                    nfs.reconsider(&share).await;
                    smb.reconsider(&share).await;
                });
                if let Err(refusal) = reconsidered {
                    tracing::error!(
                        share = share.name(),
                        "what clients have open stays open: {}",
                        refusal.what
                    );
                }
                drop(asked);
            };
            if let Err(error) = std::thread::Builder::new().name("rules".to_owned()).spawn(reconsider) {
                tracing::error!("what clients have open stays open: cannot start a thread: {error}");
            }
        })
    }

    /// Passes the listening sockets to the servers. A server that is off still has to forget clients of an earlier run.
    pub(crate) fn listen(
        &self,
        listeners: &Listeners,
        smb: Vec<Listener>,
        nfs: Vec<TcpListener>,
    ) -> Result<()> {
        let listen = |result: std::io::Result<()>| result.map_err(serving("cannot listen"));
        let scavenged = Arc::clone(&self.smb);
        listen(listeners.spawn(move || {
            let scavenged = Arc::clone(&scavenged);
            async move { scavenged.scavenge().await }
        }))?;
        let looked_after = Arc::clone(&self.nfs);
        listen(listeners.spawn(move || {
            let looked_after = Arc::clone(&looked_after);
            async move { looked_after.look_after_clients().await }
        }))?;
        listen(listeners.listen_at_all(smb, Arc::new(smb_server::Service::new(Arc::clone(&self.smb)))))?;
        listen(listeners.listen_at_all(nfs, Arc::clone(&self.nfs)))
    }

    /// Passes the sockets by which clients of NFSv3 find the server.
    pub(crate) fn listen_for_finders(
        &self,
        listeners: &Listeners,
        sockets: PortmapSockets,
        registrations: &[Registration],
    ) -> Result<()> {
        let PortmapSockets { monitor, tcp, udp } = sockets;
        let listen = |result: std::io::Result<()>| result.map_err(serving("cannot listen"));
        listen(listeners.answer_datagrams(monitor, &self.nfs))?;
        if tcp.is_empty() {
            return Ok(());
        }
        let portmapper = Portmapper::new(registrations.to_vec());
        listen(listeners.answer_datagrams(udp, &portmapper))?;
        listen(listeners.listen_at_all(tcp, portmapper))
    }
}

fn smb_config(settings: &Settings, at: &[SocketAddr], prepared: &Prepared) -> Result<smb_server::Config> {
    warn_of_guests(settings);
    let usual = smb_server::Limits::default();
    let limits = smb_server::Limits {
        connections_max: usual.connections_max.min(prepared.descriptors.smb_connections),
        connections_per_address: settings.connections_per_address,
        channels_per_session_max: usize::try_from(settings.max_channels).unwrap_or(usize::MAX),
        ..usual
    };
    let default = smb_server::Config::default();
    let machine = prepared.state.machine_sid()?;
    let names =
        SidNames::start(Arc::clone(&prepared.accounts), &default.server_name, machine).map_err(|e| {
            Problem::new(Cause::Serving, format!("cannot start a thread for the names of users: {e}"), "")
        })?;
    Ok(smb_server::Config {
        directory: Arc::new(names),
        server_guid: Some(prepared.state.server().server_guid()?),
        signing: settings.smb_signing,
        ntlm: settings.ntlm,
        encryption: settings.smb_encryption,
        encryption_over_quic: settings.smb_encryption_over_quic,
        channel_binding: settings.smb_channel_binding,
        interfaces: interfaces(settings, at),
        limits,
        access_log: prepared.access_log.clone(),
        ..default
    })
}

fn warn_of_guests(settings: &Settings) {
    let required = settings.encryption_required();
    if required && settings.shares.iter().any(|share| share.terms.contains(Terms::GUESTS)) {
        tracing::warn!("guests have no key to encrypt with, as is required: none is admitted");
    }
}

/// The addresses that clients learn: those that are given, otherwise those of the machine on which SMB listens.
fn interfaces(settings: &Settings, at: &[SocketAddr]) -> Interfaces {
    Interfaces { listen: at.iter().map(SocketAddr::ip).collect(), given: settings.smb_interfaces.clone() }
}

/// The name by which this machine calls itself; empty if it is not known.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| String::new(), |name| name.trim().to_owned())
}

fn nfs_config(settings: &Settings, at: &[SocketAddr], prepared: &Prepared) -> Result<nfs_server::Config> {
    let (squash, groups) = (settings.nfs_squash, settings.nfs_groups);
    let mut squashing = Squashing { squash, groups, ..Squashing::default() };
    if let Some((uid, gid)) = settings.nfs_anonymous {
        squashing.anonymous = Anonymous { uid, gid };
    }
    let key = prepared.state.server().nfs_handle_key()?;
    let mut verifier = [0; 8];
    getrandom::fill(&mut verifier)
        .map_err(|e| Problem::new(Cause::Serving, format!("no random numbers: {e}"), ""))?;
    let config = nfs_server::Config::new(Arc::clone(&prepared.shares), squashing, key, verifier);
    let connections_max = config.connections_max.min(prepared.descriptors.nfs_connections);
    let connections_per_address = settings.connections_per_address;
    let client_records: Option<Arc<dyn nfs_server::ClientRecords>> =
        Some(Arc::new(NfsClientTable(prepared.state.store())));
    let network_locks = (settings.portmap != Portmap::Off).then(|| NetworkLocks {
        limits: HostLimits::default(),
        records: Some(Arc::new(LockHostTable(prepared.state.store()))),
        host_name: host_name(),
    });
    let lease_times = LeaseTimes { lease: settings.nfs_lease, ..config.lease_times };
    let listen = at.iter().map(SocketAddr::ip).collect();
    let groups = GroupsHere::start(Arc::clone(&prepared.accounts));
    let groups = groups.map_err(serving("cannot start a thread for the groups of users"))?;
    Ok(nfs_server::Config {
        user_directory: Some(Arc::new(groups)),
        owner_names: Some(Arc::clone(&prepared.accounts) as _),
        connections_max,
        encryption_required: settings.encryption_required(),
        connections_per_address,
        client_records,
        network_locks,
        lease_times,
        listen,
        access_log: prepared.access_log.clone(),
        ..config
    })
}
