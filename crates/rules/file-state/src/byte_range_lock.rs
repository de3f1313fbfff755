//! Byte-range locks: mandatory locks of opens, advisory locks of clients' lock owners.

use crate::{ByteRange, LockOwner, SmallMap};
use planted::Fault;

mod range_list;
#[cfg(test)]
mod tests;

use range_list::RangeList;

/// What a lock prevents others from doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockKind {
    /// Others may hold shared locks on the range, and may read it.
    Shared,
    /// Others may hold no lock on the range.
    Exclusive,
}

/// One lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRangeLock {
    /// The owner of the lock.
    pub owner: LockOwner,
    /// The bytes that the lock covers.
    pub range: ByteRange,
    /// What the lock prevents others from doing.
    pub kind: LockKind,
}

/// What a call did to the locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockChange {
    /// A lock was given up: requests that wait for a lock on the file should be tried again.
    pub freed: bool,
}

/// Why a lock was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// This lock conflicts (STATUS_LOCK_NOT_GRANTED, NFS4ERR_DENIED).
    #[error("the range is locked")]
    Conflict(ByteRangeLock),
    /// [`FileLimits::locks_max`](crate::FileLimits::locks_max) is reached.
    #[error("the file has too many locks")]
    TooMany,
}

/// Why a range was not unlocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnlockError {
    /// The open holds no lock of exactly this range (STATUS_RANGE_NOT_LOCKED).
    #[error("the range is not locked")]
    NotLocked,
    /// The unlock would leave more locks than [`FileLimits::locks_max`](crate::FileLimits::locks_max) allows.
    #[error("the file has too many locks")]
    TooMany,
}

/// The locks of one file, in two lists, since reads need to look at the exclusive locks only.
#[derive(Debug, Clone, Default)]
pub(crate) struct Locks {
    exclusive: RangeList,
    shared: RangeList,
    /// How many locks each owner has. The lists are not searched for an owner that is not in this map.
    owners: SmallMap<LockOwner, usize>,
}

impl Locks {
    pub(crate) fn iter(&self) -> impl Iterator<Item = ByteRangeLock> {
        let exclusive = self.exclusive.iter().map(|(owner, range)| held(owner, range, LockKind::Exclusive));
        exclusive.chain(self.shared.iter().map(|(owner, range)| held(owner, range, LockKind::Shared)))
    }

    pub(crate) fn len(&self) -> usize {
        self.exclusive.len().saturating_add(self.shared.len())
    }

    /// How many locks an owner has.
    pub(crate) fn count_of(&self, owner: LockOwner) -> usize {
        self.owners.get(&owner).copied().unwrap_or(0)
    }

    /// Runs a change of one owner's locks and updates the owner's count.
    fn change<T>(&mut self, owner: LockOwner, change: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.len();
        let result = change(self);
        let after = self.count_of(owner).saturating_add(self.len()).saturating_sub(before);
        if after > 0 {
            self.owners.insert(owner, after);
        } else {
            self.owners.remove(&owner);
        }
        result
    }

    /// A lock that conflicts with a lock of this kind that the owner would take on the range.
    ///
    /// An open cannot get an exclusive lock over any of its own locks ([MS-FSA] 2.1.4.10); a client's owner never
    /// conflicts with itself (RFC 8881 9.2, 9.3).
    pub(crate) fn test(&self, owner: LockOwner, range: ByteRange, kind: LockKind) -> Option<ByteRangeLock> {
        if is_nothing(owner, range) || planted::strikes(Fault::LockNotChecked) {
            return None;
        }
        let against_itself = owner.is_mandatory() && kind == LockKind::Exclusive;
        let in_the_way = |&(other, _): &(LockOwner, ByteRange)| other != owner || against_itself;
        let exclusive = self.exclusive.overlapping(range).find(in_the_way);
        if let Some((owner, range)) = exclusive {
            return Some(held(owner, range, LockKind::Exclusive));
        }
        if kind == LockKind::Shared {
            return None;
        }
        let (owner, range) = self.shared.overlapping(range).find(in_the_way)?;
        Some(held(owner, range, LockKind::Shared))
    }

    pub(crate) fn lock(
        &mut self,
        owner: LockOwner,
        range: ByteRange,
        kind: LockKind,
        locks_max: usize,
    ) -> Result<LockChange, LockError> {
        if let Some(lock) = self.test(owner, range, kind) {
            return Err(LockError::Conflict(lock));
        }
        self.change(owner, |locks| locks.lock_free(owner, range, kind, locks_max))
    }

    /// Takes a lock after the check for conflicts.
    fn lock_free(
        &mut self,
        owner: LockOwner,
        range: ByteRange,
        kind: LockKind,
        locks_max: usize,
    ) -> Result<LockChange, LockError> {
        if owner.is_mandatory() {
            if self.len() >= locks_max {
                return Err(LockError::TooMany);
            }
            self.list_mut(kind).insert(owner, range);
            return Ok(LockChange { freed: false });
        }
        self.lock_merging(owner, range, kind, locks_max)
    }

    /// Locks as POSIX does: locks of the owner that touch become one, and the owner's locks of the other kind are
    /// removed from the range.
    fn lock_merging(
        &mut self,
        owner: LockOwner,
        range: ByteRange,
        kind: LockKind,
        locks_max: usize,
    ) -> Result<LockChange, LockError> {
        if is_nothing(owner, range) {
            return Ok(LockChange { freed: false });
        }
        let (same, other) = match kind {
            LockKind::Exclusive => (&self.exclusive, &self.shared),
            LockKind::Shared => (&self.shared, &self.exclusive),
        };
        let merged = same.touching(owner, range);
        let cut = other.cut(owner, range);
        let len = self.len();
        let after = len.saturating_add(1).saturating_sub(merged.count);
        let after = after.saturating_add(cut.left().count()).saturating_sub(cut.count);
        if after > locks_max && after > len {
            return Err(LockError::TooMany);
        }
        let downgraded = kind == LockKind::Shared && cut.count > 0;
        if merged.count > 0 {
            self.list_mut(kind).remove_all(|o, r| o == owner && r.touches(range));
        }
        self.list_mut(kind).insert(owner, merged.hull);
        let other = match kind {
            LockKind::Exclusive => &mut self.shared,
            LockKind::Shared => &mut self.exclusive,
        };
        other.carve(owner, range, &cut);
        Ok(LockChange { freed: downgraded })
    }

    pub(crate) fn unlock(
        &mut self,
        owner: LockOwner,
        range: ByteRange,
        locks_max: usize,
    ) -> Result<LockChange, UnlockError> {
        self.change(owner, |locks| locks.unlock_own(owner, range, locks_max))
    }

    fn unlock_own(
        &mut self,
        owner: LockOwner,
        range: ByteRange,
        locks_max: usize,
    ) -> Result<LockChange, UnlockError> {
        if owner.is_mandatory() {
            // [MS-FSA] 2.1.5.9: of two locks with exactly this range, the exclusive one is removed before the shared
            // one.
            if planted::strikes(Fault::UnlockTooMuch) {
                self.exclusive.remove_all(|other, _| other == owner);
                return Ok(LockChange { freed: true });
            }
            let removed = self.exclusive.remove(owner, range) || self.shared.remove(owner, range);
            return if removed { Ok(LockChange { freed: true }) } else { Err(UnlockError::NotLocked) };
        }
        if is_nothing(owner, range) {
            return Ok(LockChange { freed: false });
        }
        let (exclusive, shared) = (self.exclusive.cut(owner, range), self.shared.cut(owner, range));
        let len = self.len();
        let left = exclusive.left().chain(shared.left()).count();
        let after = len.saturating_add(left).saturating_sub(exclusive.count).saturating_sub(shared.count);
        if after > locks_max && after > len {
            return Err(UnlockError::TooMany);
        }
        self.exclusive.carve(owner, range, &exclusive);
        self.shared.carve(owner, range, &shared);
        Ok(LockChange { freed: exclusive.count > 0 || shared.count > 0 })
    }

    pub(crate) fn release_owner(&mut self, owner: LockOwner) -> LockChange {
        let had = self.owners.remove(&owner).is_some();
        if had {
            self.exclusive.remove_all(|o, _| o == owner);
            self.shared.remove_all(|o, _| o == owner);
        }
        LockChange { freed: had }
    }

    /// A lock that stops `reader` from reading the range: an exclusive lock of another owner. A reader without
    /// mandatory locks is stopped by mandatory locks only.
    pub(crate) fn against_read(&self, reader: Option<LockOwner>, range: ByteRange) -> Option<ByteRangeLock> {
        let stops = |&(owner, _): &(LockOwner, ByteRange)| stops(owner, reader) && Some(owner) != reader;
        let (owner, range) = self.exclusive.overlapping(range).find(stops)?;
        Some(held(owner, range, LockKind::Exclusive))
    }

    /// A lock that stops `writer` from writing the range: an exclusive lock of another owner, or any shared lock,
    /// including the writer's own ([MS-FSA] 2.1.4.10).
    pub(crate) fn against_write(&self, writer: Option<LockOwner>, range: ByteRange) -> Option<ByteRangeLock> {
        self.against_read(writer, range).or_else(|| {
            let (owner, range) = self.shared.overlapping(range).find(|(owner, _)| stops(*owner, writer))?;
            Some(held(owner, range, LockKind::Shared))
        })
    }

    fn list_mut(&mut self, kind: LockKind) -> &mut RangeList {
        match kind {
            LockKind::Exclusive => &mut self.exclusive,
            LockKind::Shared => &mut self.shared,
        }
    }
}

/// Whether the request concerns no byte at all: a client's owner locks bytes, so an empty range means nothing. (The
/// NFSv4 server refuses an empty range before this is called, RFC 8881 18.10.3.)
fn is_nothing(owner: LockOwner, range: ByteRange) -> bool {
    !owner.is_mandatory() && range.is_empty()
}

/// Whether locks of this owner stop `actor` from reading or writing.
fn stops(owner: LockOwner, actor: Option<LockOwner>) -> bool {
    owner.is_mandatory() || actor.is_some()
}

fn held(owner: LockOwner, range: ByteRange, kind: LockKind) -> ByteRangeLock {
    ByteRangeLock { owner, range, kind }
}
