//! A call that is counted for a share when it ends.

use std::cell::OnceCell;
use std::sync::Arc;

use net::turn_clock;
use share::{Api, Client, Measure, Outcome, Protocol, Share};

use crate::connection::Connection;

/// A call of NFSv3 or MOUNT under way.
pub(crate) struct Counted<'r> {
    connection: &'r Connection,
    /// `None` if the call concerns no share.
    measure: Option<Measure>,
    /// The share that the call concerns, once it is known.
    share: OnceCell<Arc<Share>>,
}

impl<'r> Counted<'r> {
    /// Starts the clock of the call.
    pub(crate) fn begin(connection: &'r Connection, api: Option<Api>) -> Self {
        let measure = api.map(|api| Measure::begin(api, Protocol::Nfs3, turn_clock::now()));
        Self { connection, measure, share: OnceCell::new() }
    }

    /// Notes that the call concerns this share.
    pub(crate) fn is_for(&self, share: &Arc<Share>) {
        self.share.get_or_init(|| Arc::clone(share));
    }

    /// Counts the call, with this many bytes of payload.
    pub(crate) fn end(&self, bytes: u64, outcome: Outcome) {
        if let (Some(measure), Some(share)) = (&self.measure, self.share.get()) {
            let (client, accounts) = (Client::Address(self.connection.client), &self.connection.accounts);
            let measure = measure.over(self.connection.traffic.round_trip.time());
            accounts.end(share, client, &measure, turn_clock::read, bytes, outcome);
        }
    }
}
