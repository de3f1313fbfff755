//! What is being said to the destinations of shares of this server: one thing at a time to each.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// All of them, by destination.
#[derive(Debug, Default)]
pub(crate) struct Walks(
    /// Guards itself alone.
    Mutex<HashMap<u64, Walk>>,
);

/// A walk through snapshots, which ends soon after it is told to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Walk(Arc<AtomicBool>);

impl Walks {
    /// One begins, and the one before for the same destination ends: nobody reads that any more.
    pub(crate) fn begin(&self, destination: u64) -> Walk {
        let walk = Walk::default();
        if let Some(before) = self.0.lock().insert(destination, walk.clone()) {
            before.end();
        }
        walk
    }

    /// That of a destination ends.
    pub(crate) fn end(&self, destination: u64) {
        if let Some(walk) = self.0.lock().remove(&destination) {
            walk.end();
        }
    }

    /// All end.
    pub(crate) fn end_all(&self) {
        self.0.lock().drain().for_each(|(_, walk)| walk.end());
    }
}

impl Walk {
    fn end(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_destination_has_one_walk() {
        let walks = Walks::default();
        let (first, other) = (walks.begin(1), walks.begin(2));
        let second = walks.begin(1);
        assert!(first.is_ended() && !second.is_ended() && !other.is_ended());
        walks.end(2);
        assert!(other.is_ended() && !second.is_ended());
        walks.end_all();
        assert!(second.is_ended());
    }
}
