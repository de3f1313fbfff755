//! The operations that only set and tell filehandles: PUTFH, PUTROOTFH, PUTPUBFH, GETFH, SAVEFH, RESTOREFH (RFC 8881
//! 18.8, 18.19 to 18.21, 18.27, 18.28).

use nfs_proto::filehandle::Target;
use nfs_wire::v3::types::FileHandle as SignedHandle;
use nfs_wire::v4::putfh::Args;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::FileHandle;
use share::ShareId;
use storage::{Handle, NodeRef};

use super::compound::Compound;
use super::pseudo_fs::{self, Place};
use crate::ServerState;
use crate::object::Object;
use crate::status;

/// PUTFH.
pub(super) async fn put(c: &mut Compound<'_>, args: Args<'_>) -> Result<(), Status> {
    let place = place_of(c, args.object).await?;
    c.set_place(place);
    Ok(())
}

/// PUTROOTFH, and PUTPUBFH, which is the same here (RFC 8881 4.1.2 leaves it to the server).
pub(super) fn put_root(c: &mut Compound<'_>) -> Result<(), Status> {
    c.set_place(Place::Root);
    Ok(())
}

/// GETFH: the bytes are those of a `nfs_fh4`.
pub(super) fn of_current(c: &Compound<'_>) -> Result<SignedHandle, Status> {
    match c.place()? {
        Place::Root => pseudo_fs::root_handle(c.server()),
        Place::Object(object) => of_node(c.server(), object.share.id(), &object.node),
    }
}

/// The filehandle of an object of a share.
///
/// # Errors
/// Those of the store; [`Status::ServerFault`] for a storage handle that does not fit.
pub(super) fn of_node(server: &ServerState, share: ShareId, node: &NodeRef) -> Result<SignedHandle, Status> {
    let handle = node.handle().map_err(|error| status::v4(error.into()))?;
    let target = Target { share: share.0, storage_handle: handle.as_bytes() };
    server.file_handles.encode(target).ok_or(Status::ServerFault)
}

/// Where a filehandle leads.
///
/// # Errors
/// [`Status::BadHandle`] for one that this server did not make; [`Status::Stale`] when the object is gone, or the client
/// may not (or no longer) use the share.
async fn place_of(c: &Compound<'_>, FileHandle(bytes): FileHandle<'_>) -> Result<Place, Status> {
    let request = c.request;
    let signed = SignedHandle::new(bytes).ok_or(Status::BadHandle)?;
    let target = request.connection.server.file_handles.decode(&signed).map_err(|_| Status::BadHandle)?;
    if target == pseudo_fs::ROOT {
        return Ok(Place::Root);
    }
    let share = request.connection.shares.by_id(ShareId(target.share)).ok_or(Status::Stale)?;
    let (caller, rule) = c.caller(&share).ok_or(Status::Stale)?;
    let handle = Handle::new(target.storage_handle).map_err(|_| Status::BadHandle)?;
    let node = share.by_handle(&handle).await.map_err(status::v4)?;
    Ok(Place::Object(Object::new(share, caller, node, rule)))
}
