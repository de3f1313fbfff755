//! The two protocols of one server, configured from the settings.

use std::net::TcpListener;
use std::sync::Arc;

use net::{Listener, Listeners};
use nfs_proto::v4::lease::LeaseTimes;
use nfs_server::portmap::{Portmapper, Registration};
use nfs_server::{Anonymous, HostLimits, NetworkLocks, NfsServer, Squashing};
use smb_server::{Interfaces, PersistentOpens};
use state::{LockHostTable, NfsClientTable, PersistentOpenTable};
use storage::{StoreThread, View};

use crate::iakerb;
use crate::lent::Lent;
use crate::names::Changed;
use crate::opens_by_name::OpensByName;
use crate::problem::{Cause, Problem, Result, serving};
use crate::sockets::PortmapSockets;
use crate::ticket_keys::GivenKeys;
use crate::vserver::Own;
use crate::waiting::wait_for;

fn persistent_opens(lent: &Lent, own: &Own) -> Arc<dyn PersistentOpens> {
    let table = PersistentOpenTable(own.records.store());
    if own.has_own_sids { Arc::new(OpensByName { table, machine: lent.machine }) } else { Arc::new(table) }
}

/// Restores the persistent opens of SMB clients, before any client is served.
fn restore(smb: &Arc<smb_server::Server>, kept: Arc<dyn PersistentOpens>) -> std::io::Result<()> {
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
    /// The records cannot be read, or the system has no random numbers.
    pub(crate) fn new(lent: &Lent, own: &Own) -> Result<Self> {
        let smb = smb_server::Server::new(
            smb_config(lent, own)?,
            Arc::clone(&own.shares),
            Arc::clone(&lent.accounts) as _,
        );
        let nfs = NfsServer::new(nfs_config(lent, own)?);
        smb.use_iakerb(iakerb::kdc(&lent.settings)?).map_err(|e| iakerb::no_kdc(&e))?;
        restore(&smb, persistent_opens(lent, own)).map_err(|e| {
            Problem::new(Cause::State, format!("the persistent opens of SMB clients: {e}"), "")
        })?;
        Ok(Self { smb, nfs })
    }

    /// Has new logons, and new contexts of NFS, accept tickets with these keys.
    pub(crate) fn use_keys(&self, GivenKeys { smb, nfs, .. }: GivenKeys) {
        self.nfs.use_kerberos(nfs);
        self.smb.use_kerberos(smb);
    }

    /// The reaction to a change of a share's rules: clients that the rules no longer admit, or admit differently, lose
    /// their opens. This runs on a separate thread, because a store may hang. It keeps no server from ending.
    pub(crate) fn changed(&self) -> Changed {
        let (smb, nfs) = (Arc::downgrade(&self.smb), Arc::downgrade(&self.nfs));
        Box::new(move |share, asked| {
            let (Some(smb), Some(nfs)) = (smb.upgrade(), nfs.upgrade()) else { return };
            let share = Arc::clone(share);
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

fn smb_config(lent: &Lent, own: &Own) -> Result<smb_server::Config> {
    let settings = &lent.settings;
    let usual = smb_server::Limits::default();
    let limits = smb_server::Limits {
        connections_max: usual.connections_max.min(lent.descriptors.smb_connections),
        connections_per_address: settings.connections_per_address,
        channels_per_session_max: usize::try_from(settings.max_channels).unwrap_or(usize::MAX),
        ..usual
    };
    Ok(smb_server::Config {
        server_name: own.name.clone(),
        directory: Arc::new(lent.names.named(&own.name)),
        server_guid: Some(own.records.server_guid()?),
        signing: settings.smb_signing,
        ntlm: settings.ntlm,
        encryption: settings.smb_encryption,
        encryption_over_quic: settings.smb_encryption_over_quic,
        channel_binding: settings.smb_channel_binding,
        interfaces: Interfaces { listen: own.smb.clone(), given: settings.smb_interfaces.clone() },
        limits,
        access_log: lent.access_log.clone(),
        ..smb_server::Config::default()
    })
}

/// The name by which this machine calls itself; empty if it is not known.
fn host_name() -> String {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .map_or_else(|_| String::new(), |name| name.trim().to_owned())
}

fn nfs_config(lent: &Lent, own: &Own) -> Result<nfs_server::Config> {
    let settings = &lent.settings;
    let (squash, groups) = (settings.nfs_squash, settings.nfs_groups);
    let mut squashing = Squashing { squash, groups, ..Squashing::default() };
    if let Some((uid, gid)) = settings.nfs_anonymous {
        squashing.anonymous = Anonymous { uid, gid };
    }
    let key = own.records.nfs_handle_key()?;
    let mut verifier = [0; 8];
    getrandom::fill(&mut verifier)
        .map_err(|e| Problem::new(Cause::Serving, format!("no random numbers: {e}"), ""))?;
    let config = nfs_server::Config::new(Arc::clone(&own.shares), squashing, key, verifier);
    let connections_max = config.connections_max.min(lent.descriptors.nfs_connections);
    let client_records: Option<Arc<dyn nfs_server::ClientRecords>> =
        Some(Arc::new(NfsClientTable(own.records.store())));
    let network_locks = own.has_network_locks.then(|| NetworkLocks {
        limits: HostLimits::default(),
        records: Some(Arc::new(LockHostTable(own.records.store()))),
        host_name: host_name(),
    });
    let lease_times = LeaseTimes { lease: settings.nfs_lease, ..config.lease_times };
    Ok(nfs_server::Config {
        tls: lent.tls.clone(),
        user_directory: Some(Arc::clone(&lent.groups) as _),
        owner_names: Some(Arc::clone(&lent.accounts) as _),
        connections_max,
        encryption_required: settings.encryption_required(),
        connections_per_address: settings.connections_per_address,
        client_records,
        network_locks,
        lease_times,
        listen: own.nfs.clone(),
        access_log: lent.access_log.clone(),
        ..config
    })
}
