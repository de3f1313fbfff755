//! GETATTR, RFC 1813 3.3.1.

use nfs_wire::v3::getattr::{Args, Res, ResOk};

use crate::rpc_dispatch::Request;

pub(super) async fn handle(request: &Request<'_>, args: Args) -> Res {
    let object = request.object(&args.object).await?;
    let attributes = object.look().await?;
    Ok(ResOk { object_attributes: object.told(&attributes) })
}
