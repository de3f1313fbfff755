//! The common part of CREATE, MKDIR, SYMLINK and MKNOD.

use nfs_wire::v3::attr::SetAttributes;
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::{CreatedOk, Name};
use share::{Case, Created, Found, NewObject};
use storage::FileKind;

use crate::attributes::{dir_wcc, to_set};
use crate::call::Request;
use crate::object::CalledObject;
use crate::{name, new_object, snapshots, status};

/// An object of this kind with the attributes that its creator wants.
pub(super) fn new_object(
    dir: &CalledObject<'_>,
    kind: FileKind,
    attributes: &SetAttributes,
) -> Result<NewObject, Status> {
    let who = &dir.call.caller.identity;
    let mut set = to_set(attributes)?;
    if !dir.admits(kind, set.mode) {
        return Err(Status::Perm); // like mknod(2) and chmod(2)
    }
    // The owner is the creator. Only who may give any object away creates objects for others.
    set.uid = set.uid.filter(|uid| who.is_exempt() && *uid != who.uid());
    set.gid = set.gid.filter(|gid| who.is_exempt() && *gid != who.gid());
    Ok(new_object::new_object(kind, set))
}

/// Creates an object.
pub(super) async fn make(dir: &CalledObject<'_>, name: Name<'_>, new: NewObject) -> Result<Created, Status> {
    let name = name::to_make(name)?;
    if snapshots::is_folder(dir, name) {
        return Err(Status::Exist);
    }
    dir.share.create(dir.call, &dir.node, name, Case::Sensitive, new).await.map_err(status::of)
}

/// What the client receives about a new object.
pub(super) fn made(request: &Request<'_>, dir: &CalledObject<'_>, created: &Created) -> CreatedOk {
    let Created { found: Found { node, attributes, .. }, dir: change } = created;
    CreatedOk {
        // Without a filehandle the client looks the name up.
        object: dir.file_handle_of(&request.connection.server.file_handles, node).ok(),
        object_attributes: Some(dir.told(attributes)),
        dir_wcc: dir_wcc(&dir.share, change),
    }
}
