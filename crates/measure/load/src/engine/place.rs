//! A place of the load: one operation after the other, as a thread with a queue depth of one would do them.

use std::time::Instant;

use super::Block;
use crate::result::Operation;

/// The metadata cycle.
pub(super) const CYCLE: [Operation; 7] = [
    Operation::Create,
    Operation::Close,
    Operation::Open,
    Operation::Stat,
    Operation::Close,
    Operation::List,
    Operation::Delete,
];

/// What a place is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// Nothing, or it has no operation yet.
    Nothing,
    Read(Block),
    Write(Block),
    /// A step of [`CYCLE`].
    Step(usize),
}

/// One place.
#[derive(Debug)]
pub(super) struct Place {
    /// The thread of the workload that it belongs to.
    pub(super) thread: usize,
    /// Its number over all threads of this machine.
    pub(super) number: usize,
    pub(super) doing: Doing,
    /// When the operation could have been sent.
    pub(super) due: Instant,
    /// When the cycle could have begun.
    pub(super) cycle_due: Instant,
    /// When the request was really sent; `None` while none is under way.
    pub(super) sent: Option<Instant>,
    /// The connection that carries it.
    pub(super) lane: usize,
    /// Generations that a read must have seen.
    pub(super) before: Vec<u16>,
    /// Cycles that were begun.
    pub(super) cycles: u64,
    pub(super) random: u64,
}

impl Place {
    pub(super) fn new(number: usize, thread: usize, now: Instant) -> Self {
        let random = crate::pattern::mixed(number as u64 + 1);
        Self {
            thread,
            number,
            doing: Doing::Nothing,
            due: now,
            cycle_due: now,
            sent: None,
            lane: 0,
            before: Vec::new(),
            cycles: 0,
            random,
        }
    }

    /// The next random number of this place.
    pub(super) fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        crate::pattern::mixed(self.random)
    }

    /// The file of its cycle.
    pub(super) fn name(&self, round: u32) -> String {
        cycle_name(round, self.number, self.cycles % CYCLE_NAMES)
    }
}

/// Names that a place uses in turn, so that caches of clients and servers cannot know each.
pub(crate) const CYCLE_NAMES: u64 = 8;

/// The name of a file of the metadata workload.
pub(crate) fn cycle_name(round: u32, place: usize, cycle: u64) -> String {
    format!("c{round}-{place}-{cycle}")
}
