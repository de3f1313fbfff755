//! After a restart, clients reclaim their opens and locks before other clients are admitted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use planted::Fault;
use tokio::sync::Notify;

use super::caching::Answering;

/// Until when other clients are held back.
#[derive(Debug, Default)]
pub(super) struct Reclaims {
    /// Checked by every call.
    are_on: AtomicBool,
    /// Guards the end. `are_on` is changed under this lock.
    until: Mutex<Option<Instant>>,
    over: Arc<Notify>,
}

impl Reclaims {
    /// From now on, until [`Reclaims::let_in`] and at the latest until `until`, admits only clients that had the file open
    /// before the server was started. Other opens for data, and reading, writing, removing and renaming
    /// without an open, wait or must be retried. Another call moves the end.
    pub(super) fn hold_back(&self, until: Instant) {
        let mut end = self.until.lock();
        *end = Some(until);
        self.are_on.store(true, Ordering::Release);
    }

    /// Everything has been reclaimed: admits all clients.
    pub(super) fn let_in(&self) {
        self.end(&mut self.until.lock());
    }

    /// What a caller that does not reclaim has to wait for, if anything.
    pub(super) fn held_back(&self) -> Option<Answering> {
        if !self.are_on.load(Ordering::Acquire) || planted::strikes(Fault::GraceForgotten) {
            return None;
        }
        // Registered before the check, so that an end in between is not missed.
        let over = Arc::clone(&self.over).notified_owned();
        let mut until = self.until.lock();
        let deadline = (*until)?;
        if Instant::now() >= deadline {
            self.end(&mut until);
            return None;
        }
        Some(Answering::new(over, deadline))
    }

    /// Admits all clients.
    fn end(&self, until: &mut Option<Instant>) {
        *until = None;
        self.are_on.store(false, Ordering::Release);
        self.over.notify_waiters();
    }
}
