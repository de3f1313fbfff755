//! READDIRPLUS, RFC 1813 3.3.17.

use nfs_wire::v3::readdirplus::Args;
use nfs_wire::v3::types::ResWithAttributes;

use super::listing::{Ask, Encoded, list};
use crate::rpc_dispatch::Request;

pub(super) async fn handle(request: &Request<'_>, args: Args) -> ResWithAttributes<Encoded> {
    let dir = request.object(&args.dir).await?;
    let ask = Ask { cookie: args.cookie, bytes_max: args.max_count, plus: Some(args.dir_count) };
    list(request, &dir, &ask).await
}
