//! LOCK and NM_LOCK: a lock is granted, refused, or waited for.

use nfs_proto::nlm::hosts::{Described, HostNumber, TooMany};
use nfs_proto::v4::stateid::FileKey;
use nfs_wire::nlm::{LockArgs, Procedure, Status};
use share::{Access, ClientLock, OpenRequest, Sharing, Turn};

use super::records::HostRecord;
use super::state::{Held, NlmState, Stop};
use super::wait::{self, Awaited};
use super::{arrive, owner};
use crate::call::Request;
use crate::counted::Counted;
use crate::object::CalledObject;
use crate::operation::Operation;
use crate::status;

pub(super) const OPERATION: Operation<Procedure> =
    Operation::nlm(Procedure::Lock, 1, "Lock").with(Turn::Charged);

/// Whether the restarts of the host are monitored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Monitored {
    /// The host is told when the server restarts, and waits for locks.
    Yes,
    /// NM_LOCK (RFC 1813 6.3.22): the host releases its locks by itself. It cannot wait for one.
    No,
}

/// What one call uses of its host, until [`Claim::end`].
pub(super) struct Claim {
    pub(super) host: HostNumber,
    pub(super) file: FileKey,
    pub(super) owner: u64,
    pub(super) held: Held,
}

impl Claim {
    /// Ends the use. Closes the file if the host has no lock there.
    pub(super) async fn end(self, nlm: &NlmState) {
        let holds = self.held.share.holds_locks(self.held.open.node(), self.owner);
        let is_known = nlm.with(|hosts| {
            let is_known = hosts.note_locks(self.host, self.file, self.owner, holds);
            hosts.leave_owner(self.host, self.owner);
            is_known
        });
        if !is_known {
            // The host has restarted, or lost the file, while the call was under way.
            self.held.share.release_locks(self.held.open.node().id(), self.owner);
        }
        nlm.leave_file(self.host, self.file).await;
    }
}

pub(super) async fn handle(
    request: &Request<'_>,
    nlm: &NlmState,
    counted: &Counted<'_>,
    args: &LockArgs<'_>,
    monitored: Monitored,
) -> Result<Status, Status> {
    let file = arrive::file(request, counted, &args.lock.file).await?;
    let range = arrive::range(&args.lock)?;
    let (from, name) = (request.connection.client, args.lock.caller.0);
    nlm.recovery.check(from.into(), name, args.reclaim)?;
    let host = nlm.enter(from, name, args.state).await?;
    if monitored == Monitored::Yes {
        let server = request.connection.local;
        nlm.recovery.keep(HostRecord { name: name.to_vec(), address: from, server }).await?;
    }
    let claim = claim(request, nlm, &file, host, args).await?;
    let lock = ClientLock { owner: claim.owner, range, kind: arrive::kind(args.exclusive) };
    let open = &claim.held.open;
    let locked = match args.reclaim {
        true => file.share.reclaim_lock(file.call, open, lock).await,
        false => file.share.lock_as(file.call, open, lock).await,
    };
    let described = described(&claim, args);
    let waits = args.block && monitored == Monitored::Yes;
    let answer = match locked {
        Ok(None) => {
            // The host knows now; it need not be told of an earlier wait for the same lock.
            let stops = nlm.with(|hosts| hosts.settle(host, &described));
            for stop in stops {
                let _ = stop.send(Stop::Granted);
            }
            Ok(Status::Granted)
        }
        Ok(Some(_)) | Err(share::Error::Delayed) if waits => {
            let awaited = Awaited::new(request, args, &claim, described, lock);
            wait::begin(&request.connection.server, nlm, awaited)
        }
        Ok(Some(_)) => Err(Status::Denied),
        Err(error) => Err(status::nlm(error)),
    };
    claim.end(nlm).await;
    answer
}

fn described(claim: &Claim, args: &LockArgs<'_>) -> Described {
    Described {
        file: claim.file,
        owner: claim.owner,
        offset: args.lock.offset,
        length: args.lock.length,
        exclusive: args.exclusive,
    }
}

/// The host's open of the file, and the number of the owner.
async fn claim(
    request: &Request<'_>,
    nlm: &NlmState,
    file: &CalledObject<'_>,
    host: HostNumber,
    args: &LockArgs<'_>,
) -> Result<Claim, Status> {
    let found = arrive::readable(file).await?;
    let too_many = |TooMany(_): TooMany| Status::DeniedNoLocks;
    let key = arrive::key(file);
    let owner = nlm.with(|hosts| hosts.enter_owner(host, &owner::name(&args.lock))).map_err(too_many)?;
    let known = nlm.with(|hosts| hosts.use_file(host, key));
    let held = match known {
        Some(held) => Some(held),
        None => {
            // It reserves nothing against other opens, and breaks nothing that others cache.
            let open = OpenRequest {
                reserved: Access::empty(),
                is_reclaim: args.reclaim,
                openers: file.call.caller.openers,
                ..OpenRequest::new(Access::READ_DATA, Sharing::all())
            };
            match file.share.open_settled(file.call, &found, &open).await {
                Ok(open) => {
                    enter_open(
                        nlm,
                        file,
                        host,
                        Held {
                            share: file.share.clone(),
                            open,
                            client: request.connection.callers.address(),
                            certificate_names: request.connection.callers.certificate_names(),
                            uid: file.call.caller.identity.uid(),
                        },
                    )
                    .await
                }
                Err(error) => {
                    nlm.with(|hosts| hosts.leave_owner(host, owner));
                    return Err(status::nlm(error));
                }
            }
        }
    };
    match held {
        Some(held) => Ok(Claim { host, file: key, owner, held }),
        None => Err(Status::DeniedGracePeriod), // the host has just restarted: it asks again
    }
}

/// Enters a new open of the file. Another call may have entered one meanwhile: then this one is closed.
async fn enter_open(nlm: &NlmState, file: &CalledObject<'_>, host: HostNumber, new: Held) -> Option<Held> {
    let used = nlm.with(|hosts| hosts.enter_file(host, arrive::key(file), &new));
    if used.as_ref().is_none_or(|used| used.open.key() != new.open.key()) {
        new.end(&[]).await;
    }
    used
}
