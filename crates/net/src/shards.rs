//! One thread and one runtime a core; listeners that deal connections to them.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::task::LocalSet;

use crate::connection::{Ended, serve};
use crate::{Limits, Outbox, Protocol};

/// Threads for calls that may block, for each shard.
const BLOCKING_THREADS: usize = 32;
/// How long the accept loop rests when the process is out of descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);
/// A peer that says nothing for so long is asked whether it is still there, and then again, so often.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_RETRIES: u32 = 4;
/// A peer that takes nothing of what is sent for so long is gone.
const UNSENT_MAX: Duration = Duration::from_secs(120);

/// Who is at the other end of a connection, and at this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Peer {
    /// The client's address.
    pub address: SocketAddr,
    /// The address it came to.
    pub local: SocketAddr,
    /// The number of the shard that serves the connection, from 0.
    pub shard: usize,
}

/// Makes the protocol state of each new connection, on the connection's shard.
pub trait Service: Send + Sync + 'static {
    /// The state of one connection.
    type Connection: Protocol;

    /// A client has connected.
    fn connected(&self, peer: Peer, outbox: Outbox) -> Rc<Self::Connection>;

    /// What one connection may take up.
    fn limits(&self) -> Limits {
        Limits::default()
    }

    /// How many connections there may be at a time; further ones are closed at once.
    fn connections_max(&self) -> usize;
}

/// Why the shards could not start.
#[derive(Debug, thiserror::Error)]
#[error("cannot start a thread or its runtime: {0}")]
pub struct ShardsError(#[from] io::Error);

type Job = Box<dyn FnOnce() + Send>;

/// The running shards. Dropping them ends all connections, after their clean-up.
pub struct Shards {
    jobs: Vec<mpsc::UnboundedSender<Job>>,
    threads: Vec<JoinHandle<()>>,
    stop: watch::Sender<bool>,
}

impl std::fmt::Debug for Shards {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shards").field("count", &self.jobs.len()).finish_non_exhaustive()
    }
}

impl Shards {
    /// Starts `count` shards (at least one).
    ///
    /// # Errors
    /// When the system has no more threads or descriptors.
    pub fn start(count: usize) -> Result<Self, ShardsError> {
        let stop = watch::Sender::new(false);
        let mut shards = Self { jobs: Vec::new(), threads: Vec::new(), stop };
        for index in 0..count.max(1) {
            let (sender, jobs) = mpsc::unbounded_channel();
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .max_blocking_threads(BLOCKING_THREADS)
                .build()?;
            let stop = shards.stop.subscribe();
            let thread = std::thread::Builder::new()
                .name(format!("shard-{index}"))
                .spawn(move || run_shard(&runtime, jobs, stop))?;
            shards.jobs.push(sender);
            shards.threads.push(thread);
        }
        Ok(shards)
    }

    /// Serves the connections that come to `listener`, dealt to the shards in turn.
    ///
    /// # Errors
    /// When the listener cannot be made non-blocking.
    pub fn listen<S: Service>(&self, listener: TcpListener, service: Arc<S>) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let jobs = self.jobs.clone();
        let stop = self.stop.subscribe();
        let accept = move || {
            tokio::task::spawn_local(accept_all(listener, service, jobs, stop));
        };
        self.jobs[0].send(Box::new(accept)).map_err(|_| io::ErrorKind::NotConnected.into())
    }

    /// Runs a task beside the connections, until it is done or the shards end: then it is dropped where it waits.
    ///
    /// # Errors
    /// When the shards have ended.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let mut stop = self.stop.subscribe();
        let until_stopped = async move {
            tokio::select! {
                () = task => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
        };
        let start = move || {
            tokio::task::spawn_local(until_stopped);
        };
        self.jobs[0].send(Box::new(start)).map_err(|_| io::ErrorKind::NotConnected.into())
    }

    /// Ends all connections and waits for their clean-up.
    pub fn shutdown(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.stop.send_replace(true);
        self.jobs.clear();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a shard ended with a panic");
            }
        }
    }
}

impl Drop for Shards {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs what is handed to a shard until the stop sign, then until every connection has cleaned up.
fn run_shard(
    runtime: &tokio::runtime::Runtime,
    mut jobs: mpsc::UnboundedReceiver<Job>,
    mut stop: watch::Receiver<bool>,
) {
    let local = LocalSet::new();
    local.block_on(runtime, async {
        loop {
            tokio::select! {
                Some(job) = jobs.recv() => job(),
                _ = stop.wait_for(|stop| *stop) => break,
                else => break,
            }
        }
        jobs.close();
    });
    runtime.block_on(local);
}

async fn accept_all<S: Service>(
    listener: TcpListener,
    service: Arc<S>,
    jobs: Vec<mpsc::UnboundedSender<Job>>,
    mut stop: watch::Receiver<bool>,
) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(e) => return tracing::error!("cannot accept connections: {e}"),
    };
    let open = Arc::new(AtomicUsize::new(0));
    for turn in 0_usize.. {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = stop.wait_for(|stop| *stop) => return,
        };
        match accepted {
            Ok((stream, address)) => {
                if open.load(Ordering::Relaxed) >= service.connections_max() {
                    tracing::warn!(%address, "refused: connections_max ({}) reached", service.connections_max());
                    continue;
                }
                let shard = turn % jobs.len();
                let job = hand_over(stream, address, shard, &service, &open, &stop);
                if let Some(job) = job {
                    let _ = jobs[shard].send(job);
                }
            }
            Err(e) => {
                tracing::warn!("accept: {e}");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// A client that vanishes without a word must not hold its files and locks for ever.
fn end_when_peer_is_gone(stream: &TcpStream) -> io::Result<()> {
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(UNSENT_MAX))
}

/// Takes a connection off the accepting runtime, and makes the job that serves it on another.
fn hand_over<S: Service>(
    stream: TcpStream,
    address: SocketAddr,
    shard: usize,
    service: &Arc<S>,
    open: &Arc<AtomicUsize>,
    stop: &watch::Receiver<bool>,
) -> Option<Job> {
    let peer = Peer { address, local: stream.local_addr().ok()?, shard };
    stream.set_nodelay(true).ok()?;
    end_when_peer_is_gone(&stream).ok()?;
    let stream = stream.into_std().ok()?;
    let (service, open, stop) = (Arc::clone(service), Arc::clone(open), stop.clone());
    open.fetch_add(1, Ordering::Relaxed);
    Some(Box::new(move || {
        tokio::task::spawn_local(async move {
            let ended = match TcpStream::from_std(stream) {
                Ok(stream) => {
                    let limits = service.limits();
                    let outbox = Outbox::new(limits.posted_frames);
                    let connection = service.connected(peer, outbox.clone());
                    serve(stream, connection, outbox, limits, stop).await
                }
                Err(e) => Ended::Io(e),
            };
            open.fetch_sub(1, Ordering::Relaxed);
            match ended {
                Ended::Panic => tracing::error!(%address, "connection ended: {ended}"),
                Ended::Protocol(_) => tracing::warn!(%address, "connection ended: {ended}"),
                _ => tracing::debug!(%address, "connection ended: {ended}"),
            }
        });
    }))
}
