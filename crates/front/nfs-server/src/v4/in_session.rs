//! The slot of a session that a request uses (RFC 8881 2.10.6.1).

use std::sync::Arc;

use nfs_proto::v4::slot::{Fingerprint, KeptReply};
use nfs_wire::v4::callback::{ReferringCall, ReferringCalls};
use nfs_wire::v4::status::Status;

use super::reply::Reply;
use super::state::Session;

/// A request that uses a slot. When this is dropped, the slot is free again, whatever happened to the request.
pub(super) struct InSession {
    session: Arc<Session>,
    slot: u32,
    sequence: u32,
    /// Set if the request's reply is to be kept.
    keep: Option<Fingerprint>,
    /// Whether the reply has been kept or need not be.
    ended: bool,
}

impl InSession {
    /// A request that has begun in this slot.
    pub(super) fn begin(session: Arc<Session>, slot: u32, sequence: u32, keep: Option<Fingerprint>) -> Self {
        Self { session, slot, sequence, keep, ended: false }
    }

    pub(super) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    /// The request, for a callback that the client must not process before the reply (RFC 8881 2.10.6.3).
    pub(super) fn referring_call(&self) -> ReferringCalls {
        let call = ReferringCall { sequence_id: self.sequence, slot_id: self.slot };
        ReferringCalls { session_id: self.session.id, calls: vec![call] }
    }

    /// Checks whether a reply may have this length (RFC 8881 2.10.6.4).
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

    /// Ends the request, which has run.
    pub(super) fn end(mut self, reply: &mut Reply) {
        let kept = match self.keep {
            Some(fingerprint) => KeptReply::Reply(reply.body().into(), fingerprint),
            None => KeptReply::No,
        };
        self.release(kept);
    }

    fn release(&mut self, kept: KeptReply) {
        self.ended = true;
        let is_awaited = self.session.state.lock().slots.end(self.slot, kept);
        if is_awaited {
            self.session.ended.notify_waiters();
        }
    }
}

impl Drop for InSession {
    fn drop(&mut self) {
        if !self.ended {
            self.release(KeptReply::No); // the program has failed, or is ending
        }
    }
}

/// A limit of a session, in bytes.
pub(super) fn bytes(count: u32) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
