//! PATHCONF, RFC 1813 3.3.20.

use nfs_wire::v3::pathconf::{Args, Res, ResOk};
use nfs_wire::v3::types::NAME_BYTES_MAX;

use crate::rpc_dispatch::Request;

/// Names of one object, at most: what the local file systems of Linux have in common.
const LINKS_MAX: u32 = 65_000;

pub(super) async fn handle(request: &Request<'_>, args: Args) -> Res {
    let object = request.object(&args.object).await?;
    Ok(ResOk {
        object_attributes: object.attributes().await,
        links_max: LINKS_MAX,
        name_bytes_max: u32::try_from(NAME_BYTES_MAX).unwrap_or(u32::MAX),
        no_trunc: true,
        chown_restricted: true,
        case_insensitive: false,
        case_preserving: true,
    })
}
