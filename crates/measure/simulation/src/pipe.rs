//! The network: connections in memory that delay, split and lose data.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use tokio::sync::Notify;
use tokio::time::sleep_until;

use crate::chance::Chance;

/// The most bytes that may wait in one direction. A writer that sends more has to wait.
const CAPACITY: usize = 256 * 1024;

/// How a network treats the data that is sent over it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weather {
    /// One write in this many arrives in pieces; 0 for none.
    pub(crate) splits: u64,
    /// One piece in this many is late; 0 for none.
    pub(crate) delays: u64,
    /// The longest delay of a piece.
    pub(crate) delay_max: Duration,
}

struct Piece {
    at: Instant,
    bytes: VecDeque<u8>,
}

/// One direction of a connection.
struct Direction {
    pieces: RefCell<VecDeque<Piece>>,
    held: Cell<usize>,
    /// The sender is gone. Data that was sent still arrives.
    ended: Cell<bool>,
    /// The connection was cut. No more data arrives.
    cut: Cell<bool>,
    changed: Notify,
    room: Notify,
    chance: Cell<Chance>,
    weather: Weather,
    /// A hash of all data that was sent.
    hash: Rc<Cell<u64>>,
}

impl Direction {
    fn new(chance: Chance, weather: Weather, hash: &Rc<Cell<u64>>) -> Rc<Self> {
        Rc::new(Self {
            pieces: RefCell::default(),
            held: Cell::new(0),
            ended: Cell::new(false),
            cut: Cell::new(false),
            changed: Notify::new(),
            room: Notify::new(),
            chance: Cell::new(chance),
            weather,
            hash: Rc::clone(hash),
        })
    }

    /// Appends bytes in pieces, each with its time of arrival. Pieces never overtake each other.
    fn push(&self, bytes: &[u8]) {
        self.hash.set(mixed(self.hash.get(), bytes));
        let mut chance = self.chance.get();
        let mut pieces = self.pieces.borrow_mut();
        let mut rest = bytes;
        while !rest.is_empty() {
            let splits = self.weather.splits > 0 && chance.once_in(self.weather.splits);
            let length = if splits { 1 + chance.pick(rest.len()) } else { rest.len() };
            let (piece, after) = rest.split_at(length);
            rest = after;
            let is_late = self.weather.delays > 0 && chance.once_in(self.weather.delays);
            let delay = if is_late { chance.up_to(self.weather.delay_max) } else { Duration::ZERO };
            let at = Instant::now() + delay;
            let at = pieces.back().map_or(at, |last| last.at.max(at));
            pieces.push_back(Piece { at, bytes: piece.iter().copied().collect() });
        }
        drop(pieces);
        self.chance.set(chance);
        self.held.set(self.held.get() + bytes.len());
        self.changed.notify_one();
    }

    /// Takes at most `most` of the bytes that have arrived. Returns `None` while none have arrived, and an empty vector
    /// at the end.
    fn pull(&self, most: usize) -> io::Result<Option<Vec<u8>>> {
        if self.cut.get() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let now = Instant::now();
        let mut pieces = self.pieces.borrow_mut();
        let mut taken = Vec::new();
        while let Some(first) = pieces.front_mut() {
            if first.at > now || taken.len() >= most {
                break;
            }
            let count = first.bytes.len().min(most - taken.len());
            taken.extend(first.bytes.drain(..count));
            if first.bytes.is_empty() {
                pieces.pop_front();
            }
        }
        if taken.is_empty() && !(self.ended.get() && pieces.is_empty()) {
            return Ok(None);
        }
        self.held.set(self.held.get() - taken.len());
        self.room.notify_one();
        Ok(Some(taken))
    }

    /// Resolves when [`Self::pull`] has something to return.
    async fn arrived(&self) {
        loop {
            let front = self.pieces.borrow().front().map(|piece| piece.at);
            match front {
                _ if self.cut.get() => return,
                Some(at) if at <= Instant::now() => return,
                Some(at) => {
                    tokio::select! {
                        biased;
                        () = self.changed.notified() => {}
                        () = sleep_until(at.into()) => {}
                    }
                }
                None if self.ended.get() => return,
                None => self.changed.notified().await,
            }
        }
    }

    fn end(&self) {
        self.ended.set(true);
        self.changed.notify_one();
        self.room.notify_one();
    }

    fn cut(&self) {
        self.cut.set(true);
        self.changed.notify_one();
        self.room.notify_one();
    }
}

/// The server's end of a connection.
pub(crate) struct ServerEnd {
    from: Rc<Direction>,
    to: Rc<Direction>,
}

/// The client's end of a connection.
#[derive(Clone)]
pub(crate) struct ClientEnd {
    from: Rc<Direction>,
    to: Rc<Direction>,
    received: Rc<RefCell<Vec<u8>>>,
}

/// Mixes bytes into a hash: FNV-1a, by words.
fn mixed(hash: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let words =
        words.iter().map(|word| u64::from_le_bytes(*word)).chain(rest.iter().map(|byte| u64::from(*byte)));
    words.fold(hash, |hash, word| (hash ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23))
}

/// Makes a connection. The data sent over it in both directions goes into `hash`.
pub(crate) fn connection(
    chance: &mut Chance,
    weather: Weather,
    hash: &Rc<Cell<u64>>,
) -> (ClientEnd, ServerEnd) {
    let up = Direction::new(Chance::new(chance.next()), weather, hash);
    let down = Direction::new(Chance::new(chance.next()), weather, hash);
    let server = ServerEnd { from: Rc::clone(&up), to: Rc::clone(&down) };
    (ClientEnd { from: down, to: up, received: Rc::default() }, server)
}

impl Drop for ServerEnd {
    fn drop(&mut self) {
        self.to.end();
        self.from.cut();
    }
}

impl net::Socket for ServerEnd {
    async fn readable(&self) -> io::Result<()> {
        self.from.arrived().await;
        Ok(())
    }

    async fn writable(&self) -> io::Result<()> {
        while self.to.held.get() >= CAPACITY && !self.to.cut.get() {
            self.to.room.notified().await;
        }
        Ok(())
    }

    fn try_read(&self, received: &mut BytesMut) -> io::Result<usize> {
        let room = received.capacity() - received.len();
        let bytes = self.from.pull(room.max(1))?.ok_or(io::ErrorKind::WouldBlock)?;
        received.extend_from_slice(&bytes);
        Ok(bytes.len())
    }

    fn try_write(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        if self.to.cut.get() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let mut written = 0;
        for slice in slices {
            let room = CAPACITY.saturating_sub(self.to.held.get());
            let piece = slice.get(..slice.len().min(room)).unwrap_or_default();
            if piece.is_empty() && !slice.is_empty() {
                break;
            }
            self.to.push(piece);
            written += piece.len();
        }
        if written == 0 { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(written) }
    }

    fn round_trip(&self) -> Option<Duration> {
        None
    }

    async fn retransmissions(&self) -> io::Result<Option<u32>> {
        Ok(None)
    }

    fn reset_at_end(&self) -> io::Result<()> {
        self.to.cut();
        Ok(())
    }
}

impl ClientEnd {
    /// Sends bytes. Bytes that do not fit wait in the network: clients are never slow in sending.
    pub(crate) fn send(&self, bytes: &[u8]) {
        if !self.to.cut.get() {
            self.to.push(bytes);
        }
    }

    /// Returns the next message with its prefix; `None` when the connection has ended. `length` computes the length of
    /// the whole message from the bytes that have arrived.
    pub(crate) async fn message(&self, length: impl Fn(&[u8]) -> Option<usize>) -> Option<Vec<u8>> {
        loop {
            {
                let mut received = self.received.borrow_mut();
                if let Some(whole) = length(&received).filter(|whole| *whole <= received.len()) {
                    let rest = received.split_off(whole);
                    return Some(std::mem::replace(&mut received, rest));
                }
            }
            self.from.arrived().await;
            match self.from.pull(usize::MAX) {
                Ok(Some(bytes)) if bytes.is_empty() => return None,
                Ok(Some(bytes)) => self.received.borrow_mut().extend_from_slice(&bytes),
                Ok(None) => {}
                Err(_) => return None,
            }
        }
    }

    /// Whether data is on its way to the client, or has arrived unread.
    pub(crate) fn has_more(&self) -> bool {
        !self.received.borrow().is_empty() || self.from.held.get() > 0
    }

    /// Whether the connection has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.from.cut.get() || (self.from.ended.get() && self.from.held.get() == 0)
    }

    /// Cuts the connection: data on its way in both directions is lost.
    pub(crate) fn cut(&self) {
        self.to.cut();
        self.from.cut();
    }
}
