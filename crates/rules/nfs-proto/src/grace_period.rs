//! The time after a restart in which clients reclaim what they held: when it ends.

use std::time::{Duration, Instant};

/// A grace period.
#[derive(Debug)]
pub(crate) struct GracePeriod {
    ends: Instant,
    is_over: bool,
}

impl GracePeriod {
    /// A grace period that begins now.
    pub(crate) fn begin(now: Instant, length: Duration) -> Self {
        Self { ends: now.checked_add(length).unwrap_or(now), is_over: false }
    }

    /// Whether it is still going on.
    pub(crate) fn is_on(&self, now: Instant) -> bool {
        !self.is_over && now < self.ends
    }

    /// Whether it has been ended.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// When it ends, unless it is extended or ended before.
    pub(crate) fn ends(&self) -> Instant {
        self.ends
    }

    /// It lasts until then, if it would end before.
    pub(crate) fn extend(&mut self, until: Instant) {
        self.ends = self.ends.max(until);
    }

    /// Ends it.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }
}
