//! GETATTR, RFC 8881 18.7.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::getattr::Args;
use nfs_wire::v4::status::Status;

use crate::operation::{Callers, Operation};
use crate::v4::attributes::{Needs, Telling};
use crate::v4::compound::Compound;
use crate::v4::describe;

pub(super) const OPERATION: Operation<Number> =
    Operation { callers: Callers::Mounting, ..Operation::v4(Number::GetAttr, "GetAttr") };

/// The approximate size of the longest access control list: a security descriptor has 64 KiB at most.
const LIST_BYTES_MAX: usize = 64 << 10;

pub(super) async fn handle(c: &Compound<'_>, args: Args) -> Result<Telling, Status> {
    if Needs::of(args.request).acl {
        c.take_room(c.room().min(LIST_BYTES_MAX)).await;
    }
    describe::tell(c, c.place()?, args.request).await
}
