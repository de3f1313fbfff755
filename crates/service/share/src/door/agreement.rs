//! What the clients of a share agree on ([`crate::agreement`]): opens, locks, caching grants, reclaims.

use std::sync::Arc;
use std::time::Instant;

use file_state::{AcknowledgeError, ByteRange, ByteRangeLock, Caching, Holder, LockKind};
use storage::{NodeRef, ObjectId};

use crate::{
    Answering, Call, ClientLock, Courtesy, GrantCounts, GrantKey, Granted, Holding, Location, LockWait, Open,
    Openers, Result, Share,
};

/// Opens.
impl Share {
    /// The number of opens in the share, and the most that there may be.
    #[must_use]
    pub fn open_count(&self) -> (usize, usize) {
        self.agreement.open_count()
    }

    /// Sets the most opens. Existing opens stay, even if there are more.
    pub fn set_opens_max(&self, opens_max: usize) {
        self.agreement.set_opens_max(opens_max);
    }

    /// Registers a server whose clients are about to open files. It is asked to end its late clients before any open is
    /// refused.
    pub fn open_by_courtesy_of<C: Courtesy + 'static>(&self, host: &Arc<C>) {
        self.agreement.open_by_courtesy_of(host);
    }

    /// Whether these openers may have one more open. Returns what to wait for before asking again, if anything.
    ///
    /// # Errors
    /// [`Error::LimitReached`](crate::Error::LimitReached).
    pub fn room_for_open(&self, openers: Openers) -> Result<Option<Answering>> {
        self.agreement.room_for_open(openers)
    }

    /// Waits until the caller may have one more open, as long as the call's front waits.
    ///
    /// # Errors
    /// [`Error::LimitReached`](crate::Error::LimitReached), [`Error::Delayed`](crate::Error::Delayed).
    pub async fn wait_for_open(&self, call: &Call) -> Result<()> {
        self.agreement.wait_for_open(call).await
    }

    /// Whether a file is to be deleted when its last open is closed.
    #[must_use]
    pub fn is_delete_pending(&self, node: &NodeRef) -> bool {
        self.agreement.is_delete_pending(node.id())
    }

    /// Whether a named stream of the object is open. Some fronts refuse to rename such an object.
    #[must_use]
    pub fn has_open_streams(&self, node: &NodeRef) -> bool {
        self.agreement.has_open_streams(node)
    }

    /// Whether the object or, for a directory, anything below it is open. Some fronts refuse to rename or replace such an
    /// object.
    #[must_use]
    pub fn is_open(&self, node: &NodeRef) -> bool {
        self.agreement.is_open(node)
    }

    /// As [`Share::is_open`], after asking clients that keep files open there only for later use to close them. The clients
    /// are asked one after the other, until one keeps its file open. Files opened meanwhile count.
    pub async fn stays_open(&self, node: &NodeRef) -> bool {
        self.agreement.stays_open(node).await
    }

    /// The present name of an open's file; for a stream, of the stream's file. None for a closed open and for the root.
    #[must_use]
    pub fn location(&self, open: &Open) -> Option<Location> {
        self.agreement.location(open.file().map_or(open, Arc::as_ref))
    }

    /// What an open holds; None if the open is closed.
    #[must_use]
    pub fn holding(&self, open: &Open) -> Option<Holding> {
        self.agreement.holding(open)
    }

    /// What an open holds, without its locks: [`Share::locks`] has those of a file. None if the open is closed.
    #[must_use]
    pub fn holding_without_locks(&self, open: &Open) -> Option<Holding> {
        self.agreement.holding_without_locks(open)
    }

    /// Grants a restored open what its client could cache, as far as the other opens allow, and marks its file for deletion
    /// again.
    pub fn settle_restored(&self, open: &Open, key: GrantKey, holding: &Holding) {
        self.agreement.settle_restored(open, key, holding);
    }
}

/// Caching grants.
impl Share {
    /// What the grant of an open allows at present. While part of it is being broken: what the client may still be caching.
    #[must_use]
    pub fn granted(&self, open: &Open) -> Granted {
        self.agreement.granted(open)
    }

    /// The holder of a grant on a file has given up what it was told to, and keeps `keeps`. It may be told of a further
    /// break before this returns.
    ///
    /// # Errors
    /// [`AcknowledgeError`]: nothing was changed.
    pub fn acknowledge(
        &self,
        id: ObjectId,
        holder: Holder,
        keeps: Caching,
    ) -> std::result::Result<(), AcknowledgeError> {
        self.agreement.acknowledge(id, holder, keeps)
    }

    /// Ends a grant on a file: the holder has returned all of it, or cannot be reached.
    pub fn give_up(&self, id: ObjectId, holder: Holder) {
        self.agreement.give_up(id, holder);
    }

    /// Counts of the caching grants.
    #[must_use]
    pub fn grant_counts(&self) -> &GrantCounts {
        self.agreement.grant_counts()
    }
}

/// Byte-range locks.
impl Share {
    /// Locks a range of bytes for an open.
    ///
    /// # Errors
    /// [`Error::LockNotGranted`](crate::Error::LockNotGranted), [`Error::LimitReached`](crate::Error::LimitReached),
    /// [`Error::Closed`](crate::Error::Closed) (also when the open is closed while the lock waits).
    pub async fn lock(
        &self,
        open: &Arc<Open>,
        range: ByteRange,
        kind: LockKind,
        wait: LockWait,
    ) -> Result<()> {
        self.agreement.lock(open, range, kind, wait).await
    }

    /// Releases a range that the open has locked. The range must match exactly.
    ///
    /// # Errors
    /// [`Error::RangeNotLocked`](crate::Error::RangeNotLocked), [`Error::Closed`](crate::Error::Closed).
    pub fn unlock(&self, open: &Arc<Open>, range: ByteRange) -> Result<()> {
        self.agreement.unlock(open, range)
    }

    /// Locks a range of a file that the client has open, or returns the conflicting lock.
    ///
    /// # Errors
    /// [`Error::LimitReached`](crate::Error::LimitReached), [`Error::Closed`](crate::Error::Closed),
    /// [`Error::Delayed`](crate::Error::Delayed).
    pub async fn lock_as(
        &self,
        call: &Call,
        open: &Arc<Open>,
        lock: ClientLock,
    ) -> Result<Option<ByteRangeLock>> {
        self.agreement.lock_as(call, open, lock).await
    }

    /// As [`Share::lock_as`], for a lock that the client had before the server was started: it is not held back.
    ///
    /// # Errors
    /// Those of [`Share::lock_as`].
    pub async fn reclaim_lock(
        &self,
        call: &Call,
        open: &Arc<Open>,
        lock: ClientLock,
    ) -> Result<Option<ByteRangeLock>> {
        self.agreement.reclaim_lock(call, open, lock).await
    }

    /// Locks a range as soon as nothing is in the way, however long that takes. Dropping the future gives up the wait.
    ///
    /// # Errors
    /// [`Error::LimitReached`](crate::Error::LimitReached), [`Error::Closed`](crate::Error::Closed).
    pub async fn lock_when_free(self: Arc<Self>, open: Arc<Open>, lock: ClientLock) -> Result<()> {
        self.agreement.lock_when_free(&open, lock).await
    }

    /// Unlocks whatever the owner has locked in the range. That may be nothing.
    ///
    /// # Errors
    /// [`Error::LimitReached`](crate::Error::LimitReached) if the remaining parts would be too many locks,
    /// [`Error::Closed`](crate::Error::Closed).
    pub fn unlock_as(&self, open: &Arc<Open>, owner: u64, range: ByteRange) -> Result<()> {
        self.agreement.unlock_as(open, owner, range)
    }

    /// The lock that prevents an owner from locking a range, if there is one.
    #[must_use]
    pub fn test_lock(&self, node: &NodeRef, lock: ClientLock) -> Option<ByteRangeLock> {
        self.agreement.test_lock(node, lock)
    }

    /// Whether an owner has locked any part of a file.
    #[must_use]
    pub fn holds_locks(&self, node: &NodeRef, owner: u64) -> bool {
        self.agreement.holds_locks(node, owner)
    }

    /// All locks on a file.
    #[must_use]
    pub fn locks(&self, id: ObjectId) -> Vec<ByteRangeLock> {
        self.agreement.locks(id)
    }

    /// Releases all locks of an owner on a file.
    pub fn release_locks(&self, id: ObjectId, owner: u64) {
        self.agreement.release_locks(id, owner);
    }

    /// Resolves when an owner could lock a range. Returns whether the open still exists. The lock may still fail: another
    /// owner may be first.
    pub async fn lockable(self: Arc<Self>, open: Arc<Open>, lock: ClientLock) -> bool {
        self.agreement.lockable(&open, lock).await
    }
}

/// Reclaims.
impl Share {
    /// From now on, until [`Share::let_in`] and at the latest until `until`, admits only clients that had the file open
    /// before the server was started. Other opens for data, and reading, writing, removing and renaming
    /// without an open, wait or must be retried. Another call moves the end.
    pub fn hold_back(&self, until: Instant) {
        self.agreement.hold_back(until);
    }

    /// From now on until `until`, byte-range locks are only taken by those who had them before the server was started: other
    /// locks wait or must be retried. All else goes on. Another call moves the end.
    pub fn hold_back_locks(&self, until: Instant) {
        self.agreement.hold_back_locks(until);
    }

    /// Everything has been reclaimed: admits all clients.
    pub fn let_in(&self) {
        self.agreement.let_in();
    }

    /// Refuses operations that must be retried while clients reclaim.
    ///
    /// # Errors
    /// [`Error::Delayed`](crate::Error::Delayed).
    pub fn check_let_in(&self) -> Result<()> {
        self.agreement.check_let_in()
    }
}
