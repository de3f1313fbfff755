//! The grace period after a restart: who may reclaim what it held before, and who has to wait (RFC 8881 8.4.2.1, 18.51).

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::recovery::ClientRecord;
use crate::grace_period::GracePeriod;

/// A reclaim near the end of the grace period extends it by the period divided by this.
const EXTENSION_PART: u32 = 8;

/// The grace period of one run of the server.
#[derive(Debug)]
pub struct Grace {
    period: GracePeriod,
    /// The grace period is not extended beyond this.
    ends_at_last: Instant,
    /// The grace period lasts at least this long after the last reclaim.
    extension: Duration,
    /// Recorded clients that have not completed their reclaims.
    awaited: HashSet<Vec<u8>>,
}

/// Why an operation that takes a lock is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GraceError {
    /// Clients may still reclaim locks that conflict (NFS4ERR_GRACE).
    #[error("clients are reclaiming")]
    Grace,
    /// It is too late to reclaim (NFS4ERR_NO_GRACE).
    #[error("too late to reclaim")]
    NoGrace,
    /// The client held nothing when the server ended (NFS4ERR_RECLAIM_BAD).
    #[error("nothing to reclaim")]
    ReclaimBad,
}

/// What a client has reported about its reclaims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reclaims {
    /// The client has not done a RECLAIM_COMPLETE for all file systems yet.
    Incomplete,
    /// The client has done one.
    Complete,
    /// The client does not report that it is done: NFSv4.0 has no RECLAIM_COMPLETE. It may reclaim until the grace period
    /// is over, and do everything else afterwards (RFC 7530 9.6.2).
    Unreported,
}

impl Grace {
    /// The grace period of a server that starts now, with these clients in its records. If there are none, there
    /// is no grace period: nobody has anything to reclaim.
    #[must_use]
    pub fn begin(now: Instant, length: Duration, recorded: impl IntoIterator<Item = ClientRecord>) -> Self {
        let awaited: HashSet<_> = recorded.into_iter().map(|record| record.owner).collect();
        let mut period = GracePeriod::begin(now, length);
        if awaited.is_empty() {
            period.end();
        }
        let ends = period.ends();
        let ends_at_last = ends.checked_add(length).unwrap_or(ends);
        let extension = length.checked_div(EXTENSION_PART).unwrap_or(length);
        Self { period, ends_at_last, extension, awaited }
    }

    /// Whether the grace period is still going on.
    #[must_use]
    pub fn is_on(&self, now: Instant) -> bool {
        self.period.is_on(now)
    }

    /// When the grace period ends, unless a client continues to reclaim.
    #[must_use]
    pub fn ends(&self) -> Instant {
        self.period.ends()
    }

    /// Checks whether this client may reclaim what it held. While clients reclaim, the period is extended, up to twice
    /// its length, so that a client that came late, or holds much, loses nothing that it was about to reclaim (RFC 8881
    /// 8.4.2.1: "Some additional time in order [...] to effect lock reclaims may be added to the lease time").
    ///
    /// # Errors
    /// [`GraceError::NoGrace`], [`GraceError::ReclaimBad`].
    pub fn check_reclaim(
        &mut self,
        owner: &[u8],
        reclaims: Reclaims,
        now: Instant,
    ) -> Result<(), GraceError> {
        // RFC 8881 18.51.3: "Once a RECLAIM_COMPLETE is done, there can be no further reclaim operations".
        if reclaims == Reclaims::Complete || !self.is_on(now) {
            return Err(GraceError::NoGrace);
        }
        if !self.awaited.contains(owner) {
            return Err(GraceError::ReclaimBad);
        }
        let longer = now.checked_add(self.extension).unwrap_or(now);
        self.period.extend(longer.min(self.ends_at_last));
        Ok(())
    }

    /// Checks whether a client may take locks that it did not hold before.
    ///
    /// # Errors
    /// [`GraceError::Grace`].
    pub fn check_new(&self, reclaims: Reclaims, now: Instant) -> Result<(), GraceError> {
        // RFC 8881 18.51.3: "If non-reclaim locking operations are done before the RECLAIM_COMPLETE, an NFS4ERR_GRACE
        // error will be returned."
        let may_reclaim = self.is_on(now) || reclaims == Reclaims::Incomplete;
        if may_reclaim { Err(GraceError::Grace) } else { Ok(()) }
    }

    /// A client has completed its reclaims with RECLAIM_COMPLETE. Returns whether that ends the grace period: "the
    /// server [...] is in a position to use the fact that all such clients have done a RECLAIM_COMPLETE to terminate
    /// the grace period".
    pub fn complete(&mut self, owner: &[u8]) -> bool {
        if self.awaited.remove(owner) && self.awaited.is_empty() && !self.period.is_over() {
            self.period.end();
            return true;
        }
        false
    }

    /// Ends the grace period when its time has come. Returns the records of clients that have not returned. These
    /// records are void, so that after another restart the clients cannot reclaim what others may have locked meanwhile
    /// (RFC 8881 8.4.3).
    pub fn end(&mut self, now: Instant) -> Vec<ClientRecord> {
        if self.is_on(now) {
            return Vec::new();
        }
        self.period.end();
        self.awaited.drain().map(|owner| ClientRecord { owner }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(90);
    const DONE: Reclaims = Reclaims::Complete;
    const NOT_DONE: Reclaims = Reclaims::Incomplete;

    fn record(owner: &[u8]) -> ClientRecord {
        ClientRecord { owner: owner.to_vec() }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test needs some moment to count from")]
    fn without_records_there_is_no_grace() {
        let now = Instant::now();
        let mut grace = Grace::begin(now, LENGTH, []);
        assert!(!grace.is_on(now));
        assert_eq!(grace.check_new(DONE, now), Ok(()));
        assert_eq!(grace.check_new(NOT_DONE, now), Err(GraceError::Grace));
        assert_eq!(grace.check_reclaim(b"a", NOT_DONE, now), Err(GraceError::NoGrace));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test needs some moment to count from")]
    fn the_recorded_reclaim_and_the_others_wait() {
        let now = Instant::now();
        let mut grace = Grace::begin(now, LENGTH, [record(b"a"), record(b"b")]);
        assert_eq!(grace.check_reclaim(b"a", NOT_DONE, now), Ok(()));
        assert_eq!(grace.check_reclaim(b"c", NOT_DONE, now), Err(GraceError::ReclaimBad));
        assert_eq!(grace.check_new(DONE, now), Err(GraceError::Grace));
        assert!(!grace.complete(b"a") && !grace.complete(b"c"));
        assert_eq!(grace.check_reclaim(b"a", DONE, now), Err(GraceError::NoGrace));
        assert!(grace.complete(b"b"), "the last one ends it");
        assert!(!grace.complete(b"b"), "once");
        assert!(!grace.is_on(now) && grace.end(now).is_empty());
        assert_eq!(grace.check_new(DONE, now), Ok(()));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test needs some moment to count from")]
    fn who_does_not_report_the_end_reclaims_first_and_works_afterwards() {
        let now = Instant::now();
        let mut grace = Grace::begin(now, LENGTH, [record(b"a")]);
        assert_eq!(grace.check_reclaim(b"a", Reclaims::Unreported, now), Ok(()));
        assert_eq!(grace.check_reclaim(b"b", Reclaims::Unreported, now), Err(GraceError::ReclaimBad));
        assert_eq!(grace.check_new(Reclaims::Unreported, now), Err(GraceError::Grace));
        let later = now + LENGTH;
        assert_eq!(grace.check_reclaim(b"a", Reclaims::Unreported, later), Err(GraceError::NoGrace));
        assert_eq!(grace.check_new(Reclaims::Unreported, later), Ok(()));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test needs some moment to count from")]
    fn it_ends_in_time_and_those_who_did_not_come_are_forgotten() {
        let now = Instant::now();
        let mut grace = Grace::begin(now, LENGTH, [record(b"a"), record(b"b")]);
        grace.complete(b"a");
        let last = now + LENGTH - Duration::from_nanos(1);
        assert!(grace.is_on(last) && grace.end(last).is_empty());
        assert!(!grace.is_on(now + LENGTH));
        assert_eq!(grace.end(now + LENGTH), [record(b"b")]);
        assert_eq!(grace.check_reclaim(b"b", NOT_DONE, now), Err(GraceError::NoGrace));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test needs some moment to count from")]
    fn it_lasts_while_clients_reclaim_but_not_for_ever() {
        let now = Instant::now();
        let mut grace = Grace::begin(now, LENGTH, [record(b"a"), record(b"b")]);
        grace.check_reclaim(b"a", NOT_DONE, now).unwrap();
        assert_eq!(grace.ends(), now + LENGTH, "an early one adds nothing");
        let step = LENGTH / (EXTENSION_PART + 1);
        let mut at = now + LENGTH - step;
        assert_eq!(grace.check_reclaim(b"c", NOT_DONE, at), Err(GraceError::ReclaimBad));
        assert_eq!(grace.check_reclaim(b"a", DONE, at), Err(GraceError::NoGrace));
        assert_eq!(
            grace.ends(),
            now + LENGTH,
            "nobody is kept waiting for a client that may reclaim nothing"
        );
        while grace.is_on(at) {
            grace.check_reclaim(b"a", NOT_DONE, at).unwrap();
            assert!(grace.ends() > at);
            at += step;
        }
        assert_eq!(grace.ends(), now + LENGTH * 2);
        assert_eq!(grace.check_reclaim(b"a", NOT_DONE, at), Err(GraceError::NoGrace));
        assert_eq!(grace.end(at).len(), 2);
    }
}
