//! RELEASE_LOCKOWNER, RFC 7530 16.37.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::release_lockowner::Args;
use nfs_wire::v4::status::Status;

use crate::operation::Operation;
use crate::v4::compound::Compound;
use crate::v4::files::not_freed;

pub(super) const OPERATION: Operation<Number> = Operation::v4_of_no_share(Number::ReleaseLockOwner);

pub(super) fn handle(c: &Compound<'_>, args: &Args<'_>) -> Result<(), Status> {
    let (client, name) = (c.client()?, args.lock_owner.owner.0);
    let released = client.files.with(|holdings| {
        // As for FREE_STATEID, the tables of open files are queried under the lock of the client's holdings.
        holdings.release_lock_owner(name, |open, lock| {
            open.any().is_some_and(|held| held.share.holds_locks(held.open.node(), lock.owner))
        })
    });
    released.map_err(not_freed)?;
    client.forget_lock_owner(name);
    Ok(())
}
