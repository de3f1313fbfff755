//! REMOVEXATTR, RFC 8276 8.4.4.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::removexattr::{Args, ResOk};
use nfs_wire::v4::setxattr::SetOption;
use nfs_wire::v4::status::Status;

use super::xattr;
use crate::operation::Operation;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> =
    Operation { changes: true, result_bytes: 64, ..Operation::v4(Number::RemoveXattr, "RemoveXattr") };

pub(super) async fn handle(c: &Compound<'_>, args: Args<'_>) -> Result<ResOk, Status> {
    Ok(ResOk { change: xattr::set(c, args.name, None, SetOption::Replace).await? })
}
