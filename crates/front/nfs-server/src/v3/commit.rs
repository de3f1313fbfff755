//! COMMIT, RFC 1813 3.3.21. The whole file is committed, whatever range is asked for.

use nfs_wire::v3::Procedure;
use nfs_wire::v3::commit::{Args, Res, ResOk};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::FileHandle;
use storage::FileKind;

use super::for_object::ForObject;
use crate::call::Request;
use crate::object::CalledObject;
use crate::operation::Operation;
use crate::status;

pub(super) const OPERATION: Operation<Procedure> =
    Operation { changes: true, ..Operation::v3(Procedure::Commit, "Commit") };

impl ForObject for Args {
    fn object(&self) -> &FileHandle {
        &self.file
    }
}

pub(super) async fn handle(request: &Request<'_>, file: &CalledObject<'_>, _: Args) -> Res {
    if file.node.kind() != FileKind::Regular {
        return Err(file.failed_change(Status::Inval).await);
    }
    match file.share.commit(file.call, &file.file()).await {
        Ok(()) => {
            Ok(ResOk { file_wcc: file.wcc_after().await, verifier: request.connection.server.write_verifier })
        }
        Err(error) => Err(file.failed_change(status::of(error)).await),
    }
}
