//! RENEW, RFC 7530 16.28. Naming the client has renewed its lease.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::status::Status;

use crate::operation::Operation;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> = Operation::v4_of_no_share(Number::Renew);

pub(super) fn handle(c: &Compound<'_>) -> Result<(), Status> {
    c.client().map(|_| ())
}
