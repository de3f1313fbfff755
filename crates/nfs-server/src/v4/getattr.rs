//! GETATTR, RFC 8881 18.7.

use nfs_wire::v4::getattr::Args;
use nfs_wire::v4::status::Status;

use super::attributes::Telling;
use super::compound::Compound;
use super::describe;

pub(super) async fn handle(c: &Compound<'_>, args: Args) -> Result<Telling, Status> {
    describe::tell(c, c.place()?, args.request).await
}
