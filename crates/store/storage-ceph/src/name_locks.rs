//! Locks of names: what takes several calls to the metadata server is done by one caller for a name at a time.

use std::hash::{BuildHasher, RandomState};

use parking_lot::{Mutex, MutexGuard};
use storage::{Name, ObjectId};

/// How many names can be locked at the same time, if chance wants it.
const LOCKS: usize = 256;

/// A fixed number of locks for all names: two names may share one.
#[derive(Debug)]
pub(crate) struct NameLocks {
    /// They guard no data.
    locks: [Mutex<()>; LOCKS],
    hasher: RandomState,
}

impl Default for NameLocks {
    fn default() -> Self {
        Self { locks: std::array::from_fn(|_| Mutex::default()), hasher: RandomState::new() }
    }
}

/// Names are locked until this is dropped.
pub(crate) type Locked<'a> = (Option<MutexGuard<'a, ()>>, Option<MutexGuard<'a, ()>>);

impl NameLocks {
    fn index(&self, dir: ObjectId, name: Name<'_>) -> usize {
        // The remainder is below LOCKS.
        usize::try_from(self.hasher.hash_one((dir, name)) % LOCKS as u64).unwrap_or_default()
    }

    fn lock(&self, index: usize) -> Option<MutexGuard<'_, ()>> {
        self.locks.get(index).map(Mutex::lock)
    }

    /// Whether somebody holds the lock of a name.
    pub(crate) fn is_locked(&self, dir: ObjectId, name: Name<'_>) -> bool {
        self.locks.get(self.index(dir, name)).is_some_and(Mutex::is_locked)
    }

    /// Locks a name of a directory.
    pub(crate) fn one(&self, dir: ObjectId, name: Name<'_>) -> Locked<'_> {
        (self.lock(self.index(dir, name)), None)
    }

    /// Locks two names, in an order that is the same for all callers.
    pub(crate) fn two(&self, one: (ObjectId, Name<'_>), other: (ObjectId, Name<'_>)) -> Locked<'_> {
        let (a, b) = (self.index(one.0, one.1), self.index(other.0, other.1));
        let first = self.lock(a.min(b));
        (first, if a == b { None } else { self.lock(a.max(b)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_locked_once_however_often_it_is_named() {
        let (locks, dir) = (NameLocks::default(), ObjectId::live(1));
        let name = |text: &'static str| Name::new(text.as_bytes()).unwrap();
        drop(locks.two((dir, name("a")), (dir, name("a"))));
        let held = locks.two((dir, name("a")), (dir, name("b")));
        assert!(locks.is_locked(dir, name("b")));
        drop(held);
        drop(locks.one(dir, name("b")));
        assert!(!locks.is_locked(dir, name("b")));
    }
}
