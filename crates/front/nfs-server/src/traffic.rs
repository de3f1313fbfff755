//! The current connections and their traffic, for administrators.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use net::{Mailbox, Peer, RoundTrip, Secured};
use nfs_wire::rpc::Call;
use nfs_wire::v3;
use parking_lot::Mutex;

use crate::gss::Flavor;

/// One connection of a client at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionReport {
    /// A number that no other connection of this run has.
    pub number: u64,
    /// The client's end.
    pub client: SocketAddr,
    /// The server's end.
    pub server: SocketAddr,
    /// The version of the NFS calls; `None` before the first.
    pub version: Option<u32>,
    /// The minor version of the NFSv4 calls; `None` before the first.
    pub minor_version: Option<u32>,
    /// What the TLS handshake has shown; None: the connection has no TLS.
    pub secured: Option<Arc<Secured>>,
    /// How the calls so far were secured, by the names that mount(8) has for it.
    pub security: Vec<&'static str>,
    /// The round trip time to the client, at the time of the last calls; None if the kernel does not report it.
    pub round_trip: Option<Duration>,
    /// Calls that have arrived.
    pub calls: u64,
    /// Calls that have not been answered yet.
    pub in_flight: u64,
    /// Reads that returned data.
    pub reads: Sizes,
    /// Writes.
    pub writes: Sizes,
    /// The time since the client connected.
    pub age: Duration,
    /// The time since the last call, or since the client connected.
    pub idle: Duration,
}

/// Calls that moved payload, and the amount of payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sizes {
    /// Calls.
    pub calls: u64,
    /// Bytes of all calls.
    pub bytes: u64,
    /// The most bytes of one call.
    pub bytes_max: u64,
}

/// Counts [`Sizes`].
#[derive(Debug, Default)]
pub(crate) struct Moved {
    calls: AtomicU64,
    bytes: AtomicU64,
    bytes_max: AtomicU64,
}

impl Moved {
    /// Counts a call that has moved this many bytes.
    pub(crate) fn add(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        add(&self.calls, 1);
        add(&self.bytes, bytes);
        if bytes > self.bytes_max.load(Ordering::Relaxed) {
            self.bytes_max.store(bytes, Ordering::Relaxed);
        }
    }

    fn sizes(&self) -> Sizes {
        Sizes {
            calls: self.calls.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            bytes_max: self.bytes_max.load(Ordering::Relaxed),
        }
    }
}

/// What one connection counts.
#[derive(Debug)]
pub(crate) struct Traffic {
    peer: Peer,
    number: u64,
    /// The round trip time to the client.
    pub(crate) round_trip: RoundTrip,
    /// Reaches the connection from other threads.
    mailbox: Mailbox,
    since: Instant,
    /// 0 before the first NFS call.
    version: AtomicU32,
    /// One more than the minor version of the last NFSv4 call; 0 before the first.
    minor_version: AtomicU32,
    secured: OnceLock<Arc<Secured>>,
    /// The flavors of the calls so far: bits by their order.
    flavors: AtomicU8,
    calls: AtomicU64,
    answered: AtomicU64,
    pub(crate) reads: Moved,
    pub(crate) writes: Moved,
    /// Milliseconds from `since` to the last call.
    last_call: AtomicU64,
}

impl Traffic {
    /// Counts a call that has arrived.
    pub(crate) fn begin(&self, call: &Call<'_>) {
        add(&self.calls, 1);
        let since = net::turn_clock::now().saturating_duration_since(self.since);
        self.last_call.store(milliseconds(since), Ordering::Relaxed);
        if call.program == v3::PROGRAM {
            self.version.store(call.version, Ordering::Relaxed);
        }
    }

    /// Notes the minor version of an NFSv4 call.
    pub(crate) fn note_minor_version(&self, minor_version: u32) {
        self.minor_version.store(minor_version.saturating_add(1), Ordering::Relaxed);
    }

    /// Notes how a call is secured.
    pub(crate) fn note_flavor(&self, flavor: Flavor) {
        let (seen, bit) = (self.flavors.load(Ordering::Relaxed), flavor.bit());
        if seen & bit == 0 {
            self.flavors.store(seen | bit, Ordering::Relaxed);
        }
    }

    /// Notes what the TLS handshake has shown.
    pub(crate) fn encrypted(&self, with: Secured) {
        let _ = self.secured.set(Arc::new(with));
    }

    /// Counts a call that has been answered.
    pub(crate) fn end(&self) {
        add(&self.answered, 1);
    }

    fn report(&self) -> ConnectionReport {
        let age = self.since.elapsed();
        // Read in this order, so that calls answered in between do not make the difference negative.
        let answered = self.answered.load(Ordering::Relaxed);
        let calls = self.calls.load(Ordering::Relaxed);
        let version = self.version.load(Ordering::Relaxed);
        ConnectionReport {
            number: self.number,
            client: self.peer.address,
            server: self.peer.local,
            version: (version > 0).then_some(version),
            minor_version: self.minor_version.load(Ordering::Relaxed).checked_sub(1),
            secured: self.secured.get().cloned(),
            security: Flavor::in_bits(self.flavors.load(Ordering::Relaxed)),
            calls,
            round_trip: self.round_trip.time(),
            in_flight: calls.saturating_sub(answered),
            reads: self.reads.sizes(),
            writes: self.writes.sizes(),
            age,
            idle: age.saturating_sub(Duration::from_millis(self.last_call.load(Ordering::Relaxed))),
        }
    }
}

/// A plain store is enough: only the connection's own thread counts.
fn add(counter: &AtomicU64, n: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The current connections, no more than the server accepts.
#[derive(Debug, Default)]
pub(crate) struct Connections(Mutex<HashMap<Peer, Arc<Traffic>>>);

impl Connections {
    /// Enters a new connection.
    pub(crate) fn enter(
        &self,
        peer: Peer,
        number: u64,
        (round_trip, mailbox): (RoundTrip, Mailbox),
    ) -> Arc<Traffic> {
        let traffic = Arc::new(Traffic {
            peer,
            number,
            round_trip,
            mailbox,
            since: Instant::now(),
            version: AtomicU32::new(0),
            minor_version: AtomicU32::new(0),
            secured: OnceLock::new(),
            flavors: AtomicU8::new(0),
            calls: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            reads: Moved::default(),
            writes: Moved::default(),
            last_call: AtomicU64::new(0),
        });
        self.0.lock().insert(peer, Arc::clone(&traffic));
        traffic
    }

    /// Removes a connection that has ended.
    pub(crate) fn leave(&self, traffic: &Arc<Traffic>) {
        let mut connections = self.0.lock();
        // The client may have connected again from the same port before the end of this connection was noticed.
        if connections.get(&traffic.peer).is_some_and(|present| Arc::ptr_eq(present, traffic)) {
            connections.remove(&traffic.peer);
        }
    }

    /// Ends the connections from an address. Returns their number.
    pub(crate) fn end_from(&self, client: IpAddr) -> usize {
        let connections = self.0.lock();
        let from = connections.values().filter(|traffic| traffic.peer.address.ip().to_canonical() == client);
        from.map(|traffic| traffic.mailbox.close()).count()
    }

    /// The client addresses of all connections, by the connection's number.
    pub(crate) fn addresses(&self) -> HashMap<u64, SocketAddr> {
        self.0.lock().values().map(|traffic| (traffic.number, traffic.peer.address)).collect()
    }

    /// All connections, by the client's address.
    pub(crate) fn report(&self) -> Vec<ConnectionReport> {
        let mut reports: Vec<_> = self.0.lock().values().map(|traffic| traffic.report()).collect();
        reports.sort_unstable_by_key(|report| report.client);
        reports
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(port: u16) -> Peer {
        Peer {
            address: ([10, 0, 0, 2], port).into(),
            local: ([10, 0, 0, 1], 2049).into(),
            shard: 0,
            transport: net::Transport::Tcp,
        }
    }

    #[test]
    fn a_connection_is_there_until_it_ends() {
        let connections = Connections::default();
        let (first, second) = (
            connections.enter(peer(800), 1, Default::default()),
            connections.enter(peer(700), 2, Default::default()),
        );
        let ports = || connections.report().iter().map(|report| report.client.port()).collect::<Vec<_>>();
        assert_eq!(ports(), [700, 800]);
        connections.leave(&second);
        assert_eq!(ports(), [800]);
        // The connection that took its place stays.
        let again = connections.enter(peer(800), 3, Default::default());
        connections.leave(&first);
        assert_eq!(ports(), [800]);
        connections.leave(&again);
        assert!(ports().is_empty());
    }

    #[test]
    fn sizes_are_counted() {
        let connections = Connections::default();
        let traffic = connections.enter(peer(800), 9, Default::default());
        traffic.reads.add(4096);
        traffic.reads.add(1 << 20);
        traffic.writes.add(7);
        let report = &connections.report()[0];
        assert_eq!(report.number, 9);
        assert_eq!(report.reads, Sizes { calls: 2, bytes: 4096 + (1 << 20), bytes_max: 1 << 20 });
        assert_eq!(report.writes, Sizes { calls: 1, bytes: 7, bytes_max: 7 });
    }
}
