//! SETXATTR, RFC 8276 8.4.2.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::setxattr::{Args, ResOk};
use nfs_wire::v4::status::Status;

use super::xattr;
use crate::operation::Operation;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> =
    Operation { changes: true, result_bytes: 64, ..Operation::v4(Number::SetXattr, "SetXattr") };

pub(super) async fn handle(c: &Compound<'_>, args: Args<'_>) -> Result<ResOk, Status> {
    Ok(ResOk { change: xattr::set(c, args.name, Some(args.value), args.option).await? })
}
