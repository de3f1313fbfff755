//! The operations of clients, as the fronts that serve them describe them: one row for each.

use std::cmp::Ordering;

/// The most different operations that come over one connection.
pub const OPERATIONS_MAX: usize = 128;

/// A protocol by which clients reach shares, as far as shares treat its clients differently.
#[derive(Debug, PartialEq, Eq)]
pub struct Front {
    /// The name in metrics.
    pub name: &'static str,
    /// How long its operations wait for what other clients cache.
    pub patience: Patience,
    /// What its clients are told about a directory in which they have changed a name.
    pub directories: DirectoryReport,
}

/// How long an operation waits until other clients have given up what they cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// As long as these clients may take ([`Settings::break_timeout`](crate::Settings::break_timeout)).
    AsLongAsHolders,
    /// No longer than [`Settings::retry_after`](crate::Settings::retry_after): then its client is told to retry.
    UntilRetry,
}

/// What a client is told about a directory in which it has changed a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DirectoryReport {
    /// Nothing.
    Nothing,
    /// The attributes before, where they are at hand, and after (RFC 1813 2.6, `wcc_data`).
    Attributes,
    /// The attributes before and after, and whether no other change lies between them (RFC 8881 3.3.8, `change_info4`).
    Change,
}

/// An operation, as its front describes it.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    /// The front.
    pub front: &'static Front,
    /// The number of the operation, below [`OPERATIONS_MAX`]. Operations that come over one connection have different numbers.
    pub number: usize,
    /// The name in metrics. Operations of a front that share a name are counted together.
    pub name: &'static str,
    /// How the operation counts against the budget of a share.
    pub turn: Turn,
}

/// How an operation counts against the budget of a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// By the bytes that it moves, once they are known ([`Share::read`](crate::Share::read),
    /// [`Share::write`](crate::Share::write)).
    ByData(Direction),
    /// As one operation that waits for its turn.
    Waits,
    /// As one operation that does not wait: others wait for what it releases, or it waits for something else.
    Charged,
}

/// Where the data of an operation goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the client (Azure Monitor: Egress).
    Read,
    /// From the client (Azure Monitor: Ingress).
    Write,
}

impl Operation {
    /// An operation that waits for its turn, and moves no data.
    ///
    /// # Panics
    /// While it is compiled, if the number is not below [`OPERATIONS_MAX`].
    #[must_use]
    pub const fn new(front: &'static Front, number: usize, name: &'static str) -> Self {
        assert!(number < OPERATIONS_MAX, "a connection's accounts have no place for this number");
        Self { front, number, name, turn: Turn::Waits }
    }

    /// The same operation, which counts in this way.
    #[must_use]
    pub const fn with(self, turn: Turn) -> Self {
        Self { turn, ..self }
    }

    /// Whether the operation moves data. All others are about names and attributes, as in the metadata share of Azure Files.
    #[must_use]
    pub fn moves_data(&self) -> bool {
        matches!(self.turn, Turn::ByData(_))
    }

    /// Whether its bytes are sent to the client: Egress.
    #[must_use]
    pub fn is_read(&self) -> bool {
        self.turn == Turn::ByData(Direction::Read)
    }

    /// Whether its bytes are received from the client: Ingress.
    #[must_use]
    pub fn is_write(&self) -> bool {
        self.turn == Turn::ByData(Direction::Write)
    }

    fn key(&self) -> (&'static str, &'static str) {
        (self.front.name, self.name)
    }
}

/// Operations that are counted together are equal.
impl PartialEq for Operation {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Operation {}

impl PartialOrd for Operation {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Operation {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
