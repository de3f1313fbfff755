//! The loop of one connection.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use rustls::ServerConfig;
use tokio::task::{JoinError, JoinSet};

use crate::ended::Ended;
use crate::outbox::SEND_BYTES;
use crate::patience::{Signs, outstayed};
use crate::places::Place;
use crate::protocol::{Answer, Later, Limits, PREFIX_BYTES, Prefix, Protocol};
use crate::ration::{FREE_BYTES, Ration};
use crate::socket::Socket;
use crate::stop::{Present, Stop};
use crate::term::InTerm;
use crate::tls::{Arrived, Session};
use crate::turn_clock::{self, Turn};
use crate::{Buffer, Outbox};

/// The most that is read at once, unless a frame is larger. Several requests that were read at once are answered with
/// one send: with 64 KiB writes, a size four times that of two such requests halved the time per request
/// (docs/measured/profiles.md).
const READ_BYTES: usize = 512 * 1024;
/// After this many requests or bytes of one connection, the others get their turn.
const TURN_REQUESTS: usize = 64;
const TURN_BYTES: usize = 1 << 20;

/// The limits on a stranger's frames and replies while they wait. Beyond these nothing more is read from the stranger.
const STRANGER_PENDING_FRAMES: usize = 64;
const STRANGER_PENDING_BYTES: usize = 64 * 1024;
/// How often the loop asks again for memory for a stranger that was refused memory.
const ASK_AGAIN: Duration = Duration::from_millis(100);

/// A peer is considered gone when the kernel has retransmitted the same bytes this often (the interval doubles each
/// time).
const RETRANSMISSIONS_MAX: u32 = 2;
/// How soon to look again after the first retransmission.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// How often to read the round trip time of a busy connection.
const ROUND_TRIP_EVERY: Duration = Duration::from_secs(1);

struct Connection<P, S> {
    stream: S,
    /// TLS, once it has begun.
    tls: Option<Box<Session>>,
    protocol: Rc<P>,
    outbox: Outbox,
    limits: Limits,
    received: BytesMut,
    /// How much is received in one piece: several small frames, or one large frame alone, which is then not copied. The
    /// next frame is expected to be as large as the last one.
    room: usize,
    /// Fragments of a frame that is not complete yet, and their number.
    fragments: BytesMut,
    fragment_count: usize,
    /// Bytes of the fragment that is being received, including its prefix, as far as they are known.
    announced: usize,
    /// Replies that wait. Each returns the number of bytes of its frame when it is finished.
    waiting: JoinSet<usize>,
    /// Bytes of the frames whose replies wait.
    waiting_bytes: usize,
    /// Whether a reply was lost to a fault of the program.
    lost: bool,
    /// When to check whether the peer has acknowledged an urgent message.
    look: Option<Instant>,
    /// When the round trip time was last read.
    round_trip_at: Option<Instant>,
    place: Rc<Place>,
    /// The connection's part of the memory for strangers.
    ration: Ration,
    signs: Rc<Signs>,
    /// Counts the connection, and each of its changes that is not done, as present.
    present: Rc<Present>,
}

/// Serves a connection until it ends, then lets the protocol clean up.
pub(crate) async fn serve<P: Protocol, S: Socket>(
    stream: S,
    protocol: Rc<P>,
    outbox: Outbox,
    limits: Limits,
    place: Place,
    ration: Ration,
    mut stop: Stop,
) -> Ended {
    let place = Rc::new(place);
    let stopped = ration.stopped();
    // Until everything that it has begun is done.
    let present = Rc::new(stop.present());
    let (own_place, own_present) = (Rc::clone(&place), Rc::clone(&present));
    let stream = InTerm { socket: stream, term: stop.term() };
    let mut connection =
        Connection::new(stream, Rc::clone(&protocol), outbox.clone(), limits, own_place, ration, own_present);
    let signs = Rc::clone(&connection.signs);
    // Runs in its own task: a fault of the program ends this connection and not the other ones, and everything that the
    // connection held is freed in any case.
    let mut task = tokio::task::spawn_local(async move {
        let ended = connection.run(&mut stop).await;
        connection.waiting.shutdown().await;
        ended
    });
    let ended = tokio::select! {
        ended = &mut task => ended.unwrap_or(Ended::Panic),
        ended = outstayed(&*protocol, &signs, &place, &stopped, &limits) => {
            task.abort();
            let _ = task.await; // by then, everything that the connection had under way is gone
            ended
        }
    };
    outbox.end();
    protocol.closed().await;
    drop(present);
    ended
}

/// Resolves at this time, or never.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// The context wakes no task: a reply that waits is polled again by its own task.
fn first_poll(later: &mut Later) -> Poll<Option<Buffer>> {
    later.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Sends the result of `later`, from a task that is never stopped, even if the reply is never polled. The reply is sent
/// as soon as it is ready, because its room is freed at that moment.
fn certainly(later: Later, outbox: Outbox, present: Rc<Present>) -> Later {
    let task = tokio::task::spawn_local(async move {
        later.await.into_iter().for_each(|reply| outbox.send(reply));
        drop(present);
    });
    Box::pin(async move {
        if let Err(fault) = task.await
            && fault.is_panic()
        {
            std::panic::resume_unwind(fault.into_panic())
        }
        None
    })
}

impl<P: Protocol, S: Socket> Connection<P, S> {
    fn new(
        stream: S,
        protocol: Rc<P>,
        outbox: Outbox,
        limits: Limits,
        place: Rc<Place>,
        ration: Ration,
        present: Rc<Present>,
    ) -> Self {
        Self {
            stream,
            tls: None,
            protocol,
            outbox,
            limits,
            received: BytesMut::new(),
            room: READ_BYTES,
            fragments: BytesMut::new(),
            fragment_count: 0,
            announced: 0,
            waiting: JoinSet::new(),
            waiting_bytes: 0,
            lost: false,
            look: None,
            round_trip_at: None,
            place,
            ration,
            signs: Rc::new(Signs::new(false)),
            present,
        }
    }

    async fn run(&mut self, stop: &mut Stop) -> Ended {
        loop {
            self.outbox.attend(true);
            let more = match self.take_turn() {
                Ok(more) => more,
                Err(ended) => {
                    let _ = self.flush();
                    return ended;
                }
            };
            self.look_at_client();
            if self.outbox.held_bytes() < self.limits.pending_bytes {
                self.collect();
            }
            let flushed = self.flush();
            self.outbox.attend(false);
            match flushed {
                Ok(true) if self.outbox.is_closing() => {
                    if let Some(tls) = &mut self.tls {
                        tls.say_end(&self.stream);
                    }
                    return self.outbox.fault().map_or(Ended::ByUs, Ended::Protocol);
                }
                Ok(_) => {}
                Err(e) => return e.into(),
            }
            if !self.waiting.is_empty() {
                // Yields, so that replies whose waits ended during this turn are sent before the replies to the
                // client's next requests.
                tokio::task::yield_now().await;
            }
            if let Err(ended) = self.wait(stop, more).await {
                return ended;
            }
        }
    }

    /// Sends as much as the socket takes now. Returns true when everything is sent.
    fn flush(&mut self) -> io::Result<bool> {
        match &mut self.tls {
            None => self.outbox.try_flush(&self.stream),
            Some(tls) => tls.flush(&self.outbox, &self.stream),
        }
    }

    /// Begins TLS after this reply.
    ///
    /// The reply is the last plain byte and must leave at once. Other replies under way would come encrypted to a peer that
    /// has asked for them plainly, and a message that was queued behind this one would come in the midst of a handshake.
    fn start_tls(&mut self, reply: Buffer, config: Arc<ServerConfig>) -> Result<(), Ended> {
        if self.tls.is_some() || !self.waiting.is_empty() {
            return Err(Ended::Protocol("it asked for TLS while its requests were under way".to_owned()));
        }
        self.outbox.send(reply);
        if !self.outbox.try_flush(&self.stream)? {
            return Err(Ended::Protocol("it asked for TLS and took no replies".to_owned()));
        }
        let mut tls = Session::new(config, self.limits.handshake)?;
        let taken_in = tls.take_in(std::mem::take(&mut self.received), &mut self.received);
        self.tls = Some(Box::new(tls));
        Ok(taken_in?)
    }

    /// Takes in messages from other shards.
    fn collect(&mut self) {
        if let Some(patience) = self.outbox.collect() {
            let look = Instant::now() + patience;
            self.look = Some(self.look.map_or(look, |before| before.min(look)));
        }
    }

    /// Answers complete frames until none is left, then returns false. Returns true if the turn ended before that, or
    /// if nothing more may be received.
    fn take_turn(&mut self) -> Result<bool, Ended> {
        let (mut requests, mut bytes) = (0, 0);
        let _turn = Turn::begin();
        let now = turn_clock::now();
        self.look_at_round_trip(now);
        if self.signs.known.get() {
            self.signs.heard.set(now);
        }
        while requests < TURN_REQUESTS && bytes < TURN_BYTES {
            if !self.may_receive() || !self.may_hold() {
                return Ok(true);
            }
            if self.lost {
                return Err(Ended::Panic);
            }
            let Some(frame) = self.next_frame()? else { return Ok(false) };
            requests += 1;
            bytes += frame.len();
            self.answer(frame)?;
            // Unsolicited messages that the request caused go in front of the next reply.
            self.collect();
            let pending = self.outbox.pending_bytes();
            if pending >= SEND_BYTES {
                // Sent while the data is still in the processor's cache, and while the peer has nothing to do.
                self.flush()?;
                let _sent = turn_clock::read(); // the next request is not charged for this
                bytes += pending - self.outbox.pending_bytes();
            }
        }
        Ok(true)
    }

    /// Notes whether the client has identified itself, or is a stranger (again).
    fn look_at_client(&mut self) {
        let is_known = self.protocol.is_known();
        if self.signs.known.replace(is_known) == is_known {
            return;
        }
        self.place.set_known(is_known);
        self.stream.set_known(is_known);
        if is_known {
            self.ration.release();
        }
    }

    /// Reads the round trip time, unless it was read a short while ago.
    fn look_at_round_trip(&mut self, now: Instant) {
        let is_due = |at| now.saturating_duration_since(at) >= ROUND_TRIP_EVERY;
        if self.round_trip_at.is_none_or(is_due) {
            self.outbox.round_trip().note(self.stream.round_trip());
            self.round_trip_at = Some(now);
        }
    }

    /// Takes the next complete frame out of the received bytes.
    fn next_frame(&mut self) -> Result<Option<BytesMut>, Ended> {
        loop {
            self.announced = 0;
            let Some(prefix) = self.received.first_chunk::<PREFIX_BYTES>() else { return Ok(None) };
            let prefix = self.protocol.prefix(*prefix).map_err(|e| Ended::Protocol(e.0))?;
            self.check_size(prefix)?;
            let large = prefix.length > READ_BYTES / 4;
            self.room = if large { prefix.length + PREFIX_BYTES } else { READ_BYTES };
            if self.received.len() - PREFIX_BYTES < prefix.length {
                self.announced = prefix.length + PREFIX_BYTES;
                if self.signs.known.get() {
                    self.received.reserve(self.room - self.received.len());
                }
                return Ok(None);
            }
            self.received.advance(PREFIX_BYTES);
            let part = self.received.split_to(prefix.length);
            if prefix.last && self.fragment_count == 0 {
                return Ok(Some(part));
            }
            if self.fragment_count == 0 && !self.protocol.can_begin(&part) {
                return Err(Ended::Protocol("what comes is of another protocol".to_owned()));
            }
            self.fragment_count += 1;
            self.fragments.extend_from_slice(&part);
            if prefix.last {
                self.fragment_count = 0;
                return Ok(Some(std::mem::take(&mut self.fragments)));
            }
        }
    }

    /// Checks whether a frame may have another fragment of the size that its prefix announces.
    fn check_size(&self, prefix: Prefix) -> Result<(), Ended> {
        let Limits { frame_bytes, fragments, .. } = self.limits;
        if self.fragments.len().saturating_add(prefix.length) > frame_bytes {
            return Err(Ended::Protocol(format!("a frame of more than {frame_bytes} bytes")));
        }
        if self.fragment_count >= fragments {
            return Err(Ended::Protocol(format!("a frame of more than {fragments} fragments")));
        }
        Ok(())
    }

    fn answer(&mut self, frame: BytesMut) -> Result<(), Ended> {
        let bytes = frame.len();
        self.signs.heard.set(turn_clock::now());
        match Rc::clone(&self.protocol).answer(frame) {
            Answer::Now(reply) => self.outbox.send(reply),
            Answer::Nothing => {}
            Answer::StartTls(reply, config) => self.start_tls(reply, config)?,
            Answer::Close(reason) => return Err(Ended::Protocol(reason)),
            Answer::Later(mut later) => match first_poll(&mut later) {
                Poll::Ready(reply) => reply.into_iter().for_each(|r| self.outbox.send(r)),
                Poll::Pending => self.finish_later(later, bytes),
            },
            Answer::Certainly(mut later) => match first_poll(&mut later) {
                Poll::Ready(reply) => reply.into_iter().for_each(|r| self.outbox.send(r)),
                Poll::Pending => {
                    self.finish_later(certainly(later, self.outbox.clone(), Rc::clone(&self.present)), bytes)
                }
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

    /// Notes that a waiting reply is finished. A reply that was lost to a panic will never come, so the connection
    /// ends.
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
        let Limits { pending_frames, pending_frame_bytes, pending_bytes, .. } = self.limits;
        let (frames, frame_bytes, bytes) = if self.signs.known.get() {
            (pending_frames, pending_frame_bytes, pending_bytes)
        } else {
            let (frames, bytes) = (STRANGER_PENDING_FRAMES, STRANGER_PENDING_BYTES);
            (pending_frames.min(frames), pending_frame_bytes.min(bytes), pending_bytes.min(bytes))
        };
        self.waiting.len() < frames
            && self.waiting_bytes < frame_bytes
            && self.outbox.held_bytes() < bytes
            && !self.outbox.is_closing()
    }

    /// Whether there is memory to receive more. For a stranger this covers the whole fragment, the replies that it does
    /// not take, the requests that wait, and what the protocol keeps for it.
    fn may_hold(&mut self) -> bool {
        if self.signs.known.get() {
            return true;
        }
        let session = self.tls.as_ref().map_or(0, |tls| tls.held_bytes());
        let session =
            session.saturating_add(self.stream.held_bytes()).saturating_add(self.protocol.held_bytes());
        let waiting = self.waiting_bytes.saturating_add(self.outbox.held_bytes()).saturating_add(session);
        let fragments = self.fragments.capacity().saturating_add(waiting);
        self.ration.ask(self.received.capacity().max(self.announced).saturating_add(fragments))
    }

    /// Makes room to receive more. A stranger's fragment gets as much room again as has arrived, up to its length.
    fn make_room(&mut self) {
        let length = self.received.len();
        if self.received.capacity() > length {
            return;
        }
        if self.signs.known.get() {
            self.received.reserve(self.room);
            return;
        }
        // To reserve would double the capacity, beyond what was asked for.
        let left = self.announced.saturating_sub(length);
        let room = if left > 0 { length.max(FREE_BYTES).min(left) } else { FREE_BYTES };
        let mut larger = BytesMut::with_capacity(length + room);
        larger.extend_from_slice(&self.received);
        self.received = larger;
    }

    /// Waits until there is something to do. `more`: complete frames may have been received and not answered yet, so
    /// the peer need not send anything.
    async fn wait(&mut self, stop: &mut Stop, more: bool) -> Result<(), Ended> {
        if self.received.is_empty() {
            self.received = BytesMut::new(); // an idle connection holds no memory
        }
        let mut handshake_until = None;
        if let Some(tls) = &mut self.tls {
            tls.rest();
            handshake_until = tls.handshake_until;
            if tls.is_ended() && !more {
                return Err(Ended::ByPeer);
            }
        }
        let may_receive = self.may_receive();
        let receiving = may_receive && self.may_hold();
        if more && receiving {
            tokio::task::yield_now().await;
            return Ok(());
        }
        let sending = match &self.tls {
            None => !self.outbox.is_empty(),
            Some(tls) => tls.has_to_send(&self.outbox),
        };
        self.signs.busy.set(sending || !self.waiting.is_empty());
        let ask_again = (may_receive && !receiving).then(|| Instant::now() + ASK_AGAIN);
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
            () = at(handshake_until), if handshake_until.is_some() => Err(Ended::Handshake),
            () = at(ask_again), if ask_again.is_some() => Ok(()),
            () = at(self.look), if self.look.is_some() => self.check_acknowledged().await,
            () = stop.given() => Err(Ended::Shutdown),
        }
    }

    /// Checks whether the peer still acknowledges what is sent to it. For a connection that is merely busy, the kernel
    /// has had to retransmit nothing, or only once or twice.
    async fn check_acknowledged(&mut self) -> Result<(), Ended> {
        self.look = match self.stream.retransmissions().await? {
            None | Some(0) => None,
            Some(count) if count < RETRANSMISSIONS_MAX => Some(Instant::now() + LOOK_AGAIN),
            Some(_) => {
                // If only the other direction is cut, a reset may still reach the peer. An orderly end would not,
                // because it queues after all bytes that the peer has not acknowledged.
                self.stream.reset_at_end()?;
                return Err(Ended::Unacknowledged);
            }
        };
        Ok(())
    }

    fn receive(&mut self) -> Result<(), Ended> {
        if let Some(mut tls) = self.tls.take() {
            let received = self.receive_encrypted(&mut tls);
            self.tls = Some(tls);
            return received;
        }
        self.make_room();
        match self.stream.try_read(&mut self.received) {
            Ok(0) => Err(Ended::ByPeer),
            Ok(_) => {
                // A peer that sends something is alive. Usually it has sent the answer to the urgent message.
                self.look = None;
                Ok(())
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn receive_encrypted(&mut self, tls: &mut Session) -> Result<(), Ended> {
        match tls.receive(&self.stream, &mut self.received, self.signs.known.get()) {
            Ok(Arrived::End) => return Err(Ended::ByPeer),
            Ok(Arrived::Bytes) => self.look = None,
            Err(error) => {
                let _ = tls.flush(&self.outbox, &self.stream); // the alert
                return Err(error.into());
            }
        }
        if let Some(secured) = tls.completed() {
            self.protocol.secured(secured);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::Arc;

    use tokio::net::TcpStream;

    use super::*;
    use crate::places::Places;
    use crate::ration::Rations;
    use crate::stop::Stopping;
    use crate::{ConnectionLimits, Mailbox, Origin, PrefixError};

    /// Another shard posts an urgent message whenever a frame arrives.
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
    async fn connection<P: Protocol>(
        protocol: impl FnOnce(&Outbox) -> P,
        limits: Limits,
        frames: usize,
    ) -> (Connection<P, Arc<TcpStream>>, TcpStream) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let outbox = Outbox::new(4);
        let stream = listener.accept().await.unwrap().0;
        let origin = Origin::from(stream.peer_addr().unwrap().ip());
        let places = Places::new(ConnectionLimits { max: 1, of_one_address: None });
        let place = places.take(stream.peer_addr().unwrap().ip()).unwrap();
        let ration = Arc::<Rations>::default().open(origin);
        let (protocol, present) = (Rc::new(protocol(&outbox)), Rc::default());
        let stream = Arc::new(stream);
        let mut connection =
            Connection::new(stream, protocol, outbox, limits, Rc::new(place), ration, present);
        connection.signs.known.set(true);
        connection.received = BytesMut::from(&vec![0; frames * (PREFIX_BYTES + 1)][..]);
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

    /// Replies of four bytes occupy a KiB each.
    #[tokio::test]
    async fn a_stranger_that_takes_nothing_is_answered_as_far_as_its_memory_goes() {
        let (mut connection, _peer) = connection(|_| Echo, Limits::default(), 2000).await;
        connection.signs.known.set(false);
        for _ in 0..2000 / TURN_REQUESTS {
            assert!(connection.take_turn().unwrap());
        }
        let held = connection.outbox.held_bytes();
        assert!((STRANGER_PENDING_BYTES..STRANGER_PENDING_BYTES + 2048).contains(&held), "{held}");
    }

    /// The peer waits for the second reply and sends nothing more.
    #[tokio::test]
    async fn a_frame_that_was_held_up_by_what_was_to_be_sent_is_answered_when_that_is_sent() {
        let limits = Limits { pending_bytes: 1, ..Limits::default() };
        let (mut connection, _peer) = connection(|_| Echo, limits, 2).await;
        let stopping = Stopping::default();
        let mut stop = stopping.signal();
        let more = connection.take_turn().unwrap();
        assert!(more && connection.outbox.pending_bytes() == 4, "one is answered, the other held up");
        connection.outbox.filled().await; // its wake-up was for the first reply
        assert!(connection.outbox.try_flush(&connection.stream).unwrap());
        let waited = connection.wait(&mut stop, more);
        tokio::time::timeout(Duration::from_secs(5), waited).await.unwrap().unwrap();
        let more = connection.take_turn().unwrap();
        assert!(more && connection.outbox.pending_bytes() == 4, "the other");
        connection.outbox.try_flush(&connection.stream).unwrap();
        assert!(!connection.take_turn().unwrap(), "there are no more");
    }
}
