//! A call that is counted for a share when it ends.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Instant;

use net::turn_clock;
use share::{Call, Caller, Ending, Outcome, Replied, Share};

use crate::connection::Connection;
use crate::operation::Operation;

/// A call of NFSv3 or MOUNT under way.
pub(crate) struct Counted<'r> {
    connection: &'r Connection,
    operation: &'static share::Operation,
    begun: Instant,
    /// The share that the call concerns, once it is known.
    on_share: OnceCell<(Arc<Share>, Call)>,
}

impl<'r> Counted<'r> {
    /// Starts the clock of the call.
    pub(crate) fn begin<N>(connection: &'r Connection, operation: &'static Operation<N>) -> Self {
        let (operation, begun) = (&operation.on_share, turn_clock::now());
        Self { connection, operation, begun, on_share: OnceCell::new() }
    }

    /// Notes the share that the call concerns, and its caller there, unless a share is already noted.
    pub(crate) fn on(&self, share: &Arc<Share>, caller: Caller) -> &Call {
        let new = || {
            (Arc::clone(share), Call::new(self.operation, caller, self.begun).within(&self.connection.moment))
        };
        &self.on_share.get_or_init(new).1
    }

    /// Counts the call, with this many bytes of payload, and tells the access log, for which `status` names the status.
    pub(crate) fn end(&self, bytes: u64, outcome: Outcome, status: impl FnOnce() -> Cow<'static, str>) {
        if let Some((share, call)) = self.on_share.get() {
            share.count(&self.connection.accounts, call, || Ending {
                at: turn_clock::read(),
                round_trip: self.connection.traffic.round_trip.time(),
                bytes,
                outcome,
            });
            share.log(call, || Replied { from: self.connection.peer(), outcome, status: status() });
        }
    }
}
