//! Whether a directory is worth keeping in memory: what it has answered, beside what changed in it.
//!
//! Each change of a directory that is kept costs some microseconds: the kernel tells of it, it is read, and what was known is
//! forgotten. While the store is quick an answer from memory saves hardly one of them. So directories that change nearly as
//! often as they are asked rest: nothing of them is kept for a while, longer each time that it turns out so.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use storage::FileId;

/// A directory is judged each time that so much has changed in it.
const CHANGES: u32 = 64;
/// What a change must bring in answers.
const ANSWERS_PER_CHANGE: u32 = 16;
/// Entries of a listing that are worth an answer.
const ENTRIES_PER_ANSWER: usize = 16;
/// The first rest, and the longest.
const REST: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(60);
/// Directories that are remembered for having rested.
const RESTED_MAX: usize = 1024;

/// What has been since the last judgement.
#[derive(Debug, Default)]
pub(super) struct Worth {
    answers: u32,
    changes: u32,
}

impl Worth {
    /// It was answered from memory.
    pub(super) fn answered(&mut self) {
        self.answers = self.answers.saturating_add(1);
    }

    /// A listing of so many entries was.
    pub(super) fn listed(&mut self, entries: usize) {
        let answers = u32::try_from(1 + entries / ENTRIES_PER_ANSWER).unwrap_or(u32::MAX);
        self.answers = self.answers.saturating_add(answers);
    }

    /// Something has changed: whether it has been worth it, when there is enough to judge by.
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

/// Directories of which nothing is kept, or was not a short time ago.
#[derive(Debug, Default)]
pub(super) struct Rests(HashMap<FileId, Rest>);

impl Rests {
    pub(super) fn is_resting(&self, id: FileId, now: Instant) -> bool {
        self.0.get(&id).is_some_and(|rest| now < rest.until)
    }

    /// A directory was not worth keeping: it rests, for twice as long as the last time if that was not long ago.
    pub(super) fn begin(&mut self, id: FileId, now: Instant) {
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

    /// A directory is worth keeping.
    pub(super) fn end(&mut self, id: FileId) {
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
        let (mut rests, dir, mut now) = (Rests::default(), FileId(1), Instant::now());
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
        (0..3 * RESTED_MAX as u64).for_each(|id| rests.begin(FileId(id), now));
        assert!(rests.0.len() <= RESTED_MAX);
    }
}
