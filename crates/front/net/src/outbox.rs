//! The messages that a connection has yet to send.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::mailbox::{Collected, Post};
use crate::room::{Room, Rooms};
use crate::socket::Socket;
use crate::{Buffer, Mailbox, RoundTrip};
use planted::Fault;

/// The most bytes for one vectored write (128 to 256 KiB a send is the measured optimum).
pub(crate) const SEND_BYTES: usize = 256 * 1024;
/// The most slices for one vectored write.
const SEND_SLICES: usize = 64;

/// The sending side of a connection, for its own shard. Clones name the same connection. Messages sent after the
/// connection has ended are dropped.
#[derive(Debug, Clone)]
pub struct Outbox(Rc<Queue>);

#[derive(Debug)]
struct Queue {
    buffers: RefCell<VecDeque<Buffer>>,
    /// Bytes of the first buffer that have been sent.
    sent: Cell<usize>,
    bytes: Cell<usize>,
    /// The number of messages queued so far, and of those sent completely.
    queued_messages: Cell<u64>,
    sent_messages: Cell<u64>,
    /// Memory of the buffers, in bytes.
    held: Cell<usize>,
    closing: Cell<bool>,
    /// Whether the loop of the connection is at work, and will look at the queue before it waits.
    attended: Cell<bool>,
    /// The reason why the protocol has ended the connection, if the client is to blame.
    fault: RefCell<Option<String>>,
    /// The posts from other shards, and the wake-up of the connection's loop.
    post: Arc<Post>,
    round_trip: RoundTrip,
    rooms: Rc<Rooms>,
}

impl Outbox {
    /// The outbox of a new connection. At most `posted_frames` messages from other shards may wait.
    #[must_use]
    pub fn new(posted_frames: usize) -> Self {
        Self(Rc::new(Queue {
            buffers: RefCell::default(),
            sent: Cell::default(),
            bytes: Cell::default(),
            queued_messages: Cell::default(),
            sent_messages: Cell::default(),
            held: Cell::default(),
            closing: Cell::default(),
            attended: Cell::default(),
            fault: RefCell::default(),
            post: Post::new(posted_frames),
            round_trip: RoundTrip::default(),
            rooms: Rc::default(),
        }))
    }

    /// A mailbox that reaches this connection from any thread.
    #[must_use]
    pub fn mailbox(&self) -> Mailbox {
        Mailbox::of(&self.0.post)
    }

    /// The round trip time to the peer, read now and then while the connection is busy.
    #[must_use]
    pub fn round_trip(&self) -> &RoundTrip {
        &self.0.round_trip
    }

    /// Sends a framed message after all earlier ones.
    pub fn send(&self, message: Buffer) {
        if message.is_empty() || planted::strikes(Fault::ReplyLost) {
            return;
        }
        if planted::strikes(Fault::ReplyRepeated) {
            self.queue(Buffer::from(&message[..]));
        }
        self.queue(message);
    }

    fn queue(&self, message: Buffer) {
        self.0.bytes.set(self.0.bytes.get() + message.len());
        self.0.queued_messages.set(self.0.queued_messages.get() + 1);
        self.0.held.set(self.0.held.get() + message.memory_bytes());
        self.0.buffers.borrow_mut().push_back(message);
        if !self.0.attended.get() {
            self.0.post.ready.notify_one();
        }
    }

    /// Notes whether the loop of the connection is at work, and will flush before it waits. Until then, a message that is
    /// queued need not wake it.
    pub(crate) fn attend(&self, is_attended: bool) {
        self.0.attended.set(is_attended);
    }

    /// Waits for room for a reply of this many bytes. The caller asks before it allocates memory for the reply, and
    /// keeps the room until the reply is sent. This waits while the client does not take earlier replies, or while
    /// other replies are being made. `had` is the room that the caller already has for the same reply: room held by
    /// waiting callers holds up no request.
    pub async fn room(&self, bytes: usize, had: usize) -> Room {
        self.0.rooms.enter(bytes, had, || self.held_bytes()).await
    }

    /// Ends the connection once everything is sent.
    pub fn close(&self) {
        self.0.closing.set(true);
        self.0.post.ready.notify_one();
    }

    /// Ends the connection once everything is sent, because its client violates the protocol. The reason is for the
    /// log.
    pub fn break_off(&self, reason: &str) {
        self.0.fault.borrow_mut().get_or_insert_with(|| reason.to_owned());
        self.close();
    }

    /// The reason why the client is to blame for the end, if it is.
    pub(crate) fn fault(&self) -> Option<String> {
        self.0.fault.take()
    }

    /// Memory of the messages that wait to be sent, in bytes. A short reply occupies more than its length.
    pub(crate) fn held_bytes(&self) -> usize {
        self.0.held.get()
    }

    /// Bytes that wait to be sent.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.0.bytes.get()
    }

    /// How many messages have been queued so far. A message that is yet to be queued has a higher number.
    #[must_use]
    pub fn queued_messages(&self) -> u64 {
        self.0.queued_messages.get()
    }

    /// How many messages the socket has taken completely so far. Of each later one the peer has at most a part.
    #[must_use]
    pub fn sent_messages(&self) -> u64 {
        self.0.sent_messages.get()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.buffers.borrow().is_empty()
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.0.closing.get()
    }

    pub(crate) async fn filled(&self) {
        self.0.post.ready.notified().await;
    }

    /// Takes in messages from other shards. Returns the patience of the most urgent one.
    pub(crate) fn collect(&self) -> Option<Duration> {
        let Collected { frames, urgent, close } = self.0.post.collect()?;
        frames.into_iter().for_each(|frame| self.send(frame));
        if close {
            self.close();
        }
        urgent
    }

    /// Ends the outbox with its connection: mailboxes accept no message any more.
    pub(crate) fn end(&self) {
        self.0.post.end();
        self.0.rooms.end();
    }

    /// Sends as much as the socket takes now. Returns true when everything is sent.
    pub(crate) fn try_flush(&self, socket: &impl Socket) -> io::Result<bool> {
        while !self.is_empty() {
            match self.try_send(socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.advance(count),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }

    fn try_send(&self, socket: &impl Socket) -> io::Result<usize> {
        self.next_slices(|slices| socket.try_write(slices))
    }

    /// Lends what is to be sent next: bytes for one vectored write.
    pub(crate) fn next_slices<T>(&self, use_them: impl FnOnce(&[IoSlice<'_>]) -> T) -> T {
        let buffers = self.0.buffers.borrow();
        let mut slices = [IoSlice::new(&[]); SEND_SLICES];
        let (mut count, mut bytes, mut skip) = (0, 0, self.0.sent.get());
        for (slot, buffer) in slices.iter_mut().zip(buffers.iter()) {
            *slot = IoSlice::new(&buffer[skip..]);
            bytes += slot.len();
            count += 1;
            skip = 0;
            if bytes >= SEND_BYTES {
                break;
            }
        }
        use_them(&slices[..count])
    }

    /// Notes that this many bytes were sent.
    pub(crate) fn advance(&self, count: usize) {
        self.0.bytes.set(self.0.bytes.get() - count);
        let mut buffers = self.0.buffers.borrow_mut();
        let mut sent = self.0.sent.get() + count;
        while let Some(first) = buffers.front() {
            if sent < first.len() {
                break;
            }
            sent -= first.len();
            self.0.held.set(self.0.held.get() - first.memory_bytes());
            buffers.pop_front();
            self.0.sent_messages.set(self.0.sent_messages.get() + 1);
        }
        self.0.sent.set(sent);
        self.0.rooms.note();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn a_message_wakes_the_loop_unless_the_loop_is_at_work() {
        let outbox = Outbox::new(1);
        let is_woken = || {
            let filled = pin!(outbox.filled());
            filled.poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
        };
        outbox.attend(true);
        outbox.send(Buffer::from(&b"reply"[..]));
        assert!(!is_woken());
        outbox.attend(false);
        outbox.send(Buffer::from(&b"reply"[..]));
        assert!(is_woken() && !is_woken());
    }
}
