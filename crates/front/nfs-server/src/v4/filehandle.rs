//! The filehandle of an object of a share.

use nfs_wire::v3::types::FileHandle as SignedHandle;
use nfs_wire::v4::status::Status;
use share::Share;
use storage::NodeRef;

use crate::object::Object;
use crate::server::ServerState;
use crate::{snapshots, status};

/// The filehandle of an object of a share.
///
/// # Errors
/// Those of the store; [`Status::ServerFault`] for a storage handle that is too long.
pub(super) fn of_node(server: &ServerState, share: &Share, node: &NodeRef) -> Result<SignedHandle, Status> {
    let handle = node.handle().map_err(|error| status::v4(error.into()))?;
    let target = snapshots::target(share, &handle);
    server.file_handles.encode(target).ok_or(Status::ServerFault)
}

/// The filehandle of an object.
///
/// # Errors
/// As [`of_node`].
pub(super) fn of(server: &ServerState, object: &Object) -> Result<SignedHandle, Status> {
    let handle = object.node.handle().map_err(|error| status::v4(error.into()))?;
    server.file_handles.encode(object.target(&handle)).ok_or(Status::ServerFault)
}
