//! SECINFO, RFC 8881 18.29: only AUTH_SYS is supported.

use nfs_wire::rpc::flavor;
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::secinfo::{Args, ResOk, SecInfo};
use nfs_wire::v4::status::Status;

use super::{directory, lookup};
use crate::operation::Operation;
use crate::v4::compound::Compound;
use crate::v4::place::Place;
use crate::v4::pseudo_fs;

pub(super) const OPERATION: Operation<Number> = Operation::v4(Number::SecInfo, "SecInfo");

pub(super) async fn handle(c: &mut Compound<'_>, args: Args<'_>) -> Result<ResOk<'static>, Status> {
    let name = directory::existing(args.name)?;
    match c.place()? {
        Place::Root => pseudo_fs::lookup(c, name)?,
        Place::Object(dir) => lookup::find(dir, name).await?,
    };
    c.consume_place();
    Ok(flavors())
}

/// The security flavors, the same for all objects.
pub(super) fn flavors() -> ResOk<'static> {
    vec![SecInfo::Flavor(flavor::AUTH_SYS)]
}
