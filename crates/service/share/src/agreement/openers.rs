//! Counts the opens of a share by holder, so that none can hold all of them.
//!
//! The front names the holders: the user and the client, or only the client's address where clients may choose their own
//! names and those of their users. [`limits::may_take`] decides whether a holder may have one more.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, RandomState};
use std::num::NonZeroU64;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Tables, each with its own lock, to reduce contention.
const TABLES: usize = 16;

/// A user, client or address that opens are counted for, as a number that cannot be guessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opener(NonZeroU64);

impl Opener {
    /// The opener with this name. Names of different kinds must differ.
    #[must_use]
    pub fn named(name: impl Hash) -> Self {
        static KEY: OnceLock<RandomState> = OnceLock::new();
        let number = KEY.get_or_init(RandomState::new).hash_one(name);
        Self(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
    }
}

/// All openers that an open is counted for. None for opens by the server itself.
pub type Openers = [Option<Opener>; 2];

/// The opens of a share: their number, their limit and their openers.
#[derive(Debug)]
pub(super) struct OpenCount {
    all: AtomicUsize,
    most: AtomicUsize,
    /// Each lock guards the number of opens of each of its openers; none is zero.
    tables: [Mutex<HashMap<Opener, usize>>; TABLES],
}

impl OpenCount {
    pub(super) fn new(most: usize) -> Self {
        Self {
            all: AtomicUsize::new(0),
            most: AtomicUsize::new(most),
            tables: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// The number of opens, and the most that there may be.
    pub(super) fn now(&self) -> (usize, usize) {
        (self.all.load(Ordering::Relaxed), self.most.load(Ordering::Relaxed))
    }

    /// Sets the most opens. Existing opens stay, even if there are more.
    pub(super) fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    fn table(&self, opener: Opener) -> &Mutex<HashMap<Opener, usize>> {
        &self.tables[usize::try_from(opener.0.get() % TABLES as u64).unwrap_or(0)]
    }

    /// Counts one more open. Returns how many there were before, or None if these openers may have no more now.
    pub(super) fn enter(&self, openers: Openers) -> Option<usize> {
        let all = self.all.fetch_add(1, Ordering::Relaxed);
        let counted = openers.into_iter().flatten().map(|opener| {
            let mut table = self.table(opener).lock();
            let held = table.entry(opener).or_default();
            *held += 1;
            *held - 1
        });
        let held = counted.max().unwrap_or(0);
        if limits::may_take(all, held, self.most.load(Ordering::Relaxed)) {
            return Some(all);
        }
        self.leave(openers);
        None
    }

    /// Counts one open less.
    pub(super) fn leave(&self, openers: Openers) {
        let before = self.all.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "an open that leaves was counted");
        for opener in openers.into_iter().flatten() {
            let mut table = self.table(opener).lock();
            match table.get_mut(&opener) {
                Some(held) if *held > 1 => *held -= 1,
                _ => {
                    table.remove(&opener);
                }
            }
        }
    }

    /// Whether these openers may have one more open now.
    pub(super) fn has_room(&self, openers: Openers) -> bool {
        let (all, most) = (self.all.load(Ordering::Relaxed), self.most.load(Ordering::Relaxed));
        if limits::may_take(all, usize::MAX, most) {
            return true; // for whoever comes
        }
        let held = |opener: Opener| self.table(opener).lock().get(&opener).copied().unwrap_or_default();
        limits::may_take(all, openers.into_iter().flatten().map(held).max().unwrap_or(0), most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_of_whom_most_are_held_decides() {
        let (user, client, other) = (Opener::named("user"), Opener::named("client"), Opener::named("other"));
        let count = OpenCount::new(8);
        for n in 0..6 {
            assert!(count.has_room([Some(user), None]));
            assert_eq!(count.enter([Some(user), None]), Some(n));
        }
        assert_eq!(count.enter([Some(client), Some(user)]), None, "a new client, and a user who has much");
        assert!(!count.has_room([Some(user), Some(client)]));
        assert_eq!(count.enter([Some(client), Some(other)]), Some(6), "what was refused is not counted");
        assert_eq!(count.enter([Some(client), None]), Some(7));
        assert_eq!(count.enter([None, None]), None, "nothing is left");
        count.leave([Some(client), Some(other)]);
        assert_eq!(count.enter([Some(other), None]), Some(7));
    }

    #[test]
    fn nothing_is_kept_of_those_that_hold_nothing() {
        let count = OpenCount::new(4);
        for name in 0..1000 {
            let openers = [Some(Opener::named(name)), Some(Opener::named(("client", name)))];
            assert!(count.enter(openers).is_some());
            count.leave(openers);
        }
        assert!(count.tables.iter().all(|table| table.lock().is_empty()));
        assert_eq!(count.all.load(Ordering::Relaxed), 0);
    }
}
