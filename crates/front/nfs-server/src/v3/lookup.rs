//! LOOKUP, RFC 1813 3.3.3.

use nfs_wire::v3::Procedure;
use nfs_wire::v3::lookup::{Args, Res, ResOk};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::{FileHandle, Name};
use share::Case;
use storage::Want;

use super::for_object::ForObject;
use crate::call::Request;
use crate::object::CalledObject;
use crate::operation::Operation;
use crate::{name, snapshots, status};

pub(super) const OPERATION: Operation<Procedure> = Operation::v3(Procedure::Lookup, "Lookup");

impl ForObject for Args<'_> {
    fn object(&self) -> &FileHandle {
        &self.what.dir
    }
}

pub(super) async fn handle(request: &Request<'_>, dir: &CalledObject<'_>, args: Args<'_>) -> Res {
    match find(request, dir, args.what.name).await {
        Ok(found) => Ok(found),
        Err(status) => Err(dir.failed(status).await),
    }
}

async fn find(request: &Request<'_>, dir: &CalledObject<'_>, name: Name<'_>) -> Result<ResOk, Status> {
    let name = name::to_find(name)?;
    if let Some(object) = snapshots::look_up(dir, name).await.map_err(status::of)? {
        return Ok(ResOk {
            object: object.file_handle_of(&request.connection.server.file_handles, &object.node)?,
            object_attributes: object.attributes().await,
            dir_attributes: None,
        });
    }
    let found = dir.share.lookup(dir.call, &dir.node, name, Case::Sensitive, Want::empty()).await;
    let found = found.map_err(status::of)?;
    let present = dir.share.as_written(dir.call, &found.node, found.attributes, Want::empty()).await;
    Ok(ResOk {
        object: dir.file_handle_of(&request.connection.server.file_handles, &found.node)?,
        object_attributes: present.ok().map(|attributes| dir.told(&attributes)),
        // Only if they are known anyway: they may be omitted, and a client that needs them asks.
        dir_attributes: found.dir_protection.and_then(|dir| dir.attributes).map(|known| dir.told(&known)),
    })
}
