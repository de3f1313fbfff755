//! SETXATTR, RFC 8276 8.4.2.

use nfs_wire::v4::setxattr::{Args, ResOk};
use nfs_wire::v4::status::Status;

use super::compound::Compound;
use super::xattr;

pub(super) async fn handle(c: &Compound<'_>, args: Args<'_>) -> Result<ResOk, Status> {
    Ok(ResOk { change: xattr::set(c, args.name, Some(args.value), args.option).await? })
}
