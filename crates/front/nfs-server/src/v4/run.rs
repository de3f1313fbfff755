//! COMPOUND, RFC 8881 16.2: runs the operations in sequence, up to the first that fails.

use std::time::{Duration, Instant};

use net::{Buffer, turn_clock};
use nfs_wire::rpc::AcceptStatus;
use nfs_wire::v4::compound::{self as wire, ArgOp};
use nfs_wire::v4::sequence::Args;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::{MINOR_VERSION_MAX, Operation as Number, Procedure};
use nfs_wire::xdr::{Decode, Reader};
use share::{Ending, Outcome, Replied};

use super::admission::Admission;
use super::compound::Compound;
use super::operation;
use super::reply::Reply;
use super::sequence::{self, Highest, SequenceOutcome};
use super::sessionless;
use super::state::Session;
use crate::call::{CallError, Request};
use crate::operation::{Needs, Operation};
use crate::status;

/// How long a request that is sent again waits for its first run to end. RFC 8881 2.10.6.2 has the server answer
/// NFS4ERR_DELAY while the first run continues. The Linux client sends the request again only after 15 s, and waits
/// that long even if the first run ends soon.
const REPEATED_WAITS: Duration = Duration::from_secs(20);

/// Runs a call.
pub(crate) async fn dispatch(request: &Request<'_>, arguments: Reader<'_>) -> Result<Buffer, CallError> {
    match Procedure::try_from(request.call.procedure) {
        Ok(Procedure::Compound) => answer(request, arguments).await,
        Ok(Procedure::Null) | Err(_) => Err(AcceptStatus::ProcedureUnavailable.into()),
    }
}

/// Runs a COMPOUND.
async fn answer(request: &Request<'_>, mut arguments: Reader<'_>) -> Result<Buffer, CallError> {
    let bytes = arguments.rest();
    let wire::Args { tag, minor_version, mut operations } =
        wire::Args::decode(&mut arguments).map_err(|_| AcceptStatus::GarbageArgs)?;
    let mut reply = Reply::begin(request.call.xid, tag);
    // RFC 8881 16.2.3: "the server MUST return ... NFS4ERR_MINOR_VERS_MISMATCH and a zero length resultdata array".
    if minor_version > MINOR_VERSION_MAX {
        reply.status = Err(Status::MinorVersMismatch);
        return Ok(reply.finish());
    }
    if tag.as_str().is_err() {
        reply.status = Err(Status::Inval);
        return Ok(reply.finish());
    }
    request.connection.traffic.note_minor_version(minor_version);
    if minor_version == 0 {
        // Boxed: the calls of sessions would carry the room for it.
        return Ok(Box::pin(sessionless::run::answer(request, bytes, operations, reply)).await);
    }
    let only = operations.left() == 1;
    match operations.next() {
        None => {}
        Some(Err(bad)) => reply.refuse(bad),
        Some(Ok(ArgOp::Sequence(args))) => {
            return Ok(in_session(request, minor_version, args, operations, reply).await);
        }
        Some(Ok(operation)) => {
            Box::pin(operation::run::run_alone(request, minor_version, operation, only, &mut reply)).await
        }
    }
    Ok(reply.finish())
}

/// Runs a request that begins with SEQUENCE.
async fn in_session(
    request: &Request<'_>,
    minor_version: u32,
    args: Args,
    operations: wire::Operations<'_>,
    mut reply: Reply,
) -> Buffer {
    let mut now = Instant::now();
    let patient_until = now + REPEATED_WAITS;
    let (in_session, slots) = loop {
        let refused = match sequence::begin(request, args, &operations, &reply, now) {
            Ok(SequenceOutcome::Run(in_session, slots)) => break (in_session, slots),
            Ok(SequenceOutcome::Repeat(body)) => return Reply::repeat(request.call.xid, &body),
            Ok(SequenceOutcome::Uncached(session, slots)) => {
                return uncached(&session, args, slots, operations, reply);
            }
            Ok(SequenceOutcome::Running(ended)) if now < patient_until => {
                // Boxed: it is rare, and each request would carry the room for it.
                let _ = Box::pin(tokio::time::timeout_at(patient_until.into(), ended)).await;
                now = Instant::now();
                continue;
            }
            Ok(SequenceOutcome::Running(_)) => Status::Delay,
            Err(status) => status,
        };
        reply.fail(Number::Sequence, refused);
        return reply.finish();
    };
    reply.end(Number::Sequence, &Ok::<_, Status>(sequence::answer(in_session.session(), args, slots)));
    let admission = Admission::Session(in_session);
    let mut runner = Runner::new(Compound::begin(request, minor_version, admission, reply, now));
    runner.run(operations).await;
    let (mut reply, admission) = runner.compound.finish();
    if let Admission::Session(in_session) = admission {
        in_session.end(&mut reply);
    }
    reply.finish()
}

/// A request that has run, and whose reply was not kept: "the next operation in COMPOUND ... having the error
/// NFS4ERR_RETRY_UNCACHED_REP" (RFC 8881 2.10.6.1.3).
fn uncached(
    session: &Session,
    args: Args,
    slots: Highest,
    mut operations: wire::Operations<'_>,
    mut reply: Reply,
) -> Buffer {
    reply.end(Number::Sequence, &Ok::<_, Status>(sequence::answer(session, args, slots)));
    match operations.next() {
        None => {}
        Some(Ok(next)) => reply.fail(next.operation(), Status::RetryUncachedRep),
        Some(Err(bad)) => reply.refuse(bad),
    }
    reply.finish()
}

/// Runs the operations of a COMPOUND in its context.
pub(super) struct Runner<'a> {
    pub(super) compound: Compound<'a>,
}

impl<'a> Runner<'a> {
    pub(super) fn new(compound: Compound<'a>) -> Self {
        Self { compound }
    }

    /// Runs the operations after SEQUENCE.
    async fn run(&mut self, mut operations: wire::Operations<'a>) {
        loop {
            let last = operations.left() == 1;
            match operations.next() {
                None => break,
                Some(Err(bad)) => self.compound.refuse_unread(bad),
                Some(Ok(operation)) => self.step(operation, last).await,
            }
            if self.compound.outcome().is_err() {
                break;
            }
        }
    }

    /// Runs one operation, counts it for its share, and bounds its result.
    pub(super) async fn step(&mut self, args: ArgOp<'a>, last: bool) {
        let c = &mut self.compound;
        let operation = operation::row(args.operation());
        if let Err(status) = c.check_room(operation.result_bytes).and_then(|()| c.check_standing(operation)) {
            c.refuse_begun(&args, status);
            return self.tell_refused(operation);
        }
        if operation.is_counted {
            c.begin_call(operation);
            if let Some(object) = c.counted() {
                object.share.take_turn(&object.call).await;
            }
        }
        let (number, has_file_handle) = (args.operation(), c.place().is_ok());
        c.begin_operation(operation);
        operation::run::run(c, args, last).await;
        debug_assert!(
            has_file_handle || operation.needs != Needs::FileHandle || c.outcome().is_err(),
            "{number:?} needs a filehandle and has had none"
        );
        if operation.is_counted {
            self.count();
            self.note_traffic(&operation.on_share.api);
        }
        let c = &mut self.compound;
        if let Err(status) = c.check_room(0) {
            c.take_back(number, status);
        }
    }

    /// Counts an operation for the share of the current object, and tells the access log.
    fn count(&self) {
        let c = &self.compound;
        let Some(object) = c.counted() else { return };
        let connection = c.request.connection;
        object.share.count(&connection.accounts, &object.call, || Ending {
            at: turn_clock::read(),
            round_trip: connection.traffic.round_trip.time(),
            bytes: c.moved_bytes(),
            outcome: outcome(c),
        });
        object.share.log(&object.call, || Replied {
            from: connection.peer(),
            outcome: outcome(c),
            status: status::v4_name(c.outcome().err()),
        });
    }

    /// Tells the access log of an operation that was refused before it began.
    fn tell_refused(&mut self, operation: &'static Operation<Number>) {
        let c = &mut self.compound;
        if !operation.is_counted || operation.on_share.kind.is_none() {
            return;
        }
        c.begin_call(operation);
        let Some(object) = c.counted() else { return };
        object.call.needs_no_turn();
        object.share.log(&object.call, || Replied {
            from: c.request.connection.peer(),
            outcome: outcome(c),
            status: status::v4_name(c.outcome().err()),
        });
    }

    /// Counts for the connection the payload that an operation has moved.
    fn note_traffic(&self, api: &share::Api) {
        let (traffic, bytes) = (&self.compound.request.connection.traffic, self.compound.moved_bytes());
        if api.is_read() {
            traffic.reads.add(bytes);
        } else if api.is_write() {
            traffic.writes.add(bytes);
        }
    }
}

/// How the last operation has ended.
fn outcome(c: &Compound<'_>) -> Outcome {
    c.outcome().map_or_else(status::v4_outcome, |()| Outcome::Done)
}
