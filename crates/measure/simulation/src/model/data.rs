//! The blocks of files, as registers that several clients read and write concurrently.
//!
//! Each write has a unique stamp, so a value identifies its write. A read may return the last write that was
//! acknowledged before the read began, or any write that was under way during the read. It must not return a write that
//! had been replaced before the read began.

use std::collections::HashMap;
use std::time::Duration;

/// How long a write may still take effect after the connection for its reply was lost.
const UNANSWERED: Duration = Duration::from_secs(600);
/// How long replaced writes are remembered, so that a read of old data can be told from a read of garbage.
const REMEMBERED: Duration = Duration::from_secs(3600);

/// A block of a file.
pub(crate) type Block = (usize, u64);

#[derive(Debug, Clone, Copy)]
struct Write {
    stamp: u64,
    begun: Duration,
    /// A write that begins after this time certainly replaces this one.
    settled: Option<Duration>,
    /// Reads that begin after this time do not return this write.
    replaced: Option<Duration>,
}

/// All blocks.
#[derive(Debug, Default)]
pub(crate) struct Data {
    blocks: HashMap<Block, Vec<Write>>,
    next: u64,
}

impl Data {
    /// Returns a new unique stamp.
    pub(crate) fn stamp(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn writes(&mut self, block: Block) -> &mut Vec<Write> {
        let zeros = Write { stamp: 0, begun: Duration::ZERO, settled: Some(Duration::ZERO), replaced: None };
        self.blocks.entry(block).or_insert_with(|| vec![zeros])
    }

    /// Notes that a write is sent.
    pub(crate) fn begin(&mut self, block: Block, stamp: u64, now: Duration) {
        let writes = self.writes(block);
        writes.retain(|write| write.replaced.is_none_or(|at| at + REMEMBERED > now));
        writes.push(Write { stamp, begun: now, settled: None, replaced: None });
    }

    /// Notes that a write was acknowledged.
    pub(crate) fn acknowledged(&mut self, block: Block, stamp: u64, now: Duration) {
        let writes = self.writes(block);
        if let Some(write) = writes.iter_mut().find(|write| write.stamp == stamp) {
            write.settled = Some(now);
            let begun = write.begun;
            replace(writes, stamp, begun, now);
        }
    }

    /// Notes that the server refused a write: no read may return it.
    pub(crate) fn refused(&mut self, block: Block, stamp: u64) {
        self.writes(block).retain(|write| write.stamp != stamp);
    }

    /// Notes that a write will not be answered: it may take effect soon, later, or never.
    pub(crate) fn unanswered(&mut self, block: Block, stamp: u64, now: Duration) {
        if let Some(write) = self.writes(block).iter_mut().find(|write| write.stamp == stamp) {
            write.settled = Some(now + UNANSWERED);
        }
    }

    /// Checks the value that a read returned which began at `begun`.
    pub(crate) fn read(
        &mut self,
        block: Block,
        stamp: u64,
        begun: Duration,
        now: Duration,
    ) -> Result<(), String> {
        let (file, number) = block;
        let writes = self.writes(block);
        let Some(write) = writes.iter().find(|write| write.stamp == stamp).copied() else {
            return Err(format!(
                "block {number} of file {file} has the value {stamp:#x}, which nobody wrote"
            ));
        };
        if let Some(replaced) = write.replaced
            && replaced < begun
        {
            return Err(format!(
                "block {number} of file {file} has the value {stamp:#x}, which was replaced {:?} before the read",
                begun.saturating_sub(replaced)
            ));
        }
        replace(writes, stamp, write.begun, now);
        Ok(())
    }
}

/// Replaces the writes that had settled before this write began, because this write has now taken effect.
fn replace(writes: &mut [Write], stamp: u64, begun: Duration, now: Duration) {
    for other in writes {
        if other.stamp != stamp && other.settled.is_some_and(|at| at < begun) && other.replaced.is_none() {
            other.replaced = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: Block = (0, 0);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_read_returns_what_was_acknowledged_or_is_under_way() {
        let mut data = Data::default();
        data.begin(BLOCK, 1, at(1));
        assert!(data.read(BLOCK, 0, at(1), at(2)).is_ok());
        assert!(data.read(BLOCK, 1, at(1), at(2)).is_ok());
        data.acknowledged(BLOCK, 1, at(3));
        assert!(data.read(BLOCK, 0, at(3), at(4)).is_err(), "the other value had been read by then");
        data.begin(BLOCK, 2, at(5));
        data.unanswered(BLOCK, 2, at(6));
        assert!(data.read(BLOCK, 1, at(7), at(8)).is_ok());
        assert!(data.read(BLOCK, 2, at(9), at(10)).is_ok());
        assert!(data.read(BLOCK, 1, at(11), at(12)).is_err(), "a value that was replaced has returned");
    }

    #[test]
    fn an_acknowledged_write_is_not_lost() {
        let mut data = Data::default();
        data.begin(BLOCK, 1, at(1));
        data.acknowledged(BLOCK, 1, at(2));
        assert!(data.read(BLOCK, 0, at(1), at(3)).is_ok(), "the read began before the acknowledgment");
        assert!(data.read(BLOCK, 0, at(3), at(4)).is_err());
        assert!(data.read(BLOCK, 9, at(3), at(4)).is_err(), "nobody wrote it");
    }

    #[test]
    fn a_refused_write_is_never_seen() {
        let mut data = Data::default();
        data.begin(BLOCK, 1, at(1));
        data.refused(BLOCK, 1);
        assert!(data.read(BLOCK, 0, at(2), at(3)).is_ok());
        assert!(data.read(BLOCK, 1, at(2), at(3)).is_err());
    }
}
