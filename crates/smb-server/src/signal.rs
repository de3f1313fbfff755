//! What happens once, and is waited for.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// Something that happens once, and whoever waits for it is woken.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    set: AtomicBool,
    wake: Notify,
}

impl Signal {
    /// It has happened.
    pub(crate) fn set(&self) {
        self.set.store(true, Ordering::Release);
        self.wake.notify_waiters();
    }

    /// Whether it has happened.
    pub(crate) fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Waits until it has happened.
    pub(crate) async fn wait(&self) {
        // Registered before the look, so that nothing between the two is missed.
        let woken = self.wake.notified();
        if !self.is_set() {
            woken.await;
        }
    }
}
