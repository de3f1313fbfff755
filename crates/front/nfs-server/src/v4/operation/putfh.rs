//! PUTFH, RFC 8881 18.19: the current filehandle.

use std::rc::Rc;

use nfs_proto::filehandle::Within;
use nfs_wire::v3::types::FileHandle as SignedHandle;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::putfh::Args;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::FileHandle;
use share::{Error, ShareId, ShareView};
use storage::SnapshotId;

use crate::operation::Operation;
use crate::v4::absent::Absent;
use crate::v4::compound::Compound;
use crate::v4::place::Place;
use crate::v4::pseudo_fs;
use crate::{snapshots, status};

pub(super) const OPERATION: Operation<Number> = Operation::v4_of_no_share(Number::PutFh);

pub(in crate::v4) async fn handle(c: &mut Compound<'_>, args: Args<'_>) -> Result<(), Status> {
    let place = place_of(c, args.object).await?;
    c.set_place(place);
    Ok(())
}

/// Where a filehandle of a share leads that is not served.
///
/// # Errors
/// [`Status::Delay`] if the share waits for its store, [`Status::Stale`] if it is nowhere.
fn elsewhere(shares: &ShareView, id: ShareId) -> Result<Place, Status> {
    match shares.gone_by_id(id) {
        Some(gone) => Ok(Place::Absent(Absent::within(gone))),
        None if shares.is_awaited(id) => Err(Status::Delay),
        None => Err(Status::Stale),
    }
}

/// Where a filehandle leads.
///
/// # Errors
/// [`Status::BadHandle`] for a handle that this server did not make; [`Status::Stale`] when the object is gone. If the
/// client may not (or no longer) use the share, the operations that depend on that report it
/// ([`Compound::check_standing`]).
async fn place_of(c: &Compound<'_>, FileHandle(bytes): FileHandle<'_>) -> Result<Place, Status> {
    let request = c.request;
    let signed = SignedHandle::new(bytes).ok_or(Status::BadHandle)?;
    let target = request.connection.server.file_handles.decode(&signed).map_err(|_| Status::BadHandle)?;
    if target == pseudo_fs::ROOT {
        return Ok(Place::Root);
    }
    let (shares, id) = (&request.connection.shares, ShareId(target.share));
    let Some(share) = shares.by_id(id) else { return elsewhere(shares, id) };
    let (caller, standing) = c.caller(&share).await;
    let call = c.call_on_the_way(caller);
    let found = snapshots::find(&share, Rc::clone(&call), &target, standing).await;
    if let (Err(Error::Storage(storage::Error::Stale)), Within::Snapshot(number)) = (&found, target.within)
        && share.outlives(&call, SnapshotId(number)).await
    {
        Box::pin(request.connection.server.end_snapshot(&share, SnapshotId(number))).await;
    }
    Ok(Place::Object(found.map_err(status::v4)?))
}
