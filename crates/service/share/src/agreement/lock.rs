//! Byte-range locks.

use std::sync::Arc;
use std::time::Duration;

use file_state::{ByteRange, ByteRangeLock, Holder, LockError, LockKind, LockOwner, Operation, UnlockError};
use storage::{NodeRef, ObjectId};

use super::caching::{Answering, Taken};
use super::files::OpenFile;
use super::{Agreement, Open};
use crate::{Call, Error, Result};

/// Whether a lock waits until it can be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Answer at once: [`Error::LockNotGranted`].
    Never,
    /// Wait as long as it takes. Dropping the call gives up its place.
    UntilGranted,
}

impl Agreement {
    /// Locks a range of bytes for an open.
    ///
    /// # Errors
    /// [`Error::LockNotGranted`], [`Error::LimitReached`], [`Error::Closed`] (also when the open is closed
    /// while the lock waits).
    pub(crate) async fn lock(
        &self,
        open: &Open,
        range: ByteRange,
        kind: LockKind,
        wait: LockWait,
    ) -> Result<()> {
        let owner = LockOwner::Open(open.key());
        let timeout = self.break_timeout;
        loop {
            open.require_open()?;
            if let Some(answering) = self.reclaims.held_back().or_else(|| self.lock_reclaims.held_back()) {
                answering.over().await;
                continue;
            }
            let (result, freed, taken) = self
                .files
                .with(open.node().id(), |entry| {
                    // Registered before the attempt, so that a release in between is not missed.
                    let freed = Arc::clone(&entry.freed).notified_owned();
                    // The caches of others come first.
                    let taken = entry.take_back(Some(open.holder()), Operation::Lock, timeout);
                    if taken.must_wait() {
                        return (None, freed, taken);
                    }
                    let result = entry.state.lock(owner, range, kind);
                    let Err(LockError::Conflict(other)) = result else { return (Some(result), freed, taken) };
                    let taken = taken.and(entry.evict_late_locker(other.owner, timeout));
                    ((!taken.must_wait()).then_some(result), freed, taken)
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

    /// Releases a range that the open has locked. The range must match exactly.
    ///
    /// # Errors
    /// [`Error::RangeNotLocked`], [`Error::Closed`].
    pub(crate) fn unlock(&self, open: &Open, range: ByteRange) -> Result<()> {
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

/// A byte-range lock for an owner that a client named.
#[derive(Debug, Clone, Copy)]
pub struct ClientLock {
    /// The owner's number, unique on this server. Its upper half is the client's number.
    pub owner: u64,
    /// The range to lock.
    pub range: ByteRange,
    /// Exclusive or shared.
    pub kind: LockKind,
}

/// Locks of owners that a client named. They last at most as long as the file is open; the caller releases them before it
/// closes the file.
impl Agreement {
    /// Locks a range of a file that the client has open, or returns the conflicting lock.
    ///
    /// # Errors
    /// [`Error::LimitReached`], [`Error::Closed`], [`Error::Delayed`].
    pub(crate) async fn lock_as(
        &self,
        call: &Call,
        open: &Open,
        lock: ClientLock,
    ) -> Result<Option<ByteRangeLock>> {
        self.settled(call, || match self.locks_held_back() {
            Some(answering) => Ok((None, Some(answering))),
            None => self.try_lock_as(open, lock),
        })
        .await
    }

    /// As [`Agreement::lock_as`], for a lock that the client had before the server was started.
    ///
    /// # Errors
    /// Those of [`Agreement::lock_as`].
    pub(crate) async fn reclaim_lock(
        &self,
        call: &Call,
        open: &Open,
        lock: ClientLock,
    ) -> Result<Option<ByteRangeLock>> {
        self.settled(call, || self.try_lock_as(open, lock)).await
    }

    /// Locks a range as soon as nothing is in the way, however long that takes. Dropping the future gives up the wait.
    ///
    /// # Errors
    /// [`Error::LimitReached`], [`Error::Closed`].
    pub(crate) async fn lock_when_free(&self, open: &Open, lock: ClientLock) -> Result<()> {
        loop {
            // Registered before the attempt, so that a release in between is not missed.
            let freed = self.files.with(open.node().id(), |entry| Arc::clone(&entry.freed).notified_owned());
            let freed = freed.ok_or(Error::Closed)?;
            let (conflict, answering) = match self.locks_held_back() {
                Some(answering) => (None, Some(answering)),
                None => self.try_lock_as(open, lock)?,
            };
            match (conflict, answering) {
                (_, Some(answering)) => answering.over().await,
                (Some(_), None) => freed.await,
                (None, None) => return Ok(()),
            }
        }
    }

    /// What a lock has to wait for because other locks are being reclaimed, if anything. While opens are reclaimed too, only
    /// reclaims come here.
    fn locks_held_back(&self) -> Option<Answering> {
        if self.reclaims.held_back().is_some() { None } else { self.lock_reclaims.held_back() }
    }

    /// Locks a range if nothing is in the way. Returns the conflicting lock, or what to wait for.
    fn try_lock_as(
        &self,
        open: &Open,
        lock: ClientLock,
    ) -> Result<(Option<ByteRangeLock>, Option<Answering>)> {
        let timeout = self.break_timeout;
        let ClientLock { owner, range, kind } = lock;
        open.require_open()?;
        let asked = self.files.with(open.node().id(), |entry| {
            let taken = entry.take_back(Some(open.holder()), Operation::Lock, timeout);
            if taken.must_wait() {
                return (Ok(None), taken);
            }
            match entry.state.lock(LockOwner::Client(owner), range, kind) {
                Ok(change) => {
                    if change.freed {
                        entry.freed.notify_waiters();
                    }
                    (Ok(None), taken)
                }
                Err(LockError::Conflict(other)) => {
                    (Ok(Some(other)), taken.and(entry.evict_late_locker(other.owner, timeout)))
                }
                Err(LockError::TooMany) => (Err(Error::LimitReached("locks of one file")), taken),
            }
        });
        let (answer, taken) = asked.ok_or(Error::Closed)?;
        Ok((answer?, self.deliver(taken)))
    }

    /// Unlocks whatever the owner has locked in the range. That may be nothing.
    ///
    /// # Errors
    /// [`Error::LimitReached`] if the remaining parts would be too many locks, [`Error::Closed`].
    pub(crate) fn unlock_as(&self, open: &Open, owner: u64, range: ByteRange) -> Result<()> {
        open.require_open()?;
        let unlock = |entry: &mut OpenFile| {
            let change = entry.state.unlock(LockOwner::Client(owner), range)?;
            if change.freed {
                entry.freed.notify_waiters();
            }
            Ok::<_, UnlockError>(())
        };
        let answer = self.files.with(open.node().id(), unlock).ok_or(Error::Closed)?;
        answer.map_err(|_| Error::LimitReached("locks of one file"))
    }

    /// The lock that prevents an owner from locking a range, if there is one.
    pub(crate) fn test_lock(&self, node: &NodeRef, lock: ClientLock) -> Option<ByteRangeLock> {
        let ClientLock { owner, range, kind } = lock;
        self.files.with(node.id(), |entry| entry.state.test(LockOwner::Client(owner), range, kind)).flatten()
    }

    /// Whether an owner has locked any part of a file.
    pub(crate) fn holds_locks(&self, node: &NodeRef, owner: u64) -> bool {
        let owned = |lock: ByteRangeLock| lock.owner == LockOwner::Client(owner);
        self.files.with(node.id(), |entry| entry.state.locks().any(owned)).unwrap_or(false)
    }

    /// All locks on a file.
    pub(crate) fn locks(&self, id: ObjectId) -> Vec<ByteRangeLock> {
        self.files.with(id, |entry| entry.state.locks().collect()).unwrap_or_default()
    }

    /// Releases all locks of an owner on a file.
    pub(crate) fn release_locks(&self, id: ObjectId, owner: u64) {
        self.files.with(id, |entry| {
            if entry.state.release_owner(LockOwner::Client(owner)).freed {
                entry.freed.notify_waiters();
            }
        });
    }

    /// Resolves when an owner could lock a range. Returns whether the open still exists. The lock may still fail: another
    /// owner may be first.
    pub(crate) async fn lockable(&self, open: &Open, lock: ClientLock) -> bool {
        loop {
            if open.require_open().is_err() {
                return false;
            }
            let ClientLock { owner, range, kind } = lock;
            let asked = self.files.with(open.node().id(), |entry| {
                // Registered before the check, so that a release in between is not missed.
                let freed = Arc::clone(&entry.freed).notified_owned();
                (entry.state.test(LockOwner::Client(owner), range, kind).is_none(), freed)
            });
            match asked {
                None => return false,
                Some((true, _)) => return true,
                Some((false, freed)) => freed.await,
            }
        }
    }
}

impl OpenFile {
    /// The lock of `owner` conflicts: if its client is late, the client loses what it holds.
    fn evict_late_locker(&self, owner: LockOwner, timeout: Duration) -> Taken {
        let holder = match owner {
            LockOwner::Open(open) => Some(self.state.holder_of(open)),
            LockOwner::Client(_) => owner.client().map(Holder::Delegation),
        };
        holder.map_or_else(Taken::default, |holder| self.evict_late(holder, timeout))
    }
}
