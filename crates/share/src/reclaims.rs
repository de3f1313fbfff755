//! After a restart: clients of NFSv4 open and lock again what they had, and nobody else gets in before them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::caching::Answering;
use crate::{Error, Result, Share};

/// Until when others are held back.
#[derive(Debug, Default)]
pub(crate) struct Reclaims {
    /// Looked at by every call.
    are_on: AtomicBool,
    /// Guards the end. `are_on` is changed under it.
    until: Mutex<Option<Instant>>,
    over: Arc<Notify>,
}

impl Share {
    /// From now on, until [`Share::let_in`] and at the latest until `until`, only those are let in who had the file open
    /// before the server was started (RFC 8881 8.4.2.1): other opens for data, and reading, writing, removing and renaming
    /// without an open, wait or are put off. Called again, it moves the end.
    pub fn hold_back(&self, until: Instant) {
        let mut end = self.reclaims.until.lock();
        *end = Some(until);
        self.reclaims.are_on.store(true, Ordering::Release);
    }

    /// Everything has been reclaimed: all are let in.
    pub fn let_in(&self) {
        self.reclaims.let_in(&mut self.reclaims.until.lock());
    }

    /// What somebody who reclaims nothing has to wait for, if anything.
    pub(crate) fn held_back(&self) -> Option<Answering> {
        if !self.reclaims.are_on.load(Ordering::Acquire) {
            return None;
        }
        // Registered before the look, so that an end between the two is not missed.
        let over = Arc::clone(&self.reclaims.over).notified_owned();
        let mut until = self.reclaims.until.lock();
        let deadline = (*until)?;
        if Instant::now() >= deadline {
            self.reclaims.let_in(&mut until);
            return None;
        }
        Some(Answering::new(over, deadline))
    }

    /// Refuses what is to be put off while clients reclaim.
    ///
    /// # Errors
    /// [`Error::Delayed`].
    pub fn check_let_in(&self) -> Result<()> {
        if self.held_back().is_some() { Err(Error::Delayed) } else { Ok(()) }
    }
}

impl Reclaims {
    fn let_in(&self, until: &mut Option<Instant>) {
        *until = None;
        self.are_on.store(false, Ordering::Release);
        self.over.notify_waiters();
    }
}
