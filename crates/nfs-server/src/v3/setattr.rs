//! SETATTR, RFC 1813 3.3.2.

use nfs_wire::v3::setattr::{Args, Res, ResOk};
use nfs_wire::v3::status::Status;
use share::Changed;

use crate::attributes::{timestamp, to_set, wcc};
use crate::object::Object;
use crate::rpc_dispatch::Request;
use crate::status;

pub(super) async fn handle(request: &Request<'_>, args: Args) -> Res {
    let object = request.object_to_change(&args.object).await?;
    match set(&object, &args).await {
        Ok(Changed { before, after }) => Ok(ResOk { object_wcc: wcc(object.share.id(), &before, &after) }),
        Err(status) => Err(object.failed_change(status).await),
    }
}

async fn set(object: &Object, args: &Args) -> Result<Changed, Status> {
    let set = to_set(&args.new_attributes)?;
    let guard = args.guard.map(timestamp).transpose()?;
    let changed = object.share.set_attributes(&object.caller, &object.file(), &set, guard).await;
    changed.map_err(|error| match status::of(error) {
        // The size of a directory: RFC 1813 3.3.2 has NFS3ERR_INVAL only.
        Status::IsDir => Status::Inval,
        status => status,
    })
}
