//! SETATTR, RFC 1813 3.3.2.

use nfs_wire::v3::Procedure;
use nfs_wire::v3::setattr::{Args, Res, ResOk};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use share::Changed;

use super::for_object::ForObject;
use crate::attributes::{timestamp, to_set, wcc};
use crate::call::Request;
use crate::object::CalledObject;
use crate::operation::Operation;
use crate::status;

pub(super) const OPERATION: Operation<Procedure> =
    Operation { changes: true, is_kept: true, ..Operation::v3(Procedure::SetAttr, "SetAttr") };

impl ForObject for Args {
    fn object(&self) -> &FileHandle {
        &self.object
    }
}

pub(super) async fn handle(_: &Request<'_>, object: &CalledObject<'_>, args: Args) -> Res {
    match set(object, &args).await {
        Ok(Changed { before, after }) => Ok(ResOk { object_wcc: wcc(&object.share, &before, &after) }),
        Err(status) => Err(object.failed_change(status).await),
    }
}

/// Sets the attributes, if the guard allows it (RFC 1813 3.3.2: the object's ctime must still be the guard's).
async fn set(object: &CalledObject<'_>, args: &Args) -> Result<Changed, Status> {
    let set = to_set(&args.new_attributes)?;
    if !object.admits_mode(set.mode) {
        return Err(Status::Perm); // like chmod(2)
    }
    let guard = args.guard.map(timestamp).transpose()?;
    let changed = object.share.set_attributes(object.call, &object.file(), &set, guard).await;
    changed.map_err(|error| match status::of(error) {
        // The size of a directory: RFC 1813 3.3.2 allows only NFS3ERR_INVAL.
        Status::IsDir => Status::Inval,
        status => status,
    })
}
