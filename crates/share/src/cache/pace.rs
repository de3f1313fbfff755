//! How quickly the store answers: what it says in no time is hardly worth knowing beforehand.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use storage::Wait;

/// A store is quick when it answers in less than this, as a rule, unless [`crate::Settings`] say otherwise.
pub(crate) const QUICK: Duration = Duration::from_micros(20);
/// One of so many questions of a thread is timed.
const TIMED: u32 = 4;
/// Of the last 64 answers so many may have taken longer for the store to be quick; twice as many, half of them, while it is.
const LATE_MAX: u32 = 16;

thread_local! {
    static ASKED: Cell<u32> = const { Cell::new(0) };
}

/// The answers of a store that were timed last.
#[derive(Debug)]
pub(super) struct Pace {
    /// A bit each, the last one the lowest: whether it was late. As long as nothing is known all were.
    late: AtomicU64,
    is_quick: AtomicBool,
    /// An answer that takes so long is late.
    quick: Duration,
}

impl Pace {
    /// Nothing was asked yet; an answer that takes as long as `quick` is late.
    pub(super) fn new(quick: Duration) -> Self {
        Self { late: AtomicU64::new(u64::MAX), is_quick: AtomicBool::new(false), quick }
    }

    /// Whether the store answers so quickly that little is gained by not asking it.
    pub(super) fn is_quick(&self) -> bool {
        self.is_quick.load(Ordering::Relaxed)
    }

    /// Asks the store, and notes now and then how long it takes if it may wait.
    pub(super) fn of<T>(&self, wait: Wait, ask: impl FnOnce() -> T) -> T {
        if wait == Wait::Never {
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

    /// An answer has taken so long. A race of two threads may lose one of two.
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
            pace.of(Wait::May, || std::hint::black_box(1));
        }
        assert!(pace.is_quick());
        let pace = Pace { quick: Duration::ZERO, ..pace };
        for _ in 0..33 * TIMED {
            pace.of(Wait::Never, || std::hint::black_box(1));
        }
        assert!(pace.is_quick(), "that is no answer");
        for _ in 0..33 * TIMED {
            pace.of(Wait::May, || std::hint::black_box(1));
        }
        assert!(!pace.is_quick());
    }
}
