//! A COPY that continues after its reply, RFC 7862 15.2.3: piece by piece, until it ends and the client is told with
//! CB_OFFLOAD (16.1), or until it is stopped.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nfs_proto::v4::stateid::Other;
use nfs_wire::v3::types::FileHandle as SignedHandle;
use nfs_wire::v4::callback::{ArgOp, OffloadArgs, OffloadInfo, ReferringCalls};
use nfs_wire::v4::copy::WriteResponse;
use nfs_wire::v4::status::Status;
use nfs_wire::v4::types::{FileHandle, StableHow, Stateid, Verifier};
use share::{Call, Ending, Outcome, as_of_one_moment};
use storage::Moment;

use super::between::{Between, PIECE_BYTES, Part, copy_piece};
use crate::credentials::Claimant;
use crate::operation;
use crate::server::ServerState;
use crate::status;
use crate::v4::compound::Compound;
use crate::v4::filehandle;
use crate::v4::files::file_of;
use crate::v4::running::Running;
use crate::v4::state::Client;

/// How long to wait before a client that could not be told is told again.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
/// The most attempts to tell a client. After that the client can still ask (OFFLOAD_STATUS).
const CALLS_MAX: usize = 180;
/// The most attempts to tell a client that answers that it does not know the stateid. CB_OFFLOAD may have overtaken
/// COPY's reply.
const UNKNOWN_MAX: usize = 5;

/// The work after the reply. The bytes count as they are copied.
pub(crate) static OFFLOAD: share::Operation = operation::beside(1, "Offload");

/// The copy that continues.
struct Work {
    server: Arc<ServerState>,
    client: Arc<Client>,
    files: Between,
    /// The claimant for whom the share's rules are checked when they have changed.
    claimant: Claimant,
    part: Part,
    length: u64,
    target: SignedHandle,
    stateid: Stateid,
    /// The COPY whose reply CB_OFFLOAD must not overtake.
    asked_by: ReferringCalls,
    running: Arc<Running>,
}

/// Continues a copy after its reply, when `done` bytes are copied. Returns its stateid. None if the client has too many
/// copies under way or cannot be told of the end: then the client has to wait.
///
/// # Errors
/// Those of the store, if the target has no filehandle.
pub(super) fn begin(
    c: &Compound<'_>,
    files: &Between,
    part: Part,
    (done, length): (u64, u64),
) -> Result<Option<Stateid>, Status> {
    let client = c.client()?;
    if !client.can_be_called() {
        return Ok(None);
    }
    let target = filehandle::of_node(c.server(), &files.share, files.target.node())?;
    let running = Arc::new(Running::begin(done));
    let Some(stateid) = client.files.begin_offload(file_of(c.object()?), &running) else { return Ok(None) };
    let work = Work {
        server: Arc::clone(c.server()),
        client: Arc::clone(client),
        files: files.clone(),
        claimant: c.request.claimant(),
        part,
        length,
        target,
        stateid,
        asked_by: c.referring_call()?,
        running,
    };
    tokio::task::spawn_local(async move {
        let moment = Rc::default();
        as_of_one_moment(&moment, pin!(work.run(&moment))).await;
    });
    Ok(Some(stateid))
}

impl Work {
    async fn run(self, moment: &Rc<Moment>) {
        let call = Call::new(&OFFLOAD, self.files.caller.clone(), Instant::now()).within(moment);
        call.needs_no_turn();
        let from = self.running.copied();
        let outcome = self.copy(&call).await;
        let copied = self.running.copied();
        let share = &self.files.share;
        let counted = outcome.map_or_else(status::v4_outcome, |()| Outcome::Done);
        let ending = Ending { at: Instant::now(), round_trip: None, bytes: copied - from, outcome: counted };
        share.accounting().open(self.files.caller.machine).end(&call.cost(), &ending);
        let Stateid { other, .. } = self.stateid;
        let is_known = self.client.files.offload_ended(other, copied, outcome);
        self.running.end();
        // A client is not told of the end of a copy that it has cancelled, but is told of a copy in a share that was
        // withdrawn.
        if is_known || share.is_withdrawn() {
            self.tell(other, copied, outcome).await;
        }
    }

    /// Copies the rest. A failure ends the copy, and so do new rules of the share under which no user of the client may
    /// write. A client that gets fewer bytes asks again for the others, and learns the reason. That the share is gone
    /// is reported here.
    async fn copy(&self, call: &Call) -> Result<(), Status> {
        let share = &self.files.share;
        let mut generation = None;
        loop {
            let done = self.running.copied();
            if share.is_withdrawn() {
                return Err(Status::Stale);
            }
            let present = Some(share.rules_generation());
            if present != generation && !self.server.may_write(&self.client, &self.claimant, share) {
                return Ok(());
            }
            generation = present;
            if done >= self.length || self.running.is_stopped() {
                return Ok(());
            }
            let piece = PIECE_BYTES.min(self.length - done);
            if let Err(status) = copy_piece(call, &self.files, self.part, done, piece).await {
                tracing::debug!(copied = done, "a copy ends early: {status:?}");
                return if share.is_withdrawn() { Err(Status::Stale) } else { Ok(()) };
            }
            self.running.advance(done + piece);
        }
    }

    /// Tells the client, and repeats that as long as the client cannot be told.
    async fn tell(&self, other: Other, copied: u64, outcome: Result<(), Status>) {
        let info = match outcome {
            Ok(()) => OffloadInfo::Done(written(&self.server, None, copied)),
            Err(status) => OffloadInfo::Failed { status, copied_bytes: copied },
        };
        let args = OffloadArgs { file: FileHandle(self.target.as_bytes()), stateid: self.stateid, info };
        let mut unknown = 0;
        for _ in 0..CALLS_MAX {
            let call = ArgOp::Offload(args);
            let requests = std::slice::from_ref(&self.asked_by);
            let answer = self.server.v4.callbacks.call_about(&self.client, &call, requests).await;
            match answer.and_then(|answered| Ok(answered.result()?.status())) {
                Ok(Err(Status::Delay)) => {}
                Ok(Err(Status::BadStateId)) if unknown < UNKNOWN_MAX => unknown += 1,
                Ok(_) => return self.client.files.offload_acknowledged(other),
                Err(error) => tracing::debug!("a client was not told that a copy has ended: {error}"),
            }
            if self.client.files.is_over() {
                return;
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
    }
}

/// What COPY and CB_OFFLOAD report about bytes that were copied.
pub(super) fn written(server: &ServerState, callback_id: Option<Stateid>, count: u64) -> WriteResponse {
    let verifier = Verifier(server.write_verifier);
    WriteResponse { callback_id, count, committed: StableHow::Unstable, verifier }
}
