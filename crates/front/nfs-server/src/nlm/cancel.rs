//! CANCEL: a lock is not waited for any longer.

use nfs_proto::nlm::hosts::Described;
use nfs_wire::nlm::{CancelArgs, Procedure, Status};
use share::Turn;

use super::state::{NlmState, Stop};
use super::{arrive, owner};
use crate::call::Request;
use crate::counted::Counted;
use crate::operation::Operation;

pub(super) const OPERATION: Operation<Procedure> =
    Operation::nlm(Procedure::Cancel, 2, "CancelLock").with(Turn::Charged);

pub(super) async fn handle(
    request: &Request<'_>,
    nlm: &NlmState,
    counted: &Counted<'_>,
    args: &CancelArgs<'_>,
) -> Result<Status, Status> {
    let file = arrive::key(&arrive::file(request, counted, &args.lock.file).await?);
    let from = request.connection.client.into();
    let stop = nlm.with(|hosts| {
        let host = hosts.find(&from, args.lock.caller.0)?;
        let owner = hosts.find_owner(host, &owner::name(&args.lock))?;
        let (offset, length) = (args.lock.offset, args.lock.length);
        hosts.cancel(host, &Described { file, owner, offset, length, exclusive: args.exclusive })
    });
    match stop {
        Some(stop) => {
            let _ = stop.send(Stop::GivenUp);
            Ok(Status::Granted)
        }
        // XNFS: there is no such request. If the lock has been granted meanwhile, the host unlocks it.
        None => Err(Status::Denied),
    }
}
