//! A one-time signal to one connection, which may live on another shard.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Notice {
    given: AtomicBool,
    wake: Notify,
}

impl Notice {
    pub(crate) fn give(&self) {
        self.given.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    pub(crate) fn is_given(&self) -> bool {
        self.given.load(Ordering::Acquire)
    }

    /// Resolves once the signal is given. Only one task may wait.
    pub(crate) async fn given(&self) {
        while !self.is_given() {
            self.wake.notified().await;
        }
    }
}
