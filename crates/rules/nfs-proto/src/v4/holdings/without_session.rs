//! What only clients without sessions ask for (NFSv4.0).

use std::collections::HashSet;

use super::super::state_owner::OwnerName;
use super::{
    Ended, FileKey, FreeError, HeldState, Holdings, Kind, LockState, OpenState, Other, Stateid, StateidError,
};

impl<O, D> Holdings<O, D> {
    /// The owner of an open or of a set of locks, even if it was revoked: the request that learns of that counts in the owner's
    /// sequence.
    #[must_use]
    pub fn owner_of(&self, other: Other) -> Option<OwnerName> {
        match &self.states.get(&other)?.kind {
            Kind::Open(open) => Some(OwnerName::Open(open.owner.clone())),
            Kind::Lock(lock) => Some(OwnerName::Lock(self.lock_owners.name(lock.owner)?.into())),
            Kind::Delegation(_) => None,
            Kind::Revoked(_) => self.revoked_owners.get(&other).cloned(),
        }
    }

    /// OPEN_CONFIRM: returns the new stateid (RFC 7530 16.18).
    ///
    /// # Errors
    /// [`StateidError`].
    pub fn confirm(&mut self, sent: Stateid, file: FileKey) -> Result<Stateid, StateidError> {
        self.find_open(sent, file)?;
        Ok(self.bump(sent.other))
    }

    /// Ends an open that was not confirmed. Returns its file, too.
    pub fn cancel(&mut self, open: Other) -> Option<(FileKey, Ended<O>)> {
        let file = self.states.get(&open)?.file;
        let ended = self.close(Stateid { seqid: 0, other: open }, file).ok()?;
        Some((file, ended))
    }

    /// RELEASE_LOCKOWNER: the stateids of the owner's locks are void. `holds_locks` tells whether a set of locks is not
    /// empty. An owner that is not known holds none.
    ///
    /// # Errors
    /// [`FreeError::Held`] (RFC 7530 16.37.4: "no further action will be taken").
    pub fn release_lock_owner(
        &mut self,
        name: &[u8],
        holds_locks: impl Fn(&OpenState<O>, LockState) -> bool,
    ) -> Result<(), FreeError> {
        let Some(number) = self.lock_owners.number(name) else { return Ok(()) };
        let of_owner = |((_, owner), other): (&(Other, u64), &Other)| (*owner == number).then_some(*other);
        let sets: Vec<Other> = self.locks.iter().filter_map(of_owner).collect();
        for set in &sets {
            if let Some(HeldState { kind: Kind::Lock(lock), .. }) = self.states.get(set)
                && holds_locks(self.open_of(*lock)?, *lock)
            {
                return Err(FreeError::Held);
            }
        }
        for set in sets {
            self.free(Stateid { seqid: 0, other: set }, |_, _| false)?;
        }
        Ok(())
    }

    /// The names of all owners of opens.
    #[must_use]
    pub fn open_owners(&self) -> HashSet<&[u8]> {
        self.opens.keys().map(|(_, name)| &**name).collect()
    }
}
