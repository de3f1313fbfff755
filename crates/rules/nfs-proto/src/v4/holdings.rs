//! Everything that one client holds: opens, byte-range locks and delegations, by their stateids (RFC 8881 8.2, 9, 10).
//!
//! `O` is what the server keeps with an open, `D` with a delegation. Values that are returned must be closed.

use std::collections::HashMap;

use super::limits::{HoldingLimits, LimitReached};
use super::lock_owner::LockOwners;
use super::lock_state::LockState;
use super::open_state::{NoSuchUnion, OpenState, Opened, ShareAccess, ShareDeny};
use super::state_owner::OwnerName;
use super::stateid::{FileKey, Names, Other, Stateid, StateidError, check_seqid, seqid_after};

#[cfg(test)]
mod tests;
mod without_session;

/// A delegation that a client holds (RFC 8881 10.4).
#[derive(Debug)]
pub struct Delegation<D> {
    /// Reading only, or also writing.
    pub access: ShareAccess,
    /// What the server keeps with it.
    pub held: D,
}

/// What a stateid stands for.
#[derive(Debug)]
pub enum Kind<O, D> {
    /// The opens of an open-owner on a file.
    Open(OpenState<O>),
    /// The locks of a lock-owner on a file.
    Lock(LockState),
    /// A delegation.
    Delegation(Delegation<D>),
    /// State that was revoked. The client has not acknowledged that yet.
    Revoked(Revocation),
}

/// How state was revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revocation {
    /// The error that the client gets when it uses the stateid.
    why: StateidError,
    /// Whether it was a delegation.
    of_delegation: bool,
}

/// Revoked state that a client has not freed yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Revoked {
    /// The number of stateids of any kind.
    pub all: usize,
    /// Delegations (SEQ4_STATUS_RECALLABLE_STATE_REVOKED).
    pub delegations: usize,
    /// Stateids revoked by an administrator (SEQ4_STATUS_ADMIN_STATE_REVOKED).
    pub by_administrator: usize,
}

impl Revoked {
    fn add(&mut self, one: Revocation) {
        self.all = self.all.saturating_add(1);
        self.delegations = self.delegations.saturating_add(one.of_delegation.into());
        self.by_administrator = self.by_administrator.saturating_add(one.is_administrative().into());
    }

    fn take(&mut self, one: Revocation) {
        debug_assert!(self.all > 0, "what is taken was counted");
        self.all = self.all.saturating_sub(1);
        self.delegations = self.delegations.saturating_sub(one.of_delegation.into());
        self.by_administrator = self.by_administrator.saturating_sub(one.is_administrative().into());
    }
}

impl Revocation {
    fn is_administrative(self) -> bool {
        self.why == StateidError::AdminRevoked
    }
}

#[derive(Debug)]
struct HeldState<O, D> {
    seqid: u32,
    file: FileKey,
    kind: Kind<O, D>,
}

/// Everything that one client holds.
#[derive(Debug)]
pub struct Holdings<O, D> {
    limits: HoldingLimits,
    names: Names,
    states: HashMap<Other, HeldState<O, D>>,
    opens: HashMap<(FileKey, Box<[u8]>), Other>,
    locks: HashMap<(Other, u64), Other>,
    delegations: HashMap<FileKey, Other>,
    lock_owners: LockOwners,
    revoked: Revoked,
    /// The owners of opens and locks that were revoked.
    revoked_owners: HashMap<Other, OwnerName>,
}

/// What a read or write goes through.
#[derive(Debug)]
pub enum Through<'a, O, D> {
    /// An open that allows the access.
    Open(&'a O),
    /// A delegation that stands for such an open.
    Delegation(&'a D),
}

/// Why a read, a write or a lock is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UseError {
    /// The stateid is refused.
    #[error(transparent)]
    Stateid(#[from] StateidError),
    /// The file was not opened for this access (NFS4ERR_OPENMODE).
    #[error("not opened for this")]
    OpenMode,
}

/// Why an OPEN_DOWNGRADE is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DowngradeError {
    /// The stateid is refused.
    #[error(transparent)]
    Stateid(#[from] StateidError),
    /// The requested access is not a union of OPENs in effect (NFS4ERR_INVAL).
    #[error(transparent)]
    NoSuchUnion(#[from] NoSuchUnion),
}

/// Why a stateid cannot be freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FreeError {
    /// The stateid is refused.
    #[error(transparent)]
    Stateid(#[from] StateidError),
    /// The stateid stands for something that is held (NFS4ERR_LOCKS_HELD).
    #[error("it stands for something that is held")]
    Held,
}

/// What a CLOSE ends.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended<O> {
    /// The opens.
    pub opens: Vec<O>,
    /// Numbers of the lock-owners whose locks on the file end, since they hold none of the file under another open.
    pub lock_owners: Vec<u64>,
}

impl<O, D> Holdings<O, D> {
    /// A client that holds nothing.
    #[must_use]
    pub fn new(limits: HoldingLimits, names: Names) -> Self {
        Self {
            limits,
            names,
            states: HashMap::new(),
            opens: HashMap::new(),
            locks: HashMap::new(),
            delegations: HashMap::new(),
            lock_owners: LockOwners::new(names.client()),
            revoked: Revoked::default(),
            revoked_owners: HashMap::new(),
        }
    }

    /// Whether nothing is held. Revoked state does not count.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.len() <= self.revoked.all
    }

    /// Revoked state that the client has not freed.
    #[must_use]
    pub fn revoked(&self) -> Revoked {
        self.revoked
    }

    fn insert(&mut self, file: FileKey, kind: Kind<O, D>) -> Result<Other, Kind<O, D>> {
        let Some(other) = self.names.make() else { return Err(kind) };
        self.states.insert(other, HeldState { seqid: 1, file, kind });
        Ok(other)
    }

    /// Checks a stateid as required by RFC 8881 8.2.4, except for its kind.
    fn state(&self, sent: Stateid, file: FileKey) -> Result<&HeldState<O, D>, StateidError> {
        let state = self.states.get(&sent.other).filter(|state| state.file == file);
        let state = state.ok_or(StateidError::Bad)?;
        if let Kind::Revoked(revocation) = state.kind {
            return Err(revocation.why);
        }
        Ok(state)
    }

    fn bump(&mut self, other: Other) -> Stateid {
        let Some(state) = self.states.get_mut(&other) else { return Stateid::INVALID };
        state.seqid = seqid_after(state.seqid);
        Stateid { seqid: state.seqid, other }
    }

    /// Enters an OPEN that was admitted. If an open is returned, it is not needed beside the existing ones.
    ///
    /// # Errors
    /// The open itself, if [`HoldingLimits::opens_max`] is reached.
    pub fn open(&mut self, file: FileKey, owner: &[u8], new: Opened<O>) -> Result<(Stateid, Option<O>), O> {
        if let Some(other) = self.opens.get(&(file, owner.into())).copied()
            && let Some(HeldState { kind: Kind::Open(open), .. }) = self.states.get_mut(&other)
        {
            let unneeded = open.add(new);
            return Ok((self.bump(other), unneeded));
        }
        if self.opens.len() >= self.limits.opens_max {
            return Err(new.held);
        }
        match self.insert(file, Kind::Open(OpenState::new(owner, new))) {
            Ok(other) => {
                self.opens.insert((file, owner.into()), other);
                Ok((Stateid { seqid: 1, other }, None))
            }
            Err(Kind::Open(OpenState { mut opens, .. })) => match opens.pop() {
                Some(open) => Err(open.held),
                None => Ok((Stateid::INVALID, None)),
            },
            Err(_) => Ok((Stateid::INVALID, None)),
        }
    }

    /// The OPENs in effect that a stateid stands for.
    ///
    /// # Errors
    /// [`StateidError`].
    pub fn find_open(&self, sent: Stateid, file: FileKey) -> Result<&OpenState<O>, StateidError> {
        let state = self.state(sent, file)?;
        let Kind::Open(open) = &state.kind else { return Err(StateidError::Bad) };
        check_seqid(sent.seqid, state.seqid)?;
        Ok(open)
    }

    /// CLOSE: all OPENs of an open-owner, and the locks under them (RFC 8881 18.2).
    ///
    /// # Errors
    /// [`StateidError`].
    pub fn close(&mut self, sent: Stateid, file: FileKey) -> Result<Ended<O>, StateidError> {
        self.find_open(sent, file)?;
        let Some(HeldState { kind: Kind::Open(open), .. }) = self.states.remove(&sent.other) else {
            return Err(StateidError::Bad);
        };
        self.opens.remove(&(file, open.owner));
        let lock_states = open.lock_states.into_iter();
        let lock_owners = lock_states.filter_map(|lock| self.end_lock_state(lock)).collect();
        Ok(Ended { opens: open.opens.into_iter().map(|open| open.held).collect(), lock_owners })
    }

    /// OPEN_DOWNGRADE: returns the new stateid, and the opens that are no longer in effect (RFC 8881 18.18).
    ///
    /// # Errors
    /// [`DowngradeError`].
    pub fn downgrade(
        &mut self,
        sent: Stateid,
        file: FileKey,
        (access, deny): (ShareAccess, ShareDeny),
    ) -> Result<(Stateid, Vec<O>), DowngradeError> {
        self.find_open(sent, file)?;
        let Some(HeldState { kind: Kind::Open(open), .. }) = self.states.get_mut(&sent.other) else {
            return Err(StateidError::Bad.into());
        };
        let gone = open.downgrade(access, deny)?;
        Ok((self.bump(sent.other), gone))
    }

    /// What a READ, a WRITE or a change of size goes through (RFC 8881 9.1.2): an open, the open under which a lock was
    /// taken, or a delegation.
    ///
    /// # Errors
    /// [`UseError`].
    pub fn for_data(
        &self,
        sent: Stateid,
        file: FileKey,
        access: ShareAccess,
    ) -> Result<Through<'_, O, D>, UseError> {
        let state = self.state(sent, file)?;
        check_seqid(sent.seqid, state.seqid)?;
        let open = match &state.kind {
            Kind::Open(open) => open,
            Kind::Lock(lock) => self.open_of(*lock)?,
            Kind::Delegation(held) if held.access.contains(access) => {
                return Ok(Through::Delegation(&held.held));
            }
            Kind::Delegation(_) => return Err(UseError::OpenMode),
            Kind::Revoked(revocation) => return Err(revocation.why.into()),
        };
        open.for_access(access).map(Through::Open).ok_or(UseError::OpenMode)
    }

    fn open_of(&self, lock: LockState) -> Result<&OpenState<O>, StateidError> {
        match self.states.get(&lock.open) {
            Some(HeldState { kind: Kind::Open(open), .. }) => Ok(open),
            _ => Err(StateidError::Bad),
        }
    }

    /// The set of locks that a stateid stands for, and an open under which the locks were taken.
    ///
    /// # Errors
    /// [`StateidError`].
    pub fn find_lock(
        &self,
        sent: Stateid,
        file: FileKey,
    ) -> Result<(LockState, &OpenState<O>), StateidError> {
        let state = self.state(sent, file)?;
        let Kind::Lock(lock) = state.kind else { return Err(StateidError::Bad) };
        check_seqid(sent.seqid, state.seqid)?;
        Ok((lock, self.open_of(lock)?))
    }

    /// The lock-owners, for requests that test or take a lock.
    #[must_use]
    pub fn lock_owners(&self) -> &LockOwners {
        &self.lock_owners
    }

    /// A lock-owner is about to lock a range. Returns its number, which is reserved until [`Holdings::end_locking`].
    pub fn begin_locking(&mut self, name: &[u8]) -> u64 {
        self.lock_owners.take(name)
    }

    /// Ends [`Holdings::begin_locking`], whatever the result.
    pub fn end_locking(&mut self, number: u64) {
        self.lock_owners.drop(number);
    }

    /// A lock-owner has locked a range under this open for the first time, or again without naming the stateid.
    ///
    /// # Errors
    /// [`LimitReached`], also when the open has ended meanwhile: nothing was changed.
    pub fn locked(&mut self, open: Other, number: u64) -> Result<Stateid, LimitReached> {
        if let Some(other) = self.locks.get(&(open, number)).copied() {
            return Ok(self.bump(other));
        }
        if self.locks.len() >= self.limits.lock_states_max {
            return Err(LimitReached("sets of locks"));
        }
        let Some(HeldState { kind: Kind::Open(_), file, .. }) = self.states.get(&open) else {
            return Err(LimitReached("opens"));
        };
        let file = *file;
        let lock = LockState { open, owner: number };
        let other = self.insert(file, Kind::Lock(lock)).map_err(|_| LimitReached("stateids"))?;
        self.locks.insert((open, number), other);
        self.lock_owners.enter(file, number);
        if let Some(HeldState { kind: Kind::Open(open), .. }) = self.states.get_mut(&open) {
            open.lock_states.push(other);
        }
        Ok(Stateid { seqid: 1, other })
    }

    /// A set of locks has changed. Returns its new stateid.
    ///
    /// # Errors
    /// [`StateidError`] if the set has ended meanwhile.
    pub fn changed(&mut self, other: Other) -> Result<Stateid, StateidError> {
        match self.states.get(&other).map(|state| &state.kind) {
            Some(Kind::Lock(_)) => Ok(self.bump(other)),
            Some(Kind::Revoked(revocation)) => Err(revocation.why),
            _ => Err(StateidError::Bad),
        }
    }

    /// Forgets a set of locks. Returns the number of the lock-owner if that was its last set on the file.
    fn end_lock_state(&mut self, other: Other) -> Option<u64> {
        let HeldState { kind: Kind::Lock(lock), file, .. } = self.states.remove(&other)? else { return None };
        self.locks.remove(&(lock.open, lock.owner));
        self.lock_owners.leave(file, lock.owner).then_some(lock.owner)
    }

    /// The client's delegation of a file.
    #[must_use]
    pub fn delegation(&self, file: FileKey) -> Option<(Stateid, &Delegation<D>)> {
        let other = *self.delegations.get(&file)?;
        let state = self.states.get(&other)?;
        let Kind::Delegation(held) = &state.kind else { return None };
        Some((Stateid { seqid: state.seqid, other }, held))
    }

    /// Whether the client may get another delegation.
    #[must_use]
    pub fn may_delegate(&self, file: FileKey) -> bool {
        let count = self.delegations.len().saturating_add(self.revoked.delegations);
        count < self.limits.delegations_max && !self.delegations.contains_key(&file)
    }

    /// Enters a delegation.
    ///
    /// # Errors
    /// `held` itself, if the client has a delegation of the file or too many of them ([`Holdings::may_delegate`]).
    pub fn delegate(&mut self, file: FileKey, access: ShareAccess, held: D) -> Result<Stateid, D> {
        if !self.may_delegate(file) {
            return Err(held);
        }
        match self.insert(file, Kind::Delegation(Delegation { access, held })) {
            Ok(other) => {
                self.delegations.insert(file, other);
                Ok(Stateid { seqid: 1, other })
            }
            Err(Kind::Delegation(delegation)) => Err(delegation.held),
            Err(_) => Ok(Stateid::INVALID),
        }
    }

    /// DELEGRETURN: returns what was kept with the delegation (RFC 8881 18.6).
    ///
    /// # Errors
    /// [`StateidError`].
    pub fn return_delegation(&mut self, sent: Stateid, file: FileKey) -> Result<D, StateidError> {
        let state = self.state(sent, file)?;
        let Kind::Delegation(_) = state.kind else { return Err(StateidError::Bad) };
        check_seqid(sent.seqid, state.seqid)?;
        self.delegations.remove(&file);
        match self.states.remove(&sent.other) {
            Some(HeldState { kind: Kind::Delegation(delegation), .. }) => Ok(delegation.held),
            _ => Err(StateidError::Bad),
        }
    }

    /// Revokes the client's delegation of a file. The client gets `why` when it uses the stateid, until it frees the
    /// stateid.
    pub fn revoke_delegation(&mut self, file: FileKey, why: StateidError) -> Option<D> {
        let other = self.delegations.remove(&file)?;
        match self.revoke(other, why)?.kind {
            Kind::Delegation(delegation) => Some(delegation.held),
            _ => None,
        }
    }

    /// What is held of one share, except locks, which end with their open.
    pub fn of_share(&self, share: u32) -> impl Iterator<Item = (Through<'_, O, D>, ShareAccess)> {
        let of_share = self.states.values().filter(move |state| state.file.share == share);
        of_share.flat_map(|state| {
            let opens = match &state.kind {
                Kind::Open(open) => open.opens(),
                _ => &[],
            };
            let delegation = match &state.kind {
                Kind::Delegation(delegation) => Some(delegation),
                _ => None,
            };
            let opens = opens.iter().map(|open| (Through::Open(&open.held), open.access));
            opens.chain(delegation.map(|held| (Through::Delegation(&held.held), held.access)))
        })
    }

    /// Revokes what the client may not keep of one share (NFS4ERR_ADMIN_REVOKED): delegations, and all opens of an
    /// open-owner on a file if one of them is lost, with the locks under them. The client gets the error when it uses
    /// the stateids, until it frees them.
    pub fn revoke_of_share(
        &mut self,
        share: u32,
        is_lost: impl Fn(Through<'_, O, D>, ShareAccess) -> bool,
    ) -> Everything<O, D> {
        let mut lost = Vec::new();
        for (other, state) in self.states.iter().filter(|(_, state)| state.file.share == share) {
            match &state.kind {
                Kind::Open(open) => {
                    if open.opens().iter().any(|open| is_lost(Through::Open(&open.held), open.access)) {
                        lost.extend(open.lock_states.iter().copied().chain([*other]));
                    }
                }
                Kind::Delegation(held) if is_lost(Through::Delegation(&held.held), held.access) => {
                    lost.push(*other);
                }
                Kind::Delegation(_) | Kind::Lock(_) | Kind::Revoked(_) => {}
            }
        }
        let mut all = Everything::default();
        for other in lost {
            if let Some(state) = self.revoke(other, StateidError::AdminRevoked) {
                self.forget_names(&state);
                match state.kind {
                    Kind::Lock(lock) if !self.lock_owners.leave(state.file, lock.owner) => {} // the owner has other sets on the file
                    _ => all.take(state),
                }
            }
        }
        all
    }

    /// Revokes what a stateid stands for. As many revoked stateids are remembered as there may be opens; beyond that
    /// the client finds the stateids unknown.
    fn revoke(&mut self, other: Other, why: StateidError) -> Option<HeldState<O, D>> {
        let owner = self.owner_of(other);
        let state = self.states.remove(&other)?;
        let revocation = Revocation { why, of_delegation: matches!(state.kind, Kind::Delegation(_)) };
        if self.revoked.all < self.limits.opens_max {
            let HeldState { seqid, file, .. } = state;
            self.states.insert(other, HeldState { seqid, file, kind: Kind::Revoked(revocation) });
            self.revoked.add(revocation);
            self.revoked_owners.extend(owner.map(|owner| (other, owner)));
        }
        Some(state)
    }

    /// Removes the entries that lead to revoked state.
    fn forget_names(&mut self, HeldState { file, kind, .. }: &HeldState<O, D>) {
        match kind {
            Kind::Open(open) => _ = self.opens.remove(&(*file, open.owner.clone())),
            Kind::Lock(lock) => _ = self.locks.remove(&(lock.open, lock.owner)),
            Kind::Delegation(_) => _ = self.delegations.remove(file),
            Kind::Revoked(_) => {}
        }
    }

    /// FREE_STATEID. `holds_locks` tells whether a set of locks is not empty (RFC 8881 18.38).
    ///
    /// # Errors
    /// [`FreeError`].
    pub fn free(
        &mut self,
        sent: Stateid,
        holds_locks: impl FnOnce(&OpenState<O>, LockState) -> bool,
    ) -> Result<(), FreeError> {
        let state = self.states.get(&sent.other).ok_or(StateidError::Bad)?;
        check_seqid(sent.seqid, state.seqid)?;
        match state.kind {
            Kind::Open(_) | Kind::Delegation(_) => Err(FreeError::Held),
            Kind::Lock(lock) if holds_locks(self.open_of(lock)?, lock) => Err(FreeError::Held),
            Kind::Lock(lock) => {
                if let Some(HeldState { kind: Kind::Open(open), .. }) = self.states.get_mut(&lock.open) {
                    open.lock_states.retain(|other| *other != sent.other);
                }
                self.end_lock_state(sent.other);
                Ok(())
            }
            Kind::Revoked(revocation) => {
                self.states.remove(&sent.other);
                self.revoked_owners.remove(&sent.other);
                self.revoked.take(revocation);
                Ok(())
            }
        }
    }

    /// Another stateid for the client, for state that is kept elsewhere; None when there are no more.
    pub fn name(&mut self) -> Option<Other> {
        self.names.make()
    }

    /// TEST_STATEID for one stateid (RFC 8881 18.48).
    ///
    /// # Errors
    /// [`StateidError`].
    pub fn test(&self, sent: Stateid) -> Result<(), StateidError> {
        // "Special stateids are always considered invalid".
        let state = self.states.get(&sent.other).ok_or(StateidError::Bad)?;
        if let Kind::Revoked(revocation) = state.kind {
            return Err(revocation.why);
        }
        check_seqid(sent.seqid, state.seqid)
    }

    /// Removes everything: the client is gone.
    pub fn end(&mut self) -> Everything<O, D> {
        let mut all = Everything::default();
        self.states.drain().for_each(|(_, state)| all.take(state));
        *self = Self::new(self.limits, self.names);
        all
    }

    /// Whether the client holds anything of one share.
    #[must_use]
    pub fn has_of_share(&self, share: u32) -> bool {
        self.states.values().any(|state| state.file.share == share)
    }

    /// Removes everything that belongs to one share: the share is gone. Revoked state of the share is forgotten, too.
    pub fn end_share(&mut self, share: u32) -> Everything<O, D> {
        let mut all = Everything::default();
        let gone = self.states.extract_if(|_, state| state.file.share == share);
        for (_, state) in gone {
            match &state.kind {
                Kind::Lock(lock) => _ = self.lock_owners.leave(state.file, lock.owner),
                Kind::Revoked(revocation) => self.revoked.take(*revocation),
                Kind::Open(_) | Kind::Delegation(_) => {}
            }
            all.take(state);
        }
        let Self { states, opens, locks, delegations, revoked_owners, .. } = self;
        opens.retain(|_, other| states.contains_key(other));
        locks.retain(|_, other| states.contains_key(other));
        delegations.retain(|_, other| states.contains_key(other));
        revoked_owners.retain(|other, _| states.contains_key(other));
        all
    }
}

/// Everything that a client held, or everything of one share.
#[derive(Debug)]
pub struct Everything<O, D> {
    /// The opens.
    pub opens: Vec<O>,
    /// The lock-owners, each with a file on which it had locks.
    pub lock_owners: Vec<(FileKey, u64)>,
    /// The delegations.
    pub delegations: Vec<D>,
}

impl<O, D> Default for Everything<O, D> {
    fn default() -> Self {
        Self { opens: Vec::new(), lock_owners: Vec::new(), delegations: Vec::new() }
    }
}

impl<O, D> Everything<O, D> {
    fn take(&mut self, state: HeldState<O, D>) {
        match state.kind {
            Kind::Open(open) => self.opens.extend(open.opens.into_iter().map(|open| open.held)),
            Kind::Lock(lock) => self.lock_owners.push((state.file, lock.owner)),
            Kind::Delegation(delegation) => self.delegations.push(delegation.held),
            Kind::Revoked(_) => {}
        }
    }
}
