//! Purges deleted shares whose time is over.
//!
//! A clock may be wrong when a machine starts, and is set a little later. So the files of a share are removed only after the server has seen
//! its time over for a while. The record of a share whose directory stays is forgotten at once: nothing is lost with it.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use control::Refusal;
use parking_lot::Mutex;
use state::{DeletedShare, PoolDirectory};

use super::{Administration, failed};

/// How long the server has seen the time of a share over before it removes the files.
const SEEN_OVER: Duration = Duration::from_secs(3600);
/// How long a share is left alone that could not be purged.
const AGAIN: Duration = Duration::from_secs(60);

/// The deleted shares of pools whose time is over, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Expired(Mutex<HashMap<u32, Seen>>);

/// What the server has seen of one.
#[derive(Debug, Clone, Copy)]
struct Seen {
    /// When it is to be purged, or to be tried again.
    due: Instant,
    has_failed: bool,
}

impl Expired {
    /// Whether the share is to be purged now.
    fn is_due(&self, number: u32, at: Instant) -> bool {
        let mut expired = self.0.lock();
        at >= expired.entry(number).or_insert(Seen { due: at + SEEN_OVER, has_failed: false }).due
    }

    /// Has it tried again later. Whether this is the first time.
    fn put_off(&self, number: u32, at: Instant) -> bool {
        let later = Seen { due: at + AGAIN, has_failed: true };
        !self.0.lock().insert(number, later).is_some_and(|seen| seen.has_failed)
    }

    /// Forgets those whose time is not over any more, and those that are gone.
    fn keep(&self, over: &HashSet<u32>) {
        self.0.lock().retain(|number, _| over.contains(number));
    }
}

impl Administration {
    /// Purges the deleted shares whose time is over: `now` in seconds of the Unix epoch, and `at` by the clock that is never set.
    pub(crate) fn purge_expired(&self, now: u64, at: Instant) {
        let due = match self.expired_at(now, at) {
            Ok(due) => due,
            Err(Refusal { what, .. }) => return tracing::error!("deleted shares are not purged: {what}"),
        };
        for (deleted, made) in due {
            let Err(Refusal { what, .. }) = self.purge_with_files(&deleted, &made, now) else { continue };
            if self.expired.put_off(deleted.number, at) {
                let (share, id) = (&deleted.share.name, deleted.number);
                tracing::error!(share, id, "a deleted share is not purged: {what}");
            }
        }
    }

    /// Forgets those whose directories stay, and says which are to be purged with their files.
    fn expired_at(&self, now: u64, at: Instant) -> Result<Vec<(DeletedShare, PoolDirectory)>, Refusal> {
        let _idle = self.idle.lock();
        let (mut due, mut over) = (Vec::new(), HashSet::new());
        for deleted in self.state.deleted_shares().map_err(failed)? {
            if !self.is_over(&deleted, now)? {
                continue;
            }
            let Some(made) = deleted.share.pool.clone() else {
                self.forget_deleted(&deleted)?;
                continue;
            };
            over.insert(deleted.number);
            if self.expired.is_due(deleted.number, at) {
                due.push((deleted, made));
            }
        }
        self.expired.keep(&over);
        Ok(due)
    }

    /// Whether a share is purged without being asked to.
    fn is_over(&self, deleted: &DeletedShare, now: u64) -> Result<bool, Refusal> {
        let may_be_in_use = deleted.is_of_copy && deleted.share.pool.is_some();
        Ok(deleted.until <= now && !may_be_in_use && self.protected_longest(deleted, now)?.is_none())
    }

    fn purge_with_files(
        &self,
        deleted: &DeletedShare,
        made: &PoolDirectory,
        now: u64,
    ) -> Result<(), Refusal> {
        let is_there = self.check_is_removable(&deleted.share.directory, made)?;
        let _idle = self.idle.lock();
        // Somebody may have brought it back, or protected a snapshot of it.
        let is_still = self.state.deleted_shares().map_err(failed)?.contains(deleted);
        if !is_still || !self.is_over(deleted, now)? {
            return Ok(());
        }
        self.abandon(deleted, made, is_there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_purged_after_its_time_was_seen_over_for_a_while() {
        let (expired, begun) = (Expired::default(), Instant::now());
        assert!(!expired.is_due(7, begun));
        assert!(!expired.is_due(7, begun + SEEN_OVER - Duration::from_secs(1)));
        assert!(expired.is_due(7, begun + SEEN_OVER));
        // The clock was set back meanwhile.
        expired.keep(&HashSet::new());
        assert!(!expired.is_due(7, begun + SEEN_OVER));
        let later = begun + 2 * SEEN_OVER;
        assert!(expired.is_due(7, later) && expired.put_off(7, later));
        assert!(!expired.is_due(7, later) && expired.is_due(7, later + AGAIN));
        assert!(!expired.put_off(7, later + AGAIN), "the log says it once");
    }
}
