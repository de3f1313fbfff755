//! A copy that continues after its reply, as seen by the operations that query or stop it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// The longest that OFFLOAD_CANCEL waits for the piece that is being copied.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// A copy under way.
#[derive(Debug, Default)]
pub(super) struct Running {
    copied: AtomicU64,
    is_stopped: AtomicBool,
    is_over: AtomicBool,
    /// Notified when the copy is over.
    over: Notify,
}

impl Running {
    /// Starts with the number of bytes that were already copied.
    pub(super) fn begin(copied: u64) -> Self {
        Self { copied: AtomicU64::new(copied), ..Self::default() }
    }

    /// Bytes copied so far.
    pub(super) fn copied(&self) -> u64 {
        self.copied.load(Ordering::Acquire)
    }

    /// Notes that `copied` bytes are copied.
    pub(super) fn advance(&self, copied: u64) {
        self.copied.store(copied, Ordering::Release);
    }

    /// Whether the copy is to end after the piece that is being copied.
    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Asks the copy to end after the piece that is being copied.
    pub(super) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
    }

    /// Stops the copy, and waits until it no longer writes.
    pub(super) async fn stopped(&self) {
        self.stop();
        let over = self.over.notified();
        if !self.is_over.load(Ordering::Acquire) {
            let _ = tokio::time::timeout(STOP_PATIENCE, over).await;
        }
    }

    /// Notes that the copy no longer writes.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.over.notify_waiters();
    }
}
