//! REMOVE, RFC 1813 3.3.12.

use nfs_wire::v3::Procedure;
use nfs_wire::v3::remove::{Args, Res, ResOk};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::{FileHandle, Name};
use share::{DirChange, Kind};

use super::for_object::ForObject;
use crate::attributes::dir_wcc;
use crate::call::Request;
use crate::object::CalledObject;
use crate::operation::Operation;
use crate::{name, status};

pub(super) const OPERATION: Operation<Procedure> = Operation {
    changes: true,
    is_kept: true,
    ..Operation::v3(Procedure::Remove, "Remove").of_kind(Kind::Delete)
};

impl ForObject for Args<'_> {
    fn object(&self) -> &FileHandle {
        &self.object.dir
    }
}

pub(super) async fn handle(_: &Request<'_>, dir: &CalledObject<'_>, args: Args<'_>) -> Res {
    match remove(dir, args.object.name).await {
        Ok(change) => Ok(ResOk { dir_wcc: dir_wcc(&dir.share, &change) }),
        Err(status) => Err(dir.failed_change(status).await),
    }
}

async fn remove(dir: &CalledObject<'_>, name: Name<'_>) -> Result<DirChange, Status> {
    let name = name::to_take_away(name)?;
    dir.share.remove(dir.call, &dir.node, name, false).await.map_err(status::of)
}
