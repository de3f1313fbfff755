//! Caching grants: what a client may cache of a file, and how a grant is taken back.
//!
//! SMB shows a grant as a lease or an oplock, NFSv4 as a delegation. An operation that would make another client's
//! cache wrong takes part of that client's grant away. [`Operation::takes`] and [`Holder::after`] are the whole rule;
//! `caching/transitions.txt` lists what follows from it.

use crate::{Access, OpenKey, Sharing};
use bitflags::bitflags;

#[cfg(test)]
mod tests;

bitflags! {
    /// What a client may cache: the bits of an SMB lease state ([MS-SMB2] 2.2.13.2.8).
    ///
    /// As leases: R, RH, RW, RWH. As oplocks: level II is R, exclusive RW, batch RWH. As NFSv4 delegations: a read
    /// delegation is RH, a write delegation RWH.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct Caching: u8 {
        /// Keep data that was read.
        const READ = 0x1;
        /// Keep the file open after the application has closed it.
        const HANDLE = 0x2;
        /// Keep data that was written.
        const WRITE = 0x4;
    }
}

/// Who holds a caching grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// A client (NFSv4 delegation). The number identifies the client on this server.
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
    /// Retry an open that met a sharing violation: a client may be keeping a closed file open.
    SharingViolation,
    /// Read data.
    Read,
    /// Write data, change the size or zero a range.
    Write,
    /// Lock a range.
    Lock,
    /// Change attributes other than the size.
    SetAttributes,
    /// Rename the file, or add a hard link.
    Rename,
    /// Delete it.
    Delete,
    /// Change the entries of a directory: their names, or what a listing shows of them.
    ChangeEntries,
}

/// A holder must be told that its grant shrinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Break {
    /// The holder to tell.
    pub holder: Holder,
    /// What the holder had.
    pub from: Caching,
    /// What the holder may keep.
    pub to: Caching,
    /// The holder must answer with [`FileState::acknowledge`](crate::FileState::acknowledge) or give up the whole grant
    /// ([`FileState::revoke`](crate::FileState::revoke)). If this is false, the grant has already shrunk.
    pub ack_required: bool,
    /// This break follows directly from the holder's answer to the previous one, because further operations took more
    /// in the meantime. To the holder the two are one break.
    pub continues: bool,
}

/// What an operation has to do about the grants of others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Breaks {
    /// The holders to tell now.
    pub tell: Vec<Break>,
    /// The operation must wait until a holder has answered, and then ask again.
    pub wait: bool,
}

/// Why an acknowledgment was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AcknowledgeError {
    /// There is no such grant, or the grant is not being broken (leases: STATUS_UNSUCCESSFUL, oplocks:
    /// STATUS_INVALID_DEVICE_STATE).
    #[error("no break is under way")]
    NotBreaking,
    /// The holder wants to keep more than it was told that it may keep (STATUS_REQUEST_NOT_ACCEPTED).
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

/// An open for no more than this neither reads nor changes data, so it does not affect caches ([MS-FSA] 2.1.4.12).
const ATTRIBUTES_ONLY: Access =
    Access::READ_ATTRIBUTES.union(Access::WRITE_ATTRIBUTES).union(Access::SYNCHRONIZE);

/// Whether an open for this access leaves the caches of others alone.
#[must_use]
pub fn is_quiet(access: Access) -> bool {
    ATTRIBUTES_ONLY.union(Access::READ_CONTROL).contains(access)
}

/// Whether grants are decided as if an open for this access were not there. An open for READ_CONTROL counts, as on
/// Windows, although it breaks no lease.
pub(crate) fn is_for_attributes(access: Access) -> bool {
    ATTRIBUTES_ONLY.contains(access)
}

impl Operation {
    /// What the operation takes from an SMB holder, and which part of that the operation waits for ([MS-FSA] 2.1.4.12).
    fn takes(self, holder: Holder) -> (Caching, Caching) {
        match self {
            Self::Open { access, .. } if holder.ignores(access) => (NONE, NONE),
            Self::Open { .. } | Self::Read => (W, W),
            Self::Overwrite | Self::Write | Self::Lock => (RWH, W),
            Self::SharingViolation | Self::Rename | Self::Delete => (H, H),
            // [MS-FSA] 2.1.4.12, PARENT_OBJECT: a cached listing is stale at once, but holds no unwritten data.
            Self::ChangeEntries => (RWH, W),
            Self::SetAttributes => (NONE, NONE),
        }
    }

    /// Whether the operation conflicts with a delegation of this state (RFC 8881 10.4, 10.4.4). A read delegation
    /// stands for opens that read and let others read.
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
    /// Whether an open for this access leaves the grant alone. An open for READ_CONTROL breaks oplocks, but not leases
    /// ([MS-FSA] 2.1.4.12).
    fn ignores(self, access: Access) -> bool {
        if matches!(self, Self::Oplock(_)) { is_for_attributes(access) } else { is_quiet(access) }
    }

    /// What a holder of `state` has left once the operation may continue.
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
            // A deletion does not break a batch oplock.
            Self::Oplock(_) if !state.intersects(takes) || operation == Operation::Delete => state,
            // An oplock breaks to level II, or to none where level II would not be enough.
            Self::Oplock(_) if takes.contains(R) || operation == Operation::Rename => NONE,
            Self::Oplock(_) => R,
        }
    }

    /// The largest part of `caching` that a holder of this kind can have.
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

    /// Whether the holder must acknowledge a break that takes part of `state`.
    fn answers(self, state: Caching) -> bool {
        matches!(self, Self::Delegation(_)) || state != R
    }

    /// Whether the operation waits until a holder of `state` has given something up.
    fn holds_up(self, state: Caching, operation: Operation) -> bool {
        let lost = state.difference(self.after(state, operation));
        match self {
            Self::Delegation(_) => !lost.is_empty(),
            Self::Lease { .. } | Self::Oplock(_) => lost.intersects(operation.takes(self).1),
        }
    }

    /// What a holder of `state` is told that it may keep, when it is to end with `to`. A lease that was broken further
    /// while a break was outstanding gives up one capability after the other, as on Windows: clients rely on each step.
    fn next_step(self, state: Caching, to: Caching) -> Caching {
        match self {
            Self::Lease { .. } if state != R && to.is_empty() => R,
            _ => to,
        }
    }

    /// Whether the holder's own operation leaves its grant alone. A level II oplock ends with any write or lock,
    /// including the holder's own. A change of a directory's entries names the lease by its key alone.
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

/// A break that the holder was told of and has not acknowledged.
#[derive(Debug, Clone, Copy)]
struct Breaking {
    /// What the holder was told that it may keep.
    to: Caching,
    /// What the holder may keep by now: later operations may have taken more.
    then: Caching,
    /// What the holder had when the first of several breaks in a row began. An operation that waits for the first break
    /// waits for all of them.
    from: Caching,
}

impl Grant {
    fn writes(&self) -> bool {
        self.state.contains(W) || self.breaking.is_some_and(|breaking| breaking.from.contains(W))
    }

    /// Starts to take away what goes beyond `to`.
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
    /// Others have the file open for more than attributes.
    pub(crate) others_open: bool,
    /// Others have the file open for writing, or without sharing read access.
    pub(crate) others_write: bool,
    /// Byte ranges are locked.
    pub(crate) locked: bool,
    /// Byte ranges are locked by others.
    pub(crate) others_lock: bool,
}

/// The grants of one file: one per holder, and seldom more than a few.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grants {
    list: Vec<Grant>,
    /// How many grants allow writing (or did until a break is acknowledged), and how many are delegations. If there are
    /// none, reads and opens need not look at each grant.
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

    /// What the holder was told that it may keep, if it has not answered yet.
    pub(crate) fn breaking_to(&self, holder: Holder) -> Option<Caching> {
        self.list.iter().find(|g| g.holder == holder)?.breaking.map(|breaking| breaking.to)
    }

    pub(crate) fn state(&self, holder: Holder) -> Caching {
        self.list.iter().find(|g| g.holder == holder).map_or(NONE, |g| g.state)
    }

    /// As much of `wanted` as there is room for ([MS-FSA] 2.1.5.18.1, 2.1.5.18.2): write caching only if nobody else
    /// has the file open, read caching only where nobody writes.
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
        // [MS-FSA] 2.1.5.18.2: a lease with handle caching and a level II oplock exclude each other.
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

    /// Makes a grant, or adds to what the holder has. Returns what the holder has then. A grant never shrinks here. It
    /// does not grow while it is being broken, nor to anything less than was wanted.
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
