//! An operation in the sequence of its state-owners (RFC 7530 9.1.7 to 9.1.9).

use std::sync::Arc;
use std::time::{Duration, Instant};

use nfs_proto::v4::state_owner::{Begun, Effect, OwnerName, Refused, Request};
use nfs_proto::v4::stateid::Other;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::compound::ArgOp;
use nfs_wire::v4::lock::Locker;
use nfs_wire::v4::open::Claim;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::Stateid;

use super::client::{ClientState, Kept};
use crate::v4::state::Client;

/// How long a repetition waits for the first run to end. As with sessions, the client would ask again much later.
const REPEATED_WAITS: Duration = Duration::from_secs(20);

/// How an operation names the owner in whose sequence it comes.
enum Names<'a> {
    Owner(OwnerName),
    Open(&'a Stateid),
    Locks(&'a Stateid),
}

/// The owner whose sequence decides whether an operation runs, and its number there; None for operations outside any
/// sequence.
fn sequence<'a>(operation: &'a ArgOp<'_>) -> Option<(Names<'a>, u32)> {
    Some(match operation {
        ArgOp::Open(args) => (Names::Owner(OwnerName::Open(args.owner.owner.0.into())), args.seqid),
        ArgOp::OpenConfirm(args) => (Names::Open(&args.open_stateid), args.seqid),
        ArgOp::OpenDowngrade(args) => (Names::Open(&args.open_stateid), args.seqid),
        ArgOp::Close(args) => (Names::Open(&args.open_stateid), args.seqid),
        ArgOp::LockU(args) => (Names::Locks(&args.lock_stateid), args.seqid),
        ArgOp::Lock(args) => match &args.locker {
            Locker::New { open_seqid, open_stateid, .. } => (Names::Open(open_stateid), *open_seqid),
            Locker::Existing { lock_stateid, lock_seqid } => (Names::Locks(lock_stateid), *lock_seqid),
        },
        _ => return None,
    })
}

/// Whether an operation comes in a sequence.
pub(super) fn is_sequenced(operation: &ArgOp<'_>) -> bool {
    sequence(operation).is_some()
}

/// An operation that is to run. If it is dropped, the operation may come again.
pub(super) struct Turn {
    client: Arc<ClientState>,
    request: Request,
    /// The first lock of a lock-owner: its place in that owner's sequence, too.
    of_lock_owner: Option<Request>,
    pub(super) is_unconfirmed: bool,
    /// What the operation does if it succeeds, as far as its arguments tell.
    effect: Effect,
    has_ended: bool,
}

/// What becomes of an operation.
pub(super) enum Admitted {
    Run(Turn),
    Replay(Kept),
}

/// Begins an operation in the sequence of its owner.
///
/// # Errors
/// [`Status::BadSeqId`], [`Status::BadStateId`], [`Status::Resource`]; [`Status::Delay`] for a repetition of an operation
/// that is still running.
pub(super) async fn begin(
    client: &Arc<Client>,
    operation: &ArgOp<'_>,
    now: Instant,
) -> Result<Admitted, Status> {
    let (names, seqid) = sequence(operation).ok_or(Status::ServerFault)?;
    let sessionless = client.sessionless.as_ref().ok_or(Status::StaleClientId)?;
    let owner = owner(client, sessionless, names)?;
    let request = Request { owner, operation: operation.operation(), seqid };
    let patient_until = now + REPEATED_WAITS;
    loop {
        let ended = Arc::clone(&sessionless.ended).notified_owned();
        let begun = sessionless.owners.lock().begin(&request, now);
        match begun {
            Ok(Begun::Replay(kept)) => return Ok(Admitted::Replay(kept)),
            Ok(Begun::Run { is_unconfirmed }) => {
                let turn = Turn {
                    client: Arc::clone(sessionless),
                    request,
                    of_lock_owner: None,
                    is_unconfirmed,
                    effect: effect(operation),
                    has_ended: false,
                };
                return turn.with_lock_owner(operation, now).map(Admitted::Run);
            }
            Ok(Begun::Running) if Instant::now() < patient_until => {
                let _ = tokio::time::timeout_at(patient_until.into(), ended).await;
            }
            Ok(Begun::Running) => return Err(Status::Delay),
            Err(Refused { status, cancelled }) => {
                client.cancel(&cancelled).await;
                // An OPEN takes the place of one that was not confirmed.
                if status != Status::Delay || cancelled.is_empty() {
                    return Err(status);
                }
            }
        }
    }
}

/// The owner that an operation names.
fn owner(client: &Client, sessionless: &ClientState, names: Names<'_>) -> Result<OwnerName, Status> {
    let (stateid, is_open) = match names {
        Names::Owner(owner) => return Ok(owner),
        Names::Open(stateid) => (stateid, true),
        Names::Locks(stateid) => (stateid, false),
    };
    let held = client.files.with(|holdings| holdings.owner_of(stateid.other));
    let owner = held.or_else(|| sessionless.owners.lock().of_closed(stateid.other).cloned());
    let fits = |owner: &OwnerName| matches!(owner, OwnerName::Open(_)) == is_open;
    owner.filter(fits).ok_or(Status::BadStateId)
}

fn effect(operation: &ArgOp<'_>) -> Effect {
    match operation {
        ArgOp::OpenConfirm(_) => Effect::Confirmed,
        // RFC 7530 9.1.11: "The server MUST NOT require confirmation on a reclaim-type open".
        ArgOp::Open(args) if matches!(args.claim, Claim::Previous(_)) => Effect::Confirmed,
        ArgOp::Close(args) => Effect::Closed(args.open_stateid.other),
        _ => Effect::None,
    }
}

impl Turn {
    /// Begins the first lock of a lock-owner in the sequence of that owner, too. A number that is not the next one cannot
    /// be a repetition: the open-owner's number is a new one (RFC 7530 9.1.9: "When the server can determine that the
    /// request differs from the original, it may return NFS4ERR_BAD_SEQID").
    fn with_lock_owner(mut self, operation: &ArgOp<'_>, now: Instant) -> Result<Self, Status> {
        let ArgOp::Lock(args) = operation else { return Ok(self) };
        let Locker::New { lock_seqid, owner, .. } = &args.locker else { return Ok(self) };
        let owner = OwnerName::Lock(owner.owner.0.into());
        let request = Request { owner, operation: Number::Lock, seqid: *lock_seqid };
        let begun = self.client.owners.lock().begin(&request, now);
        match begun {
            Ok(Begun::Run { .. }) => self.of_lock_owner = Some(request),
            Ok(Begun::Replay(_) | Begun::Running) => return Err(Status::BadSeqId),
            Err(Refused { status, .. }) => return Err(status),
        }
        Ok(self)
    }

    /// Whether an OPEN of this turn must be confirmed.
    pub(super) fn needs_confirmation(&self) -> bool {
        self.is_unconfirmed && self.effect != Effect::Confirmed
    }

    /// Notes which open an OPEN has returned.
    pub(super) fn opened(&mut self, open: Other) {
        if self.needs_confirmation() {
            self.effect = Effect::Opened(open);
        }
    }

    /// The operation has run, with this result.
    pub(super) fn end(mut self, kept: Kept) {
        self.has_ended = true;
        let effect = if kept.status.is_ok() { self.effect } else { Effect::None };
        let mut owners = self.client.owners.lock();
        if let Some(request) = &self.of_lock_owner {
            owners.end(request, kept.status, Effect::None, kept.clone());
        }
        owners.end(&self.request, kept.status, effect, kept);
        drop(owners);
        self.client.ended.notify_waiters();
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let mut owners = self.client.owners.lock();
        self.of_lock_owner.iter().chain([&self.request]).for_each(|request| owners.abandon(request));
        drop(owners);
        self.client.ended.notify_waiters();
    }
}
