//! LOCKT, RFC 8881 18.11.

use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::lock::Failure;
use nfs_wire::v4::lockt::Args;
use nfs_wire::v4::status::Status;
use share::{ByteRangeLock, ClientLock};

use super::data::check_regular;
use super::lock::{OwnerName, denied, kind, range};
use crate::operation::Operation;
use crate::v4::compound::Compound;

pub(super) const OPERATION: Operation<Number> = Operation::v4(Number::LockT, "LockTest");

/// Runs the operation, and writes its result.
pub(super) fn run(c: &mut Compound<'_>, args: &Args<'_>) {
    let conflict = match test(c, args) {
        Ok(conflict) => conflict,
        Err(status) => return c.refuse(Number::LockT, status),
    };
    let Some(conflict) = conflict else { return c.end(Number::LockT, &Ok::<_, Status>(())) };
    let owner = OwnerName::of(c.server(), conflict.owner);
    c.end(Number::LockT, &Err::<(), _>(Failure::Denied(denied(&conflict, &owner))));
}

fn test(c: &Compound<'_>, args: &Args<'_>) -> Result<Option<ByteRangeLock>, Status> {
    let object = c.object()?;
    check_regular(&object.node)?;
    let range = range(args.offset, args.length)?;
    c.server().v4.recovery.check_stateless(c.now)?;
    let files = &c.client()?.files;
    // An unknown owner has locked nothing, so it gets a number that no owner has.
    let known = files.with(|holdings| holdings.lock_owners().number(args.owner.owner.0));
    let owner = known.unwrap_or_else(|| u64::from(files.number()) << 32);
    Ok(object.share.test_lock(&object.node, ClientLock { owner, range, kind: kind(args.lock_type) }))
}
