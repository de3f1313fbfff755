//! The store of a share ([`crate::store`]).

use std::sync::Arc;
use std::time::Instant;

use cache::CacheCounts;
use storage::{Capabilities, NodeRef};

use crate::{Alarm, Share, Shares, StoreHealth, StoreWatch};

impl Share {
    /// The root directory.
    #[must_use]
    pub fn root(&self) -> &NodeRef {
        self.store.root()
    }

    /// What the store can do.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.store.storage().capabilities()
    }

    /// How the store is answering. This does not call the store.
    #[must_use]
    pub fn store_health(&self) -> StoreHealth {
        self.store.health()
    }

    /// The present alarms of the store.
    #[must_use]
    pub fn alarms(&self) -> Vec<Alarm> {
        self.store.alarms()
    }

    /// Has a separate thread ask the store whether its path still leads to it and whether alarms are over. To be called
    /// every few seconds. Does not wait.
    pub fn review_alarms(&self) {
        self.store.review_alarms(self.is_read_only());
    }

    /// What the metadata cache has done; None if it is switched off or the store cannot report the changes of others.
    #[must_use]
    pub fn cache_counts(&self) -> Option<CacheCounts> {
        self.store.cache_counts()
    }

    /// Switches the metadata cache on or off. While it is off, nothing is kept.
    pub fn set_metadata_cache(&self, on: bool) {
        self.store.set_metadata_cache(on);
    }
}

impl StoreWatch {
    /// Finds the stores of these shares that hold up threads, and those that no longer do. `waits` returns how often a sleeping
    /// thread has gone to sleep so far. That tells a thread that is still asleep from one that is busy or waits for the
    /// processor.
    pub fn look(&mut self, tables: &[Arc<Shares>], now: Instant, waits: impl Fn(i32) -> Option<u64>) {
        let shares = tables.iter().flat_map(|shares| shares.iter());
        let shares: Vec<_> = shares.flat_map(Share::with_views).collect();
        self.look_at(shares.iter().map(|share| &share.store), now, waits);
    }
}
