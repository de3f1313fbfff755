//! What one call has cost.

use std::time::{Duration, Instant};

use limits::Limit;

use crate::{Api, Client, Used};

/// A call, and what it has waited for.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// The operation.
    pub api: &'static Api,
    /// The client.
    pub client: Client,
    /// When it began.
    pub begun: Instant,
    /// What it has waited for.
    pub waits: Waits,
    /// The file and open that it worked on.
    pub used: Option<Used>,
}

/// How long a call has waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// Time waited for a thread of the pool for blocking work.
    pub queue: Duration,
    /// Time waited for the budget of the share, or because the client is slowed.
    pub limit: Duration,
    /// The limit that it waited for last.
    pub throttled: Option<Limit>,
}

impl Waits {
    /// Whether the call has waited at all.
    pub(crate) fn is_any(&self) -> bool {
        !self.queue.is_zero() || !self.limit.is_zero()
    }
}

/// How a call has ended.
#[derive(Debug, Clone, Copy)]
pub struct Ending {
    /// When.
    pub at: Instant,
    /// The round-trip time of the call's connection, where known.
    pub round_trip: Option<Duration>,
    /// The bytes of payload that it has moved.
    pub bytes: u64,
    /// With what outcome.
    pub outcome: Outcome,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Success.
    Done,
    /// An error that concerns the client: a missing name, a permission, a lock.
    Refused,
    /// An error of the server or of its storage (Azure Monitor: it counts against Availability).
    Failed,
}
