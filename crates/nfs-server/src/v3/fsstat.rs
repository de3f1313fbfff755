//! FSSTAT, RFC 1813 3.3.18.

use nfs_wire::v3::fsstat::{Args, Res, ResOk};
use storage::Space;

use crate::rpc_dispatch::Request;
use crate::status;

pub(super) async fn handle(request: &Request<'_>, args: Args) -> Res {
    let object = request.object(&args.root).await?;
    match object.share.space().await {
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
