//! The beginning of each call on a file: its share, its caller and the file.

use nfs_wire::nlm::{Lock, Status};
use nfs_wire::v3::status::Status as V3Status;
use nfs_wire::v3::types::FileHandle;
use share::{Access, ByteRange, Found, LockKind};
use storage::{FileKind, Want};

use nfs_proto::v4::stateid::FileKey;
use storage::ObjectId;

use crate::call::Request;
use crate::counted::Counted;
use crate::object::CalledObject;
use crate::status;

/// The file of a call.
///
/// # Errors
/// [`Status::StaleFileHandle`]; [`Status::Failed`] when the client or user may not use the share, and for an object that is no
/// regular file; [`Status::DeniedGracePeriod`], after which clients try again, when the storage does not answer yet.
pub(super) async fn file<'c>(
    request: &Request<'_>,
    counted: &'c Counted<'_>,
    handle: &FileHandle,
) -> Result<CalledObject<'c>, Status> {
    let named = request.named(handle).map_err(of_handle)?;
    let (caller, standing) = request.caller(&named.share).await;
    let call = counted.on(&named.share, caller);
    if !standing.is_member() {
        call.needs_no_turn();
        return Err(Status::Failed);
    }
    named.share.take_turn(call).await;
    let object = named.object(call, standing).await.map_err(of_handle)?;
    // Nobody has to be kept from changing what is of a snapshot.
    if object.node.kind() != FileKind::Regular || object.share.snapshot().is_some() {
        return Err(Status::Failed);
    }
    request.connection.has_used_share.set(true);
    Ok(object)
}

fn of_handle(status: V3Status) -> Status {
    match status {
        V3Status::Stale | V3Status::BadHandle => Status::StaleFileHandle,
        V3Status::JukeBox => Status::DeniedGracePeriod,
        _ => Status::Failed,
    }
}

/// The file among those of all shares.
pub(super) fn key(file: &CalledObject<'_>) -> FileKey {
    let ObjectId { fs, number, snapshot } = file.node.id();
    FileKey { share: file.share.id().0, fs, number, snapshot }
}

/// The file with what opening it needs to know, if the caller may read it. That is enough for any lock, as it is over SMB. The
/// owner of a file always may: the client checked the mode when its user opened the file.
///
/// # Errors
/// [`Status::Failed`]; those of the store.
pub(super) async fn readable(file: &CalledObject<'_>) -> Result<Found, Status> {
    let found = file.share.found(file.call, &file.node, Want::FLAGS).await.map_err(status::nlm)?;
    let by_mode = found.security.is_none();
    let is_owner = by_mode && found.attributes.uid == file.call.caller.identity.uid();
    let access = file.share.maximal_access(&file.call.caller, &found);
    // RFC 1813 4.4: a user who may execute a program may read it.
    let reads = access.contains(Access::READ_DATA) || by_mode && access.contains(Access::EXECUTE);
    if is_owner || reads { Ok(found) } else { Err(Status::Failed) }
}

/// The range of a lock. XNFS (Open Group C702, chapter 10, nlm_lock): "A l_len of 0 means "to the end of file"".
///
/// # Errors
/// [`Status::FBig`].
pub(super) fn range(lock: &Lock<'_>) -> Result<ByteRange, Status> {
    match lock.length {
        0 => Ok(ByteRange::to_end(lock.offset)),
        length => ByteRange::new(lock.offset, length).map_err(|_| Status::FBig),
    }
}

pub(super) fn kind(exclusive: bool) -> LockKind {
    if exclusive { LockKind::Exclusive } else { LockKind::Shared }
}
