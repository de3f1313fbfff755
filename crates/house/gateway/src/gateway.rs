//! Assembles the parts: state, shares, accounts, sockets, servers; and takes them down again.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use control::program::Program;
use control::tokens::KnownTokens;
use control::{
    Concerns, ContextCounts, Control, Counters, Health, Occupied, ServedShares, StuckShard, Subject,
};
use discovery::Discovery;
use net::{Listener, Pulse, Shards};
use nfs_server::NfsServer;
use nfs_server::portmap::registrations;
use parking_lot::Mutex;
use share::{AccessLog, ShareTable};
use state::cluster::{Member, Owner};
use state::{Closed, State};

use crate::administration::{self, Administration, ClientQuotas, Serving};
use crate::admins::Admins;
use crate::background::{Background, Served};
use crate::cluster::{Connect, Seated};
use crate::control_access::Published;
use crate::control_tls::Identity;
use crate::holdings::Holdings;
use crate::lent::Lent;
use crate::name_service::System;
use crate::names::NameLookup;
use crate::of_cluster::OfCluster;
use crate::prepared::Prepared;
use crate::problem::{Cause, Problem, Result, serving};
use crate::registered::Registered;
use crate::renewal::Renewal;
use crate::servers::Servers;
use crate::settings::{ClusterSettings, Encryption, Portmap};
use crate::sockets::{Addresses, PortmapSockets, Sockets};
use crate::ticket_keys::{GatewayKeys, ServerKeys};
use crate::vserver::{Own, Vserver};
use crate::vserver_commands::{Given, Host, NewVserver};
use crate::vservers::{Vservers, ips};
use crate::{announced, cephfs, control_access, control_tls, nfs_tls, opening, seen, smb_quic};

/// How long the sinks of the access log may take for their last lines.
const LAST_LINES: Duration = Duration::from_secs(2);

/// A running gateway: its own shares over SMB and NFS, and its control address. It runs until [`Gateway::stop`]. If it
/// is dropped instead, the opens of disconnected clients stay open, as after a kill.
#[derive(Debug)]
pub struct Gateway {
    addresses: Addresses,
    administration: Arc<Administration>,
    state: Arc<State>,
    /// The server that it is by itself.
    own: Vserver,
    pub(crate) host: Arc<Host>,
    /// None: it is no gateway of a cluster.
    seat: Option<Seated>,
    access_log: AccessLog,
    /// Whether something is not registered with rpcbind.
    is_unregistered: Arc<AtomicBool>,
    /// None: the control address does not use TLS.
    identity: Option<Arc<Identity>>,
    // Dropped in this order.
    outside: Outside,
    shards: Shards,
}

/// The parts that others find, and those that look after the rest.
#[derive(Debug)]
struct Outside {
    _registered: Option<Registered>,
    _published: Published,
    _control: Control,
    _background: Background,
    _discovery: Option<Discovery>,
}

impl Gateway {
    /// Serves the prepared shares on these sockets. `program` is the program around the gateway, for
    /// the metrics.
    ///
    /// # Errors
    /// The state directory cannot be written, a certificate cannot be used, or the system lacks threads or random numbers.
    pub fn start(prepared: Prepared, sockets: Sockets, program: Arc<dyn Program>) -> Result<Self> {
        let settings = prepared.settings.clone();
        let addresses = sockets.addresses()?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let shards = Shards::start(cores).map_err(serving("cannot start a shard"))?;
        let files = settings.control_certificate.as_ref();
        let identity =
            control_tls::identity(files, addresses.control, &settings.control_names, &settings.state)?;
        let nfs_tls = nfs_tls::of_listeners(&settings, identity.as_ref())?;
        let over_quic = smb_quic::listeners(sockets.smb_quic, identity.as_ref())?;
        let smb = sockets.smb.into_iter().map(Listener::from).chain(over_quic).collect();
        let lent = Arc::new(Lent::new(&prepared, nfs_tls.clone())?);
        let own = Vserver::new(&lent, implicit(&prepared, &addresses), shards.listeners())?;
        let session = cephfs::gateway(prepared.state.server())?;
        let shares = Arc::clone(&prepared.shares);
        let (state, access_log) = (Arc::clone(&prepared.state), prepared.access_log.clone());
        let discovery = announced::start(&settings, &prepared, &addresses)?;
        let is_unregistered = Arc::<AtomicBool>::default();
        let of_control = OfControl {
            listener: sockets.control,
            ticket_keys: Arc::clone(&lent.keys),
            identity: identity.clone(),
            is_unregistered: Arc::clone(&is_unregistered),
            program,
        };
        let vservers = Arc::<Vservers>::default();
        let (control, administration) =
            start_control(prepared, &own.servers, Arc::clone(&vservers), &shards, of_control)?;
        administration.await_stores();
        administration.watch_cluster()?;
        state.keep_copy();
        own.listen(smb, sockets.nfs)?;
        let registered = find(&own, sockets.portmap, &addresses.nfs, &is_unregistered)?;
        let certificate = identity.as_ref().map(|identity| identity.pem());
        let published = control_access::publish(&settings.state, addresses.control, certificate.as_deref())?;
        tell_what_is_served(&shares, settings.encryption());
        let renewal = identity.clone().map(|identity| Renewal::new(&settings, identity, nfs_tls));
        let served = Served { shares, state: Arc::clone(&state), vservers: Arc::clone(&vservers) };
        let certificate = (identity.clone(), renewal);
        let background = Background::start(served, &administration, certificate, shards.keeper());
        let outside = Outside {
            _registered: registered,
            _published: published,
            _control: control,
            _background: background.map_err(serving("cannot start a thread"))?,
            _discovery: discovery,
        };
        let host = Arc::new(Host {
            vservers,
            membership: Mutex::default(),
            lent,
            of_cluster: OfCluster::default(),
            administration: Arc::clone(&administration),
            listeners: shards.new_listeners(),
            session,
        });
        let seat = settings.cluster.as_ref().map(|cluster| Seated::of_rados(&host, cluster, &settings.ceph));
        let seat = seat.transpose()?;
        Ok(Self {
            addresses,
            administration,
            state,
            own,
            host,
            seat,
            access_log,
            is_unregistered,
            identity,
            outside,
            shards,
        })
    }

    /// The addresses on which the gateway listens.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The administration, which changes the gateway while clients work.
    pub fn administration(&self) -> &Arc<Administration> {
        &self.administration
    }

    /// Whether the gateway works as it should: what `/healthz` reports.
    pub fn health(&self) -> Health {
        let reload = control::Administration::reloads(&*self.administration);
        let expires = self.identity.as_ref().and_then(|identity| identity.expires());
        let is_unregistered = self.is_unregistered.load(Ordering::Relaxed);
        let figures = control::Administration::snapshot_figures(&*self.administration);
        let concerns = Concerns::now(&reload, expires, SystemTime::now()).with_snapshots(&figures);
        let replicas = control::Administration::replication_figures(&*self.administration);
        let concerns = concerns.with_replicas(replicas, SystemTime::now());
        let concerns = Concerns { is_unregistered, ..concerns };
        let vservers = seen::shares(&self.host.vservers);
        let shares = ServedShares { own: self.own.shares.present(), vservers };
        control::health(&stuck(&self.shards.pulse()), &shares, concerns)
    }

    /// Makes it a gateway of the cluster whose gateways agree in the store to which `connect` connects: from now on it does what the
    /// register of the cluster says.
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn be_of_cluster(&mut self, settings: ClusterSettings, connect: Connect) -> Result<()> {
        self.seat = Some(Seated::begin(&self.host, settings, connect)?);
        Ok(())
    }

    /// Takes its place among other gateways, by the lease that `member` has on its name. It is renewed until the gateway ends.
    ///
    /// # Errors
    /// The gateway has a place already, or the system has no more threads.
    pub fn join(&self, member: Arc<Member>) -> Result<()> {
        self.host.join(member)
    }

    /// Serves a vserver that no gateway serves, beside everything else. If it cannot be served here, another gateway may.
    ///
    /// # Errors
    /// Another gateway serves it; or its records, its directories or its sockets cannot be used.
    pub fn serve_vserver(&self, new: NewVserver) -> Result<()> {
        let lent = Arc::clone(&self.host.lent);
        self.host.serve_vserver(new, || Ok(Given { lent, keys: ServerKeys::OF_GATEWAY, shares: None }))
    }

    /// Ends a vserver here, so that another gateway may serve it. False: it is not served here.
    ///
    /// # Errors
    /// A storage does not answer, or the records cannot be written: nobody else may serve it.
    pub fn end_vserver(&self, name: &str) -> Result<bool> {
        self.host.end_vserver(name)
    }

    /// The vservers that are served here, with their epochs.
    #[must_use]
    pub fn vservers(&self) -> Vec<(String, Owner)> {
        self.host.vservers.owners()
    }

    /// Stops the gateway: closes connections, closes the opens of disconnected clients, and records the state that
    /// clients may reclaim. The returned value tells when the state directory is free: a storage or a name service that
    /// does not answer may hold up a thread that still uses it.
    ///
    /// # Errors
    /// The state database cannot be written.
    pub fn stop(self) -> Result<Closed> {
        self.stop_and(|| ())
    }

    /// The same; calls `unreachable` when no client is connected any more, and the state directory is not free yet.
    ///
    /// # Errors
    /// Those of [`Gateway::stop`].
    pub fn stop_and(self, unreachable: impl FnOnce()) -> Result<Closed> {
        let Self { state, own, host, seat, access_log, outside, shards, administration, .. } = self;
        drop(outside);
        drop(seat);
        host.vservers.end_all();
        let membership = host.membership.lock().take();
        if let Some(membership) = membership {
            membership.end();
        }
        shards.shutdown();
        unreachable();
        let closed = own.close();
        access_log.finish(LAST_LINES);
        match closed {
            Err(Problem { cause: Cause::Silent, what, .. }) => tracing::error!("{what}"),
            closed => closed?,
        }
        state.keep_copy();
        administration.leave_cluster();
        Ok(state.closed())
    }
}

/// The server that a machine is without being told so: its records are in the state database.
fn tell_what_is_served(shares: &ShareTable, encryption: Encryption) {
    for share in shares.present().in_order() {
        tracing::info!("serving the share {}", share.name());
        opening::tell_what_is_lacking(&share, encryption);
    }
}

fn implicit(prepared: &Prepared, at: &Addresses) -> Own {
    Own {
        name: smb_server::Config::default().server_name,
        records: prepared.state.server().clone(),
        shares: Arc::clone(&prepared.shares),
        smb: ips(&at.smb),
        nfs: ips(&at.nfs),
        has_network_locks: prepared.settings.portmap != Portmap::Off,
        has_own_sids: false,
        keys: ServerKeys::OF_GATEWAY,
    }
}

/// Has clients of NFSv3 find the server: by a port mapper of its own, or by the rpcbind of the machine.
fn find(
    own: &Vserver,
    sockets: PortmapSockets,
    nfs: &[SocketAddr],
    is_unregistered: &Arc<AtomicBool>,
) -> Result<Option<Registered>> {
    let registrations = registrations(nfs);
    let registers = !sockets.monitor.is_empty() && sockets.tcp.is_empty();
    own.servers.listen_for_finders(&own.listeners, sockets, &registrations)?;
    let start = || Registered::start(registrations, Arc::clone(is_unregistered));
    registers.then(start).transpose().map_err(serving("cannot start a thread"))
}

/// The shards that are held up.
fn stuck(pulse: &Pulse) -> Vec<StuckShard> {
    pulse.stuck().into_iter().map(|(shard, silent)| StuckShard { shard, silent }).collect()
}

fn mechanism_logons(logons: smb_server::MechanismLogons) -> control::MechanismLogons {
    let smb_server::MechanismLogons { mechanism, succeeded, failed } = logons;
    control::MechanismLogons { mechanism: mechanism.label(), succeeded, failed }
}

/// The contexts of RPCSEC_GSS.
fn contexts(counts: nfs_server::ContextCounts) -> ContextCounts {
    let nfs_server::ContextCounts { present, max, begun, refused, expired, displaced, calls } = counts;
    ContextCounts { present, max, begun, refused, expired, displaced, calls }
}

/// The connections of a protocol.
fn occupied(of_service: net::Occupied) -> Occupied {
    let net::Occupied { service, connections, max } = of_service;
    Occupied { protocol: service, connections, max }
}

/// The counters of the server itself.
fn counters(
    refused: &AtomicU64,
    smb: &smb_server::Server,
    nfs: &NfsServer,
    logged: &AccessLog,
    program: &dyn Program,
) -> Counters {
    let (logons, lines) = (smb.logon_counts(), logged.counts());
    Counters {
        refused_connections: refused.load(Ordering::Relaxed),
        lost_log_lines: program.lost_log_lines(),
        logons: logons.succeeded,
        failed_logons: logons.failed,
        unheard_logons: logons.unheard,
        logons_by_mechanism: smb.logons_by_mechanism().map(mechanism_logons),
        access_log_lines: lines.written,
        dropped_access_log_lines: lines.dropped,
        contexts: contexts(nfs.context_counts()),
    }
}

/// The inputs of the control address from outside.
struct OfControl {
    listener: TcpListener,
    ticket_keys: Arc<GatewayKeys>,
    identity: Option<Arc<Identity>>,
    is_unregistered: Arc<AtomicBool>,
    program: Arc<dyn Program>,
}

fn start_control(
    prepared: Prepared,
    servers: &Servers,
    vservers: Arc<Vservers>,
    shards: &Shards,
    of_control: OfControl,
) -> Result<(Control, Arc<Administration>)> {
    let OfControl { listener, ticket_keys, identity, is_unregistered, program } = of_control;
    let Prepared { settings, state, shares, accounts, descriptors_max, declared, idle, access_log, .. } =
        prepared;
    let logged = access_log.clone();
    let (smb, nfs) = (Arc::clone(&servers.smb), Arc::clone(&servers.nfs));
    let (refused, pulse) = (shards.refused_connections(), shards.pulse());
    let (occupancy, logons) = (shards.occupancy(), Arc::clone(&servers.smb));
    let of_clients = Arc::clone(&shares);
    let own = control_access::make_token(&settings.state)?;
    let made = state.made_tokens()?.iter().map(administration::known_token).collect();
    let tokens = Arc::new(KnownTokens::new(&own, made));
    let admins = Arc::new(Admins::new(&accounts, settings.admins));
    let (of_names, of_accounts) = (Arc::clone(&admins), Arc::clone(&accounts));
    let names =
        NameLookup::start(Arc::clone(&shares), of_accounts, Some(of_names), System, servers.changed());
    let names = names.map_err(serving("cannot start a thread"))?;
    names.look_again();
    let (asked, gss) = (Arc::clone(&accounts), Arc::clone(&nfs));
    let (with_shares, with_clients, of_holdings) =
        (Arc::clone(&vservers), Arc::clone(&vservers), Arc::clone(&vservers));
    let of_server = Serving {
        shares: Arc::clone(&shares),
        accounts,
        smb: Arc::clone(&smb),
        nfs: Arc::clone(&nfs),
        tokens: Arc::clone(&tokens),
        admins: Arc::clone(&admins),
        names,
        descriptors: descriptors_max,
        identity: identity.clone(),
        access_log: access_log.clone(),
        vservers,
        ticket_keys,
    };
    let administration = Administration::of_server(state, declared, of_server, idle);
    smb.change_quotas_with(Arc::new(ClientQuotas::new(&administration)));
    let tls = identity.as_ref().map(Identity::config).transpose()?;
    let counted = Arc::clone(&program);
    let subject = Subject {
        program,
        shares,
        vservers: Box::new(move || seen::shares(&with_shares)),
        administration: Arc::clone(&administration) as _,
        holdings: Arc::new(Holdings { smb: Arc::clone(&smb), nfs: Arc::clone(&nfs), vservers: of_holdings }),
        clients: Box::new(move || {
            seen::clients(control::report::clients(&smb, &nfs, &of_clients), &with_clients)
        }),
        counters: Box::new(move || counters(&refused, &logons, &gss, &logged, &*counted)),
        lookups: Box::new(move || asked.lookups.counts(Instant::now())),
        occupied: Box::new(move || occupancy.now().into_iter().map(occupied).collect()),
        stuck_shards: Box::new(move || stuck(&pulse)),
        is_unregistered,
        tokens,
        administrators: admins,
        names: settings.control_names,
        tls,
        certificate_expires: Box::new(move || identity.as_ref().and_then(|identity| identity.expires())),
        access_log,
    };
    let control = Control::start(listener, subject).map_err(serving("cannot serve the control address"))?;
    Ok((control, administration))
}
