//! RESTOREFH, RFC 8881 18.27: the saved filehandle becomes the current one.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::status::Status;

use crate::operation::Operation;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> = Operation::v4_of_no_share(Number::RestoreFh);

pub(super) fn handle(c: &mut Compound<'_>) -> Result<(), Status> {
    c.restore()
}
