//! Room for large replies: a reply is made only when there is room for it.
//!
//! A request that reads asks for room before it allocates memory for the data, and keeps the room until its reply is in
//! the outbox. So the memory held for a client that does not take its replies is bounded, however many of its requests
//! are under way, and however long the disk takes.

use std::cell::Cell;
use std::rc::Rc;

use tokio::sync::{Mutex, Notify};

/// The most bytes of replies that wait to be sent or are being made.
pub const REPLIES_BYTES_MAX: usize = 4 << 20;
/// Replies of up to this many bytes need not wait for larger ones, which may take long.
pub const SMALL_REPLY_BYTES_MAX: usize = 64 << 10;
/// Bytes reserved for small replies.
pub const SMALL_REPLIES_BYTES: usize = 512 << 10;

/// Tracks the replies that are being made for one connection. For the connection's own shard.
#[derive(Debug, Default)]
pub(crate) struct Rooms {
    small: Line,
    large: Line,
    /// Bytes of room held by requests that wait for more room. These bytes hold up no request.
    stalled: Cell<usize>,
    is_over: Cell<bool>,
}

/// Replies of one class of size.
#[derive(Debug, Default)]
struct Line {
    /// Bytes of replies that are being made.
    making: Cell<usize>,
    /// How many requests wait for room. `turn` keeps them in order of arrival.
    waiting: Cell<usize>,
    turn: Mutex<()>,
    more: Notify,
}

/// Room for a reply that is being made, held until this is dropped.
#[derive(Debug)]
pub struct Room {
    rooms: Rc<Rooms>,
    small_bytes: usize,
    large_bytes: usize,
}

impl Rooms {
    /// Waits for room for a reply of this many bytes. `held` returns how much waits to be sent; `had` is the room that
    /// the caller has for the same reply.
    pub(crate) async fn enter(self: &Rc<Self>, bytes: usize, had: usize, held: impl Fn() -> usize) -> Room {
        let is_small = bytes <= SMALL_REPLY_BYTES_MAX;
        let line = if is_small { &self.small } else { &self.large };
        if line.waiting.get() > 0 || !self.is_free(bytes, held()) {
            Box::pin(self.wait(line, bytes, had, held)).await;
        }
        line.making.set(line.making.get() + bytes);
        let (small_bytes, large_bytes) = if is_small { (bytes, 0) } else { (0, bytes) };
        Room { rooms: Rc::clone(self), small_bytes, large_bytes }
    }

    async fn wait(&self, line: &Line, bytes: usize, had: usize, held: impl Fn() -> usize) {
        let _place = Added::to(&line.waiting, 1);
        let _stalled = Added::to(&self.stalled, had);
        self.note(); // others may have waited for the bytes that are stalled now
        let _turn = line.turn.lock().await;
        while !self.is_free(bytes, held()) {
            line.more.notified().await;
        }
    }

    /// Notes that a message was sent, or is no longer to be sent.
    pub(crate) fn note(&self) {
        for line in [&self.small, &self.large] {
            if line.waiting.get() > 0 {
                line.more.notify_one();
            }
        }
    }

    /// Notes that the connection has ended: requests that are still carried out need no room.
    pub(crate) fn end(&self) {
        self.is_over.set(true);
        self.note();
    }

    /// Whether there is room for a reply. A reply that is larger than the limit is made alone, apart from small ones.
    fn is_free(&self, bytes: usize, held: usize) -> bool {
        let (small, large) = (self.small.making.get(), self.large.making.get());
        let taken = small.saturating_add(large).saturating_add(held);
        let is_alone = held == 0 && taken.saturating_sub(self.stalled.get()) <= SMALL_REPLIES_BYTES;
        let fits = if bytes > SMALL_REPLY_BYTES_MAX {
            taken.saturating_add(bytes) <= REPLIES_BYTES_MAX - SMALL_REPLIES_BYTES
        } else {
            // Small replies must not keep large ones out for ever.
            let gives_way = self.large.waiting.get() > 0 && small.saturating_add(bytes) > SMALL_REPLIES_BYTES;
            taken.saturating_add(bytes) <= REPLIES_BYTES_MAX && !gives_way
        };
        fits || is_alone || self.is_over.get()
    }
}

impl Room {
    /// Bytes of room.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.small_bytes.saturating_add(self.large_bytes)
    }

    /// Adds the room for another part of the same reply.
    pub fn add(&mut self, mut other: Self) {
        self.small_bytes += std::mem::take(&mut other.small_bytes);
        self.large_bytes += std::mem::take(&mut other.large_bytes);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let Rooms { small, large, .. } = &*self.rooms;
        small.making.set(small.making.get() - self.small_bytes);
        large.making.set(large.making.get() - self.large_bytes);
        self.rooms.note();
    }
}

/// A number that is added to a cell until this is dropped.
struct Added<'a> {
    to: &'a Cell<usize>,
    count: usize,
}

impl<'a> Added<'a> {
    fn to(to: &'a Cell<usize>, count: usize) -> Self {
        to.set(to.get() + count);
        Self { to, count }
    }
}

impl Drop for Added<'_> {
    fn drop(&mut self) {
        self.to.set(self.to.get() - self.count);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    const MIB: usize = 1 << 20;

    fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    #[test]
    fn answers_are_made_as_far_as_there_is_room() {
        let (rooms, held) = (Rc::<Rooms>::default(), Cell::new(0));
        let enter = |bytes| rooms.enter(bytes, 0, || held.get());
        drop(poll(pin!(enter(20 * MIB))).unwrap());
        let first: Vec<_> = (0..3).map(|_| poll(pin!(enter(MIB))).unwrap()).collect();
        assert!(poll(pin!(enter(MIB))).is_none(), "too much is under way");
        held.set(2 * MIB);
        drop(first);
        let one = poll(pin!(enter(MIB))).unwrap();
        assert!(poll(pin!(enter(MIB))).is_none(), "the client takes nothing");
        let small: Vec<_> = (0..16).map(|_| poll(pin!(enter(SMALL_REPLY_BYTES_MAX))).unwrap()).collect();
        assert!(poll(pin!(enter(SMALL_REPLY_BYTES_MAX))).is_none(), "nor small ones");
        drop((one, small));
        assert!(poll(pin!(enter(MIB))).is_some());
        held.set(REPLIES_BYTES_MAX + 1);
        assert!(poll(pin!(enter(1))).is_none());
    }

    #[test]
    fn small_answers_pass_large_ones_that_wait_but_do_not_keep_them_out() {
        let (rooms, held) = (Rc::<Rooms>::default(), Cell::new(0));
        let enter = |bytes| rooms.enter(bytes, 0, || held.get());
        let large: Vec<_> = (0..3).map(|_| poll(pin!(enter(MIB))).unwrap()).collect();
        let mut waits = pin!(enter(8 * MIB));
        assert!(poll(waits.as_mut()).is_none());
        let small: Vec<_> = (0..8).map(|_| poll(pin!(enter(SMALL_REPLY_BYTES_MAX))).unwrap()).collect();
        assert!(poll(pin!(enter(SMALL_REPLY_BYTES_MAX))).is_none(), "that much is kept for them");
        drop(large);
        let alone = poll(waits.as_mut()).unwrap();
        assert!(poll(pin!(enter(MIB))).is_none());
        drop((alone, small));
        assert!(poll(pin!(enter(MIB))).is_some());
    }

    #[test]
    fn who_waits_comes_in_turn_and_at_the_end_at_once() {
        let (rooms, held) = (Rc::<Rooms>::default(), Cell::new(4 * MIB));
        let enter = |bytes| rooms.enter(bytes, 0, || held.get());
        let (mut first, mut second) = (pin!(enter(2 * MIB)), pin!(enter(SMALL_REPLY_BYTES_MAX + 1)));
        assert!(poll(first.as_mut()).is_none() && poll(second.as_mut()).is_none());
        held.set(2 * MIB);
        rooms.note();
        assert!(
            poll(second.as_mut()).is_none() && poll(first.as_mut()).is_none(),
            "it waits behind the other"
        );
        held.set(MIB);
        rooms.note();
        let entered = poll(first.as_mut()).unwrap();
        assert!(poll(second.as_mut()).is_some());
        drop(entered);
        held.set(4 * MIB);
        let mut last = pin!(enter(MIB));
        assert!(poll(last.as_mut()).is_none());
        rooms.end();
        assert!(poll(last.as_mut()).is_some());
        assert_eq!((rooms.small.waiting.get(), rooms.large.waiting.get()), (0, 0));
    }

    #[test]
    fn those_who_have_room_and_want_more_do_not_wait_for_each_other() {
        let rooms = Rc::<Rooms>::default();
        let enter = |bytes, had| rooms.enter(bytes, had, || 0);
        let (mut one, mut two) = (poll(pin!(enter(MIB, 0))).unwrap(), poll(pin!(enter(2 * MIB, 0))).unwrap());
        let (mut of_one, mut of_two) = (pin!(enter(8 * MIB, one.bytes())), pin!(enter(8 * MIB, two.bytes())));
        assert!(poll(of_one.as_mut()).is_none(), "the other one goes on");
        assert!(poll(of_two.as_mut()).is_none(), "it is behind the first");
        one.add(poll(of_one.as_mut()).unwrap());
        assert!(poll(of_two.as_mut()).is_none() && one.bytes() == 9 * MIB);
        drop(one);
        two.add(poll(of_two.as_mut()).unwrap());
        drop(two);
        assert_eq!((rooms.large.making.get(), rooms.stalled.get()), (0, 0));
    }
}
