//! FSSTAT, RFC 1813 3.3.18.

use nfs_wire::v3::Procedure;
use nfs_wire::v3::fsstat::{Args, Res, ResOk};
use nfs_wire::v3::types::FileHandle;
use storage::Space;

use super::for_object::ForObject;
use crate::call::Request;
use crate::object::CalledObject;
use crate::operation::{Callers, Operation};
use crate::status;

pub(super) const OPERATION: Operation<Procedure> =
    Operation { callers: Callers::Mounting, ..Operation::v3(Procedure::FsStat, "FsStat") };

impl ForObject for Args {
    fn object(&self) -> &FileHandle {
        &self.root
    }
}

pub(super) async fn handle(_: &Request<'_>, object: &CalledObject<'_>, _: Args) -> Res {
    match object.share.space(object.call, &object.node).await {
        Ok(Space { total, free, available, files, files_free, block: _ }) => Ok(ResOk {
            object_attributes: object.attributes().await,
            total_bytes: total,
            free_bytes: free,
            available_bytes: available,
            total_files: files,
            free_files: files_free,
            available_files: files_free,
            invariant_seconds: 0,
        }),
        Err(error) => Err(object.failed(status::of(error)).await),
    }
}
