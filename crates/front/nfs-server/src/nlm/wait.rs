//! Locks that are waited for. A task takes the lock when it is free, and tells the host (GRANTED).
//!
//! A host also asks again by itself, so it loses nothing if it cannot be called: then the lock is released, and the host gets it
//! when it asks. If it may have heard of the lock, it keeps it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use nfs_proto::nlm::hosts::{Described, HostNumber, TooMany};
use nfs_wire::nlm::{self, CallerName, LockArgs, NetObject, Procedure, Res, Status, TestArgs};
use nfs_wire::v3::types::FileHandle;
use nfs_wire::xdr::Decode;
use share::ClientLock;
use tokio::sync::oneshot;

use super::callback::CallbackError;
use super::lock::Claim;
use super::state::{Held, NlmState, Stop, shown};
use crate::call::Request;
use crate::server::ServerState;

/// How often a host is told of a lock.
const TELL_TRIES: u32 = 6;
/// How long after an attempt the next one comes.
const TELL_PAUSE: Duration = Duration::from_secs(5);

/// A lock that is waited for, with the words in which its host has asked for it.
pub(super) struct Awaited {
    host: HostNumber,
    described: Described,
    wanted: ClientLock,
    held: Held,
    /// The address by which the host knows the server, and the host's.
    path: (IpAddr, SocketAddr),
    caller: Vec<u8>,
    handle: FileHandle,
    owner: Vec<u8>,
    svid: u32,
    cookie: Vec<u8>,
}

impl Awaited {
    pub(super) fn new(
        request: &Request<'_>,
        args: &LockArgs<'_>,
        claim: &Claim,
        described: Described,
        wanted: ClientLock,
    ) -> Self {
        let connection = request.connection;
        Self {
            host: claim.host,
            described,
            wanted,
            held: claim.held.clone(),
            path: (connection.local, connection.peer()),
            caller: args.lock.caller.0.to_vec(),
            handle: args.lock.file,
            owner: args.lock.owner.0.to_vec(),
            svid: args.lock.svid,
            cookie: args.cookie.0.to_vec(),
        }
    }

    fn args(&self) -> TestArgs<'_> {
        TestArgs {
            cookie: NetObject(&self.cookie),
            exclusive: self.described.exclusive,
            lock: nlm::Lock {
                caller: CallerName(&self.caller),
                file: self.handle,
                owner: NetObject(&self.owner),
                svid: self.svid,
                offset: self.described.offset,
                length: self.described.length,
            },
        }
    }
}

/// Begins to wait, unless the host waits for this lock already.
///
/// # Errors
/// [`Status::DeniedNoLocks`] if too many locks are waited for.
pub(super) fn begin(server: &Arc<ServerState>, nlm: &NlmState, awaited: Awaited) -> Result<Status, Status> {
    let (stop, stopped) = oneshot::channel();
    let begun = nlm.with(|hosts| {
        let is_new = hosts.wait(awaited.host, awaited.described, stop)?;
        if is_new {
            // The wait keeps the file open and the owner's number.
            hosts.use_file(awaited.host, awaited.described.file);
            hosts.keep_owner(awaited.host, awaited.described.owner);
        }
        Ok::<_, TooMany>(is_new)
    });
    if begun.map_err(|TooMany(_)| Status::DeniedNoLocks)? {
        let server = Arc::clone(server);
        tokio::spawn(async move {
            if let Some(nlm) = &server.nlm {
                run(nlm, awaited, stopped).await;
            }
        });
    }
    Ok(Status::Blocked)
}

async fn run(nlm: &NlmState, awaited: Awaited, mut stopped: oneshot::Receiver<Stop>) {
    let (share, open) = (Arc::clone(&awaited.held.share), Arc::clone(&awaited.held.open));
    let locked = tokio::select! {
        locked = share.lock_when_free(open, awaited.wanted) => locked.is_ok(),
        _ = &mut stopped => false,
    };
    if locked {
        let is_wanted = nlm.with(|hosts| {
            let Described { file, owner, .. } = awaited.described;
            hosts.grant(awaited.host, &awaited.described) && hosts.note_locks(awaited.host, file, owner, true)
        });
        if is_wanted {
            tell(nlm, &awaited).await;
        } else if !matches!(stopped.try_recv(), Ok(Stop::Granted)) {
            release(&awaited);
        }
    } else {
        // The file is closed, or the wait is over. Nobody else removes a wait whose file was closed.
        drop(nlm.with(|hosts| hosts.cancel(awaited.host, &awaited.described)));
    }
    let Awaited { host, described, held, .. } = awaited;
    Claim { host, file: described.file, owner: described.owner, held }.end(nlm).await;
}

/// Gives up what was locked for the host.
fn release(awaited: &Awaited) {
    let ClientLock { owner, range, .. } = awaited.wanted;
    let _ = awaited.held.share.unlock_as(&awaited.held.open, owner, range);
}

/// Tells the host that it has the lock.
async fn tell(nlm: &NlmState, awaited: &Awaited) {
    let mut may_have_heard = false;
    for attempt in 0..TELL_TRIES {
        if attempt > 0 {
            tokio::time::sleep(TELL_PAUSE).await;
        }
        let target = (nlm::PROGRAM, nlm::VERSION, Procedure::Granted as u32);
        let args = awaited.args();
        let status = |reader: &mut nfs_wire::xdr::Reader<'_>| Res::decode(reader).ok().map(|res| res.status);
        match nlm.callbacks.call(awaited.path, target, &args, status).await {
            Ok(Status::Granted) => {
                nlm.with(|hosts| hosts.end_grant(awaited.host, &awaited.described));
                return;
            }
            // The host does not want the lock any more.
            Ok(status) => {
                tracing::debug!(
                    host = shown(&awaited.caller),
                    ?status,
                    "a lock that was waited for is not wanted"
                );
                may_have_heard = false;
                break;
            }
            Err(CallbackError::NotSent(why)) => {
                tracing::debug!(
                    host = shown(&awaited.caller),
                    "a lock is free, and its host was not told: {why}"
                );
            }
            Err(CallbackError::Unanswered(why)) => {
                may_have_heard = true;
                tracing::debug!(
                    host = shown(&awaited.caller),
                    "a host does not say whether it knows of a lock: {why}"
                );
            }
        }
    }
    let is_open = nlm.with(|hosts| hosts.end_grant(awaited.host, &awaited.described));
    if is_open && !may_have_heard {
        release(awaited);
    }
}
