//! SEQUENCE, RFC 8881 18.46: finds the slot that a request uses, and so its session.

use std::sync::Arc;
use std::time::Instant;

use nfs_proto::v4::client::Principal;
use nfs_proto::v4::slot::{self, Begun, Fingerprint};
use nfs_wire::v4::Operation as Number;
use nfs_wire::v4::compound::Operations;
use nfs_wire::v4::sequence::{Args, ResOk};
use nfs_wire::v4::status::Status;
use tokio::sync::futures::OwnedNotified;

use super::in_session::{InSession, bytes};
use super::reply::Reply;
use super::state::Session;
use crate::call::Request;
use crate::operation::{Needs, Operation};

/// SEQUENCE runs before there is a context for operations, and nowhere else.
pub(super) const OPERATION: Operation<Number> =
    Operation { needs: Needs::Nothing, ..Operation::v4_of_no_share(Number::Sequence) };

/// Bytes of SEQUENCE's result, operation and status included.
const RESULT_BYTES: usize = 4 + 4 + 16 + 5 * 4;

/// The result of SEQUENCE.
pub(super) enum SequenceOutcome {
    Run(InSession, Highest),
    /// The body of the reply to the first run.
    Repeat(Arc<[u8]>),
    Uncached(Arc<Session>, Highest),
    /// The first run is still under way. Resolves when a request of the session has ended.
    Running(OwnedNotified),
}

/// The highest slot that the client may use, and the highest that it should use.
#[derive(Debug, Clone, Copy)]
pub(super) struct Highest {
    granted: u32,
    target: u32,
}

/// Begins a request. The checks that precede the slot leave it unchanged (RFC 8881 2.10.6.1.2).
pub(super) fn begin(
    request: &Request<'_>,
    args: Args,
    operations: &Operations<'_>,
    reply: &Reply,
    now: Instant,
) -> Result<SequenceOutcome, Status> {
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
        return Err(Status::BadSession); // the session ended meanwhile
    }
    let begun = match state.slots.begin(asked, fingerprint) {
        // Registered under the lock, so that an end right afterwards is not missed.
        Err(Status::Delay) => {
            return Ok(SequenceOutcome::Running(Arc::clone(&session.ended).notified_owned()));
        }
        begun => begun?,
    };
    let slots = Highest { granted: state.slots.highest_slot(), target: state.slots.target_highest_slot() };
    state.renewed = now;
    drop(state);
    Ok(match begun {
        Begun::New => {
            let keep = args.cache_this.then(fingerprint);
            SequenceOutcome::Run(InSession::begin(session, args.slot_id, args.sequence_id, keep), slots)
        }
        Begun::Replay(body) => SequenceOutcome::Repeat(body),
        Begun::Uncached => SequenceOutcome::Uncached(session, slots),
    })
}

/// Distinguishes a request from another one in the same place by its user and its operations. The tag does not matter.
fn fingerprint(request: &Request<'_>, operations: &Operations<'_>) -> Fingerprint {
    let mut user = [0; 12];
    match request.principal() {
        Principal::Nobody => {}
        Principal::User { uid, gid } => {
            user[..4].copy_from_slice(&1_u32.to_be_bytes());
            user[4..8].copy_from_slice(&uid.to_be_bytes());
            user[8..].copy_from_slice(&gid.to_be_bytes());
        }
        // A name has no NUL, so it is none of the others.
        Principal::Ticket(name) => return Fingerprint::new(name.as_bytes(), operations.rest()),
    }
    Fingerprint::new(&user, operations.rest())
}

/// The reply of SEQUENCE.
pub(super) fn answer(session: &Session, args: Args, slots: Highest) -> ResOk {
    ResOk {
        session_id: args.session_id,
        sequence_id: args.sequence_id,
        slot_id: args.slot_id,
        highest_slot_id: slots.granted,
        target_highest_slot_id: slots.target,
        status_flags: session.status_flags(),
    }
}
