//! What one client has done lately.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};

use crate::look::Look;
use crate::rule::FILES_MAX;
use crate::suffix::{Marked, Suffixes};

/// Files of one client that are remembered.
const NOTES_MAX: usize = 1024;

/// How a client has spoilt files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// Files in which data that looks random stands in the place of other data.
    pub overwritten: u32,
    /// Files that are gone, for each of which there is a new one that looks random.
    pub replaced: u32,
    /// Files of several kinds that were renamed to one and the same unusual suffix.
    pub renamed: u32,
}

impl Count {
    /// All of them.
    #[must_use]
    pub fn all(self) -> u32 {
        self.overwritten.saturating_add(self.replaced).saturating_add(self.renamed)
    }
}

/// In which way a file was spoilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Overwritten,
    Replaced,
    Renamed,
}

/// What is known of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// What the client wrote was looked at.
    Examined,
    /// The client has emptied it. This is what it held.
    Emptied(Look),
    /// It is new, and looks random.
    Made,
    /// It counts as spoilt.
    Spoilt,
}

/// What one client has done lately: within the time of the rule.
#[derive(Debug)]
pub(crate) struct Client<F> {
    notes: HashMap<F, (Note, Instant)>,
    /// The files with notes, oldest first.
    order: VecDeque<F>,
    spoilt: VecDeque<Instant>,
    /// When the last file was spoilt.
    pub(crate) spoilt_last: Option<Instant>,
    /// When and in which directories new files were made that look random, and for which no other file has gone.
    made: VecDeque<(Instant, F)>,
    suffixes: Suffixes<F>,
    pub(crate) count: Count,
    /// The last suffix that counted.
    pub(crate) suffix: Option<Vec<u8>>,
    /// When the client last did anything that was noticed.
    pub(crate) last: Instant,
}

impl<F: Copy + Eq + Hash> Client<F> {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            notes: HashMap::new(),
            order: VecDeque::new(),
            spoilt: VecDeque::new(),
            spoilt_last: None,
            made: VecDeque::new(),
            suffixes: Suffixes::default(),
            count: Count::default(),
            suffix: None,
            last: now,
        }
    }

    pub(crate) fn note(&self, file: F, now: Instant, within: Duration) -> Option<Note> {
        let (note, at) = self.notes.get(&file)?;
        (now.saturating_duration_since(*at) < within).then_some(*note)
    }

    pub(crate) fn set_note(&mut self, file: F, note: Note, now: Instant) {
        if self.notes.insert(file, (note, now)).is_some() {
            return;
        }
        self.order.push_back(file);
        if self.order.len() > NOTES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.notes.remove(&oldest);
        }
    }

    /// A new file in this directory looks random.
    pub(crate) fn makes(&mut self, file: F, dir: F, now: Instant) {
        self.set_note(file, Note::Made, now);
        if self.made.len() == FILES_MAX as usize {
            self.made.pop_front();
        }
        self.made.push_back((now, dir));
    }

    /// Whether the client has made files in this directory that look random, for which no other file has gone yet.
    pub(crate) fn has_made(&mut self, dir: F, now: Instant, within: Duration) -> bool {
        forget_before(&mut self.made, now, within, |(at, _)| *at);
        self.made.iter().any(|(_, made)| *made == dir)
    }

    /// A file of this directory has gone, perhaps for a new one that looks random.
    pub(crate) fn replaces(&mut self, dir: F, now: Instant, within: Duration) {
        forget_before(&mut self.made, now, within, |(at, _)| *at);
        if let Some(made) = self.made.iter().position(|(_, made)| *made == dir) {
            self.made.remove(made);
            self.spoils(Way::Replaced, now);
        }
    }

    pub(crate) fn renames(&mut self, file: F, names: (&[u8], &[u8]), now: Instant, within: Duration) {
        let Some(Marked { suffix, files }) = self.suffixes.renamed(file, names, (now, within)) else {
            return;
        };
        self.suffix = Some(suffix);
        for file in files {
            if self.note(file, now, within) != Some(Note::Spoilt) {
                self.set_note(file, Note::Spoilt, now);
                self.spoils(Way::Renamed, now);
            }
        }
    }

    /// Counts a spoilt file.
    pub(crate) fn spoils(&mut self, way: Way, now: Instant) {
        let count = match way {
            Way::Overwritten => &mut self.count.overwritten,
            Way::Replaced => &mut self.count.replaced,
            Way::Renamed => &mut self.count.renamed,
        };
        *count = count.saturating_add(1);
        if self.spoilt.len() == FILES_MAX as usize {
            self.spoilt.pop_front();
        }
        self.spoilt.push_back(now);
        self.spoilt_last = Some(now);
    }

    /// How many files were spoilt within this time.
    pub(crate) fn spoilt(&mut self, now: Instant, within: Duration) -> usize {
        forget_before(&mut self.spoilt, now, within, |at| *at);
        self.spoilt.len()
    }
}

fn forget_before<T>(all: &mut VecDeque<T>, now: Instant, within: Duration, time: impl Fn(&T) -> Instant) {
    while all.front().is_some_and(|first| now.saturating_duration_since(time(first)) >= within) {
        all.pop_front();
    }
}
