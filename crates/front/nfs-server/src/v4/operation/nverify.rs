//! NVERIFY, RFC 8881 18.15.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::nverify::Args;
use nfs_wire::v4::status::Status;

use super::verify;
use crate::operation::{Callers, Operation};
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> =
    Operation { callers: Callers::Mounting, ..Operation::v4(Number::NVerify, "Verify") };

pub(super) async fn handle(c: &Compound<'_>, args: Args<'_>) -> Result<(), Status> {
    if verify::is_same(c, &args.attributes).await? { Err(Status::Same) } else { Ok(()) }
}
