//! The grace period of the lock manager after a restart: hosts that held locks take them again before others may take any
//! (Open Group C702, NLM_LOCK: "During the grace period the server will only accept locks with "reclaim" set to true").
//!
//! A host never says that it has reclaimed everything, so the period always lasts its whole length. Only locks are held
//! back for so long, not what clients do without them.

use std::collections::HashSet;
use std::hash::Hash;
use std::time::{Duration, Instant};

use crate::grace_period::GracePeriod;

/// The grace period of one run of the server. `R` is the record of a host.
#[derive(Debug)]
pub struct Grace<R> {
    period: GracePeriod,
    /// The recorded hosts that have not reclaimed anything.
    absent: HashSet<R>,
    /// The recorded hosts that have.
    present: HashSet<R>,
}

/// Why a lock is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GraceError {
    /// Hosts may still reclaim locks that conflict (NLM4_DENIED_GRACE_PERIOD).
    #[error("hosts are reclaiming")]
    Grace,
    /// It is too late to reclaim, or the host held nothing (NLM4_DENIED).
    #[error("nothing to reclaim")]
    NothingToReclaim,
}

impl<R: Hash + Eq> Grace<R> {
    /// The grace period of a server that starts now, with these hosts in its records. Without any there is none.
    #[must_use]
    pub fn begin(now: Instant, length: Duration, recorded: impl IntoIterator<Item = R>) -> Self {
        let absent: HashSet<_> = recorded.into_iter().collect();
        let mut period = GracePeriod::begin(now, length);
        if absent.is_empty() {
            period.end();
        }
        Self { period, absent, present: HashSet::new() }
    }

    /// Whether the grace period is still going on.
    #[must_use]
    pub fn is_on(&self, now: Instant) -> bool {
        self.period.is_on(now)
    }

    /// When the grace period ends.
    #[must_use]
    pub fn ends(&self) -> Instant {
        self.period.ends()
    }

    /// Checks whether a host may take a lock, or reclaim one.
    ///
    /// # Errors
    /// [`GraceError`].
    pub fn check(&mut self, host: &R, reclaims: bool, now: Instant) -> Result<(), GraceError> {
        match (reclaims, self.is_on(now)) {
            (false, false) => Ok(()),
            (false, true) => Err(GraceError::Grace),
            (true, false) => Err(GraceError::NothingToReclaim),
            (true, true) => {
                if let Some(record) = self.absent.take(host) {
                    self.present.insert(record);
                }
                if self.present.contains(host) { Ok(()) } else { Err(GraceError::NothingToReclaim) }
            }
        }
    }

    /// Ends the grace period when its time has come. Returns the records of the hosts that have reclaimed nothing: they are
    /// void, because others may lock now what these hosts held.
    pub fn end(&mut self, now: Instant) -> Vec<R> {
        if self.is_on(now) {
            return Vec::new();
        }
        self.period.end();
        self.absent.drain().collect()
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test needs some moment to count from")]
mod tests {
    use super::*;

    const LENGTH: Duration = Duration::from_secs(90);

    #[test]
    fn without_records_there_is_no_grace() {
        let now = Instant::now();
        let mut grace = Grace::begin(now, LENGTH, Vec::<&str>::new());
        assert!(!grace.is_on(now));
        assert_eq!(grace.check(&"a", false, now), Ok(()));
        assert_eq!(grace.check(&"a", true, now), Err(GraceError::NothingToReclaim));
    }

    #[test]
    fn the_recorded_reclaim_and_nobody_else_locks() {
        let now = Instant::now();
        let mut grace = Grace::begin(now, LENGTH, ["a", "b"]);
        assert_eq!(grace.check(&"a", true, now), Ok(()));
        assert_eq!(grace.check(&"a", true, now), Ok(()), "a host has several locks");
        assert_eq!(grace.check(&"a", false, now), Err(GraceError::Grace));
        assert_eq!(grace.check(&"c", true, now), Err(GraceError::NothingToReclaim));
        let last = now + LENGTH - Duration::from_nanos(1);
        assert!(grace.is_on(last) && grace.end(last).is_empty());
        let over = now + LENGTH;
        assert_eq!(grace.check(&"b", true, over), Err(GraceError::NothingToReclaim));
        assert_eq!(grace.end(over), ["b"]);
        assert!(grace.end(over).is_empty(), "once");
        assert_eq!(grace.check(&"c", false, over), Ok(()));
    }
}
