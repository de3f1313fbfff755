//! The operations of clients, as the fronts that serve them describe them: one row for each.

use access_log::Kind;
use accounting::{Api, Direction};

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
    /// The attributes before, where they are at hand, and after.
    Attributes,
    /// The attributes before and after, and whether no other change lies between them.
    Change,
}

/// An operation, as its front describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// The front.
    pub front: &'static Front,
    /// How it is counted.
    pub api: Api,
    /// How it counts against the budget of a share.
    pub turn: Turn,
    /// The kind as which the access log has it. None: what it turns out to do decides.
    pub kind: Option<Kind>,
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

impl Operation {
    /// An operation that waits for its turn, and moves no data.
    ///
    /// # Panics
    /// While it is compiled, if the number is not below [`accounting::APIS_MAX`].
    #[must_use]
    pub const fn new(front: &'static Front, number: usize, name: &'static str) -> Self {
        Self { front, api: Api::new(front.name, number, name), turn: Turn::Waits, kind: None }
    }

    /// The same operation, which counts in this way.
    #[must_use]
    pub const fn with(self, turn: Turn) -> Self {
        let data = match turn {
            Turn::ByData(direction) => Some(direction),
            Turn::Waits | Turn::Charged => None,
        };
        let kind = match data {
            Some(Direction::Read) => Some(Kind::Read),
            Some(Direction::Write) => Some(Kind::Write),
            None => self.kind,
        };
        Self { api: Api { data, ..self.api }, turn, kind, ..self }
    }

    /// The same operation, which the access log has as one of this kind.
    #[must_use]
    pub const fn of_kind(self, kind: Kind) -> Self {
        Self { kind: Some(kind), ..self }
    }
}
