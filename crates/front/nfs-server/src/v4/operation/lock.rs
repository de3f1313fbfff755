//! LOCK, RFC 8881 18.10, and the clients that wait for a lock (20.11).

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nfs_proto::v4::lock_owner::LockOwners;
use nfs_proto::v4::open_state::ShareAccess;
use nfs_proto::v4::stateid::Other;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::callback::{ArgOp, NotifyLockArgs};
use nfs_wire::v4::lock::{Args, Denied, Failure, LockType, Locker, ResOk};
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{ClientId, FileHandle, OwnerId, StateOwner, Stateid};
use share::{ByteRange, ByteRangeLock, ClientLock, LockKind, LockOwner, Turn};

use super::data::check_regular;
use crate::operation::Operation;
use crate::server::ServerState;
use crate::status;
use crate::v4::compound::Compound;
use crate::v4::filehandle;
use crate::v4::files::{AWAITED_LOCKS_MAX, Held, file_of, refused};
use crate::v4::state::Client;

/// How long the server remembers that a client waits for a lock. The client also asks again by itself.
const AWAITED: Duration = Duration::from_secs(300);

pub(super) const OPERATION: Operation<Number> =
    Operation { result_bytes: 96, ..Operation::v4(Number::Lock, "Lock").with(Turn::Charged) };

/// Runs the operation, and writes its result.
pub(super) async fn run(c: &mut Compound<'_>, args: Args<'_>) {
    match lock(c, &args).await {
        Ok(Ok(lock_stateid)) => {
            c.set_stateid(Some(lock_stateid));
            c.end(Number::Lock, &Ok::<_, Failure<'_>>(ResOk { lock_stateid }));
        }
        Ok(Err(conflict)) => {
            let owner = OwnerName::of(c.server(), conflict.owner);
            c.end(Number::Lock, &Err::<ResOk, _>(Failure::Denied(denied(&conflict, &owner))));
        }
        Err(status) => c.refuse(Number::Lock, status),
    }
}

/// The owner of a lock, and the open to which the lock belongs.
struct LockOpen {
    open: Other,
    held: Held,
    owner: u64,
    /// The set of locks that the client named.
    set: Option<Other>,
}

async fn lock(c: &Compound<'_>, args: &Args<'_>) -> Result<Result<Stateid, ByteRangeLock>, Status> {
    let object = c.object()?;
    check_regular(&object.node)?;
    let range = range(args.offset, args.length)?;
    let (client, recovery) = (c.client()?, &c.server().v4.recovery);
    recovery.check_locking(client, args.reclaim, c.now).await?;
    let locker = locker(c, args)?;
    let wanted = ClientLock { owner: locker.owner, range, kind: kind(args.lock_type) };
    let locked = locker.held.share.lock_as(&object.call, &locker.held.open, wanted).await;
    let outcome = match locked {
        Ok(None) => client.files.with(|holdings| match locker.set {
            Some(set) => holdings.changed(set).map(Ok).map_err(refused),
            None => holdings.locked(locker.open, locker.owner).map(Ok).map_err(|_| Status::Delay),
        }),
        // RFC 8881 15.1.9.3, NFS4ERR_RECLAIM_CONFLICT.
        Ok(Some(_)) if args.reclaim => Err(Status::ReclaimConflict),
        Ok(Some(conflict)) => {
            if args.lock_type.waits() {
                tell_when_free(client, c, &locker, wanted);
            }
            Ok(Err(conflict))
        }
        Err(error) => Err(status::v4(error)),
    };
    if matches!((&locked, &outcome), (Ok(None), Err(_))) {
        let _ = locker.held.share.unlock_as(&locker.held.open, locker.owner, range);
    }
    if locker.set.is_none() {
        client.files.with(|holdings| holdings.end_locking(locker.owner));
    }
    outcome
}

/// Finds the open and the owner, and whether the file was opened for such a lock.
fn locker(c: &Compound<'_>, args: &Args<'_>) -> Result<LockOpen, Status> {
    let file = file_of(c.object()?);
    // As in POSIX, a shared lock needs a file that is open for reading, an exclusive lock one that is open for writing.
    let access = if args.lock_type.is_exclusive() { ShareAccess::WRITE } else { ShareAccess::READ };
    c.client()?.files.with(|holdings| match args.locker {
        Locker::New { open_stateid, owner, .. } => {
            let sent = c.stateid(open_stateid)?;
            let open = holdings.find_open(sent, file).map_err(refused)?;
            let held = open.for_access(access).cloned().ok_or(Status::OpenMode)?;
            let owner = holdings.begin_locking(owner.owner.0);
            Ok(LockOpen { open: sent.other, held, owner, set: None })
        }
        Locker::Existing { lock_stateid, .. } => {
            let sent = c.stateid(lock_stateid)?;
            let (lock, open) = holdings.find_lock(sent, file).map_err(refused)?;
            let held = open.for_access(access).cloned().ok_or(Status::OpenMode)?;
            Ok(LockOpen { open: lock.open(), held, owner: lock.owner, set: Some(sent.other) })
        }
    })
}

/// Tells the client when the lock that it waits for may be free (CB_NOTIFY_LOCK). That is only a hint: with too many
/// waiting locks, or after a while, the client has to ask again by itself.
fn tell_when_free(client: &Arc<Client>, c: &Compound<'_>, locker: &LockOpen, wanted: ClientLock) {
    if !client.can_be_called() {
        return;
    }
    let client = Arc::clone(client);
    if client.files.awaited_locks.fetch_add(1, Ordering::Relaxed) >= AWAITED_LOCKS_MAX {
        client.files.awaited_locks.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let (server, held) = (Arc::clone(c.server()), locker.held.clone());
    let name = client.files.with(|holdings| holdings.lock_owners().name(wanted.owner).map(<[u8]>::to_vec));
    tokio::spawn(async move {
        let free = Arc::clone(&held.share).lockable(Arc::clone(&held.open), wanted);
        let free = tokio::time::timeout(AWAITED, free).await;
        let handle = filehandle::of_node(&server, &held.share, held.open.node());
        if let (Ok(true), Ok(handle), Some(name)) = (free, handle, name) {
            let lock_owner = StateOwner { client_id: client.id, owner: OwnerId(&name) };
            let operation = NotifyLockArgs { file: FileHandle(handle.as_bytes()), lock_owner };
            if let Err(error) = server.v4.callbacks.call(&client, &ArgOp::NotifyLock(operation)).await {
                tracing::debug!("a client was not told that a lock is free: {error}");
            }
        }
        client.files.awaited_locks.fetch_sub(1, Ordering::Relaxed);
    });
}

/// The range of a lock (RFC 8881 18.10.3).
///
/// # Errors
/// [`Status::Inval`].
pub(super) fn range(offset: u64, length: u64) -> Result<ByteRange, Status> {
    match length {
        0 => Err(Status::Inval),
        u64::MAX => Ok(ByteRange::to_end(offset)),
        // "the sum of length and offset exceeds NFS4_UINT64_MAX"
        _ if offset.checked_add(length).is_none() => Err(Status::Inval),
        _ => ByteRange::new(offset, length).map_err(|_| Status::Inval),
    }
}

/// The kind of lock that corresponds to the type.
pub(super) fn kind(lock_type: LockType) -> LockKind {
    if lock_type.is_exclusive() { LockKind::Exclusive } else { LockKind::Shared }
}

/// The owner of a lock, in the terms of NFSv4.
pub(super) struct OwnerName {
    client: ClientId,
    name: Vec<u8>,
}

impl OwnerName {
    pub(super) fn of(server: &ServerState, owner: LockOwner) -> Self {
        match owner {
            // The holder uses another protocol, and has no client ID.
            LockOwner::Open(open) => {
                Self { client: ClientId(0), name: format!("smb-{}", open.0).into_bytes() }
            }
            LockOwner::Client(number) => {
                let client = server.v4.client_numbered(LockOwners::client_of(number));
                let name = client.as_ref().and_then(|client| {
                    client.files.with(|holdings| holdings.lock_owners().name(number).map(<[u8]>::to_vec))
                });
                let client = client.map_or(ClientId(0), |client| client.id);
                Self { client, name: name.unwrap_or_default() }
            }
        }
    }
}

/// The reply to the client about a conflicting lock.
pub(super) fn denied<'o>(lock: &ByteRangeLock, owner: &'o OwnerName) -> Denied<'o> {
    let exclusive = lock.kind == LockKind::Exclusive;
    Denied {
        offset: lock.range.offset(),
        length: if lock.range.reaches_end() { u64::MAX } else { lock.range.length() },
        lock_type: if exclusive { LockType::Write } else { LockType::Read },
        owner: StateOwner { client_id: owner.client, owner: OwnerId(&owner.name) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_those_of_the_document() {
        // RFC 8881 18.10.3, at the limits.
        assert_eq!(range(0, 0), Err(Status::Inval));
        assert_eq!(range(5, u64::MAX), Ok(ByteRange::to_end(5)));
        assert_eq!(range(1, u64::MAX - 1), ByteRange::new(1, u64::MAX - 1).map_err(|_| Status::Inval));
        assert_eq!(range(2, u64::MAX - 1), Err(Status::Inval));
        assert_eq!(range(u64::MAX, 1), Err(Status::Inval));
        assert_eq!(range(u64::MAX, u64::MAX), Ok(ByteRange::to_end(u64::MAX)));
    }
}
