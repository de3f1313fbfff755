//! Dispatches NFSv3 procedures to their handlers.

use std::borrow::Cow;

use net::Buffer;
use nfs_wire::rpc::AcceptStatus;
use nfs_wire::v3::status::Status;
use nfs_wire::v3::{Procedure, write as write_wire};
use nfs_wire::xdr::{Encode, Failure, Reader};
use share::Outcome;

use super::for_object::ForObject;
use super::{
    access, commit, create, fsinfo, fsstat, getattr, link, lookup, mkdir, mknod, pathconf, read, readdir,
    readdirplus, readlink, remove, rename, rmdir, setattr, symlink, write,
};
use crate::call::{CallError, Request, decode};
use crate::counted::Counted;
use crate::object::CalledObject;
use crate::operation::{Callers, Operation};
use crate::standing::Standing;
use crate::status;

/// Runs a call. Calls with large futures run in boxes, so that the others need no room for them.
pub(crate) async fn dispatch(request: &Request<'_>, arguments: Reader<'_>) -> Result<Buffer, CallError> {
    let operation = super::operation(request.call.procedure).ok_or(AcceptStatus::ProcedureUnavailable)?;
    let call = Running { request, operation, counted: Counted::begin(request.connection, operation) };
    /// Finds the object of the call, runs the handler, and makes the reply.
    macro_rules! run {
        ($procedure:ident) => {
            run!($procedure, end)
        };
        ($procedure:ident, $end:ident) => {{
            let args = decode(arguments)?;
            // One future for each arm, so that the variables of one arm take no room beside those of another.
            let result = async {
                let object = call.enter(&args).await?;
                $procedure::handle(request, &object, args).await
            };
            call.$end(result.await)
        }};
        (boxed $procedure:ident) => {{
            let args = decode(arguments)?;
            let result = async {
                let object = call.enter(&args).await?;
                $procedure::handle(request, &object, args).await
            };
            call.end(Box::pin(result).await)
        }};
    }
    Ok(match operation.number {
        Procedure::Null => request.success(&()),
        Procedure::GetAttr => run!(getattr),
        Procedure::SetAttr => run!(boxed setattr),
        Procedure::Lookup => run!(boxed lookup),
        Procedure::Access => run!(boxed access),
        Procedure::ReadLink => run!(readlink),
        Procedure::Read => run!(read, end_read),
        Procedure::Write => run!(write, end_write),
        Procedure::Create => run!(boxed create),
        Procedure::MkDir => run!(boxed mkdir),
        Procedure::SymLink => run!(boxed symlink),
        Procedure::MkNod => run!(boxed mknod),
        Procedure::Remove => run!(boxed remove),
        Procedure::RmDir => run!(boxed rmdir),
        Procedure::Rename => run!(boxed rename),
        Procedure::Link => run!(boxed link),
        Procedure::ReadDir => run!(boxed readdir),
        Procedure::ReadDirPlus => run!(boxed readdirplus),
        Procedure::FsStat => run!(fsstat),
        Procedure::FsInfo => run!(fsinfo),
        Procedure::PathConf => run!(pathconf),
        Procedure::Commit => run!(commit),
    })
}

/// A call under way.
struct Running<'r, 'a> {
    request: &'r Request<'a>,
    operation: &'static Operation<Procedure>,
    counted: Counted<'r>,
}

impl Running<'_, '_> {
    /// The object of the call, when the call's turn in the budget of the share has come.
    ///
    /// # Errors
    /// [`Status::BadHandle`] for a handle that this server did not make; [`Status::Stale`] when the object is gone;
    /// [`Status::Acces`] when the client may not (or no longer) use the share; [`Status::RoFs`] when the call would
    /// make a change that the client may not make. RFC 1813 2.6 asks for NFS3ERR_STALE when access was revoked. But
    /// clients give up a stale filehandle for good, and the rules may change back. A call that is not secured as the share
    /// demands is noted in the request, and is denied in place of its result.
    async fn enter(&self, args: &impl ForObject) -> Result<CalledObject<'_>, Status> {
        let named = self.request.named(args.object())?;
        let share = &named.share;
        let (caller, standing) = self.request.caller(share).await;
        let call = self.counted.on(share, caller);
        let is_enough = match self.operation.callers {
            Callers::Members => standing.is_member(),
            Callers::Mounting | Callers::Anybody => !standing.is_refused(),
        };
        // RFC 2623 2.3.2: a client that mounts may ask for attributes of the root with any flavor.
        let refused = || {
            self.request.is_too_weak.set(matches!(standing, Standing::TooWeak | Standing::Unencrypted));
            Err(Status::Acces)
        };
        if !is_enough {
            call.needs_no_turn();
            return refused();
        }
        share.take_turn(call).await;
        let object = named.object(call, standing).await?;
        let is_top = object.share.snapshot().is_none() && object.node.id() == share.root().id();
        if !standing.is_member() && (!is_top || object.is_folder) {
            return refused();
        }
        if self.operation.changes && object.is_read_only() { Err(Status::RoFs) } else { Ok(object) }
    }

    /// A connection with a successful call on a share is no longer a stranger.
    fn note(&self, has_succeeded: bool) {
        if has_succeeded {
            self.request.connection.has_used_share.set(true);
        }
    }

    /// The reply of a procedure.
    fn end<T: Encode, B: Encode>(&self, result: Result<T, Failure<Status, B>>) -> Buffer {
        self.note(result.is_ok());
        self.counted.end(0, outcome(&result), || status_of(&result));
        self.request.success(&result)
    }

    fn end_write(&self, result: write_wire::Res) -> Buffer {
        let bytes = result.as_ref().map_or(0, |ok| u64::from(ok.count));
        self.note(result.is_ok());
        self.request.connection.traffic.writes.add(bytes);
        self.counted.end(bytes, outcome(&result), || status_of(&result));
        self.request.success(&result)
    }

    fn end_read(&self, result: Result<read::Data, read::Failed>) -> Buffer {
        match result {
            Ok(data) => {
                self.note(true);
                self.request.connection.traffic.reads.add(u64::from(data.head.count));
                self.counted.end(u64::from(data.head.count), Outcome::Done, || status::v3_name(None));
                data.into_reply(self.request)
            }
            Err(failure) => self.end(Err::<(), _>(failure)),
        }
    }
}

/// The status of a result, for the access log.
fn status_of<T, B>(result: &Result<T, Failure<Status, B>>) -> Cow<'static, str> {
    status::v3_name(result.as_ref().err().map(|failure| failure.status))
}

/// How a call has ended.
fn outcome<T, B>(result: &Result<T, Failure<Status, B>>) -> Outcome {
    result.as_ref().map_or_else(|failure| status::outcome(failure.status), |_| Outcome::Done)
}
