//! The loop of one connection.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};

use crate::outbox::SEND_BYTES;
use crate::retransmissions::retransmissions;
use crate::turn_clock::{self, Turn};
use crate::{Buffer, Outbox};

/// The length of the prefix in front of every frame: Direct TCP ([MS-SMB2] 2.1) and record marking
/// (RFC 5531 section 11) both have four bytes.
const PREFIX_BYTES: usize = 4;
/// What is read at once, except of a large frame. Several requests at once are answered with one send: with 64 KiB writes
/// four times as much as fits two of them halved the time per request (docs/profiles.md).
const READ_BYTES: usize = 512 * 1024;
/// After so many requests, or bytes, of one connection the others have their turn.
const TURN_REQUESTS: usize = 64;
const TURN_BYTES: usize = 1 << 20;

/// A peer is gone to which the kernel has sent the same bytes so often again (it doubles the time in between).
const RETRANSMISSIONS_MAX: u32 = 2;
/// It is looked again after so long when they were sent again once.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// The round trip of a connection that has something to do is looked at so often.
const ROUND_TRIP_EVERY: Duration = Duration::from_secs(1);

/// What four bytes in front of a frame say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// Bytes that follow.
    pub length: usize,
    /// Whether they end the frame; else the next fragment goes on.
    pub last: bool,
}

/// A prefix that the protocol does not allow: the connection ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PrefixError(pub String);

/// An answer that is not ready yet; None when there is nothing to send.
pub type Later = Pin<Box<dyn Future<Output = Option<Buffer>>>>;

/// What becomes of a frame.
pub enum Answer {
    /// A framed reply, ready to be sent.
    Now(Buffer),
    /// A reply that has to wait. It is polled once at once: what does not wait after all stays in order. It is dropped
    /// when the connection ends first.
    Later(Later),
    /// The same, but once begun it goes on to its end, whatever becomes of the connection: who asks whether it is over
    /// must be able to trust in the answer.
    Certainly(Later),
    /// No reply.
    Nothing,
    /// The frame breaks the protocol: the connection ends, for the reason given (for the log).
    Close(String),
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Now(reply) => f.debug_tuple("Now").field(&reply.len()).finish(),
            Self::Later(_) => f.write_str("Later"),
            Self::Certainly(_) => f.write_str("Certainly"),
            Self::Nothing => f.write_str("Nothing"),
            Self::Close(reason) => f.debug_tuple("Close").field(reason).finish(),
        }
    }
}

/// What a protocol does with the frames of one connection. It lives on one shard.
pub trait Protocol: 'static {
    /// Reads the prefix of a frame. A frame is limited by what this allows.
    ///
    /// # Errors
    /// A prefix that cannot be: the connection ends.
    fn prefix(&self, prefix: [u8; PREFIX_BYTES]) -> Result<Prefix, PrefixError>;

    /// Answers a frame (without its prefix). The memory is the protocol's own: it may decrypt the frame in
    /// place, and freeze it to keep parts of it without copying.
    fn answer(self: Rc<Self>, frame: BytesMut) -> Answer;

    /// Whether the client may stay: it has said who it is, or need not. One that has not within [`Limits::greeting`]
    /// is sent away, so that those who just hold a connection open do not keep others out.
    fn is_welcome(&self) -> bool {
        true
    }

    /// The connection has ended; its waiting answers are gone. Frees what it held.
    fn closed(self: Rc<Self>) -> Pin<Box<dyn Future<Output = ()>>>;
}

/// What one connection may take up.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// A frame of several fragments, in bytes, all together.
    pub frame_bytes: usize,
    /// Frames whose answers wait: beyond that nothing is read.
    pub pending_frames: usize,
    /// Bytes of frames whose answers wait: beyond that nothing is read.
    pub pending_frame_bytes: usize,
    /// Bytes that wait to be sent: beyond that nothing is read.
    pub pending_bytes: usize,
    /// Messages from other shards that wait to be taken in, which does not happen beyond `pending_bytes`.
    pub posted_frames: usize,
    /// How long a client may stay that [`Protocol::is_welcome`] does not know of.
    pub greeting: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes: (8 << 20) + 64 * 1024,
            pending_frames: 2048,
            pending_frame_bytes: 64 << 20,
            pending_bytes: 16 << 20,
            posted_frames: 1024,
            greeting: Duration::from_secs(60),
        }
    }
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Ended {
    #[error("the peer closed it")]
    ByPeer,
    #[error("this side closed it")]
    ByUs,
    #[error("the server stops")]
    Shutdown,
    #[error("the client did not say who it is")]
    Nobody,
    #[error("the peer does not acknowledge what is sent")]
    Unacknowledged,
    #[error("it broke the protocol: {0}")]
    Protocol(String),
    #[error("a fault of this program (see the panic message)")]
    Panic,
    #[error("{0}")]
    Io(#[from] io::Error),
}

struct Connection<P> {
    stream: TcpStream,
    protocol: Rc<P>,
    outbox: Outbox,
    limits: Limits,
    received: BytesMut,
    /// What is received in one piece: several small frames, or a large one alone, so that it is received where it stays.
    /// The next frame will be as the last one was.
    room: usize,
    /// Fragments of a frame that is not whole yet.
    fragments: BytesMut,
    /// Answers that wait; each gives the bytes of its frame when it is finished.
    waiting: JoinSet<usize>,
    /// Bytes of the frames whose answers wait.
    waiting_bytes: usize,
    /// Whether an answer was lost to a fault of the program.
    lost: bool,
    /// When it is looked whether the peer acknowledges what was urgent.
    look: Option<Instant>,
    /// When the round trip was looked at last.
    round_trip_at: Option<Instant>,
}

/// Serves a connection until it ends, then lets the protocol clean up.
pub(crate) async fn serve<P: Protocol>(
    stream: TcpStream,
    protocol: Rc<P>,
    outbox: Outbox,
    limits: Limits,
    mut stop: watch::Receiver<bool>,
) -> Ended {
    let mut connection = Connection {
        stream,
        protocol: Rc::clone(&protocol),
        outbox: outbox.clone(),
        limits,
        received: BytesMut::new(),
        room: READ_BYTES,
        fragments: BytesMut::new(),
        waiting: JoinSet::new(),
        waiting_bytes: 0,
        lost: false,
        look: None,
        round_trip_at: None,
    };
    // In a task of its own: a fault of the program ends this connection, not its neighbours, and what the
    // connection held is freed all the same.
    let mut task = tokio::task::spawn_local(async move {
        let ended = connection.run(&mut stop).await;
        connection.waiting.shutdown().await;
        ended
    });
    let ended = tokio::select! {
        ended = &mut task => ended.unwrap_or(Ended::Panic),
        () = nobody(&*protocol, limits.greeting) => {
            task.abort();
            let _ = task.await; // everything that it had under way is gone then
            Ended::Nobody
        }
    };
    outbox.end();
    protocol.closed().await;
    ended
}

/// Resolves when the client has not been welcome in time.
async fn nobody<P: Protocol>(protocol: &P, greeting: Duration) {
    tokio::time::sleep(greeting).await;
    if protocol.is_welcome() {
        std::future::pending::<()>().await;
    }
}

/// Resolves at this time, or never.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// Nobody is woken by this: whoever waits is polled again by its own task.
fn first_poll(later: &mut Later) -> Poll<Option<Buffer>> {
    later.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// What `later` gives, from a task that nobody stops, even if nobody ever looks for the answer.
fn certainly(later: Later) -> Later {
    let task = tokio::task::spawn_local(later);
    Box::pin(async move {
        match task.await {
            Ok(reply) => reply,
            Err(fault) if fault.is_panic() => std::panic::resume_unwind(fault.into_panic()),
            Err(_) => None,
        }
    })
}

impl<P: Protocol> Connection<P> {
    async fn run(&mut self, stop: &mut watch::Receiver<bool>) -> Ended {
        loop {
            let more = match self.take_turn() {
                Ok(more) => more,
                Err(ended) => {
                    let _ = self.outbox.try_flush(&self.stream);
                    return ended;
                }
            };
            if self.outbox.pending_bytes() < self.limits.pending_bytes {
                self.collect();
            }
            match self.outbox.try_flush(&self.stream) {
                Ok(true) if self.outbox.is_closing() => return Ended::ByUs,
                Ok(_) => {}
                Err(e) => return e.into(),
            }
            if !self.waiting.is_empty() {
                // What those who wait have waited for may be there since this turn: their answers come before those
                // to what the client asks next.
                tokio::task::yield_now().await;
            }
            if let Err(ended) = self.wait(stop, more).await {
                return ended;
            }
        }
    }

    /// Takes in what has come from other shards.
    fn collect(&mut self) {
        if let Some(patience) = self.outbox.collect() {
            let look = Instant::now() + patience;
            self.look = Some(self.look.map_or(look, |before| before.min(look)));
        }
    }

    /// Answers whole frames until there are none: then false. True when the turn is over, or nothing may be taken in, before that.
    fn take_turn(&mut self) -> Result<bool, Ended> {
        let (mut requests, mut bytes) = (0, 0);
        let _turn = Turn::begin();
        self.look_at_round_trip(turn_clock::now());
        while requests < TURN_REQUESTS && bytes < TURN_BYTES {
            if !self.may_receive() {
                return Ok(true);
            }
            if self.lost {
                return Err(Ended::Panic);
            }
            let Some(frame) = self.next_frame()? else { return Ok(false) };
            requests += 1;
            bytes += frame.len();
            self.answer(frame)?;
            // What the answer's work had to say unasked comes in front of the next answer.
            self.collect();
            let pending = self.outbox.pending_bytes();
            if pending >= SEND_BYTES {
                // While it is still in the processor's cache, and while the peer has nothing to do.
                self.outbox.try_flush(&self.stream)?;
                let _sent = turn_clock::read(); // the next request does not pay for it
                bytes += pending - self.outbox.pending_bytes();
            }
        }
        Ok(true)
    }

    /// Looks at the round trip, unless that was done shortly before.
    fn look_at_round_trip(&mut self, now: Instant) {
        let is_due = |at| now.saturating_duration_since(at) >= ROUND_TRIP_EVERY;
        if self.round_trip_at.is_none_or(is_due) {
            self.outbox.round_trip().look(&self.stream);
            self.round_trip_at = Some(now);
        }
    }

    /// The next whole frame of what has been received.
    fn next_frame(&mut self) -> Result<Option<BytesMut>, Ended> {
        loop {
            let Some(prefix) = self.received.first_chunk::<PREFIX_BYTES>() else { return Ok(None) };
            let prefix = self.protocol.prefix(*prefix).map_err(|e| Ended::Protocol(e.0))?;
            if self.fragments.len().saturating_add(prefix.length) > self.limits.frame_bytes {
                let limit = self.limits.frame_bytes;
                return Err(Ended::Protocol(format!("a frame of more than {limit} bytes")));
            }
            let large = prefix.length > READ_BYTES / 4;
            self.room = if large { prefix.length + PREFIX_BYTES } else { READ_BYTES };
            if self.received.len() - PREFIX_BYTES < prefix.length {
                self.received.reserve(self.room - self.received.len());
                return Ok(None);
            }
            self.received.advance(PREFIX_BYTES);
            let part = self.received.split_to(prefix.length);
            if prefix.last && self.fragments.is_empty() {
                return Ok(Some(part));
            }
            self.fragments.extend_from_slice(&part);
            if prefix.last {
                return Ok(Some(self.fragments.split()));
            }
        }
    }

    fn answer(&mut self, frame: BytesMut) -> Result<(), Ended> {
        let bytes = frame.len();
        match Rc::clone(&self.protocol).answer(frame) {
            Answer::Now(reply) => self.outbox.send(reply),
            Answer::Nothing => {}
            Answer::Close(reason) => return Err(Ended::Protocol(reason)),
            Answer::Later(mut later) => match first_poll(&mut later) {
                Poll::Ready(reply) => reply.into_iter().for_each(|r| self.outbox.send(r)),
                Poll::Pending => self.finish_later(later, bytes),
            },
            Answer::Certainly(mut later) => match first_poll(&mut later) {
                Poll::Ready(reply) => reply.into_iter().for_each(|r| self.outbox.send(r)),
                Poll::Pending => self.finish_later(certainly(later), bytes),
            },
        }
        Ok(())
    }

    fn finish_later(&mut self, later: Later, bytes: usize) {
        let outbox = self.outbox.clone();
        self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
        self.waiting.spawn_local(async move {
            if let Some(reply) = later.await {
                outbox.send(reply);
            }
            bytes
        });
    }

    /// A waiting answer is finished. One that was lost to a panic will never come: the connection ends.
    fn note(&mut self, finished: &Result<usize, JoinError>) {
        match finished {
            Ok(bytes) => self.waiting_bytes = self.waiting_bytes.saturating_sub(*bytes),
            Err(fault) => self.lost |= fault.is_panic(),
        }
    }

    fn may_receive(&mut self) -> bool {
        while let Some(finished) = self.waiting.try_join_next() {
            self.note(&finished);
        }
        self.waiting.len() < self.limits.pending_frames
            && self.waiting_bytes < self.limits.pending_frame_bytes
            && self.outbox.pending_bytes() < self.limits.pending_bytes
            && !self.outbox.is_closing()
    }

    /// Waits until there is something to do. With `more` there may be whole frames that were received and not answered: the peer
    /// need not send anything any more.
    async fn wait(&mut self, stop: &mut watch::Receiver<bool>, more: bool) -> Result<(), Ended> {
        if self.received.is_empty() {
            self.received = BytesMut::new(); // an idle connection holds no memory
        }
        let receiving = self.may_receive();
        if more && receiving {
            tokio::task::yield_now().await;
            return Ok(());
        }
        let sending = !self.outbox.is_empty();
        tokio::select! {
            readable = self.stream.readable(), if receiving => {
                readable?;
                self.receive()
            }
            writable = self.stream.writable(), if sending => Ok(writable?),
            () = self.outbox.filled() => Ok(()),
            Some(finished) = self.waiting.join_next(), if !self.waiting.is_empty() => {
                self.note(&finished);
                Ok(())
            }
            () = at(self.look), if self.look.is_some() => self.check_acknowledged().await,
            _ = stop.wait_for(|stop| *stop) => Err(Ended::Shutdown),
        }
    }

    /// Whether the peer still acknowledges what is sent to it. A connection that only is busy has nothing that the kernel
    /// had to send again, or not often.
    async fn check_acknowledged(&mut self) -> Result<(), Ended> {
        let (local, peer) = (self.stream.local_addr()?, self.stream.peer_addr()?);
        let again = tokio::task::spawn_blocking(move || retransmissions(local, peer)).await;
        self.look = match again.ok().flatten() {
            None | Some(0) => None,
            Some(count) if count < RETRANSMISSIONS_MAX => Some(Instant::now() + LOOK_AGAIN),
            Some(_) => {
                // A reset may reach the peer, if only the other direction is cut: behind all that it has not acknowledged
                // an orderly end would not.
                SockRef::from(&self.stream).set_linger(Some(Duration::ZERO))?;
                return Err(Ended::Unacknowledged);
            }
        };
        Ok(())
    }

    fn receive(&mut self) -> Result<(), Ended> {
        if self.received.capacity() == self.received.len() {
            self.received.reserve(self.room);
        }
        match self.stream.try_read_buf(&mut self.received) {
            Ok(0) => Err(Ended::ByPeer),
            Ok(_) => {
                // Who says something is there: as a rule that is the answer to what was urgent.
                self.look = None;
                Ok(())
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(e) => Err(e.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mailbox;

    /// Somebody on another shard has something urgent to say whenever a frame comes.
    struct Urgent(Mailbox);

    impl Protocol for Urgent {
        fn prefix(&self, _: [u8; PREFIX_BYTES]) -> Result<Prefix, PrefixError> {
            Ok(Prefix { length: 1, last: true })
        }

        fn answer(self: Rc<Self>, _: BytesMut) -> Answer {
            self.0.post_urgently(Buffer::from(&b"break"[..]), Duration::from_secs(2)).unwrap();
            Answer::Nothing
        }

        fn closed(self: Rc<Self>) -> Pin<Box<dyn Future<Output = ()>>> {
            Box::pin(std::future::ready(()))
        }
    }

    /// Each frame is answered at once.
    struct Echo;

    impl Protocol for Echo {
        fn prefix(&self, _: [u8; PREFIX_BYTES]) -> Result<Prefix, PrefixError> {
            Ok(Prefix { length: 1, last: true })
        }

        fn answer(self: Rc<Self>, _: BytesMut) -> Answer {
            Answer::Now(Buffer::from(&b"echo"[..]))
        }

        fn closed(self: Rc<Self>) -> Pin<Box<dyn Future<Output = ()>>> {
            Box::pin(std::future::ready(()))
        }
    }

    /// A connection that has received `frames` frames of one byte, and its peer.
    async fn connection<P>(
        protocol: impl FnOnce(&Outbox) -> P,
        limits: Limits,
        frames: usize,
    ) -> (Connection<P>, TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let outbox = Outbox::new(4);
        let connection = Connection {
            stream: listener.accept().await.unwrap().0,
            protocol: Rc::new(protocol(&outbox)),
            outbox,
            limits,
            received: BytesMut::from(&vec![0; frames * (PREFIX_BYTES + 1)][..]),
            room: READ_BYTES,
            fragments: BytesMut::new(),
            waiting: JoinSet::new(),
            waiting_bytes: 0,
            lost: false,
            look: None,
            round_trip_at: None,
        };
        (connection, peer)
    }

    #[tokio::test]
    async fn what_is_urgent_is_watched_also_while_the_peer_is_busy() {
        let (mut connection, _peer) =
            connection(|outbox| Urgent(outbox.mailbox()), Limits::default(), 1).await;
        assert!(matches!(connection.take_turn(), Ok(false)));
        assert!(!connection.outbox.is_empty() && connection.look.is_some());
        assert!(connection.outbox.round_trip().time().is_some());
    }

    /// The peer waits for the second answer and sends nothing any more.
    #[tokio::test]
    async fn a_frame_that_was_held_up_by_what_was_to_be_sent_is_answered_when_that_is_sent() {
        let limits = Limits { pending_bytes: 1, ..Limits::default() };
        let (mut connection, _peer) = connection(|_| Echo, limits, 2).await;
        let (_stopping, mut stop) = watch::channel(false);
        let more = connection.take_turn().unwrap();
        assert!(more && connection.outbox.pending_bytes() == 4, "one is answered, the other held up");
        connection.outbox.filled().await; // its wake-up was for the first answer
        assert!(connection.outbox.try_flush(&connection.stream).unwrap());
        let waited = connection.wait(&mut stop, more);
        tokio::time::timeout(Duration::from_secs(5), waited).await.unwrap().unwrap();
        let more = connection.take_turn().unwrap();
        assert!(more && connection.outbox.pending_bytes() == 4, "the other");
        connection.outbox.try_flush(&connection.stream).unwrap();
        assert!(!connection.take_turn().unwrap(), "there are no more");
    }
}
