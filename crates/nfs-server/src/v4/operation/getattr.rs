//! GETATTR, RFC 8881 18.7.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::getattr::Args;
use nfs_wire::v4::status::Status;
use share::Api;

use crate::operation::{ForWhom, Operation};
use crate::v4::attributes::Telling;
use crate::v4::compound::Compound;
use crate::v4::describe;

pub(super) const OPERATION: Operation<Number> =
    Operation { for_whom: ForWhom::Mounting, ..Operation::of(Number::GetAttr, Api::GetAttr) };

pub(super) async fn handle(c: &Compound<'_>, args: Args) -> Result<Telling, Status> {
    describe::tell(c, c.place()?, args.request).await
}
