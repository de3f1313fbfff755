//! Recorded reads and writes that are done again: the same sizes, at the same offsets of as many files, in the same order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of all files together: as many as a run writes before it replays.
const BYTES_MAX: u64 = 256 << 30;
/// Files of a trace.
const FILES_MAX: usize = 10_000;
/// Sizes of files are multiples of this, so that they can be written in large blocks.
const FILE_UNIT: u64 = 64 << 10;
/// What is read can be compared where all offsets and lengths are multiples of this.
const GRANULE_MIN: u64 = 512;
/// Granules of which a run keeps in memory what they hold: 256 MiB.
const GRANULES_MAX: u64 = 1 << 26;

/// One read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traced {
    /// When it came, since the first one.
    pub at: Duration,
    /// It is a write.
    pub writes: bool,
    /// The number of its file; in a [`Trace`] from 0 on.
    pub file: u64,
    /// Where it begins.
    pub offset: u64,
    /// Its bytes.
    pub bytes: u32,
}

/// Reads and writes in the order in which they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    operations: Vec<Traced>,
    sizes: Vec<u64>,
    unit: u64,
}

/// How a trace is done again.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// What is done.
    pub trace: Arc<Trace>,
    /// How many times as fast as it was recorded; none: as fast as answers come.
    pub speed: Option<f64>,
}

impl Replay {
    /// Seconds from its first operation to its last; 0 where they come as fast as answers do.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        let last = self.trace.operations.last().map_or(Duration::ZERO, |o| o.at);
        self.speed.map_or(0.0, |speed| last.as_secs_f64() / speed)
    }
}

/// Why something cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoTrace {
    /// Nothing in it moves data.
    #[error("there is no read and no write of any bytes in it")]
    Empty,
    /// More than a run makes.
    #[error("its reads and writes are of {0} files; a run makes {FILES_MAX} at most")]
    Files(usize),
    /// More than a run writes.
    #[error("its files are {0} bytes together; a run writes {BYTES_MAX} at most")]
    Bytes(u64),
}

impl Trace {
    /// A trace of these operations, whose files may have any numbers. What moves no bytes is left out.
    ///
    /// # Errors
    /// It is too large, or nothing is left.
    pub fn new(operations: impl IntoIterator<Item = Traced>) -> Result<Self, NoTrace> {
        let mut operations: Vec<Traced> = operations.into_iter().filter(|o| o.bytes > 0).collect();
        operations.sort_by_key(|o| o.at);
        let began = operations.first().ok_or(NoTrace::Empty)?.at;
        let mut numbers = BTreeMap::new();
        let mut sizes: Vec<u64> = Vec::new();
        let mut bits = 0;
        for operation in &mut operations {
            let number = *numbers.entry(operation.file).or_insert(sizes.len());
            if number == sizes.len() {
                sizes.push(0);
            }
            let end = operation.offset.saturating_add(operation.bytes.into());
            if let Some(size) = sizes.get_mut(number) {
                *size = (*size).max(end.saturating_add(FILE_UNIT - 1) / FILE_UNIT * FILE_UNIT);
            }
            bits |= operation.offset | u64::from(operation.bytes);
            operation.at -= began;
            operation.file = number as u64;
        }
        if sizes.len() > FILES_MAX {
            return Err(NoTrace::Files(sizes.len()));
        }
        let bytes = sizes.iter().fold(0, |sum: u64, size| sum.saturating_add(*size));
        if bytes > BYTES_MAX {
            return Err(NoTrace::Bytes(bytes));
        }
        Ok(Self { operations, sizes, unit: 1 << bits.trailing_zeros() })
    }

    /// All operations.
    #[must_use]
    pub fn operations(&self) -> &[Traced] {
        &self.operations
    }

    /// Bytes of each file.
    #[must_use]
    pub fn sizes(&self) -> &[u64] {
        &self.sizes
    }

    /// Whether what is read can be compared with what was written: not where operations begin or end anywhere.
    #[must_use]
    pub fn can_be_checked(&self) -> bool {
        self.unit >= GRANULE_MIN && self.sizes.iter().sum::<u64>() / self.granule() <= GRANULES_MAX
    }

    /// Bytes that all offsets and lengths are multiples of, as far as that is of use.
    pub(crate) fn granule(&self) -> u64 {
        if self.unit < GRANULE_MIN { 4096 } else { self.unit.min(4096) }
    }

    /// Bytes of the longest operation.
    pub(crate) fn longest(&self) -> u32 {
        self.operations.iter().map(|o| o.bytes).max().unwrap_or(0)
    }

    /// The same with operations of so many bytes at most: longer ones become several at the same moment. And how many were
    /// longer.
    pub(crate) fn in_pieces(&self, read_max: u32, write_max: u32) -> (Self, usize) {
        let mut pieces = Vec::with_capacity(self.operations.len());
        let mut longer = 0;
        for operation in &self.operations {
            let most = if operation.writes { write_max } else { read_max }.max(1);
            longer += usize::from(operation.bytes > most);
            let mut done = 0;
            while done < operation.bytes {
                let bytes = most.min(operation.bytes - done);
                pieces.push(Traced { offset: operation.offset + u64::from(done), bytes, ..*operation });
                done += bytes;
            }
        }
        (Self { operations: pieces, ..self.clone() }, longer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn traced(ms: u64, writes: bool, file: u64, offset: u64, bytes: u32) -> Traced {
        Traced { at: Duration::from_millis(ms), writes, file, offset, bytes }
    }

    #[test]
    fn files_are_numbered_and_sized_and_time_begins_with_the_first() {
        let trace = Trace::new([
            traced(30, true, 77, 65536, 8192),
            traced(10, false, 5, 0, 4096),
            traced(20, false, 5, 0, 0),
        ]);
        let trace = trace.unwrap();
        assert_eq!(trace.operations(), [traced(0, false, 0, 0, 4096), traced(20, true, 1, 65536, 8192)]);
        assert_eq!((trace.sizes(), trace.granule()), (&[65536, 131_072][..], 4096));
        assert!(trace.can_be_checked());
    }

    #[test]
    fn what_begins_anywhere_is_not_compared() {
        let odd = Trace::new([traced(0, true, 1, 13, 100)]).unwrap();
        assert!(!odd.can_be_checked());
        assert!(Trace::new([traced(0, true, 1, 512, 1024)]).unwrap().can_be_checked());
    }

    #[test]
    fn long_operations_become_several() {
        let trace = Trace::new([traced(0, false, 1, 4096, 10_000), traced(1, true, 1, 0, 4096)]).unwrap();
        let (pieces, longer) = trace.in_pieces(4096, 4096);
        let of = |offset, bytes| traced(0, false, 0, offset, bytes);
        let expected =
            [of(4096, 4096), of(8192, 4096), of(12288, 10_000 - 8192), traced(1, true, 0, 0, 4096)];
        assert_eq!((pieces.operations(), longer), (&expected[..], 1));
    }

    #[test]
    fn what_is_too_much_is_refused() {
        assert_eq!(Trace::new([]), Err(NoTrace::Empty));
        assert_eq!(Trace::new([traced(0, true, 1, 0, 0)]), Err(NoTrace::Empty));
        assert!(matches!(Trace::new([traced(0, true, 1, u64::MAX - 5, 9)]), Err(NoTrace::Bytes(_))));
        let many = (0..=FILES_MAX as u64).map(|file| traced(0, true, file, 0, 1));
        assert_eq!(Trace::new(many), Err(NoTrace::Files(FILES_MAX + 1)));
    }
}
