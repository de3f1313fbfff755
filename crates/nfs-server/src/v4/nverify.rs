//! NVERIFY, RFC 8881 18.15.

use nfs_wire::v4::nverify::Args;
use nfs_wire::v4::status::Status;

use super::compound::Compound;
use super::verify;

pub(super) async fn handle(c: &Compound<'_>, args: Args<'_>) -> Result<(), Status> {
    if verify::is_same(c, &args.attributes).await? { Err(Status::Same) } else { Ok(()) }
}
