//! Byte-range locks.

use std::sync::Arc;

use file_state::{ByteRange, LockError, LockKind, LockOwner, Operation, UnlockError};

use crate::{Error, Open, Result, Share};

/// Whether a lock waits until it can be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Answer at once: [`Error::LockNotGranted`].
    Never,
    /// Wait as long as it takes. Dropping the call gives up the place.
    UntilGranted,
}

impl Share {
    /// Locks a range of bytes for an open.
    ///
    /// # Errors
    /// [`Error::LockNotGranted`], [`Error::LimitReached`], [`Error::Closed`] (also when the open is closed
    /// while the lock waits).
    pub async fn lock(
        self: &Arc<Self>,
        open: &Arc<Open>,
        range: ByteRange,
        kind: LockKind,
        wait: LockWait,
    ) -> Result<()> {
        let owner = LockOwner::Open(open.key());
        let timeout = self.settings.break_timeout;
        loop {
            open.require_open()?;
            let (result, freed, taken) = self
                .files
                .with(open.node().id(), |entry| {
                    // Registered before the attempt, so that no release between the two is missed.
                    let freed = Arc::clone(&entry.freed).notified_owned();
                    // [MS-FSA] 2.1.5.8: the caches of others come first.
                    let taken = entry.take_back(Some(open.holder()), Operation::Lock, timeout);
                    let result = (!taken.must_wait()).then(|| entry.state.lock(owner, range, kind));
                    (result, freed, taken)
                })
                .ok_or(Error::Closed)?;
            let answering = self.deliver(taken);
            let Some(result) = result else {
                if let Some(answering) = answering {
                    answering.over().await;
                }
                continue;
            };
            match result {
                Ok(_) => return Ok(()),
                Err(LockError::Conflict(_)) if wait == LockWait::UntilGranted => freed.await,
                Err(LockError::Conflict(_)) => return Err(Error::LockNotGranted),
                Err(LockError::TooMany) => return Err(Error::LimitReached("locks of one file")),
            }
        }
    }

    /// Releases a range that the open has locked: exactly that range.
    ///
    /// # Errors
    /// [`Error::RangeNotLocked`], [`Error::Closed`].
    pub fn unlock(&self, open: &Arc<Open>, range: ByteRange) -> Result<()> {
        open.require_open()?;
        self.files
            .with(open.node().id(), |entry| {
                let change = entry.state.unlock(LockOwner::Open(open.key()), range)?;
                if change.freed {
                    entry.freed.notify_waiters();
                }
                Ok::<_, UnlockError>(())
            })
            .ok_or(Error::Closed)?
            .map_err(|refused| match refused {
                UnlockError::NotLocked => Error::RangeNotLocked,
                UnlockError::TooMany => Error::LimitReached("locks of one file"),
            })
    }
}
