//! The cache's layer for a share: a store in front of the share's own store.

use std::sync::Arc;
use std::time::Duration;

use storage::Storage;

use crate::cache::{Budget, Cache, CachedStore, QUICK};
use crate::folded::FoldedNames;

/// The default of [`Settings::bytes_max`], in bytes.
pub const BYTES_MAX: usize = 64 << 20;

/// How a store is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Whether the cache is on at first ([`Cache::switch`]).
    pub is_on: bool,
    /// The most memory for what is cached and for the indexes of folded names together, in bytes.
    pub bytes_max: usize,
    /// A store that usually answers in less than this is quick: directories of it that change often are not cached.
    pub quick: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { is_on: true, bytes_max: BYTES_MAX, quick: QUICK }
    }
}

/// A store with what stands in front of it.
#[derive(Clone)]
pub struct Layer {
    /// Answers as the store does, and from memory where it can.
    pub store: Arc<dyn Storage>,
    /// The cache of that store. None if the store cannot report changes by others: then the store is asked each time.
    pub cache: Option<Arc<Cache>>,
    /// Finds names of its directories regardless of case.
    pub names: Arc<FoldedNames>,
}

impl std::fmt::Debug for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Layer").field("cache", &self.cache).finish_non_exhaustive()
    }
}

impl Layer {
    /// Puts a cache in front of a store.
    pub fn over(store: Arc<dyn Storage>, settings: &Settings) -> Self {
        let budget = Arc::new(Budget::new(settings.bytes_max));
        let names = Arc::new(FoldedNames::new(Arc::clone(&budget)));
        let Ok(feed) = store.feed() else { return Self { store, cache: None, names } };
        let cache = Arc::new(Cache::new(store, feed, Arc::clone(&names), budget, settings.quick));
        cache.switch(settings.is_on);
        Self { store: Arc::new(CachedStore::new(Arc::clone(&cache))), cache: Some(cache), names }
    }
}
