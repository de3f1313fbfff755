//! Slots that clients must give back when there are many sessions: each reply to SEQUENCE announces it
//! (`sr_target_highest_slotid`), and CB_RECALL_SLOT (RFC 8881 20.8) tells clients that send no requests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use nfs_wire::v4::callback::{ArgOp, RecallSlotArgs};
use tokio::task::JoinSet;

use super::state::Session;
use crate::server::ServerState;

/// How many clients are called at a time.
const CALLS_MAX: usize = 32;
/// The part of the lease time after which a client that has sent nothing is called: 10 seconds of 90.
const QUIET_PART: u32 = 9;
/// How long slots stay distributed as they are, even if new sessions come.
const PAUSE: Duration = Duration::from_secs(1);

/// Distributes slots from time to time, and when new sessions leave few.
pub(crate) async fn look_after_slots(server: &Arc<ServerState>) {
    let quiet = server.v4.times.lease / QUIET_PART;
    loop {
        let _ = tokio::time::timeout(quiet, server.v4.slots_are_short.notified()).await;
        let mut calls = JoinSet::new();
        for session in server.v4.share_out_slots(Instant::now(), quiet) {
            while calls.len() >= CALLS_MAX {
                calls.join_next().await;
            }
            calls.spawn(recall(Arc::clone(server), session));
        }
        while calls.join_next().await.is_some() {}
        tokio::time::sleep(PAUSE).await;
    }
}

/// Asks a client to send a request that shows that it uses no slot above the target.
async fn recall(server: Arc<ServerState>, session: Arc<Session>) {
    if !session.back.is_open() {
        return; // the client learns of it when it comes back
    }
    let target_highest_slot_id = session.state.lock().slots.target_highest_slot();
    let call = ArgOp::RecallSlot(RecallSlotArgs { target_highest_slot_id });
    let answer = server.v4.callbacks.call_over(&session, &call, &[]).await;
    if let Err(error) = answer.and_then(|answered| answered.ok()) {
        tracing::debug!(client = session.client.shown(), "slots were not recalled: {error}");
    }
}
