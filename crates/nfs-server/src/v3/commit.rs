//! COMMIT, RFC 1813 3.3.21. The whole file is committed, whatever range is asked for.

use nfs_wire::v3::commit::{Args, Res, ResOk};
use nfs_wire::v3::status::Status;
use storage::FileKind;

use crate::rpc_dispatch::Request;
use crate::status;

pub(super) async fn handle(request: &Request<'_>, args: Args) -> Res {
    let file = request.object_to_change(&args.file).await?;
    if file.node.kind() != FileKind::Regular {
        return Err(file.failed_change(Status::Inval).await);
    }
    match file.share.commit(&file.file()).await {
        Ok(()) => {
            Ok(ResOk { file_wcc: file.wcc_after().await, verifier: request.connection.server.write_verifier })
        }
        Err(error) => Err(file.failed_change(status::of(error)).await),
    }
}
