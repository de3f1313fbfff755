//! FREE_STATEID, RFC 8881 18.38.

use nfs_wire::v4::free_stateid::Args;
use nfs_wire::v4::sequence::StatusFlags;
use nfs_wire::v4::status::Status;

use super::compound::Compound;
use super::files::not_freed;

pub(super) fn handle(c: &Compound<'_>, args: Args) -> Result<(), Status> {
    let sent = c.stateid(args.stateid)?;
    let client = c.client();
    let left = client.files.with(|holdings| {
        // The tables of the open files are asked under the lock of the client's: nobody takes them the other way round.
        holdings.free(sent, |open, lock| {
            open.any().is_some_and(|held| held.share.holds_locks(held.open.node(), lock.owner))
        })?;
        Ok(holdings.has_revoked())
    });
    if !left.map_err(not_freed)? {
        client.tell(StatusFlags::RECALLABLE_STATE_REVOKED, false);
    }
    Ok(())
}
