//! How long a client keeps its state without renewing its lease (RFC 8881 8.3, 8.4.3).
//!
//! Every SEQUENCE renews the lease of its client. A client that is late keeps its state as a courtesy, as long as
//! nobody else needs it. So a client that was disconnected for a while, or suspended, continues as if nothing had
//! happened.

use std::time::{Duration, Instant};

/// The times of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTimes {
    /// The lease period announced to clients (`lease_time`): their state is safe for this long.
    pub lease: Duration,
    /// How long a late client keeps its state if nobody needs it.
    pub courtesy: Duration,
}

impl Default for LeaseTimes {
    /// 90 seconds, like most servers, and one day.
    fn default() -> Self {
        Self { lease: Duration::from_secs(90), courtesy: Duration::from_secs(24 * 60 * 60) }
    }
}

/// The standing of a client with regard to its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The lease is valid.
    Current,
    /// The client is late. Its state stays, but a conflicting request revokes it (RFC 8881 8.4.3: "locks associated
    /// with an expired lease do not prevent such a conflicting lock from being granted").
    Courtesy,
    /// The client has been away for so long that it is forgotten.
    Expired,
}

impl LeaseTimes {
    /// The standing of a client that renewed its lease at `renewed`.
    #[must_use]
    pub fn standing(&self, renewed: Instant, now: Instant) -> Standing {
        let silent = now.saturating_duration_since(renewed);
        if silent <= self.lease {
            Standing::Current
        } else if silent <= self.lease.saturating_add(self.courtesy) {
            Standing::Courtesy
        } else {
            Standing::Expired
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test needs some moment to count from")]
    fn a_client_that_is_late_is_tolerated_for_a_while() {
        let times = LeaseTimes { lease: Duration::from_secs(10), courtesy: Duration::from_secs(100) };
        let renewed = Instant::now();
        let after = |seconds| times.standing(renewed, renewed + Duration::from_secs(seconds));
        assert_eq!(after(0), Standing::Current);
        assert_eq!(after(10), Standing::Current);
        assert_eq!(after(11), Standing::Courtesy);
        assert_eq!(after(110), Standing::Courtesy);
        assert_eq!(after(111), Standing::Expired);
        let earlier = renewed.checked_sub(Duration::from_secs(1)).unwrap();
        assert_eq!(times.standing(renewed, earlier), Standing::Current, "clocks of two shards");
    }
}
