//! A connection, as far as other shards can see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use net::{Buffer, Mailbox, Outbox, Peer, RoundTrip};

use crate::report;
use crate::signal::Signal;

/// How long a client's system may take to acknowledge an unsolicited message, while its session has other channels.
const ONE_OF_SEVERAL_PATIENCE: Duration = Duration::from_secs(2);
/// The same for the only channel of a session. This is well within the 35 s that a client has to answer a break.
const ONLY_ONE_PATIENCE: Duration = Duration::from_secs(20);

/// Channel.Connection: how a session reaches its client, from any shard.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// The connection's number.
    pub(crate) connection: u64,
    /// The addresses of the connection, and its shard.
    pub(crate) peer: Peer,
    /// The round trip time to the client.
    pub(crate) round_trip: RoundTrip,
    /// When the client connected.
    pub(crate) since: SystemTime,
    /// When the client connected, on the clock for measuring.
    connected: Instant,
    /// Requests that arrived, not counting those that only check whether the server is alive. Changed only by the
    /// connection's own shard.
    requests: AtomicU64,
    /// Milliseconds from `connected` to the last of these requests.
    last_request: AtomicU64,
    /// Frames of any kind that arrived.
    frames: AtomicU64,
    /// Milliseconds from `connected` to the last of these frames.
    last_frame: AtomicU64,
    /// Puts messages into the connection's outbox.
    mailbox: Mailbox,
    /// Connection.AcceptTransportSecurity: messages need not be encrypted.
    is_secured: AtomicBool,
    /// Whether the session has other channels, so that this one can be given up.
    is_one_of_several: AtomicBool,
    /// Set when the connection has ended: messages posted shortly before may be lost.
    pub(crate) ended: Signal,
}

impl Endpoint {
    /// The endpoint of a new connection.
    pub(crate) fn new(connection: u64, peer: Peer, outbox: &Outbox) -> Arc<Self> {
        Arc::new(Self {
            connection,
            peer,
            round_trip: outbox.round_trip().clone(),
            since: SystemTime::now(),
            connected: Instant::now(),
            requests: AtomicU64::new(0),
            last_request: AtomicU64::new(0),
            frames: AtomicU64::new(0),
            last_frame: AtomicU64::new(0),
            mailbox: outbox.mailbox(),
            is_secured: AtomicBool::new(false),
            is_one_of_several: AtomicBool::new(false),
            ended: Signal::default(),
        })
    }

    /// Notes whether client and server rely on the encryption of what carries the connection.
    pub(crate) fn set_secured(&self, is_secured: bool) {
        self.is_secured.store(is_secured, Ordering::Relaxed);
    }

    /// Whether messages on the connection need not be encrypted.
    pub(crate) fn is_secured(&self) -> bool {
        self.is_secured.load(Ordering::Relaxed)
    }

    /// Notes whether the session currently has other channels.
    pub(crate) fn set_one_of_several(&self, several: bool) {
        self.is_one_of_several.store(several, Ordering::Relaxed);
    }

    /// Sends an unsolicited message of the server; returns false if it is not accepted. The connection ends if the
    /// client's system does not acknowledge the message: soon if the client can be reached over another channel,
    /// otherwise before those who wait for the reply stop waiting.
    pub(crate) fn post(&self, frame: Buffer) -> bool {
        let several = self.is_one_of_several.load(Ordering::Relaxed);
        let patience = if several { ONE_OF_SEVERAL_PATIENCE } else { ONLY_ONE_PATIENCE };
        self.mailbox.post_urgently(frame, patience).is_ok()
    }

    /// Notes that a request arrived at this time.
    pub(crate) fn note_request(&self, at: Instant) {
        // A plain store is enough: no other shard counts here.
        self.requests.store(self.requests.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.last_request
            .store(milliseconds(at.saturating_duration_since(self.connected)), Ordering::Relaxed);
    }

    /// Notes that a frame of any kind arrived.
    pub(crate) fn note_frame(&self) {
        let since = net::turn_clock::now().saturating_duration_since(self.connected);
        // As for requests, no other shard counts here.
        self.frames.store(self.frames.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.last_frame.store(milliseconds(since), Ordering::Relaxed);
    }

    /// How many frames of any kind have arrived.
    pub(crate) fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// How long nothing has arrived.
    pub(crate) fn silence(&self) -> Duration {
        let last = Duration::from_millis(self.last_frame.load(Ordering::Relaxed));
        self.connected.elapsed().saturating_sub(last)
    }

    /// Ends the connection.
    pub(crate) fn close(&self) {
        self.mailbox.close();
    }

    /// The connection as an administrator sees it.
    pub(crate) fn report(&self) -> report::Channel {
        report::Channel {
            connection: self.connection,
            peer: self.peer.address,
            local: self.peer.local,
            transport: self.peer.transport,
            shard: self.peer.shard,
            since: self.since,
            round_trip: self.round_trip.time(),
            requests: self.requests.load(Ordering::Relaxed),
            idle: self
                .connected
                .elapsed()
                .saturating_sub(Duration::from_millis(self.last_request.load(Ordering::Relaxed))),
        }
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
