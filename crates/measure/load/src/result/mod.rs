//! What a run leaves: one JSON file.
//!
//! [`ResultFile`] is all that a report or advice is made from. Fields are only ever added: a reader ignores what it does not
//! know, and what a writer did not know is absent.

mod compare;
mod environment;
mod row;

use std::path::Path;
use std::{fs, io};

use serde::{Deserialize, Serialize};

pub use compare::Comparison;
pub use environment::{Environment, Host, Interface, Negotiated, Protocol};
pub use row::{Key, Latency, Measure, Mix, Operation, Repetition, Row, ServerCounters, Tally};

use crate::whole_file;

/// The version of the file's form that this program writes, and the newest that it reads.
pub const FORMAT: u32 = 1;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ResultFile {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// The program that measured, such as `anabranch 0.2.0`.
    pub program: String,
    /// When the run began, in seconds since 1970 (UTC).
    pub began: u64,
    /// The family, such as `smb-mc-multifile`, or `job` for a run of one's own.
    pub family: String,
    /// Statements of the documents that the family belongs to, such as `1.20`.
    #[serde(default)]
    pub documents: Vec<String>,
    /// How it was measured.
    pub method: Method,
    /// Where it was measured.
    pub environment: Environment,
    /// What was measured, in the order of the plan.
    pub rows: Vec<Row>,
    /// What some rows are to others.
    #[serde(default)]
    pub comparisons: Vec<Comparison>,
    /// How it ended.
    #[serde(default)]
    pub outcome: Outcome,
    /// What went wrong, if anything did. What was measured until then is in `rows`.
    #[serde(default)]
    pub problems: Vec<Problem>,
    /// What was asked for and could not be done, in words (rows of a family that a target cannot run, settings of a job file).
    #[serde(default)]
    pub not_honoured: Vec<String>,
}

/// How it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// A short run: fewer rows, fewer repetitions, less time. It shows a direction, no more.
    pub quick: bool,
    /// Repetitions of each row that were planned, without the first pass.
    pub repetitions: u32,
    /// The first pass was thrown away.
    pub first_pass_discarded: bool,
    /// The rows took turns: one repetition of each, then the next of each, every other time in reverse order.
    pub interleaved: bool,
    /// Seconds that the load ran before each measurement.
    pub ramp_seconds: f64,
    /// Seconds of each measurement.
    pub seconds: f64,
    /// The bytes that were read were checked against what had been written.
    #[serde(default)]
    pub data_checked: bool,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Everything that was planned was measured.
    #[default]
    Complete,
    /// Somebody ended it; what was measured until then is there.
    Stopped,
    /// It could not go on; `problems` says why.
    Failed,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// What kind of thing it is.
    pub kind: ProblemKind,
    /// In words: what, where, and what to do about it.
    pub text: String,
    /// How often it happened.
    #[serde(default = "once")]
    pub count: u64,
}

/// Kinds of what goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemKind {
    /// Nobody answers at the address.
    Unreachable,
    /// The user or the password is not accepted.
    WrongPassword,
    /// There is no such share, export or directory.
    NoSuchShare,
    /// The target may not be written.
    ReadOnly,
    /// The target is full.
    NoSpace,
    /// Fewer bytes came back, or were taken, than had to.
    ShortTransfer,
    /// Other bytes came back than had been written.
    WrongData,
    /// A reply's signature or encryption is not right.
    WrongSignature,
    /// A reply that no request asked for, or that is none.
    Protocol,
    /// The server closed the connection.
    Closed,
    /// A request was not answered in time.
    NoReply,
    /// The server refused an operation with an error of its own.
    Refused,
    /// A worker is gone, or does not do what it is told.
    Worker,
    /// What the run had made could not be removed afterwards.
    NotRemoved,
    /// This machine cannot do what is asked (files, memory, sockets).
    ThisMachine,
}

fn once() -> u64 {
    1
}

/// Why a result file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file system says no.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is not a result file.
    #[error("this is not a result of a measurement: {0}")]
    Json(#[from] serde_json::Error),
    /// It is one of a later version.
    #[error("this result is of format {0}; this program reads up to format {FORMAT}: use a newer one")]
    Newer(u32),
}

impl ResultFile {
    /// Reads a result.
    ///
    /// # Errors
    /// The text is not that of a result, or of one that is newer than this program.
    pub fn from_json(text: &str) -> Result<Self, FileError> {
        #[derive(Deserialize)]
        struct Form {
            format: u32,
        }
        let Form { format } = serde_json::from_str(text)?;
        if format > FORMAT {
            return Err(FileError::Newer(format));
        }
        Ok(serde_json::from_str(text)?)
    }

    /// Reads a result from a file.
    ///
    /// # Errors
    /// As [`Self::from_json`], and those of the file system.
    pub fn load(path: &Path) -> Result<Self, FileError> {
        Self::from_json(&fs::read_to_string(path)?)
    }

    /// Writes the result to a file: whole, or not at all.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        Ok(whole_file::write(path, serde_json::to_vec(self)?)?)
    }

    /// The row of a key, if it was measured.
    #[must_use]
    pub fn row(&self, key: &Key) -> Option<&Row> {
        self.rows.iter().find(|row| row.key == *key)
    }
}

#[cfg(test)]
mod tests;
