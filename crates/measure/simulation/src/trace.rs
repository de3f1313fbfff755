//! The trace of all events: their hash, and the last lines.

use std::collections::VecDeque;
use std::time::Duration;

/// How many lines are kept for the report of a failure.
const LINES: usize = 2000;

/// The trace. The hash covers all events, in their order.
#[derive(Debug)]
pub(crate) struct Trace {
    hash: u64,
    lines: VecDeque<String>,
    keeps_lines: bool,
}

impl Trace {
    pub(crate) fn new(keeps_lines: bool) -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, lines: VecDeque::new(), keeps_lines }
    }

    /// Notes an event: its time, the hash of all data sent by then, the client, the name of the event, and numbers that
    /// describe it.
    pub(crate) fn note(&mut self, now: Duration, sent: u64, who: u32, what: &str, numbers: &[u64]) {
        self.mix(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX));
        self.mix(sent);
        self.mix(who.into());
        what.bytes().for_each(|byte| self.mix(byte.into()));
        numbers.iter().for_each(|number| self.mix(*number));
        if self.keeps_lines {
            if self.lines.len() == LINES {
                self.lines.pop_front();
            }
            self.lines
                .push_back(format!("{:>14.6} s  client {who:<3} {what} {numbers:x?}", now.as_secs_f64()));
        }
    }

    /// FNV-1a, word by word.
    fn mix(&mut self, word: u64) {
        self.hash = (self.hash ^ word).wrapping_mul(0x0000_0100_0000_01b3);
        self.hash ^= self.hash >> 29;
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.iter().cloned().collect()
    }
}
