//! Caching grants: what a client may keep of a file, and how it is taken back.
//!
//! SMB shows a grant as a lease or an oplock, NFSv4 as a delegation. An operation that another's cache
//! would make wrong takes some of it away; [`Operation::takes`] and [`Holder::after`] are the whole rule,
//! `caching/transitions.txt` is what follows from it.

use crate::{Access, OpenKey, Sharing};
use bitflags::bitflags;

#[cfg(test)]
mod tests;

bitflags! {
    /// What a client may cache: the bits of an SMB lease state ([MS-SMB2] 2.2.13.2.8).
    ///
    /// As leases: R, RH, RW, RWH. As oplocks: level II is R, exclusive RW, batch RWH. As NFSv4
    /// delegations: read is RH, write RWH.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Caching: u8 {
        /// Keep data that was read.
        const READ = 0x1;
        /// Keep the file open after the application closed it.
        const HANDLE = 0x2;
        /// Keep data that was written.
        const WRITE = 0x4;
    }
}

/// Who holds a caching grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A lease key of a client; all opens of that key share the grant.
    Lease {
        /// The client's GUID.
        client: [u8; 16],
        /// The key that the client chose.
        key: [u8; 16],
    },
    /// One open (SMB oplock).
    Oplock(OpenKey),
    /// A client (NFSv4 delegation); the number is unique on this server for the client.
    Delegation(u64),
}

/// What is about to be done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Open it.
    Open {
        /// What the open may do.
        access: Access,
        /// What it lets others do.
        sharing: Sharing,
    },
    /// Open it and drop its data (overwrite, supersede).
    Overwrite,
    /// Try an open again that met a sharing violation: a client may be keeping a closed file open.
    SharingViolation,
    /// Read data.
    Read,
    /// Write data, change the size or zero a range.
    Write,
    /// Lock a range.
    Lock,
    /// Change attributes other than the size.
    SetAttributes,
    /// Rename it, or give it another name.
    Rename,
    /// Delete it.
    Delete,
    /// Change the entries of a directory: their names, or what a listing tells of them.
    ChangeEntries,
}

/// Tell this holder that its grant shrinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Break {
    /// Whom to tell.
    pub holder: Holder,
    /// What it had.
    pub from: Caching,
    /// What it may keep.
    pub to: Caching,
    /// The holder answers with [`FileState::acknowledge`](crate::FileState::acknowledge) or gives all back
    /// ([`FileState::revoke`](crate::FileState::revoke)). Without it, the grant has shrunk already.
    pub ack_required: bool,
    /// It follows from the answer to another one, since operations took more in the meantime: to the holder the
    /// two are one.
    pub continues: bool,
}

/// What an operation has to do about the grants of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Breaks {
    /// Whom to tell now.
    pub tell: Vec<Break>,
    /// The operation waits until a holder has answered, and then asks again.
    pub wait: bool,
}

/// Why an acknowledgment was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AcknowledgeError {
    /// No such grant, or it is not being broken (leases: STATUS_UNSUCCESSFUL, oplocks:
    /// STATUS_INVALID_DEVICE_STATE).
    #[error("no break is under way")]
    NotBreaking,
    /// The holder wants to keep more than it may (STATUS_REQUEST_NOT_ACCEPTED).
    #[error("more than the break allows")]
    TooMuch,
}

const NONE: Caching = Caching::empty();
const R: Caching = Caching::READ;
const W: Caching = Caching::WRITE;
const H: Caching = Caching::HANDLE;
const RH: Caching = R.union(H);
const RW: Caching = R.union(W);
const RWH: Caching = RW.union(H);

/// An open for no more than this reads and changes no data, and no cache is in its way ([MS-FSA] 2.1.4.12).
const ATTRIBUTES_ONLY: Access =
    Access::READ_ATTRIBUTES.union(Access::WRITE_ATTRIBUTES).union(Access::SYNCHRONIZE);

/// Whether an open for this access leaves the caches of others alone.
#[must_use]
pub fn is_quiet(access: Access) -> bool {
    ATTRIBUTES_ONLY.union(Access::READ_CONTROL).contains(access)
}

/// Whether an open for this access is none to those who ask for a grant while it is there. Who may read a file's security
/// counts, though its open takes no lease away: so has Windows it.
pub(crate) fn is_for_attributes(access: Access) -> bool {
    ATTRIBUTES_ONLY.contains(access)
}

impl Operation {
    /// What the operation takes from such an SMB holder, and which of it the operation waits for
    /// ([MS-FSA] 2.1.4.12).
    fn takes(self, holder: Holder) -> (Caching, Caching) {
        match self {
            Self::Open { access, .. } if holder.ignores(access) => (NONE, NONE),
            Self::Open { .. } | Self::Read => (W, W),
            Self::Overwrite | Self::Write | Self::Lock => (RWH, W),
            Self::SharingViolation | Self::Rename | Self::Delete => (H, H),
            // [MS-FSA] 2.1.4.12, PARENT_OBJECT: a listing is stale at once, but nobody's data is unwritten.
            Self::ChangeEntries => (RWH, W),
            Self::SetAttributes => (NONE, NONE),
        }
    }

    /// Whether the operation goes against a delegation of this state (RFC 8881 10.4, 10.4.4). A read
    /// delegation stands for opens that read and let others read.
    fn recalls(self, state: Caching) -> bool {
        match self {
            Self::Open { access, .. } if is_quiet(access) => false,
            Self::Open { access, sharing } => {
                let needs = access.needs();
                let denies_read = !needs.is_empty() && !sharing.contains(Sharing::READ);
                state.contains(W) || needs.contains(Sharing::WRITE) || denies_read
            }
            Self::Read => state.contains(W),
            _ => !state.is_empty(),
        }
    }
}

impl Holder {
    /// Whether an open for this access leaves the grant alone. Who may read a file's security is in the way of
    /// oplocks, and not of leases ([MS-FSA] 2.1.4.12).
    fn ignores(self, access: Access) -> bool {
        if matches!(self, Self::Oplock(_)) { is_for_attributes(access) } else { is_quiet(access) }
    }

    /// What a holder of `state` has left once the operation may go on.
    fn after(self, state: Caching, operation: Operation) -> Caching {
        let (takes, _) = operation.takes(self);
        match self {
            Self::Lease { .. } => self.legal(state.difference(takes)),
            Self::Delegation(_) => {
                if operation.recalls(state) {
                    NONE
                } else {
                    state
                }
            }
            // A batch oplock is not told of a deletion.
            Self::Oplock(_) if !state.intersects(takes) || operation == Operation::Delete => state,
            // An oplock breaks to level II, or where that helps nothing, to none.
            Self::Oplock(_) if takes.contains(R) || operation == Operation::Rename => NONE,
            Self::Oplock(_) => R,
        }
    }

    /// The most of this that such a holder can hold.
    fn legal(self, caching: Caching) -> Caching {
        match self {
            _ if !caching.contains(R) => NONE,
            Self::Lease { .. } => caching,
            Self::Oplock(_) => {
                if caching == RH {
                    R
                } else {
                    caching
                }
            }
            Self::Delegation(_) => {
                if caching.contains(H) {
                    caching
                } else {
                    NONE
                }
            }
        }
    }

    /// Whether the holder answers when it is told to give up some of `state`.
    fn answers(self, state: Caching) -> bool {
        matches!(self, Self::Delegation(_)) || state != R
    }

    /// Whether the operation waits for a holder of `state` to give something up.
    fn holds_up(self, state: Caching, operation: Operation) -> bool {
        let lost = state.difference(self.after(state, operation));
        match self {
            Self::Delegation(_) => !lost.is_empty(),
            Self::Lease { .. } | Self::Oplock(_) => lost.intersects(operation.takes(self).1),
        }
    }

    /// What a holder of `state` is told that it may keep, when it is to end with `to`. A lease that was broken further
    /// while it was being broken gives up one thing after the other, as Windows has it: clients count on each step.
    fn next_step(self, state: Caching, to: Caching) -> Caching {
        match self {
            Self::Lease { .. } if state != R && to.is_empty() => R,
            _ => to,
        }
    }

    /// Whether the holder's own operation leaves its grant alone. A level II oplock ends with any write
    /// or lock, its own included. Who changes the entries of a directory names its lease by the key alone.
    fn spares(self, own: Option<Self>, state: Caching, operation: Operation) -> bool {
        if let (Some(Self::Lease { key: named, .. }), Self::Lease { key, .. }) = (own, self)
            && operation == Operation::ChangeEntries
        {
            return named == key;
        }
        let shared_oplock = matches!(self, Self::Oplock(_)) && state == R;
        own == Some(self) && !(shared_oplock && matches!(operation, Operation::Write | Operation::Lock))
    }
}

/// One grant.
#[derive(Debug, Clone, Copy)]
struct Grant {
    holder: Holder,
    /// What the holder may still be caching.
    state: Caching,
    breaking: Option<Breaking>,
}

/// A break that was told and not answered.
#[derive(Debug, Clone, Copy)]
struct Breaking {
    /// What the holder was told that it may keep.
    to: Caching,
    /// What it may keep by now: operations that came later may have taken more.
    then: Caching,
    /// What it had when the first of several breaks in a row began: who has waited for that waits for all of them.
    from: Caching,
}

impl Grant {
    fn writes(&self) -> bool {
        self.state.contains(W) || self.breaking.is_some_and(|breaking| breaking.from.contains(W))
    }

    /// Starts taking away what goes beyond `to`.
    fn shrink(&mut self, to: Caching) -> Break {
        let ack_required = self.holder.answers(self.state);
        let told = Break { holder: self.holder, from: self.state, to, ack_required, continues: false };
        if ack_required {
            self.breaking = Some(Breaking { to, then: to, from: self.state });
        } else {
            self.state = to;
        }
        told
    }
}

/// What the other opens and the locks of the file leave room for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Room {
    /// Others have it open, for more than attributes.
    pub(crate) others_open: bool,
    /// Others have it open for writing, or without sharing reading.
    pub(crate) others_write: bool,
    /// Ranges are locked.
    pub(crate) locked: bool,
    /// Ranges are locked by others.
    pub(crate) others_lock: bool,
}

/// The grants of one file. There is one per holder, and seldom more than a few.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grants {
    list: Vec<Grant>,
    /// How many of them are for writing, or are until a break is answered, and how many are delegations: without any, who
    /// reads or opens need not look at each.
    writing: usize,
    delegations: usize,
}

impl Grants {
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Holder, Caching)> {
        self.list.iter().map(|g| (g.holder, g.state))
    }

    /// What the holder was told that it may keep, while it has not answered.
    pub(crate) fn breaking_to(&self, holder: Holder) -> Option<Caching> {
        self.list.iter().find(|g| g.holder == holder)?.breaking.map(|breaking| breaking.to)
    }

    pub(crate) fn state(&self, holder: Holder) -> Caching {
        self.list.iter().find(|g| g.holder == holder).map_or(NONE, |g| g.state)
    }

    /// As much of `wanted` as there is room for ([MS-FSA] 2.1.5.18.1, 2.1.5.18.2): writing only alone,
    /// reading only where nobody writes.
    fn allowed(&self, holder: Holder, wanted: Caching, room: Room) -> Caching {
        let others = self.list.iter().filter(|g| g.holder != holder);
        let others = others.fold(NONE, |all, g| all | g.state);
        let delegation = matches!(holder, Holder::Delegation(_));
        if others.contains(W) || (delegation && room.locked) {
            return NONE;
        }
        let alone = others.is_empty() && !room.others_open && !room.others_lock;
        if alone && wanted.contains(W) {
            return holder.legal(wanted);
        }
        if room.locked || (delegation && room.others_write) {
            return NONE;
        }
        // [MS-FSA] 2.1.5.18.2: a lease that keeps the file open and a level II oplock go ill together.
        let is_beside = |ill: fn(&Grant) -> bool| self.list.iter().any(|g| g.holder != holder && ill(g));
        let wanted = wanted.difference(W);
        match holder {
            Holder::Oplock(_)
                if is_beside(|g| matches!(g.holder, Holder::Lease { .. }) && g.state.contains(H)) =>
            {
                NONE
            }
            Holder::Lease { .. } if is_beside(|g| matches!(g.holder, Holder::Oplock(_))) => {
                holder.legal(wanted.difference(H))
            }
            _ => holder.legal(wanted),
        }
    }

    /// Grants, or adds to what the holder has; answers what it has then. A grant never shrinks here,
    /// and does not grow while it is being broken, nor by less than was wanted.
    pub(crate) fn grant(
        &mut self,
        holder: Holder,
        wanted: Caching,
        room: Room,
        grants_max: usize,
    ) -> Caching {
        let allowed = self.allowed(holder, wanted, room);
        let len = self.list.len();
        match self.list.iter_mut().find(|g| g.holder == holder) {
            Some(grant) => {
                let whole = allowed == holder.legal(wanted);
                if grant.breaking.is_none() && whole && allowed.contains(grant.state) {
                    grant.state = allowed;
                }
                let state = grant.state;
                self.count();
                state
            }
            None if allowed.is_empty() || len >= grants_max => NONE,
            None => {
                self.list.push(Grant { holder, state: allowed, breaking: None });
                self.count();
                allowed
            }
        }
    }

    fn count(&mut self) {
        let is_delegation = |grant: &&Grant| matches!(grant.holder, Holder::Delegation(_));
        self.writing = self.list.iter().filter(|grant| grant.writes()).count();
        self.delegations = self.list.iter().filter(is_delegation).count();
    }

    pub(crate) fn breaks(&mut self, own: Option<Holder>, operation: Operation) -> Breaks {
        let mut breaks = Breaks::default();
        let disturbs_nobody = match operation {
            Operation::Read => self.writing == 0,
            Operation::Open { .. } => self.writing == 0 && self.delegations == 0,
            _ => false,
        };
        if disturbs_nobody {
            return breaks;
        }
        for grant in &mut self.list {
            let Grant { holder, state, breaking } = *grant;
            if holder.spares(own, state, operation) {
                continue;
            }
            breaks.wait |= holder.holds_up(breaking.map_or(state, |breaking| breaking.from), operation);
            let to = holder.after(state, operation);
            if to == state {
                continue;
            }
            match &mut grant.breaking {
                Some(breaking) => breaking.then = holder.legal(breaking.then & to),
                None => breaks.tell.push(grant.shrink(to)),
            }
        }
        self.drop_empty();
        breaks
    }

    pub(crate) fn acknowledge(
        &mut self,
        holder: Holder,
        keeps: Caching,
    ) -> Result<Option<Break>, AcknowledgeError> {
        let grant = self.list.iter_mut().find(|g| g.holder == holder);
        let grant = grant.ok_or(AcknowledgeError::NotBreaking)?;
        let Breaking { to, then, from } = grant.breaking.ok_or(AcknowledgeError::NotBreaking)?;
        if !to.contains(keeps) {
            return Err(AcknowledgeError::TooMuch);
        }
        grant.state = holder.legal(keeps);
        grant.breaking = None;
        let then = holder.legal(grant.state & then);
        let next = (grant.state != then).then(|| {
            let told = grant.shrink(holder.next_step(grant.state, then));
            grant.breaking = grant.breaking.map(|breaking| Breaking { then, from, ..breaking });
            Break { continues: true, ..told }
        });
        self.drop_empty();
        Ok(next)
    }

    pub(crate) fn revoke(&mut self, holder: Holder) -> Caching {
        let state = self.state(holder);
        self.list.retain(|g| g.holder != holder);
        self.count();
        state
    }

    fn drop_empty(&mut self) {
        self.list.retain(|g| !g.state.is_empty());
        self.count();
    }
}
