//! Runs COMPOUNDs of NFSv4.0.

use std::sync::Arc;
use std::time::Instant;

use net::Buffer;
use nfs_proto::duplicate_request::Key;
use nfs_proto::v4::stateid::{Designates, designates, origin};
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::compound::{ArgOp, Operations};
use nfs_wire::v4::lock::Locker;
use nfs_wire::v4::putfh;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{ClientId, FileHandle, Stateid};

use super::client::Kept;
use super::turn::{self, Admitted, Turn};
use super::{ClientState, Sessionless};
use crate::call::Request;
use crate::credentials::Sender;
use crate::repeated::{self, Begun, RepeatedCalls};
use crate::v4::admission::Admission;
use crate::v4::compound::Compound;
use crate::v4::filehandle;
use crate::v4::operation::{self, putfh as put_file_handle};
use crate::v4::reply::Reply;
use crate::v4::run::Runner;
use crate::v4::state::Client;

/// Runs a COMPOUND, or returns the reply of its first run. Without sessions, what protects operations that must not run
/// twice, and are in no state-owner's sequence, is the duplicate request cache, as for NFSv3.
pub(in crate::v4) async fn answer(
    request: &Request<'_>,
    arguments: &[u8],
    operations: Operations<'_>,
    reply: Reply,
) -> Buffer {
    let Some(calls) = kept_calls(request, &operations) else { return run(request, operations, reply).await };
    let principal = match &request.sender {
        Sender::Proved(context) => Some(&*context.name),
        Sender::Anonymous | Sender::Stated(_) => None,
    };
    let key = Key::new(request.connection.client, request.call, principal, arguments);
    match repeated::begin(calls, key).await {
        Begun::Done(reply) => reply,
        Begun::Run(running) => {
            let reply = run(request, operations, reply).await;
            running.end(Some(&*reply));
            reply
        }
    }
}

/// Where the reply is kept: writes apart, as for NFSv3.
fn kept_calls(request: &Request<'_>, operations: &Operations<'_>) -> Option<Arc<RepeatedCalls>> {
    let server = &request.connection.server;
    let rows = operations.clone().map_while(Result::ok).map(|args| operation::row(args.operation()));
    let changing = rows
        .filter(|row| row.changes)
        .map(|row| row.number)
        .reduce(|first, next| if first == Number::Write { next } else { first });
    let calls = if changing? == Number::Write { &server.repeated_writes } else { &server.repeated };
    Some(Arc::clone(calls))
}

async fn run(request: &Request<'_>, mut operations: Operations<'_>, reply: Reply) -> Buffer {
    let is_too_long = operations.left() > request.connection.server.v4.sessions.operations_max;
    let admission = Admission::Sessionless(Sessionless::new());
    let mut runner = Runner::new(Compound::begin(request, 0, admission, reply, Instant::now()));
    while let Some(next) = operations.next() {
        match next {
            Err(bad) => runner.compound.refuse_unread(bad),
            // RFC 7530 13.1.3.5, NFS4ERR_RESOURCE: "the processing of a COMPOUND procedure exceeds available resources"
            Ok(args) if is_too_long => runner.compound.refuse(args.operation(), Status::Resource),
            Ok(args) => step(&mut runner, args, operations.left() == 0).await,
        }
        if runner.compound.outcome().is_err() {
            break;
        }
    }
    let (reply, _) = runner.compound.finish();
    reply.finish()
}

/// Runs one operation, in the sequence of its owner if it has one.
async fn step<'a>(runner: &mut Runner<'a>, args: ArgOp<'a>, last: bool) {
    let (number, now) = (args.operation(), runner.compound.now);
    let client = client_of(&runner.compound, &args);
    if let Ok(client) = &client {
        client.renew(now);
    }
    let mut turn = None;
    if turn::is_sequenced(&args) {
        let admitted = match &client {
            Ok(client) => turn::begin(client, &args, now).await,
            Err(status) => Err(*status),
        };
        match admitted {
            Ok(Admitted::Run(begun)) => turn = Some(begun),
            Ok(Admitted::Replay(kept)) => return replay(&mut runner.compound, kept).await,
            Err(status) => return runner.compound.refuse(number, status),
        }
    }
    let is_unconfirmed = turn.as_ref().is_some_and(Turn::needs_confirmation);
    runner.compound.admit(Sessionless { client, is_unconfirmed });
    runner.step(args, last).await;
    let c = &mut runner.compound;
    if let Err(status) = c.outcome()
        && let Some(known) = in_minor_version_0(number, status)
    {
        c.take_back(number, known);
    }
    if let Some(turn) = turn {
        end(c, number, turn);
    }
}

/// The operation has run in its sequence.
fn end(c: &Compound<'_>, number: Number, mut turn: Turn) {
    let mut file = None;
    if number == Number::Open && c.outcome().is_ok() {
        if let Some(opened) = c.returned_stateid() {
            turn.opened(opened.other);
        }
        file =
            c.object().and_then(|object| filehandle::of_node(c.server(), &object.share, &object.node)).ok();
    }
    turn.end(Kept { result: c.last_result().into(), status: c.outcome(), file });
}

/// Answers a repetition with what was kept, and continues after it as the first run did.
async fn replay(c: &mut Compound<'_>, kept: Kept) {
    if let Some(file) = &kept.file {
        // A file that has gone meanwhile is reported by the operations that follow.
        let args = putfh::Args { object: FileHandle(file.as_bytes()) };
        if put_file_handle::handle(c, args).await.is_err() {
            c.clear_place();
        }
    }
    c.put_result(&kept.result, kept.status);
}

/// The client that an operation names.
///
/// # Errors
/// [`Status::StaleClientId`], [`Status::StaleStateId`], [`Status::Expired`]; [`Status::BadStateId`] if it names none, or
/// the open of an owner that has not confirmed it; [`Status::Inval`] for an OPEN with bits that only later minor versions
/// have.
fn client_of(c: &Compound<'_>, operation: &ArgOp<'_>) -> Result<Arc<Client>, Status> {
    match operation {
        // RFC 7530 16.16.6: "the client must specify a value for share_access that is one of [...] If the client fails to
        // do this, the server must return NFS4ERR_INVAL."
        ArgOp::Open(args) if args.share_access != args.share_access.access() => Err(Status::Inval),
        ArgOp::Open(args) => by_id(c, args.owner.client_id),
        ArgOp::LockT(args) => by_id(c, args.owner.client_id),
        ArgOp::ReleaseLockOwner(args) => by_id(c, args.lock_owner.client_id),
        ArgOp::Renew(args) => by_id(c, args.client_id),
        ArgOp::Lock(args) => match &args.locker {
            Locker::New { owner, open_stateid, .. } => {
                by_id(c, owner.client_id)?;
                by_stateid(c, *open_stateid)
            }
            Locker::Existing { lock_stateid, .. } => by_stateid(c, *lock_stateid),
        },
        ArgOp::LockU(args) => by_stateid(c, args.lock_stateid),
        ArgOp::Close(args) => by_stateid(c, args.open_stateid),
        ArgOp::OpenConfirm(args) => by_stateid(c, args.open_stateid),
        ArgOp::OpenDowngrade(args) => by_stateid(c, args.open_stateid),
        ArgOp::Read(args) => confirmed(by_stateid(c, args.stateid), args.stateid),
        ArgOp::Write(args) => confirmed(by_stateid(c, args.stateid), args.stateid),
        ArgOp::SetAttr(args) => confirmed(by_stateid(c, args.stateid), args.stateid),
        ArgOp::DelegReturn(args) => by_stateid(c, args.stateid),
        _ => Err(Status::BadStateId),
    }
}

fn by_id(c: &Compound<'_>, id: ClientId) -> Result<Arc<Client>, Status> {
    c.request.connection.v4.client(&c.server().v4, id)
}

/// The client of a stateid, which begins with the run of the server and the number of the client.
fn by_stateid(c: &Compound<'_>, stateid: Stateid) -> Result<Arc<Client>, Status> {
    if designates(stateid) != Ok(Designates::Locks) {
        return Err(Status::BadStateId);
    }
    let (run, number) = origin(stateid.other);
    if run != c.server().v4.run {
        return Err(Status::StaleStateId);
    }
    by_id(c, ClientId(u64::from(run) << 32 | u64::from(number))).map_err(|status| match status {
        Status::StaleClientId => Status::BadStateId,
        status => status,
    })
}

/// Refuses an open that waits for confirmation.
fn confirmed(client: Result<Arc<Client>, Status>, stateid: Stateid) -> Result<Arc<Client>, Status> {
    client.and_then(|client| {
        let waits = |state: &Arc<ClientState>| state.owners.lock().is_unconfirmed(stateid.other);
        if client.sessionless.as_ref().is_some_and(waits) { Err(Status::BadStateId) } else { Ok(client) }
    })
}

/// The status that NFSv4.0 has in place of one that is for later minor versions (RFC 7530 13.1; RFC 8881 15.1).
fn in_minor_version_0(operation: Number, status: Status) -> Option<Status> {
    /// NFS4ERR_CB_PATH_DOWN.
    const LAST: u32 = 10048;
    match (operation, status) {
        // 9.1.6: "when the OPEN denies READ or WRITE operations, that denial results in such operations being rejected with
        // error NFS4ERR_LOCKED".
        (Number::Read | Number::Write | Number::SetAttr, Status::ShareDenied) => Some(Status::Locked),
        (_, status) if status as u32 <= LAST => None,
        // 16.16.6: "NFS4ERR_SYMLINK is returned for both symlinks and for special files of other types".
        (Number::Open, Status::WrongType) => Some(Status::SymLink),
        (_, Status::WrongType) => Some(Status::Inval),
        (_, Status::DelegRevoked) => Some(Status::BadStateId),
        (_, Status::WrongCred) => Some(Status::Access),
        _ => Some(Status::ServerFault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_status_of_a_later_minor_version_is_sent() {
        for status in (1..20_000).filter_map(|number| Status::try_from(number).ok()) {
            for operation in [Number::Open, Number::Read] {
                let sent = in_minor_version_0(operation, status).unwrap_or(status);
                assert!(sent as u32 <= 10048, "{status:?}");
            }
        }
        assert_eq!(in_minor_version_0(Number::Open, Status::WrongType), Some(Status::SymLink));
        assert_eq!(in_minor_version_0(Number::Read, Status::WrongType), Some(Status::Inval));
        assert_eq!(in_minor_version_0(Number::Read, Status::Expired), None);
        assert_eq!(in_minor_version_0(Number::Write, Status::ShareDenied), Some(Status::Locked));
        assert_eq!(in_minor_version_0(Number::Open, Status::ShareDenied), None);
    }
}
