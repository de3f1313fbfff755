//! SAVEFH, RFC 8881 18.28: the current filehandle becomes the saved one.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::status::Status;

use crate::operation::{Needs, Operation};
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> =
    Operation { needs: Needs::FileHandle, ..Operation::v4_of_no_share(Number::SaveFh) };

pub(super) fn handle(c: &mut Compound<'_>) -> Result<(), Status> {
    c.save()
}
