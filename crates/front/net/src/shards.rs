//! One thread and one runtime per core; listeners that distribute connections to them.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

use crate::connection::serve;
use crate::crew::{self, Crew, Group, Job, Keeper};
use crate::ended::Ended;
use crate::give_back::{Freed, trim_process};
use crate::places::{Occupancy, Place, Places};
use crate::ration::Rations;
use crate::repeats::Repeats;
use crate::stop::Stop;
use crate::{ConnectionLimits, Limits, Listeners, NewListeners, Outbox, Protocol, Pulse};

/// How long the accept loop rests when the process is out of descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// A peer that has been silent for this long is probed, and then again at this interval, this many times.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_RETRIES: u32 = 4;
/// A peer that has acknowledged no sent data for this long is gone.
const UNSENT_MAX: Duration = Duration::from_secs(120);

/// What carries a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Transport {
    /// TCP.
    #[default]
    Tcp,
    /// A stream of QUIC (RFC 9000), which encrypts.
    Quic,
}

/// The two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer {
    /// The client's address.
    pub address: SocketAddr,
    /// The local address that the client connected to.
    pub local: SocketAddr,
    /// The number of the shard that serves the connection, from 0.
    pub shard: usize,
    /// What carries the connection.
    pub transport: Transport,
}

/// Where connections arrive.
#[derive(Debug)]
pub enum Listener {
    /// TCP connections, which the shards take in turns.
    Tcp(TcpListener),
    /// QUIC connections.
    #[cfg(feature = "quic")]
    Quic(crate::QuicListener),
}

impl From<TcpListener> for Listener {
    fn from(listener: TcpListener) -> Self {
        Self::Tcp(listener)
    }
}

/// Makes the protocol state of each new connection, on the connection's shard.
pub trait Service: Send + Sync + 'static {
    /// The state of one connection.
    type Connection: Protocol;

    /// Makes the state for a client that has connected.
    fn connected(&self, peer: Peer, outbox: Outbox) -> Rc<Self::Connection>;

    /// The limits of one connection.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// How many connections are allowed at a time; further ones are closed at once.
    fn connections(&self) -> ConnectionLimits;

    /// What the service is called where its connections are counted: `smb`.
    fn name(&self) -> &'static str;
}

/// Why the shards could not start.
#[derive(Debug, thiserror::Error)]
#[error("cannot start a thread or its runtime: {0}")]
pub struct ShardsError(#[from] io::Error);

/// The running shards. Dropping them ends all connections, after their clean-up.
#[derive(Debug)]
pub struct Shards {
    crew: Arc<Crew>,
    shared: Shared,
    /// What runs until the shards end.
    own: Listeners,
}

/// The state that all listeners share.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shared {
    /// Connections that were closed as soon as they arrived.
    refused: Arc<AtomicU64>,
    /// The places of each service.
    pub(crate) occupancy: Occupancy,
    pub(crate) rations: Arc<Rations>,
    pub(crate) repeats: Arc<Repeats>,
    pub(crate) freed: Freed,
}

impl Shards {
    /// Starts `count` shards (at least one).
    ///
    /// # Errors
    /// The system has no more threads or descriptors.
    pub fn start(count: usize) -> Result<Self, ShardsError> {
        let shared = Shared::default();
        let crew = Crew::start(count.max(1), shared.freed.clone())?;
        let own = Listeners::new(&crew, &shared, None);
        let shards = Self { crew, shared, own };
        let freed = shards.shared.freed.clone();
        shards.spawn(move || trim_process(freed.clone()))?;
        let repeats = Arc::clone(&shards.shared.repeats);
        shards.spawn(move || {
            let repeats = Arc::clone(&repeats);
            async move {
                let write = |address: &str, kind: &str, count| {
                    tracing::warn!(address, "{kind}: {count} more lines were left out");
                };
                repeats.tell_overdue(write).await;
            }
        })?;
        Ok(shards)
    }

    /// Serves the connections that arrive at `listener`. The shards take turns.
    ///
    /// # Errors
    /// The listener cannot be made non-blocking.
    pub fn listen<S: Service>(&self, listener: impl Into<Listener>, service: Arc<S>) -> io::Result<()> {
        self.listen_at_all([listener], service)
    }

    /// The same, at several listeners ([`Listeners::listen_at_all`]).
    ///
    /// # Errors
    /// A listener cannot be made non-blocking, or its address cannot be had once for each shard.
    pub fn listen_at_all<S: Service>(
        &self,
        listeners: impl IntoIterator<Item = impl Into<Listener>>,
        service: Arc<S>,
    ) -> io::Result<()> {
        self.own.listen_at_all(listeners, service)
    }

    /// Runs a task until the shards end ([`Listeners::spawn`]).
    ///
    /// # Errors
    /// The shards have ended.
    pub fn spawn<F>(&self, make: impl Fn() -> F + Send + Sync + 'static) -> io::Result<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.own.spawn(make)
    }

    /// Makes listeners that end before the shards do. There are none yet.
    #[must_use]
    pub fn listeners(&self) -> Listeners {
        Listeners::new(&self.crew, &self.shared, None)
    }

    /// The same for those who do not have the shards.
    #[must_use]
    pub fn new_listeners(&self) -> NewListeners {
        NewListeners { crew: Arc::clone(&self.crew), shared: self.shared.clone() }
    }

    /// Watches for shards that are held up.
    #[must_use]
    pub fn keeper(&self) -> Keeper {
        Keeper::new(&self.crew)
    }

    /// How many connections were closed as soon as they arrived, because there were too many. The count keeps
    /// increasing.
    #[must_use]
    pub fn refused_connections(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.shared.refused)
    }

    /// Shows how many connections each service has, and may have.
    #[must_use]
    pub fn occupancy(&self) -> Occupancy {
        self.shared.occupancy.clone()
    }

    /// Shows which shards are held up.
    #[must_use]
    pub fn pulse(&self) -> Pulse {
        self.crew.pulse.clone()
    }

    /// Ends all connections and waits for their clean-up, for at most 20 seconds.
    pub fn shutdown(self) {
        drop(self);
    }
}

impl Drop for Shards {
    fn drop(&mut self) {
        self.crew.end();
    }
}

/// A listener's service, and the places of its connections.
#[derive(Debug)]
pub(crate) struct Door<S> {
    pub(crate) service: Arc<S>,
    crew: Weak<Crew>,
    pub(crate) group: Group,
    pub(crate) shared: Shared,
    places: Arc<Places>,
}

impl<S> Clone for Door<S> {
    fn clone(&self) -> Self {
        Self {
            service: Arc::clone(&self.service),
            crew: Weak::clone(&self.crew),
            group: self.group,
            shared: self.shared.clone(),
            places: Arc::clone(&self.places),
        }
    }
}

impl<S> Door<S> {
    pub(crate) fn new(
        service: Arc<S>,
        crew: &Arc<Crew>,
        group: Group,
        shared: &Shared,
        places: Arc<Places>,
    ) -> Self {
        Self { service, crew: Arc::downgrade(crew), group, shared: shared.clone(), places }
    }

    /// Takes a place for a connection from this address. None: there is none, which is counted and logged.
    pub(crate) fn take_place(&self, address: SocketAddr) -> Option<Place> {
        match self.places.take(address.ip()) {
            Ok(place) => Some(place),
            Err(full) => {
                self.shared.refused.fetch_add(1, Ordering::Relaxed);
                self.shared.repeats.warn(address, "connection refused", &format_args!("refused: {full}"));
                None
            }
        }
    }
}

pub(crate) async fn accept_all<S: Service>(listener: TcpListener, door: Door<S>, mut stop: Stop) {
    let shared = &door.shared;
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(e) => return tracing::error!("cannot accept connections: {e}"),
    };
    for turn in 0_usize.. {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.given() => return,
        };
        match accepted {
            Ok((stream, address)) => {
                let Some(place) = door.take_place(address) else { continue };
                let Some(crew) = door.crew.upgrade() else { return };
                crew.deal(door.group, turn, |post| {
                    hand_over(stream, address, post, &door.service, place, shared)
                });
            }
            Err(e) => {
                if let Some(left_out) = shared.repeats.admit(None, "accept", Instant::now()) {
                    tracing::warn!(left_out, "accept: {e}");
                }
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// Makes the system end the connection of a client that vanishes silently, which must not hold its files and locks for
/// ever.
fn end_when_peer_is_gone(stream: &TcpStream) -> io::Result<()> {
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(UNSENT_MAX))
}

/// Takes a connection off the accepting runtime, and makes the job that serves it on another shard.
fn hand_over<S: Service>(
    stream: TcpStream,
    address: SocketAddr,
    post: crew::OnShard,
    service: &Arc<S>,
    place: Place,
    shared: &Shared,
) -> Option<Job> {
    let crew::OnShard { shard, stop, sockets } = post;
    let peer = Peer { address, local: stream.local_addr().ok()?, shard, transport: Transport::Tcp };
    stream.set_nodelay(true).ok()?;
    end_when_peer_is_gone(&stream).ok()?;
    let open = sockets.enter(stream.into_std().ok()?);
    let service = Arc::clone(service);
    let (repeats, freed) = (Arc::clone(&shared.repeats), shared.freed.clone());
    let ration = shared.rations.open(address.ip().into());
    Some(Box::new(move || {
        tokio::task::spawn_local(async move {
            let ended = match open.take_up() {
                Ok(stream) => {
                    let limits = service.limits();
                    let outbox = Outbox::new(limits.posted_frames);
                    let connection = service.connected(peer, outbox.clone());
                    serve(stream, connection, outbox, limits, place, ration, stop).await
                }
                Err(e) => Ended::Io(e),
            };
            freed.note();
            tell(address, &ended, &repeats);
        });
    }))
}

/// Logs how a connection has ended.
pub(crate) fn tell(address: SocketAddr, ended: &Ended, repeats: &Repeats) {
    let kind = match ended {
        Ended::Panic => return tracing::error!(%address, "connection ended: {ended}"),
        Ended::Protocol(_) => "connection ended: it broke the protocol",
        Ended::Tls(_) | Ended::Handshake => "connection ended: TLS",
        #[cfg(feature = "quic")]
        Ended::Quic(_) => "connection ended: QUIC",
        Ended::GaveWay => "connection ended: it gave way to others",
        Ended::Greedy => "connection ended: it held too much of what strangers may hold",
        _ => return tracing::debug!(%address, "connection ended: {ended}"),
    };
    repeats.warn(address, kind, &format_args!("connection ended: {ended}"));
}
