//! What was not carried over, and why.

use std::fmt;

use serde::Serialize;

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} line {}", self.file, self.line)
    }
}

/// What it means that something was not carried over, the gravest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// Others than before have access, or with other rights.
    ChangesAccess,
    /// Nothing here does the same.
    NoCounterpart,
    /// Nothing is lost.
    NotNeeded,
}

/// One thing that was not carried over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// What it means.
    pub grade: Grade,
    /// Where the thing is.
    #[serde(flatten)]
    pub place: Place,
    /// The section or the directory that it belongs to; empty: none.
    pub section: String,
    /// The parameter, option or account; empty: a line that is none of these.
    pub parameter: String,
    /// Its value, unless it is a secret.
    pub value: String,
    /// Why it was not carried over, and what that means.
    pub why: String,
}

/// Notes, each once.
#[derive(Debug, Default)]
pub(crate) struct Notes(Vec<Note>);

impl Notes {
    pub(crate) fn add(&mut self, note: Note) {
        if !self.0.contains(&note) {
            self.0.push(note);
        }
    }

    /// The gravest first; those of one grade in the order of the lines.
    pub(crate) fn sorted(mut self) -> Vec<Note> {
        self.0.sort_by_key(|note| (note.grade, note.place.line));
        self.0
    }
}
