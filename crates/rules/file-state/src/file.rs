//! Everything by which the opens of one file constrain each other.

use crate::byte_range_lock::Locks;
use crate::caching::{Grants, Room};
use crate::share_reservation::Reservations;
use crate::stream_opens::{StreamOpens, denies_deletion};
use crate::under::{Sum, Under};
use crate::{
    Access, AcknowledgeError, Actor, Break, Breaks, ByteRange, ByteRangeLock, Caching, FileLimits, Holder,
    LockChange, LockError, LockKind, LockOwner, OpenKey, Operation, Reservation, ReserveError, Sharing,
    UnlockError,
};

/// What ended when an open was released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Released {
    /// No open is left.
    pub last: bool,
    /// The file is to be deleted now: this was its last open, and a deletion was pending.
    pub delete: bool,
    /// A lock or a caching grant was given up: operations that wait on the file should be tried again.
    pub freed: bool,
}

/// Why a read or a write was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IoConflict {
    /// An open does not share this access with a caller that has no open.
    #[error("an open does not share the file")]
    Sharing {
        /// The open that denies access.
        holder: OpenKey,
    },
    /// A lock conflicts (STATUS_FILE_LOCK_CONFLICT, NFS4ERR_LOCKED).
    #[error("the range is locked")]
    Locked(ByteRangeLock),
}

/// All state of one file (or directory) that outlives a request.
#[derive(Debug, Clone, Default)]
pub struct FileState {
    limits: FileLimits,
    reservations: Reservations,
    stream_opens: StreamOpens,
    locks: Locks,
    grants: Grants,
    under: Under,
    delete_pending: bool,
}

impl FileState {
    /// A file that nobody has open.
    #[must_use]
    pub fn new(limits: FileLimits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Whether nothing is held, so that the state can be dropped.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.opens() == 0 && self.locks.len() == 0 && self.grants.is_empty()
    }

    /// Admits the open. An open that was admitted before is upgraded (RFC 8881 9.7, 9.9): the new access and denial are
    /// checked against all opens, including this one, and added to what it has.
    ///
    /// # Errors
    /// [`ReserveError`]; nothing was changed.
    pub fn reserve(&mut self, open: OpenKey, access: Access, sharing: Sharing) -> Result<(), ReserveError> {
        if self.delete_pending {
            return Err(ReserveError::DeletePending);
        }
        let before = self.reservations.find(open).copied();
        if before.is_none() && self.opens() >= self.limits.reservations_max {
            return Err(ReserveError::TooMany);
        }
        if let Some(holder) = self.holder_against(access, sharing) {
            return Err(ReserveError::Sharing { holder });
        }
        let new = Reservation { open, access, sharing, delete_on_close: false };
        self.put(before.map_or(new, |had| Reservation {
            access: had.access | access,
            sharing: had.sharing & sharing,
            ..had
        }));
        Ok(())
    }

    /// Admits an open of one of the file's named streams, as far as the file itself is concerned: the open holds the
    /// file, and may deny its deletion. The stream has a state of its own, which admits the open with `access` and
    /// `sharing`.
    ///
    /// # Errors
    /// [`ReserveError`]; nothing was changed.
    pub fn reserve_stream(
        &mut self,
        open: OpenKey,
        access: Access,
        sharing: Sharing,
    ) -> Result<(), ReserveError> {
        if self.delete_pending {
            return Err(ReserveError::DeletePending);
        }
        if self.opens() >= self.limits.reservations_max {
            return Err(ReserveError::TooMany);
        }
        let denies = denies_deletion(access, sharing);
        if let Some(holder) = self.reservations.deleting().filter(|_| denies) {
            return Err(ReserveError::Sharing { holder });
        }
        self.stream_opens.insert(open, denies);
        Ok(())
    }

    /// Opens of the file and of its named streams.
    fn opens(&self) -> usize {
        self.reservations.len().saturating_add(self.stream_opens.len())
    }

    /// Whether one of the file's named streams is open.
    #[must_use]
    pub fn has_stream_opens(&self) -> bool {
        self.stream_opens.len() > 0
    }

    /// An open that excludes an open of this access and sharing.
    fn holder_against(&self, access: Access, sharing: Sharing) -> Option<OpenKey> {
        let deletes = access.contains(Access::DELETE);
        let of_stream = || self.stream_opens.against_deletion().filter(|_| deletes);
        self.reservations.holder_against(access, sharing).or_else(of_stream)
    }

    /// Leaves the open with less access or more sharing (NFSv4 OPEN_DOWNGRADE). Nothing is added that the open does not
    /// have. Returns whether the open exists.
    pub fn downgrade(&mut self, open: OpenKey, access: Access, sharing: Sharing) -> bool {
        let before = self.reservations.find(open).copied();
        if let Some(had) = before {
            let (access, sharing) = (had.access & access, had.sharing | sharing);
            self.put(Reservation { access, sharing, ..had });
        }
        before.is_some()
    }

    /// What an open contributes to the sum of the opens under its grant.
    fn sum_of(&self, open: OpenKey) -> Sum {
        let sum = self.reservations.find(open).map(Reservation::sum).unwrap_or_default();
        Sum { opens: 1, locks: self.locks.count_of(LockOwner::Open(open)), ..sum }
    }

    /// Runs a change of an open, and updates the sum of the opens that share its grant.
    fn change<T>(&mut self, open: OpenKey, change: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.sum_of(open);
        let result = change(self);
        let after = self.sum_of(open);
        self.under.change(open, before, after);
        result
    }

    fn put(&mut self, new: Reservation) {
        self.change(new.open, |state| state.reservations.put(new));
    }

    /// From now until its end, the open works under this grant, together with all other opens that do.
    pub fn work_under(&mut self, open: OpenKey, holder: Holder) {
        let sum = self.sum_of(open);
        self.under.enter(open, holder, sum);
    }

    /// The grant that an open works under: its own, unless [`FileState::work_under`] named another.
    #[must_use]
    pub fn holder_of(&self, open: OpenKey) -> Holder {
        self.under.holder(open)
    }

    /// Whether any open works under this grant.
    #[must_use]
    pub fn has_opens_under(&self, holder: Holder) -> bool {
        self.sum_under(holder).opens > 0
    }

    /// The sum of the opens under a grant.
    fn sum_under(&self, holder: Holder) -> Sum {
        match holder {
            Holder::Oplock(open) => {
                let is_open = self.under.holder(open) == holder && self.reservations.find(open).is_some();
                if is_open { self.sum_of(open) } else { Sum::default() }
            }
            Holder::Lease { .. } | Holder::Delegation(_) => self.under.sum(holder).unwrap_or_default(),
        }
    }

    /// What [`FileState::reserve`] would return to a caller that has no open and shares everything: for NFSv3, and for
    /// removing or renaming ([`Access::DELETE`]).
    ///
    /// # Errors
    /// [`ReserveError::Sharing`] or [`ReserveError::DeletePending`].
    pub fn check_access(&self, access: Access) -> Result<(), ReserveError> {
        if self.delete_pending {
            return Err(ReserveError::DeletePending);
        }
        match self.holder_against(access, Sharing::all()) {
            Some(holder) => Err(ReserveError::Sharing { holder }),
            None => Ok(()),
        }
    }

    /// Ends the open: its reservation, the locks that it owns and its oplock. Grants and locks that belong to a client
    /// rather than to an open stay. An unknown open changes nothing.
    ///
    /// After [`Released::delete`] the deletion stays pending: new opens are refused until the caller has deleted the
    /// file or withdrawn the mark.
    pub fn release(&mut self, open: OpenKey) -> Released {
        let sum = self.sum_of(open);
        self.under.leave(open, sum);
        let unlocked = self.locks.release_owner(LockOwner::Open(open)).freed;
        let oplock = self.grants.revoke(Holder::Oplock(open));
        let ended = self.reservations.remove(open);
        let of_stream = self.stream_opens.remove(open);
        self.delete_pending |= ended.is_some_and(|r| r.delete_on_close);
        let last = self.opens() == 0;
        Released {
            last,
            delete: last && (ended.is_some() || of_stream) && self.delete_pending,
            freed: unlocked || !oplock.is_empty(),
        }
    }

    /// The reservations, in the order of their keys.
    pub fn reservations(&self) -> impl Iterator<Item = &Reservation> {
        self.reservations.iter()
    }

    /// What the open reserved.
    #[must_use]
    pub fn reservation(&self, open: OpenKey) -> Option<&Reservation> {
        self.reservations.find(open)
    }

    /// Marks the file to be deleted when its last open closes, or withdraws the mark ([MS-FSA] 2.1.5.15.3). While the
    /// mark is set, new opens are refused. The caller decides whether the mark may be set. The mark belongs to the
    /// file, not to one of its names.
    pub fn set_delete_pending(&mut self, pending: bool) {
        self.delete_pending = pending;
    }

    /// Whether the file will be deleted when its last open closes.
    #[must_use]
    pub fn is_delete_pending(&self) -> bool {
        self.delete_pending
    }

    /// Sets or withdraws the request to mark the file for deletion when this open closes ([MS-SMB2] 2.2.13
    /// FILE_DELETE_ON_CLOSE). Until then others may still open the file.
    pub fn set_delete_on_close(&mut self, open: OpenKey, delete: bool) {
        if let Some(reservation) = self.reservations.find_mut(open) {
            reservation.delete_on_close = delete;
        }
    }

    /// Whether the actor may read the range now.
    ///
    /// # Errors
    /// [`IoConflict`].
    pub fn check_read(&self, actor: Actor, range: ByteRange) -> Result<(), IoConflict> {
        let owner = self.check_sharing(actor, Access::READ_DATA)?;
        match self.locks.against_read(owner, range) {
            Some(held) if !range.is_empty() => Err(IoConflict::Locked(held)),
            _ => Ok(()),
        }
    }

    /// Whether the actor may write the range now.
    ///
    /// # Errors
    /// [`IoConflict`].
    pub fn check_write(&self, actor: Actor, range: ByteRange) -> Result<(), IoConflict> {
        let owner = self.check_sharing(actor, Access::WRITE_DATA)?;
        match self.locks.against_write(owner, range) {
            Some(held) if !range.is_empty() => Err(IoConflict::Locked(held)),
            _ => Ok(()),
        }
    }

    /// The lock owner that mandatory locks recognise the actor by. An actor without an open must be admitted by every
    /// reservation.
    fn check_sharing(&self, actor: Actor, access: Access) -> Result<Option<LockOwner>, IoConflict> {
        match actor {
            Actor::Open(open) => Ok(Some(LockOwner::Open(open))),
            Actor::Advised(_) => Ok(None),
            Actor::Stateless => match self.reservations.holder_against(access, Sharing::all()) {
                Some(holder) => Err(IoConflict::Sharing { holder }),
                None => Ok(None),
            },
        }
    }

    /// Locks the range. The kind of the owner decides which rules apply ([`LockOwner`]).
    ///
    /// # Errors
    /// [`LockError`]; nothing was changed.
    pub fn lock(
        &mut self,
        owner: LockOwner,
        range: ByteRange,
        kind: LockKind,
    ) -> Result<LockChange, LockError> {
        let locks_max = self.limits.locks_max;
        self.change_locks(owner, |locks| locks.lock(owner, range, kind, locks_max))
    }

    /// Unlocks the range: for an open, the lock of exactly this range; for a client's owner, whatever the owner has
    /// locked there, which may be nothing.
    ///
    /// # Errors
    /// [`UnlockError`]; nothing was changed.
    pub fn unlock(&mut self, owner: LockOwner, range: ByteRange) -> Result<LockChange, UnlockError> {
        let locks_max = self.limits.locks_max;
        self.change_locks(owner, |locks| locks.unlock(owner, range, locks_max))
    }

    fn change_locks<T>(&mut self, owner: LockOwner, change: impl FnOnce(&mut Locks) -> T) -> T {
        match owner {
            LockOwner::Open(open) => self.change(open, |state| change(&mut state.locks)),
            LockOwner::Client(_) => change(&mut self.locks),
        }
    }

    /// A lock that conflicts with a lock of this kind that the owner would take, if there is one (NFSv4 LOCKT, NLM
    /// TEST).
    #[must_use]
    pub fn test(&self, owner: LockOwner, range: ByteRange, kind: LockKind) -> Option<ByteRangeLock> {
        self.locks.test(owner, range, kind)
    }

    /// Gives up all locks of the owner.
    pub fn release_owner(&mut self, owner: LockOwner) -> LockChange {
        self.change_locks(owner, |locks| locks.release_owner(owner))
    }

    /// The locks, in no particular order.
    pub fn locks(&self) -> impl Iterator<Item = ByteRangeLock> {
        self.locks.iter()
    }

    /// Grants as much of `wanted` as the other opens, locks and grants leave room for, or adds that to what the holder
    /// has. Returns what the holder has then, which may be nothing. Opens that work under this grant
    /// ([`FileState::work_under`]) do not limit it.
    pub fn grant(&mut self, holder: Holder, wanted: Caching) -> Caching {
        let (all, own) = (self.reservations.sum(), self.sum_under(holder));
        let room = Room {
            others_open: all.counting > own.counting,
            others_write: all.writing > own.writing,
            locked: self.locks.len() > 0,
            others_lock: self.locks.len() > own.locks,
        };
        self.grants.grant(holder, wanted, room, self.limits.grants_max)
    }

    /// The holders from whom the operation takes something. `own` is the grant under which the operation itself works:
    /// it is left alone.
    pub fn breaks(&mut self, own: Option<Holder>, operation: Operation) -> Breaks {
        self.grants.breaks(own, operation)
    }

    /// The holder acknowledges a break and keeps `keeps`. Returns the next break that the holder must be told of, if
    /// operations took more in the meantime.
    ///
    /// # Errors
    /// [`AcknowledgeError`]; nothing was changed.
    pub fn acknowledge(&mut self, holder: Holder, keeps: Caching) -> Result<Option<Break>, AcknowledgeError> {
        self.grants.acknowledge(holder, keeps)
    }

    /// Takes the whole grant away: the holder returned it, closed its last open, or did not answer in time. Returns
    /// what the holder had.
    pub fn revoke(&mut self, holder: Holder) -> Caching {
        self.grants.revoke(holder)
    }

    /// What the holder may cache; while the grant is being broken, what the holder may still be caching.
    #[must_use]
    pub fn granted(&self, holder: Holder) -> Caching {
        self.grants.state(holder)
    }

    /// What the holder was told that it may keep, if it has not answered yet.
    #[must_use]
    pub fn breaking_to(&self, holder: Holder) -> Option<Caching> {
        self.grants.breaking_to(holder)
    }

    /// Whether there is any grant.
    #[must_use]
    pub fn has_grants(&self) -> bool {
        !self.grants.is_empty()
    }

    /// The grants, in no particular order.
    pub fn grants(&self) -> impl Iterator<Item = (Holder, Caching)> {
        self.grants.iter()
    }
}

#[cfg(test)]
mod tests;
