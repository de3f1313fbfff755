//! RMDIR, RFC 1813 3.3.13.

use nfs_wire::v3::rmdir::{Args, Res, ResOk};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::Name;
use share::DirChange;

use crate::attributes::dir_wcc;
use crate::object::Object;
use crate::rpc_dispatch::Request;
use crate::{name, status};

pub(super) async fn handle(request: &Request<'_>, args: Args<'_>) -> Res {
    let dir = request.object_to_change(&args.object.dir).await?;
    match remove(&dir, args.object.name).await {
        Ok(change) => Ok(ResOk { dir_wcc: dir_wcc(dir.share.id(), &change) }),
        Err(status) => Err(dir.failed_change(status).await),
    }
}

async fn remove(dir: &Object, name: Name<'_>) -> Result<DirChange, Status> {
    let name = name::to_take_away(name)?;
    dir.share.remove(&dir.caller, &dir.node, name, true).await.map_err(status::of)
}
