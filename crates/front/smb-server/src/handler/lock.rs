//! LOCK. [MS-SMB2] 3.3.5.14.

use std::sync::Arc;

use net::{Buffer, turn_clock};
use share::{Access, ByteRange, LockKind, LockWait, Share, Turn};
use smb_proto::dialect::Dialect;
use smb_wire::lock::{LockElement, LockFlags, Request, Response};
use smb_wire::negotiate::Capabilities;
use smb_wire::{Command, NtStatus};

use crate::context::OnShare;
use crate::front;
use crate::operation::{Needs, Operation};
use crate::state::open::Open;
use crate::status::Failure;

/// Entries of Open.LockSequenceArray (3.3.1.10).
const LOCK_SEQUENCES: usize = 64;

/// The properties of LOCK.
pub(crate) const OPERATION: Operation = Operation {
    on_share: Some(front::operation(Command::Lock, "Lock").with(Turn::Charged)),
    needs: Needs::Open,
    serves_expired: true,
    lingers: true,
    answer_bytes: 4,
    ..Operation::of(Command::Lock)
};

/// Answers the request.
pub(crate) async fn handle(ctx: &OnShare<'_>, request: Request) -> Result<Buffer, Failure> {
    let open = ctx.open(request.file_id)?;
    let ctx = &ctx.of(&open);
    // [MS-FSA] 2.1.5.8: "If Open.Stream.StreamType is DirectoryStream, return STATUS_INVALID_PARAMETER".
    if open.is_directory {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    if !open.file()?.access().intersects(Access::READ_DATA | Access::WRITE_DATA | Access::EXECUTE) {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    let sequence = Sequence::of(ctx, &open, &request);
    if !sequence.is_some_and(|sequence| sequence.begin(&mut open.state.lock().lock_sequence)) {
        let unlocks = request.locks.first().is_some_and(|first| first.flags.contains(LockFlags::UNLOCK));
        if !unlocks && ctx.session.state.lock().rules.is_expired(turn_clock::now()) {
            // 3.3.5.2.9 serves LOCK after the end of the credentials. Windows serves unlocking only (according to
            // Samba's smb2.session tests).
            return Err(NtStatus::NETWORK_SESSION_EXPIRED.into());
        }
        if unlocks {
            unlock_all(ctx.share, &open, &request.locks)?;
        } else {
            lock_all(ctx, &open, &request.locks).await?;
        }
        if let Some(sequence) = sequence {
            sequence.finish(&mut open.state.lock().lock_sequence);
        }
        if let Err(failure) = open.write_down().await {
            if !unlocks {
                give_back(ctx.share, &open, &request.locks);
            }
            sequence.iter().for_each(|sequence| sequence.forget(&mut open.state.lock().lock_sequence));
            return Err(failure);
        }
    }
    let mut reply = ctx.reply();
    reply.append_with(|out, _| Response.encode(out));
    Ok(reply)
}

/// LockSequenceIndex and LockSequenceNumber: a request that is sent again over another channel is not carried out
/// again.
#[derive(Debug, Clone, Copy)]
struct Sequence {
    /// The index into Open.LockSequenceArray.
    entry: usize,
    number: u8,
}

impl Sequence {
    /// The sequence of a request that may be sent again, because the open outlives its connection or the session may
    /// have several connections.
    fn of(ctx: &OnShare<'_>, open: &Open, request: &Request) -> Option<Self> {
        let negotiated = ctx.connection.negotiated.get()?;
        let outlives = open.durable.get().is_some_and(|durable| durable.durability().is_some());
        let several = negotiated.dialect.is_smb3()
            && negotiated.server_capabilities.contains(Capabilities::MULTI_CHANNEL);
        let kept = several || (outlives && negotiated.dialect != Dialect::Smb202);
        // Indexes count from 1. Other values are ignored.
        let entry = usize::try_from(request.lock_sequence_index).ok()?.checked_sub(1)?;
        (kept && entry < LOCK_SEQUENCES).then_some(Self { entry, number: request.lock_sequence_number })
    }

    /// Whether the request was already carried out. If not, its entry is cleared until it is.
    fn begin(self, done: &mut [Option<u8>]) -> bool {
        let Some(last) = done.get_mut(self.entry) else { return false };
        if *last == Some(self.number) {
            return true;
        }
        *last = None;
        false
    }

    /// Notes that the request was not carried out after all.
    fn forget(self, done: &mut [Option<u8>]) {
        if let Some(last) = done.get_mut(self.entry) {
            *last = None;
        }
    }

    /// Notes that the request was carried out.
    fn finish(self, done: &mut Vec<Option<u8>>) {
        done.resize(LOCK_SEQUENCES, None);
        if let Some(last) = done.get_mut(self.entry) {
            *last = Some(self.number);
        }
    }
}

/// Releases new locks again, because a persistent open must not hold a lock that is not recorded.
fn give_back(share: &Share, open: &Open, elements: &[LockElement]) {
    for element in elements {
        if let (Ok(file), Ok(range)) = (open.file(), range(element)) {
            let _ = share.unlock(file, range);
        }
    }
}

/// 3.3.5.14.1: the ranges are unlocked in order, up to the first that cannot be.
fn unlock_all(share: &Share, open: &Open, elements: &[LockElement]) -> Result<(), Failure> {
    for element in elements {
        if element.flags != LockFlags::UNLOCK {
            return Err(NtStatus::INVALID_PARAMETER.into());
        }
        share.unlock(open.file()?, range(element)?)?;
    }
    Ok(())
}

/// 3.3.5.14.2: locks all ranges, or none. Only a request with a single range may wait.
async fn lock_all(ctx: &OnShare<'_>, open: &Open, elements: &[LockElement]) -> Result<(), Failure> {
    let kinds = elements.iter().map(kind).collect::<Result<Vec<_>, _>>()?;
    let at_once = |element: &LockElement| element.flags.contains(LockFlags::FAIL_IMMEDIATELY);
    if let ([element], [kind]) = (elements, kinds.as_slice())
        && !at_once(element)
    {
        return wait_for(ctx, open, range(element)?, *kind).await;
    }
    if !elements.iter().all(at_once) {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    let share = ctx.share;
    for (taken, (element, kind)) in elements.iter().zip(kinds).enumerate() {
        if let Err(failure) = lock(share, open, element, kind).await {
            for earlier in elements.iter().take(taken).rev() {
                share.unlock(open.file()?, range(earlier)?)?;
            }
            return Err(failure);
        }
    }
    Ok(())
}

async fn lock(share: &Arc<Share>, open: &Open, element: &LockElement, kind: LockKind) -> Result<(), Failure> {
    Ok(share.lock(open.file()?, range(element)?, kind, LockWait::Never).await?)
}

/// Locks a range now or, after an interim response, when the conflicting locks are gone.
async fn wait_for(ctx: &OnShare<'_>, open: &Open, range: ByteRange, kind: LockKind) -> Result<(), Failure> {
    let (share, file) = (ctx.share, open.file()?);
    match share.lock(file, range, kind, LockWait::Never).await {
        Err(share::Error::LockNotGranted) => {}
        outcome => return Ok(outcome?),
    }
    let cancelled = ctx.go_async()?;
    let outcome = tokio::select! {
        biased;
        () = open.closed.wait() => return Err(NtStatus::RANGE_NOT_LOCKED.into()),
        () = cancelled => return Err(NtStatus::CANCELLED.into()),
        outcome = share.lock(file, range, kind, LockWait::UntilGranted) => outcome,
    };
    match outcome {
        Err(share::Error::Closed) => Err(NtStatus::RANGE_NOT_LOCKED.into()),
        outcome => Ok(outcome?),
    }
}

fn range(element: &LockElement) -> Result<ByteRange, NtStatus> {
    ByteRange::new(element.offset, element.length).map_err(|_| NtStatus::INVALID_LOCK_RANGE)
}

/// Besides FAIL_IMMEDIATELY, the flags of an element that locks must state only the kind of lock.
fn kind(element: &LockElement) -> Result<LockKind, NtStatus> {
    match element.flags.difference(LockFlags::FAIL_IMMEDIATELY) {
        LockFlags::SHARED_LOCK => Ok(LockKind::Shared),
        LockFlags::EXCLUSIVE_LOCK => Ok(LockKind::Exclusive),
        _ => Err(NtStatus::INVALID_PARAMETER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_is_known_until_its_entry_is_used_again() {
        let mut done = Vec::new();
        let sequence = |entry, number| Sequence { entry, number };
        assert!(!sequence(0, 1).begin(&mut done));
        sequence(0, 1).finish(&mut done);
        assert!(sequence(0, 1).begin(&mut done));
        assert!(!sequence(63, 1).begin(&mut done), "another entry");
        assert!(!sequence(0, 2).begin(&mut done), "another number");
        // That request was not carried out, and the one before it is forgotten.
        assert!(!sequence(0, 2).begin(&mut done) && !sequence(0, 1).begin(&mut done));
        sequence(63, 2).finish(&mut done);
        assert!(sequence(63, 2).begin(&mut done));
    }
}
