//! The state that all clients of one simulation share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;

use crate::chance::Chance;
use crate::machine;
use crate::model::{Data, Locks};
use crate::piece::{Doing, Piece, stamps};
use crate::pipe::{ClientEnd, Weather, connection};
use crate::servers::{Front, Servers};
use crate::trace::Trace;

/// Files that all clients read and write.
pub(crate) const FILES: usize = 8;
/// Blocks of each file.
pub(crate) const BLOCKS: u64 = 8;
/// Bytes of a block.
pub(crate) const BLOCK_BYTES: u32 = 512;
/// The longest time of an operation, whatever happens.
pub(crate) const PATIENCE: Duration = Duration::from_secs(400);

/// The longest time of an operation without a disturbance. All clients answer breaks and recalls at once.
const LONG: Duration = Duration::from_secs(20);

pub(crate) struct World {
    chance: RefCell<Chance>,
    trace: RefCell<Trace>,
    pub(crate) data: RefCell<Data>,
    pub(crate) locks: RefCell<Locks>,
    pub(crate) servers: RefCell<Servers>,
    weather: Weather,
    /// The longest pause of a client between two operations, in milliseconds.
    pub(crate) leisure: u64,
    connections: RefCell<Vec<(Front, u32, ClientEnd)>>,
    /// A hash of all data that was sent over the connections.
    sent: Rc<Cell<u64>>,
    failure: RefCell<Option<String>>,
    /// Until this time, disturbances may delay operations.
    disturbed: Cell<Duration>,
    operations: Cell<u64>,
    goal: u64,
    pub(crate) over: Notify,
}

impl World {
    pub(crate) fn new(
        chance: Chance,
        servers: Servers,
        weather: Weather,
        leisure: u64,
        goal: u64,
        verbose: bool,
    ) -> Rc<Self> {
        Rc::new(Self {
            chance: RefCell::new(chance),
            trace: RefCell::new(Trace::new(verbose)),
            data: RefCell::default(),
            locks: RefCell::default(),
            servers: RefCell::new(servers),
            weather,
            leisure,
            connections: RefCell::default(),
            sent: Rc::default(),
            failure: RefCell::default(),
            disturbed: Cell::default(),
            operations: Cell::new(0),
            goal,
            over: Notify::new(),
        })
    }

    pub(crate) fn below(&self, end: u64) -> u64 {
        self.chance.borrow_mut().below(end)
    }

    /// A random index into a list of `count` items. `count` is at least 1.
    pub(crate) fn pick(&self, count: usize) -> usize {
        usize::try_from(self.below(count as u64)).unwrap_or(0)
    }

    pub(crate) fn once_in(&self, times: u64) -> bool {
        self.chance.borrow_mut().once_in(times)
    }

    pub(crate) fn fill(&self, buffer: &mut [u8]) {
        self.chance.borrow_mut().fill(buffer);
    }

    /// Pauses for a random time of at most `most` milliseconds.
    pub(crate) async fn pause(&self, most: u64) {
        let millis = self.below(most + 1);
        if millis > 0 {
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
    }

    /// Connects a client to a server; `None` while the servers are stopped.
    pub(crate) fn connect(&self, front: Front, client: u32) -> Option<ClientEnd> {
        let (ours, theirs) = connection(&mut self.chance.borrow_mut(), self.weather, &self.sent);
        if !self.servers.borrow().connect(front, client, theirs) {
            return None;
        }
        let mut connections = self.connections.borrow_mut();
        connections.retain(|(_, _, connection)| !connection.is_over());
        connections.push((front, client, ours.clone()));
        Some(ours)
    }

    /// Cuts one of the connections.
    pub(crate) fn cut_one(&self) {
        let connections = self.connections.borrow();
        if !connections.is_empty() {
            let which = self.pick(connections.len());
            self.cut(&connections[which].2, connections[which].1);
        }
    }

    /// Cuts all of the connections.
    pub(crate) fn cut_all(&self) {
        self.connections.borrow().iter().for_each(|(_, client, connection)| self.cut(connection, *client));
    }

    /// Cuts a connection. With its last connection an SMB client loses its opens, or has to reconnect them. From now on
    /// it cannot count on its locks, whether or not it knows that already.
    pub(crate) fn cut(&self, connection: &ClientEnd, client: u32) {
        connection.cut();
        let connections = self.connections.borrow();
        let mut of_client = connections.iter().filter(|(_, of, _)| *of == client);
        if of_client.all(|(front, _, other)| *front == Front::Smb && other.is_over()) {
            self.locks.borrow_mut().uncertain(client);
        }
    }

    /// Notes that an operation was answered, or given up with its connection.
    pub(crate) fn note(&self, client: u32, what: &str, numbers: &[u64]) {
        self.trace.borrow_mut().note(machine::elapsed(), self.sent.get(), client, what, numbers);
    }

    /// Counts an operation that is done.
    pub(crate) fn count(&self) {
        self.operations.set(self.operations.get() + 1);
        if self.operations.get() >= self.goal {
            self.over.notify_one();
        }
    }

    /// Notes a disturbance. For the given time, operations may be slow because of it.
    pub(crate) fn disturb(&self, time: Duration) {
        self.disturbed.set(self.disturbed.get().max(machine::elapsed() + time));
    }

    /// Notes that an operation that began at `begun` was answered now. Without a disturbance, it must not have waited
    /// for long.
    pub(crate) fn answered(&self, client: u32, begun: Duration) {
        let waited = machine::elapsed().saturating_sub(begun.max(self.disturbed.get()));
        if waited > LONG {
            self.fail(client, format!("an operation has waited {waited:?} for nothing"));
        }
        self.count();
    }

    /// Reports a fault, which ends the simulation.
    pub(crate) fn fail(&self, client: u32, what: String) {
        self.note(client, &what, &[]);
        self.failure.borrow_mut().get_or_insert(format!("client {client}: {what}"));
        self.over.notify_one();
    }

    /// Notes a finding of the model.
    pub(crate) fn check(&self, client: u32, finding: Result<(), String>) {
        if let Err(what) = finding {
            self.fail(client, what);
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.operations.get() >= self.goal || self.failure.borrow().is_some()
    }

    pub(crate) fn outcome(&self) -> (u64, u64, Option<String>, Vec<String>) {
        let trace = self.trace.borrow();
        (self.operations.get(), trace.hash(), self.failure.borrow().clone(), trace.lines())
    }

    /// Begins a write of a piece, and returns its stamp.
    pub(crate) fn begin_write(&self, piece: Piece) -> u64 {
        let mut data = self.data.borrow_mut();
        let (stamp, now) = (data.stamp(), machine::elapsed());
        piece.range().for_each(|block| data.begin((piece.file, block), stamp, now));
        stamp
    }

    /// Notes the result of a write.
    pub(crate) fn end_write(&self, piece: Piece, stamp: u64, written: Written) {
        let (mut data, now) = (self.data.borrow_mut(), machine::elapsed());
        for block in piece.range() {
            match written {
                Written::Acknowledged => data.acknowledged((piece.file, block), stamp, now),
                Written::Refused => data.refused((piece.file, block), stamp),
                Written::Unanswered => data.unanswered((piece.file, block), stamp, now),
            }
        }
    }

    /// Notes the writes among calls that will not be answered.
    pub(crate) fn unanswered(&self, calls: impl Iterator<Item = Doing>) {
        for doing in calls {
            if let Doing::Write(piece, stamp) = doing {
                self.end_write(piece, stamp, Written::Unanswered);
            }
        }
    }

    /// Checks the data of a read that began at `begun`.
    pub(crate) fn check_read(&self, client: u32, piece: Piece, bytes: &[u8], begun: Duration) {
        let file = piece.file;
        if bytes.len() != piece.bytes() as usize {
            self.fail(client, format!("a read of {} bytes brought {}", piece.bytes(), bytes.len()));
        }
        for (number, stamp) in stamps(piece, bytes) {
            let finding = match stamp {
                Some(stamp) => self.data.borrow_mut().read((file, number), stamp, begun, machine::elapsed()),
                None => Err(format!("block {number} of file {file} has pieces of several writes")),
            };
            self.check(client, finding);
        }
    }
}

/// A name that only one client makes and removes, so the outcome is known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OwnName {
    pub(crate) is_there: bool,
    /// How many earlier names were given up, because it is not known whether they exist.
    given_up: u32,
}

impl OwnName {
    pub(crate) fn text(self, client: u32, which: usize) -> String {
        format!("own{client}-{which}-{}", self.given_up)
    }

    /// Notes that the name was made, or removed.
    pub(crate) fn turn(&mut self) {
        self.is_there = !self.is_there;
    }

    /// Gives the name up: its change may have been carried out, or may be later. The client takes another name.
    pub(crate) fn give_up(&mut self) {
        *self = Self { is_there: false, given_up: self.given_up + 1 };
    }
}

/// The names whose presence or absence a client knows: the files that all clients use, and the client's own names.
pub(crate) fn known_names(client: u32, own: &[OwnName]) -> impl Iterator<Item = (String, bool)> {
    let own = own.iter().enumerate().map(move |(which, name)| (name.text(client, which), name.is_there));
    (0..FILES).map(|file| (file_name(file), true)).chain(own)
}

/// The name of a file that all clients use.
pub(crate) fn file_name(file: usize) -> String {
    format!("file{file}")
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Acknowledged,
    /// Nothing was written.
    Refused,
    /// The data may have been written, or may be written later.
    Unanswered,
}
