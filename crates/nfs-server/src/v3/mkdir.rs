//! MKDIR, RFC 1813 3.3.9.

use nfs_wire::v3::mkdir::{Args, Res};
use storage::FileKind;

use super::new_object::{made, make, new_object};
use crate::rpc_dispatch::Request;

pub(super) async fn handle(request: &Request<'_>, args: Args<'_>) -> Res {
    let dir = request.object_to_change(&args.place.dir).await?;
    let created = match new_object(&dir, FileKind::Directory, &args.attributes) {
        Ok(new) => make(&dir, args.place.name, new).await,
        Err(status) => Err(status),
    };
    match created {
        Ok(created) => Ok(made(request, &dir, &created)),
        Err(status) => Err(dir.failed_change(status).await),
    }
}
