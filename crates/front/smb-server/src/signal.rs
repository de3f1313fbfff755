//! An event that happens once and can be waited for.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// An event that happens once; tasks that wait for it are woken.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    set: AtomicBool,
    wake: Notify,
}

impl Signal {
    /// Notes that the event has happened.
    pub(crate) fn set(&self) {
        self.set.store(true, Ordering::Release);
        self.wake.notify_waiters();
    }

    /// Whether the event has happened.
    pub(crate) fn is_set(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    /// Waits until the event has happened.
    pub(crate) async fn wait(&self) {
        // Registered before the check, so that no event between the two is missed.
        let woken = self.wake.notified();
        if !self.is_set() {
            woken.await;
        }
    }
}
