//! A trace that is done again: which of its operations comes next, and when.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::place::Doing;
use super::{Block, Shared};
use crate::trace::Replay;

/// How long a write waits for one that is under way on the same bytes.
const BESIDE: Duration = Duration::from_micros(100);

/// A trace while it is done again.
pub(crate) struct Replaying<'a> {
    replay: &'a Replay,
    begin: Instant,
    /// How many operations have begun.
    begun: Mutex<usize>,
}

/// What comes next.
pub(super) enum Next {
    /// This; and when it was due.
    Do(Doing, Instant),
    /// Nothing before then.
    At(Instant),
    /// Nothing any more.
    Over,
}

impl<'a> Replaying<'a> {
    pub(super) fn new(replay: &'a Replay, begin: Instant) -> Self {
        Self { replay, begin, begun: Mutex::new(0) }
    }

    /// Bytes of the longest operation.
    pub(super) fn longest(&self) -> u32 {
        self.replay.trace.longest()
    }

    /// All operations have begun.
    pub(super) fn is_over(&self) -> bool {
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) >= self.replay.trace.operations().len()
    }

    /// Takes the next operation if it is due. A write has its bytes claimed then; it is not overtaken by what comes after it.
    pub(super) fn next(&self, shared: &Shared<'_>, now: Instant) -> Next {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(operation) = self.replay.trace.operations().get(*begun) else { return Next::Over };
        let due = match self.replay.speed {
            Some(speed) => self.begin + operation.at.div_f64(speed),
            None => now,
        };
        if due > now {
            return Next::At(due);
        }
        let block = Block {
            file: usize::try_from(operation.file).unwrap_or(usize::MAX),
            offset: operation.offset,
            length: operation.bytes,
        };
        // Where nothing is compared, two writes may well be under way on the same bytes.
        if operation.writes
            && shared.workload.check
            && !shared.files.claim(block.file, block.offset, block.length as usize)
        {
            return Next::At(now + BESIDE);
        }
        *begun += 1;
        Next::Do(if operation.writes { Doing::Write(block) } else { Doing::Read(block) }, due)
    }
}
