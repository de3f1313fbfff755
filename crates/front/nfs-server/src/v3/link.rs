//! LINK, RFC 1813 3.3.15.

use nfs_wire::v3::Procedure;
use nfs_wire::v3::link::{Args, FileAndDir, Res};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::xdr::Failure;
use share::{Case, DirChange, Kind};

use super::for_object::ForObject;
use crate::attributes::dir_wcc;
use crate::call::Request;
use crate::object::CalledObject;
use crate::operation::Operation;
use crate::{name, snapshots, status};

pub(super) const OPERATION: Operation<Procedure> = Operation {
    changes: true,
    is_kept: true,
    ..Operation::v3(Procedure::Link, "Link").of_kind(Kind::Create)
};

impl ForObject for Args<'_> {
    fn object(&self) -> &FileHandle {
        &self.file
    }
}

pub(super) async fn handle(request: &Request<'_>, file: &CalledObject<'_>, args: Args<'_>) -> Res {
    let dir = &request.beside(file, &args.link.dir).await?;
    let linked = link(file, dir, &args).await;
    let file_attributes = file.attributes().await;
    match linked {
        Ok(change) => Ok(FileAndDir { file_attributes, link_dir_wcc: dir_wcc(&dir.share, &change) }),
        Err(status) => {
            let body = FileAndDir { file_attributes, link_dir_wcc: dir.wcc_after().await };
            Err(Failure { status, body })
        }
    }
}

async fn link(file: &CalledObject<'_>, dir: &CalledObject<'_>, args: &Args<'_>) -> Result<DirChange, Status> {
    let name = name::to_make(args.link.name)?;
    if snapshots::is_folder(dir, name) {
        return Err(Status::Exist);
    }
    dir.share.link(dir.call, &file.node, &dir.node, name, Case::Sensitive, None).await.map_err(status::of)
}
