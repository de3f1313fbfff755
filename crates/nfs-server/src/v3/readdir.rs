//! READDIR, RFC 1813 3.3.16.

use nfs_wire::v3::readdir::Args;
use nfs_wire::v3::types::ResWithAttributes;

use super::listing::{Ask, Encoded, list};
use crate::rpc_dispatch::Request;

pub(super) async fn handle(request: &Request<'_>, args: Args) -> ResWithAttributes<Encoded> {
    let dir = request.object(&args.dir).await?;
    list(request, &dir, &Ask { cookie: args.cookie, bytes_max: args.count, plus: None }).await
}
