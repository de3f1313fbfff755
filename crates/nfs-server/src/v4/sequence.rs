//! SEQUENCE, RFC 8881 18.46: the slot that a request uses, and the way into its session.

use std::sync::Arc;
use std::time::Instant;

use net::Buffer;
use nfs_proto::v4::client::Principal;
use nfs_proto::v4::slot::{self, Begun, Fingerprint, Kept};
use nfs_wire::v4::Operation;
use nfs_wire::v4::callback::{ReferringCall, ReferringCalls};
use nfs_wire::v4::compound::Operations;
use nfs_wire::v4::sequence::{Args, ResOk};
use nfs_wire::v4::status::Status;

use super::compound::{Compound, Reply};
use super::principal;
use super::state::Session;
use crate::rpc_dispatch::Request;

/// Bytes of SEQUENCE's result, operation and status included.
const RESULT_BYTES: usize = 4 + 4 + 16 + 5 * 4;

/// A request that has a slot. When it is dropped the slot is free again, whatever became of the request.
pub(super) struct InSession {
    session: Arc<Session>,
    slot: u32,
    sequence: u32,
    /// As they were when it began.
    slots: Highest,
    /// The request, if its reply is to be kept.
    keep: Option<Fingerprint>,
    /// The reply has been kept or need not be.
    ended: bool,
}

/// Runs a request that begins with SEQUENCE.
pub(super) async fn run(
    request: &Request<'_>,
    minor_version: u32,
    args: Args,
    operations: Operations<'_>,
    mut reply: Reply,
) -> Buffer {
    let now = Instant::now();
    let in_session = match begin(request, args, &operations, &reply, now) {
        Ok(Entry::Run(in_session)) => in_session,
        Ok(Entry::Repeat(body)) => return Reply::repeat(request.call.xid, &body),
        Ok(Entry::Uncached(session, slots)) => return uncached(&session, args, slots, operations, reply),
        Err(status) => {
            reply.fail(Operation::Sequence, status);
            return reply.finish();
        }
    };
    reply.end(Operation::Sequence, &Ok::<_, Status>(answer(&in_session.session, args, in_session.slots)));
    let compound = Compound::begin(request, minor_version, in_session, reply, now);
    let (mut reply, in_session) = compound.run(operations).await;
    in_session.end(&mut reply);
    reply.finish()
}

/// What SEQUENCE finds.
enum Entry {
    Run(InSession),
    /// The body of the reply to the first run.
    Repeat(Arc<[u8]>),
    Uncached(Arc<Session>, Highest),
}

/// The highest slots that the client may use, and that it is to use.
#[derive(Debug, Clone, Copy)]
struct Highest {
    granted: u32,
    target: u32,
}

/// The checks in front of the slot leave it as it is (RFC 8881 2.10.6.1.2).
fn begin(
    request: &Request<'_>,
    args: Args,
    operations: &Operations<'_>,
    reply: &Reply,
    now: Instant,
) -> Result<Entry, Status> {
    let connection = &request.connection;
    let session = connection.v4.session(&connection.server.v4, args.session_id).ok_or(Status::BadSession)?;
    if operations.left() >= session.fore.operations_max {
        return Err(Status::TooManyOps);
    }
    if request.record.len() > bytes(session.fore.request_bytes_max) {
        return Err(Status::ReqTooBig);
    }
    let with_result = reply.len() + RESULT_BYTES;
    if args.cache_this && with_result > bytes(session.fore.response_cached_bytes_max) {
        return Err(Status::RepTooBigToCache);
    }
    let fingerprint = || fingerprint(request, operations);
    let asked =
        slot::Request { slot: args.slot_id, sequence: args.sequence_id, highest_slot: args.highest_slot_id };
    let mut state = session.state.lock();
    if session.is_gone() {
        return Err(Status::BadSession); // meanwhile
    }
    let begun = state.slots.begin(asked, fingerprint)?;
    let slots = Highest { granted: state.slots.highest_slot(), target: state.slots.target_highest_slot() };
    state.renewed = now;
    drop(state);
    Ok(match begun {
        Begun::New => Entry::Run(InSession {
            session,
            slot: args.slot_id,
            sequence: args.sequence_id,
            slots,
            keep: args.cache_this.then(fingerprint),
            ended: false,
        }),
        Begun::Replay(body) => Entry::Repeat(body),
        Begun::Uncached => Entry::Uncached(session, slots),
    })
}

/// What tells a request from another one in the same place: its user and its operations. The tag is of no consequence.
fn fingerprint(request: &Request<'_>, operations: &Operations<'_>) -> Fingerprint {
    let mut user = [0; 12];
    if let Principal::User { uid, gid } = principal(request) {
        user[..4].copy_from_slice(&1_u32.to_be_bytes());
        user[4..8].copy_from_slice(&uid.to_be_bytes());
        user[8..].copy_from_slice(&gid.to_be_bytes());
    }
    Fingerprint::new(&user, operations.rest())
}

fn answer(session: &Session, args: Args, slots: Highest) -> ResOk {
    ResOk {
        session_id: args.session_id,
        sequence_id: args.sequence_id,
        slot_id: args.slot_id,
        highest_slot_id: slots.granted,
        target_highest_slot_id: slots.target,
        status_flags: session.status_flags(),
    }
}

/// A request that has run, and whose reply was not kept: "the next operation in COMPOUND ... having the error
/// NFS4ERR_RETRY_UNCACHED_REP" (RFC 8881 2.10.6.1.3).
fn uncached(
    session: &Session,
    args: Args,
    slots: Highest,
    mut operations: Operations<'_>,
    mut reply: Reply,
) -> Buffer {
    reply.end(Operation::Sequence, &Ok::<_, Status>(answer(session, args, slots)));
    match operations.next() {
        None => {}
        Some(Ok(next)) => reply.fail(next.operation(), Status::RetryUncachedRep),
        Some(Err(bad)) => reply.refuse(bad),
    }
    reply.finish()
}

fn bytes(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

impl InSession {
    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The request, for a callback that its answer must reach before (RFC 8881 2.10.6.3).
    pub(super) fn referring_call(&self) -> ReferringCalls {
        let call = ReferringCall { sequence_id: self.sequence, slot_id: self.slot };
        ReferringCalls { session_id: self.session.id, calls: vec![call] }
    }

    /// Whether a reply may become so long (RFC 8881 2.10.6.4).
    ///
    /// # Errors
    /// [`Status::RepTooBig`], [`Status::RepTooBigToCache`].
    pub(super) fn check_reply(&self, length: usize) -> Result<(), Status> {
        if length > bytes(self.session.fore.response_bytes_max) {
            return Err(Status::RepTooBig);
        }
        if self.keep.is_some() && length > bytes(self.session.fore.response_cached_bytes_max) {
            return Err(Status::RepTooBigToCache);
        }
        Ok(())
    }

    /// The request has run.
    fn end(mut self, reply: &mut Reply) {
        let kept = match self.keep {
            Some(fingerprint) => Kept::Reply(reply.body().into(), fingerprint),
            None => Kept::No,
        };
        self.release(kept);
    }

    fn release(&mut self, kept: Kept) {
        self.ended = true;
        self.session.state.lock().slots.end(self.slot, kept);
    }
}

impl Drop for InSession {
    fn drop(&mut self) {
        if !self.ended {
            self.release(Kept::No); // a fault of the program, or its end
        }
    }
}
