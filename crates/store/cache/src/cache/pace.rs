//! How quickly the store answers: a quick answer is hardly worth caching.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use storage::Wait;

/// The default of [`Settings::quick`](crate::Settings::quick).
pub const QUICK: Duration = Duration::from_micros(20);
/// One of this many calls of a thread is timed.
const TIMED: u32 = 4;
/// The most late answers among the last 64 for the store to become quick. It stays quick with up to twice as many, half of
/// them.
const LATE_MAX: u32 = 16;

thread_local! {
    /// How many calls the thread has made so far. This decides only which calls are timed.
    static ASKED: Cell<u32> = const { Cell::new(0) };
}

/// The last timed answers of a store.
#[derive(Debug)]
pub(super) struct Pace {
    /// One bit for each answer, the last one lowest: whether it was late. At first all count as late.
    late: AtomicU64,
    is_quick: AtomicBool,
    /// An answer that takes this long is late.
    quick: Duration,
}

impl Pace {
    /// Begins without any answer. An answer that takes as long as `quick` is late.
    pub(super) fn new(quick: Duration) -> Self {
        Self { late: AtomicU64::new(u64::MAX), is_quick: AtomicBool::new(false), quick }
    }

    /// Whether the store answers so quickly that caching gains little.
    pub(super) fn is_quick(&self) -> bool {
        self.is_quick.load(Ordering::Relaxed)
    }

    /// Calls the store, and sometimes measures how long the answer takes, if the call may wait.
    pub(super) fn of<T>(&self, wait: Wait<'_>, ask: impl FnOnce() -> T) -> T {
        if wait.is_never() {
            return ask();
        }
        let asked = ASKED.replace(ASKED.get().wrapping_add(1));
        if !asked.is_multiple_of(TIMED) {
            return ask();
        }
        let begun = Instant::now();
        let answer = ask();
        self.note(begun.elapsed());
        answer
    }

    /// Notes an answer. If two threads race, one of the two may be lost.
    fn note(&self, took: Duration) {
        let late = self.late.load(Ordering::Relaxed) << 1 | u64::from(took >= self.quick);
        self.late.store(late, Ordering::Relaxed);
        let most = if self.is_quick() { 2 * LATE_MAX } else { LATE_MAX };
        self.is_quick.store(late.count_ones() <= most, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::View;
    use storage::conformance::MAY;

    #[test]
    fn a_store_is_quick_until_half_of_its_answers_are_late() {
        let pace = Pace::new(QUICK);
        let note = |count: u32, took| (0..count).for_each(|_| pace.note(took));
        note(64 - LATE_MAX - 1, QUICK / 2);
        assert!(!pace.is_quick(), "nothing was known of the others");
        note(1, QUICK / 2);
        assert!(pace.is_quick());
        note(2 * LATE_MAX - LATE_MAX, QUICK);
        assert!(pace.is_quick());
        note(64, QUICK / 2);
        note(2 * LATE_MAX, QUICK);
        assert!(pace.is_quick());
        note(1, QUICK);
        assert!(!pace.is_quick());
        note(64 - 2 * LATE_MAX, QUICK / 2);
        assert!(!pace.is_quick(), "it takes more to be quick again");
        note(LATE_MAX, QUICK / 2);
        assert!(pace.is_quick());
    }

    #[test]
    fn one_of_some_questions_is_timed() {
        // However late the answers are on a busy machine.
        let pace = Pace::new(Duration::MAX);
        for _ in 0..64 * TIMED {
            pace.of(Wait::May(MAY), || std::hint::black_box(1));
        }
        assert!(pace.is_quick());
        let pace = Pace { quick: Duration::ZERO, ..pace };
        for _ in 0..33 * TIMED {
            pace.of(Wait::Never(View::FRESH), || std::hint::black_box(1));
        }
        assert!(pace.is_quick(), "that is no answer");
        for _ in 0..33 * TIMED {
            pace.of(Wait::May(MAY), || std::hint::black_box(1));
        }
        assert!(!pace.is_quick());
    }
}
