//! Whether a directory is worth caching: its answers compared with its changes.
//!
//! Each change of a cached directory costs some microseconds: the kernel reports it, and the server reads the report
//! and forgets what it knew. While the store is quick, an answer from memory hardly saves one microsecond. So a
//! directory that changes nearly as often as it is read rests: it is not cached for a while. If this happens again, the
//! rest is longer each time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use storage::ObjectId;

/// A directory is judged after this many changes.
const CHANGES: u32 = 64;
/// Answers from memory that make up for one change.
const ANSWERS_PER_CHANGE: u32 = 16;
/// Entries of a listing that count as one answer.
const ENTRIES_PER_ANSWER: usize = 16;
/// The first rest, and the longest.
const REST: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(60);
/// Directories whose rests are remembered.
const RESTED_MAX: usize = 1024;

/// What has happened since the last judgement.
#[derive(Debug, Default)]
pub(super) struct Worth {
    answers: u32,
    changes: u32,
}

impl Worth {
    /// Counts one answer from memory.
    pub(super) fn answered(&mut self) {
        self.answers = self.answers.saturating_add(1);
    }

    /// Counts a listing of this many entries.
    pub(super) fn listed(&mut self, entries: usize) {
        let answers = u32::try_from(1 + entries / ENTRIES_PER_ANSWER).unwrap_or(u32::MAX);
        self.answers = self.answers.saturating_add(answers);
    }

    /// Counts a change. Returns whether caching has been worth it, when a judgement is due.
    pub(super) fn changed(&mut self) -> Option<bool> {
        self.changes += 1;
        if self.changes < CHANGES {
            return None;
        }
        let Self { answers, changes } = std::mem::take(self);
        Some(answers >= changes * ANSWERS_PER_CHANGE)
    }
}

#[derive(Debug)]
struct Rest {
    until: Instant,
    length: Duration,
}

/// Directories that are resting, or were a short time ago.
#[derive(Debug, Default)]
pub(super) struct Rests(HashMap<ObjectId, Rest>);

impl Rests {
    pub(super) fn is_resting(&self, id: ObjectId, now: Instant) -> bool {
        self.0.get(&id).is_some_and(|rest| now < rest.until)
    }

    /// Begins the rest of a directory that was not worth caching, twice as long as the last rest if that was recent.
    pub(super) fn begin(&mut self, id: ObjectId, now: Instant) {
        if self.0.len() >= RESTED_MAX && !self.0.contains_key(&id) {
            self.0.retain(|_, rest| now < rest.until);
            if self.0.len() >= RESTED_MAX {
                self.0.clear();
            }
        }
        let last = self.0.get(&id).filter(|rest| now < rest.until + rest.length);
        let length = last.map_or(REST, |rest| (2 * rest.length).min(REST_MAX));
        self.0.insert(id, Rest { until: now + length, length });
    }

    /// Forgets the rests of a directory that is worth caching.
    pub(super) fn end(&mut self, id: ObjectId) {
        self.0.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_judged_by_its_answers_to_some_changes() {
        let mut worth = Worth::default();
        let mut judge = |answers: u32| {
            (0..answers).for_each(|_| worth.answered());
            let judged: Vec<_> = (0..CHANGES).filter_map(|_| worth.changed()).collect();
            assert_eq!(judged.len(), 1);
            judged[0]
        };
        assert!(judge(CHANGES * ANSWERS_PER_CHANGE));
        assert!(!judge(CHANGES * ANSWERS_PER_CHANGE - 1), "each time anew");
        worth.listed(CHANGES as usize * ANSWERS_PER_CHANGE as usize * ENTRIES_PER_ANSWER);
        assert!((0..CHANGES).filter_map(|_| worth.changed()).all(|is_worth_it| is_worth_it));
    }

    #[test]
    fn rests_grow_while_one_follows_the_other() {
        let (mut rests, dir, mut now) = (Rests::default(), ObjectId::live(1), Instant::now());
        assert!(!rests.is_resting(dir, now));
        for length in [1, 2, 4, 8, 16, 32, 60, 60].map(Duration::from_secs) {
            rests.begin(dir, now);
            now += length;
            assert!(rests.is_resting(dir, now - Duration::from_millis(1)), "{length:?}");
            assert!(!rests.is_resting(dir, now));
        }
        rests.begin(dir, now + REST_MAX);
        assert!(!rests.is_resting(dir, now + REST_MAX + REST), "that was long ago");
        rests.begin(dir, now + REST_MAX + REST);
        rests.end(dir);
        rests.begin(dir, now + REST_MAX + REST);
        assert!(!rests.is_resting(dir, now + REST_MAX + 2 * REST), "it was worth it meanwhile");
    }

    #[test]
    fn only_some_are_remembered() {
        let (mut rests, now) = (Rests::default(), Instant::now());
        (0..3 * RESTED_MAX as u64).for_each(|id| rests.begin(ObjectId::live(id), now));
        assert!(rests.0.len() <= RESTED_MAX);
    }
}
