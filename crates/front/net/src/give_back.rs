//! Returns memory to the system when the load is over.
//!
//! A shard frees the buffers that its pool has not needed for a while. The allocator of glibc keeps freed memory unless
//! it lies at the end of its heap. So it is told to return memory (malloc_trim(3)) when there may be some: a pool has
//! shrunk, or connections have ended. `cargo xtask bench memory` measures the effect; ARCHITECTURE.md has the figures.
#![expect(unsafe_code, reason = "malloc_trim has no safe wrapper")]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::buffer::trim_pool;

/// Memory that was not needed for this long is returned.
const EVERY: Duration = Duration::from_secs(10);

/// Whether there may be memory to return to the system.
#[derive(Debug, Clone, Default)]
pub(crate) struct Freed(Arc<AtomicBool>);

impl Freed {
    /// Notes that there may be memory to return.
    pub(crate) fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Frees the buffers that this shard's pool does not need, for ever.
pub(crate) async fn trim_shard(freed: Freed) -> Infallible {
    loop {
        tokio::time::sleep(EVERY).await;
        if trim_pool() {
            freed.note();
        }
    }
}

/// Returns memory to the system whenever some was freed, for ever.
pub(crate) async fn trim_process(freed: Freed) {
    loop {
        tokio::time::sleep(EVERY).await;
        if freed.0.swap(false, Ordering::Relaxed) {
            // The call may take a while. A panic in it is no reason to end.
            let _ = tokio::task::spawn_blocking(trim_heap).await;
        }
    }
}

#[cfg(target_env = "gnu")]
fn trim_heap() {
    // SAFETY: malloc_trim has no preconditions, and takes the locks of the heap itself (malloc_trim(3): MT-Safe).
    let _ = unsafe { libc::malloc_trim(0) };
}

#[cfg(not(target_env = "gnu"))]
fn trim_heap() {}
