//! What clients of replicas see.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use replica::Shown;
use share::folded_name;

/// The replicas that are served, by folded name of their share.
#[derive(Debug, Default)]
pub(crate) struct Mirrors(
    /// Guards itself alone.
    Mutex<HashMap<String, Weak<Shown>>>,
);

impl Mirrors {
    pub(crate) fn enter(&self, share: &str, shown: &Arc<Shown>) {
        let mut mirrors = self.0.lock();
        mirrors.retain(|_, shown| shown.strong_count() > 0);
        mirrors.insert(folded_name(share), Arc::downgrade(shown));
    }

    /// A share is not served any more.
    pub(crate) fn leave(&self, share: &str) {
        self.0.lock().remove(&folded_name(share));
    }

    /// Whether this is what clients of a share see.
    pub(crate) fn shows(&self, share: &str, shown: &Arc<Shown>) -> bool {
        self.of(share).is_some_and(|now| Arc::ptr_eq(&now, shown))
    }

    /// What clients of a share see, if it is served as a replica.
    pub(crate) fn of(&self, share: &str) -> Option<Arc<Shown>> {
        self.0.lock().get(&folded_name(share)).and_then(Weak::upgrade)
    }
}
