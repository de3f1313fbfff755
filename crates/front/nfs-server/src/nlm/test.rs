//! TEST: whether a lock would be granted, and the lock that is in the way.

use nfs_wire::nlm::{Procedure, Status, TestArgs};
use share::{ClientLock, Turn};

use super::owner::Conflict;
use super::state::NlmState;
use super::{arrive, owner};
use crate::call::Request;
use crate::counted::Counted;
use crate::operation::Operation;

pub(super) const OPERATION: Operation<Procedure> =
    Operation::nlm(Procedure::Test, 0, "LockTest").with(Turn::Charged);

/// An owner that has locked nothing has no number. This is no owner's.
const NOBODY: u64 = 1 << 63;

pub(super) async fn handle(
    request: &Request<'_>,
    nlm: &NlmState,
    counted: &Counted<'_>,
    args: &TestArgs<'_>,
) -> Result<Option<Conflict>, Status> {
    let file = arrive::file(request, counted, &args.lock.file).await?;
    let range = arrive::range(&args.lock)?;
    let (from, name) = (request.connection.client.into(), args.lock.caller.0);
    nlm.recovery.check(from, name, false)?;
    let owner = nlm.with(|hosts| {
        hosts.find(&from, name).and_then(|host| hosts.find_owner(host, &owner::name(&args.lock)))
    });
    let lock = ClientLock { owner: owner.unwrap_or(NOBODY), range, kind: arrive::kind(args.exclusive) };
    Ok(file.share.test_lock(&file.node, lock).map(|lock| Conflict::of(nlm, lock)))
}
