//! How many files and opens a client has used recently: an estimate that costs one store to memory for each.
//!
//! Items are assigned to slots by a hash of their number, and each slot keeps the time when one of its items was last used.
//! The number of items follows from the number of used slots (linear counting: Whang, Vander-Zanden, Taylor 1990): exact for
//! a dozen, within a tenth for a few hundred.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Slots. Beyond about five times as many items, all slots are used.
const PLACES: usize = 256;

/// The file and open that a call worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// The number of the file.
    pub file: u64,
    /// The number of the open, if there is one.
    pub open: Option<u64>,
}

/// When the items of each slot were last used, in seconds of [`seconds_of`]. One thread writes.
#[derive(Debug)]
struct LastUsed([AtomicU32; PLACES]);

impl Default for LastUsed {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU32::new(0)))
    }
}

impl LastUsed {
    fn note(&self, number: u64, at: u32) {
        // Fibonacci hashing: consecutive numbers go to different slots.
        let place = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - PLACES.ilog2());
        if let Some(last) = self.0.get(usize::try_from(place).unwrap_or(0)) {
            last.store(at, Ordering::Relaxed);
        }
    }
}

/// What the calls of one connection with one API name have used.
#[derive(Debug, Default)]
pub(crate) struct Uses {
    files: LastUsed,
    opens: LastUsed,
}

impl Uses {
    /// Notes what a call that ended at this time worked on.
    pub(crate) fn note(&self, used: Used, ended: Instant) {
        let at = seconds_of(ended);
        self.files.note(used.file, at);
        if let Some(open) = used.open {
            self.opens.note(open, at);
        }
    }
}

/// Seconds since a fixed moment before the first call of this function, plus one: 0 means never.
fn seconds_of(time: Instant) -> u32 {
    static BEGAN: OnceLock<Instant> = OnceLock::new();
    let began = *BEGAN.get_or_init(|| time);
    u32::try_from(time.saturating_duration_since(began).as_secs()).unwrap_or(u32::MAX).saturating_add(1)
}

/// Files and opens that were used recently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InUse {
    /// Files.
    pub files: u64,
    /// Opens of files; NFSv3 has none.
    pub opens: u64,
}

/// Adds up what connections have used since a given time.
pub(crate) struct Tally {
    since: u32,
    files: [bool; PLACES],
    opens: [bool; PLACES],
}

impl Tally {
    /// Counts what was used within this time before `now`.
    pub(crate) fn new(now: Instant, within: Duration) -> Self {
        let within = u32::try_from(within.as_secs()).unwrap_or(u32::MAX);
        let since = seconds_of(now).saturating_sub(within).max(1);
        Self { since, files: [false; PLACES], opens: [false; PLACES] }
    }

    pub(crate) fn add(&mut self, uses: &Uses) {
        let mark = |taken: &mut [bool; PLACES], used: &LastUsed| {
            for (taken, last) in taken.iter_mut().zip(&used.0) {
                *taken |= last.load(Ordering::Relaxed) >= self.since;
            }
        };
        mark(&mut self.files, &uses.files);
        mark(&mut self.opens, &uses.opens);
    }

    pub(crate) fn sum(&self) -> InUse {
        InUse { files: estimate(&self.files), opens: estimate(&self.opens) }
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most 256 places: an estimate between 0 and 1,420"
)]
fn estimate(taken: &[bool; PLACES]) -> u64 {
    let free = taken.iter().filter(|taken| !**taken).count().max(1) as f64;
    (PLACES as f64 * (PLACES as f64 / free).ln()).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_use(numbers: impl Iterator<Item = u64>) -> InUse {
        let (uses, now) = (Uses::default(), Instant::now());
        numbers.for_each(|file| uses.note(Used { file, open: file.is_multiple_of(2).then_some(file) }, now));
        let mut tally = Tally::new(now, Duration::from_secs(5));
        tally.add(&uses);
        tally.add(&uses);
        tally.sum()
    }

    #[test]
    fn few_are_counted_exactly_and_hundreds_within_a_tenth() {
        assert_eq!(in_use(std::iter::empty()), InUse::default());
        assert_eq!(in_use(std::iter::repeat_n(7, 9)), InUse { files: 1, opens: 0 });
        for count in 1..=15 {
            assert_eq!(in_use(1_000..1_000 + count), InUse { files: count, opens: count.div_ceil(2) });
        }
        let many = in_use((0..300).map(|n| n * n * 4_099)).files;
        assert!((270..=330).contains(&many), "{many}");
    }

    #[test]
    fn what_was_used_before_does_not_count() {
        let (uses, begun) = (Uses::default(), Instant::now());
        uses.note(Used { file: 1, open: Some(1) }, begun);
        uses.note(Used { file: 2, open: None }, begun + Duration::from_secs(20));
        let tally = |after, within| {
            let mut tally = Tally::new(begun + Duration::from_secs(after), Duration::from_secs(within));
            tally.add(&uses);
            tally.sum()
        };
        assert_eq!(tally(20, 5), InUse { files: 1, opens: 0 });
        assert_eq!(tally(20, 60), InUse { files: 2, opens: 1 });
        assert_eq!(tally(90, 5), InUse::default());
    }
}
