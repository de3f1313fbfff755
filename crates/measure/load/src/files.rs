//! The files of a run: how large, and how often each granule was written.
//!
//! A write claims its granules when it is sent and has written them when it is answered; a granule is written by one
//! operation at a time. A read may be beside a write: each byte is then what it was before or what it becomes, for neither
//! protocol promises that a write is seen as a whole, and Linux's page cache does not do it.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::pattern::{GRANULE_MAX, GranuleVersion};

/// The files of a run.
#[derive(Debug)]
pub(crate) struct Files {
    run: u64,
    granule: usize,
    /// Bytes of the smallest file: all blocks of a load that is the same on each lie in so many.
    pub(crate) bytes: u64,
    sizes: Vec<u64>,
    /// For each file and granule: the generation that is being written, and the one that is there, in 16 bits each.
    granules: Vec<Vec<AtomicU32>>,
}

/// Bytes that are not what they must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// Wrong bytes, at least one.
    pub(crate) bytes: usize,
    /// Where the first one lies in the file.
    pub(crate) at: u64,
}

impl Files {
    /// Files that nobody has written yet, for blocks of `block` bytes. `run` is a random number.
    pub(crate) fn new(run: u64, sizes: &[u64], block: u64) -> Self {
        let granule = granule_of(block);
        let file = |bytes: &u64| (0..*bytes / granule as u64).map(|_| AtomicU32::new(0)).collect();
        let bytes = sizes.iter().copied().min().unwrap_or(0);
        Self { run, granule, bytes, sizes: sizes.to_vec(), granules: sizes.iter().map(file).collect() }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.granules.len()
    }

    /// Whether all files consist of whole blocks of this size, which can be told apart.
    pub(crate) fn suits(&self, block: u64) -> bool {
        block.is_multiple_of(self.granule as u64) && self.sizes.iter().all(|size| size.is_multiple_of(block))
    }

    /// The block of this number, counted through all files: its file, and its number there. `None` after the last one.
    pub(crate) fn nth(&self, mut number: u64, block: u64) -> Option<(usize, u64)> {
        for (file, size) in self.sizes.iter().enumerate() {
            let blocks = size / block.max(1);
            if number < blocks {
                return Some((file, number));
            }
            number -= blocks;
        }
        None
    }

    /// Claims a block for a write, if no other write has a part of it.
    pub(crate) fn claim(&self, file: usize, offset: u64, length: usize) -> bool {
        let granules = self.states(file, offset, length);
        for (at, state) in granules.iter().enumerate() {
            let next = |s: u32| (started(s) == written(s)).then(|| packed(next(started(s)), written(s)));
            if state.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_err() {
                granules.iter().take(at).for_each(|s| {
                    s.store(packed_twice(written(s.load(Ordering::Acquire))), Ordering::Release)
                });
                return false;
            }
        }
        true
    }

    /// Writes what a claimed block must become.
    pub(crate) fn fill(&self, file: usize, offset: u64, data: &mut [u8]) {
        let states = self.states(file, offset, data.len());
        for (n, (state, granule)) in states.iter().zip(data.chunks_mut(self.granule)).enumerate() {
            self.place(file, offset, n, started(state.load(Ordering::Acquire))).fill(granule);
        }
    }

    /// A claimed block has been written.
    pub(crate) fn written(&self, file: usize, offset: u64, length: usize) {
        for state in self.states(file, offset, length) {
            let now = started(state.load(Ordering::Acquire));
            state.store(packed_twice(now), Ordering::Release);
        }
    }

    /// The generation that a read which begins now sees at least, of each granule.
    pub(crate) fn before_read(&self, file: usize, offset: u64, length: usize, out: &mut Vec<u16>) {
        out.clear();
        out.extend(self.states(file, offset, length).iter().map(|s| written(s.load(Ordering::Acquire))));
    }

    /// What is wrong with a block that was read: each granule must be of a generation from `before` on up to the one that is
    /// being written now.
    pub(crate) fn check(&self, file: usize, offset: u64, data: &[u8], before: &[u16]) -> Option<Wrong> {
        let states = self.states(file, offset, data.len());
        let mut found: Option<Wrong> = None;
        for (n, ((state, granule), oldest)) in
            states.iter().zip(data.chunks(self.granule)).zip(before).enumerate()
        {
            let newest = started(state.load(Ordering::Acquire));
            if (0..=generations(*oldest, newest))
                .any(|g| self.place(file, offset, n, after(*oldest, g)).is(granule))
            {
                continue;
            }
            let places: Vec<GranuleVersion> = (0..=generations(*oldest, newest))
                .map(|g| self.place(file, offset, n, after(*oldest, g)))
                .collect();
            let Some((bytes, first)) = GranuleVersion::wrong(&places, granule) else { continue };
            let at = offset + (n * self.granule + first) as u64;
            found = Some(found.map_or(Wrong { bytes, at }, |w| Wrong { bytes: w.bytes + bytes, ..w }));
        }
        found
    }

    fn place(&self, file: usize, offset: u64, n: usize, generation: u16) -> GranuleVersion {
        let granule = offset / self.granule as u64 + n as u64;
        GranuleVersion { run: self.run, file: u32::try_from(file).unwrap_or(u32::MAX), granule, generation }
    }

    fn states(&self, file: usize, offset: u64, length: usize) -> &[AtomicU32] {
        let first = usize::try_from(offset / self.granule as u64).unwrap_or(usize::MAX);
        let count = length.div_ceil(self.granule);
        let file = self.granules.get(file).map(Vec::as_slice).unwrap_or_default();
        file.get(first..).map(|rest| rest.get(..count).unwrap_or(rest)).unwrap_or_default()
    }
}

/// The largest granule that blocks of this size consist of.
fn granule_of(block: u64) -> usize {
    let power = 1usize << block.trailing_zeros().min(GRANULE_MAX.trailing_zeros());
    power.max(16)
}

fn started(state: u32) -> u16 {
    u16::try_from(state >> 16).unwrap_or(0)
}

fn written(state: u32) -> u16 {
    u16::try_from(state & 0xFFFF).unwrap_or(0)
}

fn packed(started: u16, written: u16) -> u32 {
    (u32::from(started) << 16) | u32::from(written)
}

fn packed_twice(generation: u16) -> u32 {
    packed(generation, generation)
}

/// The generation after one; 0 is kept for what was never written.
fn next(generation: u16) -> u16 {
    generation.checked_add(1).unwrap_or(1)
}

/// The generation that follows another one `steps` later.
fn after(generation: u16, steps: u16) -> u16 {
    (0..steps).fold(generation, |g, _| next(g))
}

/// How many generations lie between two; at most a few, or one of them is from long ago.
fn generations(oldest: u16, newest: u16) -> u16 {
    const MOST: u16 = 1024;
    (0..MOST).find(|steps| after_wraps(oldest, *steps) == newest).unwrap_or(0)
}

fn after_wraps(generation: u16, steps: u16) -> u16 {
    let sum = u32::from(generation) + u32::from(steps);
    u16::try_from(if sum > u32::from(u16::MAX) { sum - u32::from(u16::MAX) } else { sum }).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files() -> Files {
        Files::new(1, &[1 << 20, 1 << 20], 8192)
    }

    fn read(files: &Files, data: &[u8]) -> Option<Wrong> {
        let mut before = Vec::new();
        files.before_read(1, 16384, 8192, &mut before);
        files.check(1, 16384, data, &before)
    }

    #[test]
    fn a_block_is_what_was_written_last() {
        let (files, mut data) = (files(), vec![0; 8192]);
        assert_eq!(read(&files, &data), None);
        for _ in 0..3 {
            assert!(files.claim(1, 16384, 8192));
            files.fill(1, 16384, &mut data);
            files.written(1, 16384, 8192);
            assert_eq!(read(&files, &data), None);
        }
        let stale = data.clone();
        assert!(files.claim(1, 16384, 4096));
        files.fill(1, 16384, &mut data[..4096]);
        files.written(1, 16384, 4096);
        assert_eq!(read(&files, &data), None);
        let wrong = read(&files, &stale).unwrap();
        assert!(wrong.at < 16384 + 16 && wrong.bytes > 4000, "{wrong:?}");
        data[5000] ^= 4;
        assert_eq!(read(&files, &data), Some(Wrong { bytes: 1, at: 16384 + 5000 }));
    }

    #[test]
    fn a_read_beside_a_write_may_see_either_and_a_part_of_each() {
        let (files, mut old) = (files(), vec![0; 8192]);
        assert!(files.claim(1, 16384, 8192));
        files.fill(1, 16384, &mut old);
        files.written(1, 16384, 8192);
        let mut new = old.clone();
        assert!(files.claim(1, 16384, 8192));
        files.fill(1, 16384, &mut new);
        assert_eq!(read(&files, &old), None);
        assert_eq!(read(&files, &[&new[..4096], &old[4096..]].concat()), None);
        let mut torn = [&new[..1000], &old[1000..]].concat();
        assert_eq!(read(&files, &torn), None);
        torn[2000] ^= 1;
        assert_eq!(read(&files, &torn), Some(Wrong { bytes: 1, at: 16384 + 2000 }));
        files.written(1, 16384, 8192);
        assert!(read(&files, &old).is_some() && read(&files, &torn).is_some());
    }

    #[test]
    fn a_granule_has_one_writer() {
        let files = files();
        assert!(files.claim(0, 8192, 8192));
        assert!(!files.claim(0, 4096, 8192));
        assert!(files.claim(0, 4096, 4096), "what could not be claimed as a whole is free");
        files.written(0, 8192, 8192);
        assert!(files.claim(0, 8192, 8192));
    }

    #[test]
    fn blocks_are_counted_through_files_of_any_size() {
        let files = Files::new(1, &[65536, 196_608], 4096);
        assert_eq!(
            [0, 1, 3, 4].map(|n| files.nth(n, 65536)),
            [Some((0, 0)), Some((1, 0)), Some((1, 2)), None]
        );
        assert!(files.suits(65536) && !files.suits(131_072));
    }

    #[test]
    fn generations_go_round_without_zero() {
        assert_eq!((next(u16::MAX), after(65534, 3), generations(65534, 2), generations(5, 5)), (1, 2, 3, 0));
    }

    #[test]
    fn granules_divide_blocks() {
        assert_eq!(
            [512, 1024, 4096, 6144, 65536, 1 << 20].map(granule_of),
            [512, 1024, 4096, 2048, 4096, 4096]
        );
    }
}
