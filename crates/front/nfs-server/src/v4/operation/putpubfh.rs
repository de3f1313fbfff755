//! PUTPUBFH, RFC 8881 18.20: the same as PUTROOTFH; 4.1.2 leaves the choice to the server.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::status::Status;

use super::putrootfh;
use crate::operation::Operation;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> = Operation::v4_of_no_share(Number::PutPubFh);

pub(super) fn handle(c: &mut Compound<'_>) -> Result<(), Status> {
    putrootfh::handle(c)
}
