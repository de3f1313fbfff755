//! The filehandle of an object of a share.

use nfs_proto::filehandle::FileHandleTarget;
use nfs_wire::v3::types::FileHandle as SignedHandle;
use nfs_wire::v4::status::Status;
use share::ShareId;
use storage::NodeRef;

use crate::server::ServerState;
use crate::status;

/// The filehandle of an object of a share.
///
/// # Errors
/// Those of the store; [`Status::ServerFault`] for a storage handle that is too long.
pub(super) fn of_node(server: &ServerState, share: ShareId, node: &NodeRef) -> Result<SignedHandle, Status> {
    let handle = node.handle().map_err(|error| status::v4(error.into()))?;
    let target = FileHandleTarget { share: share.0, storage_handle: handle.as_bytes() };
    server.file_handles.encode(target).ok_or(Status::ServerFault)
}
