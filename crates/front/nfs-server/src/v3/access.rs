//! ACCESS, RFC 1813 3.3.4.

use nfs_wire::v3::Procedure;
use nfs_wire::v3::access::{Access, Args, Res, ResOk};
use nfs_wire::v3::types::FileHandle;
use share::Access as May;
use storage::{FileKind, Want};

use super::for_object::ForObject;
use crate::call::Request;
use crate::object::CalledObject;
use crate::operation::{Callers, Operation};
use crate::status;

/// Every right that changes something.
const CHANGES: Access = Access::MODIFY.union(Access::EXTEND).union(Access::DELETE);

pub(super) const OPERATION: Operation<Procedure> =
    Operation { callers: Callers::Mounting, ..Operation::v3(Procedure::Access, "Access") };

impl ForObject for Args {
    fn object(&self) -> &FileHandle {
        &self.object
    }
}

pub(super) async fn handle(_: &Request<'_>, object: &CalledObject<'_>, args: Args) -> Res {
    let found = object.share.found(object.call, &object.node, Want::empty()).await.map_err(status::of)?;
    let mut access = rights(object.share.maximal_access(&object.call.caller, &found), found.attributes.kind);
    if !object.standing.is_member() {
        access = Access::empty();
    } else if object.is_read_only() {
        access &= !CHANGES;
    }
    let present = object.share.as_written(object.call, &object.node, found.attributes, Want::empty()).await;
    let object_attributes = present.ok().map(|attributes| object.told(&attributes));
    Ok(ResOk { object_attributes, access: access & args.access })
}

/// The rights of a caller on an object of this kind, in the terms of NFS.
fn rights(may: May, kind: FileKind) -> Access {
    let is_dir = kind == FileKind::Directory;
    let search = may.contains(May::EXECUTE);
    let write = may.contains(May::WRITE_DATA) && (search || !is_dir);
    let mut rights = Access::empty();
    rights.set(Access::READ, may.contains(May::READ_DATA));
    rights.set(Access::MODIFY | Access::EXTEND, write);
    if is_dir {
        rights.set(Access::LOOKUP, search);
        rights.set(Access::DELETE, may.contains(May::DELETE_CHILD));
    } else {
        rights.set(Access::EXECUTE, search);
    }
    rights
}
