//! UNLOCK: whatever the owner has locked in the range is released. That may be nothing.

use nfs_proto::nlm::hosts::Described;
use nfs_wire::nlm::{Procedure, Status, UnlockArgs};
use share::Turn;

use super::lock::Claim;
use super::state::{NlmState, Stop};
use super::{arrive, owner};
use crate::call::Request;
use crate::counted::Counted;
use crate::operation::Operation;
use crate::status;

pub(super) const OPERATION: Operation<Procedure> =
    Operation::nlm(Procedure::Unlock, 3, "Unlock").with(Turn::Charged);

pub(super) async fn handle(
    request: &Request<'_>,
    nlm: &NlmState,
    counted: &Counted<'_>,
    args: &UnlockArgs<'_>,
) -> Result<Status, Status> {
    let object = arrive::file(request, counted, &args.lock.file).await?;
    let range = arrive::range(&args.lock)?;
    let (key, from) = (arrive::key(&object), request.connection.client.into());
    let claim = nlm.with(|hosts| {
        let host = hosts.find(&from, args.lock.caller.0)?;
        let owner = hosts.find_owner(host, &owner::name(&args.lock))?;
        let held = hosts.use_file(host, key)?;
        let owner = hosts.enter_owner(host, &owner::name(&args.lock)).unwrap_or(owner);
        Some(Claim { host, file: key, owner, held })
    });
    // Without a lock there is nothing to release.
    let Some(claim) = claim else { return Ok(Status::Granted) };
    let (offset, length) = (args.lock.offset, args.lock.length);
    let lock = Described { file: key, owner: claim.owner, offset, length, exclusive: true };
    let stops = nlm.with(|hosts| hosts.settle(claim.host, &lock));
    for stop in stops {
        let _ = stop.send(Stop::GivenUp);
    }
    let unlocked = claim.held.share.unlock_as(&claim.held.open, claim.owner, range);
    claim.end(nlm).await;
    unlocked.map(|()| Status::Granted).map_err(status::nlm)
}
