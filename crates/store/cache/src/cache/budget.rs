//! The memory limit of a share's cache.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes kept for a share, and their limit. To take more, a user of the budget first frees other memory, or keeps
/// less.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes_max: usize,
    taken: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { bytes_max, taken: AtomicUsize::new(0) }
    }

    pub(crate) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        self.taken().saturating_add(bytes) <= self.bytes_max
    }

    /// Changes the memory of one item from `before` to `after` bytes.
    pub(crate) fn change(&self, before: usize, after: usize) {
        if after >= before {
            self.taken.fetch_add(after - before, Ordering::Relaxed);
        } else {
            let taken = self.taken.fetch_sub(before - after, Ordering::Relaxed);
            debug_assert!(taken >= before - after, "memory that is given back was taken");
        }
    }
}
