//! RECLAIM_COMPLETE, RFC 8881 18.51.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::reclaim_complete::Args;
use nfs_wire::v4::status::Status;

use crate::operation::Operation;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> = Operation::v4_of_no_share(Number::ReclaimComplete);

pub(super) fn handle(c: &Compound<'_>, args: Args) -> Result<(), Status> {
    if args.one_fs {
        // File systems do not move here from other servers, so there is nothing to reclaim for one file system alone.
        return c.place().map(|_| ());
    }
    let client = c.client()?;
    if !client.files.complete_reclaims() {
        return Err(Status::CompleteAlready);
    }
    c.server().v4.recovery.complete(&client.recorded_as);
    Ok(())
}
