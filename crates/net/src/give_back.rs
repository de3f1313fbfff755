//! Memory goes back to the system when the load is over.
//!
//! A shard frees what its pool has not needed for a while. The allocator of glibc keeps what is freed unless it lies at the end of
//! its heap; it is told to give it back (malloc_trim(3)) when there is something to give: a pool has become smaller, or connections
//! have ended. scripts/bench-memory measures what comes of it; ARCHITECTURE.md has the figures.
#![expect(unsafe_code, reason = "malloc_trim has no safe wrapper")]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::buffer::trim_pool;

/// What was not needed for so long is given back.
const EVERY: Duration = Duration::from_secs(10);

/// Whether there may be something to give back to the system.
#[derive(Debug, Clone, Default)]
pub(crate) struct Freed(Arc<AtomicBool>);

impl Freed {
    /// There is.
    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Frees what the pool of this shard does not need, for ever.
pub(crate) async fn trim_shard(freed: Freed) -> Infallible {
    loop {
        tokio::time::sleep(EVERY).await;
        if trim_pool() {
            freed.note();
        }
    }
}

/// Gives memory back to the system when some was freed, for ever.
pub(crate) async fn trim_process(freed: Freed) {
    loop {
        tokio::time::sleep(EVERY).await;
        if freed.0.swap(false, Ordering::Relaxed) {
            // It may take a while, and its faults are no reason to end.
            let _ = tokio::task::spawn_blocking(trim_heap).await;
        }
    }
}

#[cfg(target_env = "gnu")]
fn trim_heap() {
    // SAFETY: it has no preconditions, and takes the locks of the heap itself (malloc_trim(3): MT-Safe).
    let _ = unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn trim_heap() {}
