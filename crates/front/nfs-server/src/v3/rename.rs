//! RENAME, RFC 1813 3.3.14.

use std::sync::Arc;

use nfs_wire::v3::Procedure;
use nfs_wire::v3::rename::{Args, DirsWcc, Res};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use nfs_wire::xdr::Failure;
use share::{Case, DirChange, Kind, Location, RenameHow};
use storage::Replace;

use super::for_object::ForObject;
use crate::attributes::dir_wcc;
use crate::call::Request;
use crate::object::CalledObject;
use crate::operation::Operation;
use crate::{name, snapshots, status};

pub(super) const OPERATION: Operation<Procedure> = Operation {
    changes: true,
    is_kept: true,
    ..Operation::v3(Procedure::Rename, "Rename").of_kind(Kind::Rename)
};

impl ForObject for Args<'_> {
    fn object(&self) -> &FileHandle {
        &self.from.dir
    }
}

pub(super) async fn handle(request: &Request<'_>, from: &CalledObject<'_>, args: Args<'_>) -> Res {
    let to = &request.beside(from, &args.to.dir).await?;
    match rename(from, to, &args).await {
        Ok((old, new)) => {
            Ok(DirsWcc { from_dir_wcc: dir_wcc(&from.share, &old), to_dir_wcc: dir_wcc(&to.share, &new) })
        }
        Err(status) => {
            let body = DirsWcc { from_dir_wcc: from.wcc_after().await, to_dir_wcc: to.wcc_after().await };
            Err(Failure { status, body })
        }
    }
}

async fn rename(
    from: &CalledObject<'_>,
    to: &CalledObject<'_>,
    args: &Args<'_>,
) -> Result<(DirChange, DirChange), Status> {
    let old = name::to_take_away(args.from.name)?.to_vec();
    let new = name::to_take_away(args.to.name)?.to_vec();
    if snapshots::is_folder(to, &new) {
        return Err(Status::Exist);
    }
    let old = Location { parent: Arc::clone(&from.node), name: old };
    let new = Location { parent: Arc::clone(&to.node), name: new };
    let how = RenameHow { replace: Replace::Yes, case: Case::Sensitive, opened: None };
    from.share.rename(from.call, old, new, how).await.map_err(status::of)
}
