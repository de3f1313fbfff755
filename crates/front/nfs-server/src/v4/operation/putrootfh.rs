//! PUTROOTFH, RFC 8881 18.21: the root of the pseudo file system.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::status::Status;

use crate::operation::Operation;
use crate::v4::compound::Compound;
use crate::v4::place::Place;

pub(super) const OPERATION: Operation<Number> = Operation::v4_of_no_share(Number::PutRootFh);

pub(super) fn handle(c: &mut Compound<'_>) -> Result<(), Status> {
    c.set_place(Place::Root);
    Ok(())
}
