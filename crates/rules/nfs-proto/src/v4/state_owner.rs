//! The state-owners of a client of NFSv4.0, and the order of their requests (RFC 7530 9.1.7 to 9.1.11).
//!
//! A session runs a request once. Without sessions, each open-owner and each lock-owner counts its requests: the last one
//! is answered again with the reply that was kept (`R`), the next one runs, and all others are refused. An open-owner that
//! was not known must confirm its first OPEN, which may be an old one that the network has kept.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use nfs_wire::v4::Operation;
use nfs_wire::v4::status::Status;

use super::stateid::Other;

#[cfg(test)]
mod tests;

/// A state-owner, by the name that the client gives it. Open-owners and lock-owners have names of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OwnerName {
    /// An open-owner.
    Open(Box<[u8]>),
    /// A lock-owner.
    Lock(Box<[u8]>),
}

/// A request in the sequence of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The owner.
    pub owner: OwnerName,
    /// The operation.
    pub operation: Operation,
    /// The number of the request.
    pub seqid: u32,
}

/// What a request is.
#[derive(Debug, PartialEq, Eq)]
pub enum Begun<R> {
    /// Run it, then call [`StateOwners::end`].
    Run {
        /// Whether the owner must confirm its opens.
        is_unconfirmed: bool,
    },
    /// It has run already, with this reply.
    Replay(R),
    /// It is running.
    Running,
}

/// Why a request does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// [`Status::BadSeqId`], [`Status::BadStateId`], or [`Status::Resource`] when the client has too many owners.
    pub status: Status,
    /// Opens that the client will not confirm, which must end.
    pub cancelled: Vec<Other>,
}

impl From<Status> for Refused {
    fn from(status: Status) -> Self {
        Self { status, cancelled: Vec::new() }
    }
}

/// What a request has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that the sequence depends on.
    None,
    /// OPEN has returned this open.
    Opened(Other),
    /// The owner need not confirm, or has confirmed.
    Confirmed,
    /// CLOSE has ended this open.
    Closed(Other),
}

#[derive(Debug)]
struct Last<R> {
    seqid: u32,
    operation: Operation,
    reply: R,
}

#[derive(Debug)]
struct Owner<R> {
    /// The last request that has counted; None before the first.
    last: Option<Last<R>>,
    running: Option<(u32, Operation)>,
    is_confirmed: bool,
    /// Opens that wait for confirmation.
    unconfirmed: Vec<Other>,
    /// The open that the last request has ended. The client may send that request again, and names the owner by it.
    closed: Option<Other>,
    used: Instant,
}

/// The state-owners of one client.
#[derive(Debug)]
pub struct StateOwners<R> {
    owners_max: usize,
    owners: HashMap<OwnerName, Owner<R>>,
    /// By the opens that their last requests have ended.
    by_closed: HashMap<Other, OwnerName>,
    /// The opens of owners that have not confirmed.
    unconfirmed: HashSet<Other>,
}

/// RFC 7530 9.1.7: "The client MUST advance the sequence number [...] even in the event that the previous operation that
/// used the sequence number received an error. The only exception to this rule is if the previous operation received one
/// of the following errors".
#[must_use]
pub fn counts(status: Result<(), Status>) -> bool {
    !matches!(
        status,
        Err(Status::StaleClientId
            | Status::StaleStateId
            | Status::BadStateId
            | Status::BadSeqId
            | Status::BadXdr
            | Status::Resource
            | Status::NoFileHandle
            | Status::Moved)
    )
}

/// Whether a request follows the last one. RFC 7530 9.1.3: after the largest number "one (rather than zero) is to be the
/// next seqid value"; the Linux client goes on with zero.
fn follows(last: u32, seqid: u32) -> bool {
    seqid == last.wrapping_add(1) || (last == u32::MAX && seqid == 1)
}

impl<R: Clone> StateOwners<R> {
    /// No owners. The most owners are `owners_max`.
    #[must_use]
    pub fn new(owners_max: usize) -> Self {
        Self { owners_max, owners: HashMap::new(), by_closed: HashMap::new(), unconfirmed: HashSet::new() }
    }

    /// The owner whose last request has ended this open.
    #[must_use]
    pub fn of_closed(&self, open: Other) -> Option<&OwnerName> {
        self.by_closed.get(&open)
    }

    /// Whether this open waits for confirmation. Until then nothing else can be done with it (RFC 7530 16.18.5).
    #[must_use]
    pub fn is_unconfirmed(&self, open: Other) -> bool {
        !self.unconfirmed.is_empty() && self.unconfirmed.contains(&open)
    }

    /// Whether there is room for another owner.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.owners.len() >= self.owners_max
    }

    /// A request has arrived.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn begin(&mut self, request: &Request, now: Instant) -> Result<Begun<R>, Refused> {
        let (seqid, operation) = (request.seqid, request.operation);
        let Some(owner) = self.owners.get_mut(&request.owner) else {
            return self.begin_unknown(request, now);
        };
        owner.used = now;
        if let Some(running) = owner.running {
            let is_it = running == (seqid, operation);
            return if is_it { Ok(Begun::Running) } else { Err(Status::BadSeqId.into()) };
        }
        if let Some(last) = &owner.last
            && last.seqid == seqid
        {
            // 9.1.9: "When the type of the operation does not match that originally used, NFS4ERR_BAD_SEQID is returned."
            let is_it = last.operation == operation;
            return if is_it { Ok(Begun::Replay(last.reply.clone())) } else { Err(Status::BadSeqId.into()) };
        }
        if owner.last.as_ref().is_some_and(|last| !follows(last.seqid, seqid)) {
            return self.begin_out_of_order(request, now);
        }
        // 16.18.5: "it receives an operation on the open_owner4 that has a stateid but the operation is not OPEN [...]
        // Then, even if the seqid is correct, the server returns NFS4ERR_BAD_STATEID"
        let opens = matches!(operation, Operation::Open | Operation::OpenConfirm);
        if !owner.is_confirmed && !opens || owner.is_confirmed && operation == Operation::OpenConfirm {
            return Err(Status::BadStateId.into());
        }
        owner.running = Some((seqid, operation));
        Ok(Begun::Run { is_unconfirmed: !owner.is_confirmed })
    }

    /// The first request of an owner, whose sequence may begin with any number.
    fn begin_unknown(&mut self, request: &Request, now: Instant) -> Result<Begun<R>, Refused> {
        let is_lock_owner = matches!(request.owner, OwnerName::Lock(_));
        if !is_lock_owner && request.operation != Operation::Open {
            return Err(Status::BadStateId.into());
        }
        if self.is_full() {
            return Err(Status::Resource.into());
        }
        let owner = Owner {
            last: None,
            running: Some((request.seqid, request.operation)),
            // The open-owner of the open to which a lock-owner's first lock belongs was confirmed.
            is_confirmed: is_lock_owner,
            unconfirmed: Vec::new(),
            closed: None,
            used: now,
        };
        self.owners.insert(request.owner.clone(), owner);
        Ok(Begun::Run { is_unconfirmed: !is_lock_owner })
    }

    /// A request that is neither the last nor the next. If the owner is not confirmed, what was kept of it came from an
    /// old request.
    fn begin_out_of_order(&mut self, request: &Request, now: Instant) -> Result<Begun<R>, Refused> {
        let bad = || Err(Status::BadSeqId.into());
        let Some(owner) = self.owners.get_mut(&request.owner) else { return bad() };
        if owner.is_confirmed {
            return bad();
        }
        let cancelled = std::mem::take(&mut owner.unconfirmed);
        cancelled.iter().for_each(|open| _ = self.unconfirmed.remove(open));
        match request.operation {
            // 16.18.5: "The server cancels the OPEN state of the first OPEN request, establishes an unconfirmed OPEN state
            // for the second OPEN request". The caller ends the opens, and begins again.
            Operation::Open if !cancelled.is_empty() => {
                self.owners.remove(&request.owner);
                Err(Refused { status: Status::Delay, cancelled })
            }
            Operation::Open => {
                self.owners.remove(&request.owner);
                self.begin_unknown(request, now)
            }
            // 16.18.4: "If the server receives an unexpected sequence id with respect to the original OPEN, then [...] all
            // state associated with the original OPEN is released by the server."
            _ => {
                // The client may send this again, too, and names the owner by the open.
                if let Some(open) = cancelled.first() {
                    owner.closed = Some(*open);
                    self.by_closed.insert(*open, request.owner.clone());
                }
                Err(Refused { status: Status::BadSeqId, cancelled })
            }
        }
    }

    /// A request that was to run has ended, with this reply.
    pub fn end(&mut self, request: &Request, status: Result<(), Status>, effect: Effect, reply: R) {
        let Some(owner) = self.owners.get_mut(&request.owner) else { return };
        owner.running = None;
        // A lock-owner that has got no lock has nothing to keep a sequence for: the open-owner's sequence has the refusal.
        // The Linux client gives its name to another lock-owner, which begins anew.
        let has_no_lock =
            matches!(request.owner, OwnerName::Lock(_)) && owner.last.is_none() && status.is_err();
        if !counts(status) || has_no_lock {
            return self.forget_unused(&request.owner);
        }
        if let Some(before) = owner.closed.take() {
            self.by_closed.remove(&before);
        }
        owner.last = Some(Last { seqid: request.seqid, operation: request.operation, reply });
        match effect {
            Effect::Opened(open) if !owner.is_confirmed => {
                if self.unconfirmed.insert(open) {
                    owner.unconfirmed.push(open);
                }
            }
            Effect::Confirmed => {
                owner.is_confirmed = true;
                let confirmed = std::mem::take(&mut owner.unconfirmed);
                confirmed.iter().for_each(|open| _ = self.unconfirmed.remove(open));
            }
            Effect::Closed(open) => {
                owner.closed = Some(open);
                self.by_closed.insert(open, request.owner.clone());
            }
            Effect::None | Effect::Opened(_) => {}
        }
    }

    /// A request that was to run has not run to its end. It may come again.
    pub fn abandon(&mut self, request: &Request) {
        if let Some(owner) = self.owners.get_mut(&request.owner) {
            owner.running = None;
        }
        self.forget_unused(&request.owner);
    }

    /// An owner without any request that counts is not kept.
    fn forget_unused(&mut self, name: &OwnerName) {
        if self.owners.get(name).is_some_and(|owner| owner.last.is_none() && owner.running.is_none()) {
            self.owners.remove(name);
        }
    }

    /// The client no longer uses this owner.
    pub fn forget(&mut self, name: &OwnerName) {
        let Some(owner) = self.owners.remove(name) else { return };
        owner.unconfirmed.iter().for_each(|open| _ = self.unconfirmed.remove(open));
        if let Some(closed) = owner.closed {
            self.by_closed.remove(&closed);
        }
    }

    /// Forgets owners that hold nothing and have not been used for this time. RFC 7530 16.18.5: "The time period should
    /// certainly be no less than the lease time". Opens that were not confirmed in this time are returned, and must end.
    pub fn forget_idle(
        &mut self,
        now: Instant,
        idle: Duration,
        holds: impl Fn(&OwnerName) -> bool,
    ) -> Vec<Other> {
        let is_idle =
            |owner: &Owner<R>| owner.running.is_none() && now.saturating_duration_since(owner.used) > idle;
        let gone: Vec<_> = self
            .owners
            .iter()
            .filter(|(name, owner)| is_idle(owner) && (!owner.is_confirmed || !holds(name)))
            .map(|(name, _)| name.clone())
            .collect();
        let mut cancelled = Vec::new();
        for name in gone {
            let opens = self.owners.get_mut(&name).map(|owner| owner.unconfirmed.clone());
            cancelled.extend(opens.unwrap_or_default());
            self.forget(&name);
        }
        cancelled
    }

    /// The number of owners.
    #[must_use]
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }
}
