//! The counters of a cache.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often the cache could answer, and how often it could not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCount {
    /// Answers from memory.
    pub hits: u64,
    /// Answers from the store.
    pub misses: u64,
}

/// What a share's metadata cache has done since the share was opened, and what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheCounts {
    /// Names that were looked up and found to be directories.
    pub names: CacheCount,
    /// Names that were looked up and do not exist. Each miss of a name is counted under [`CacheCounts::names`].
    pub absent: u64,
    /// Attributes and security descriptors of directories.
    pub attributes: CacheCount,
    /// Listings.
    pub listings: CacheCount,
    /// Filehandles.
    pub handles: CacheCount,
    /// Changes that the feed reported, including the server's own.
    pub invalidations: u64,
    /// Directories in the cache.
    pub directories: usize,
    /// Memory in use, in bytes.
    pub bytes: usize,
}

/// Counts one kind of lookup.
#[derive(Debug, Default)]
pub(super) struct Count {
    hits: AtomicU64,
    misses: AtomicU64,
}

impl Count {
    pub(super) fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> CacheCount {
        CacheCount { hits: self.hits.load(Ordering::Relaxed), misses: self.misses.load(Ordering::Relaxed) }
    }
}

/// The counters of a cache.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) names: Count,
    pub(super) absent: AtomicU64,
    pub(super) attributes: Count,
    pub(super) listings: Count,
    pub(super) handles: Count,
    pub(super) invalidations: AtomicU64,
}
