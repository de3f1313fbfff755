//! FREE_STATEID, RFC 8881 18.38.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::free_stateid::Args;
use nfs_wire::v4::status::Status;

use crate::operation::Operation;
use crate::v4::compound::Compound;
use crate::v4::files::not_freed;

pub(super) const OPERATION: Operation<Number> = Operation::v4_of_no_share(Number::FreeStateid);

pub(super) fn handle(c: &Compound<'_>, args: Args) -> Result<(), Status> {
    let sent = c.stateid(args.stateid)?;
    let client = c.client()?;
    let freed = client.files.with(|holdings| {
        // The tables of open files are queried under the lock of the client's holdings. No code takes the locks in the
        // other order.
        holdings.free(sent, |open, lock| {
            open.any().is_some_and(|held| held.share.holds_locks(held.open.node(), lock.owner))
        })?;
        client.tell_revoked(holdings.revoked());
        Ok(())
    });
    freed.map_err(not_freed)
}
