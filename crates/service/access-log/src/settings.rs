//! What is written, and where.

use std::io;
use std::path::PathBuf;

use accounting::Outcome;

use crate::Kinds;

/// What is written, and where. Nothing is written without a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The kinds of operations.
    pub kinds: Kinds,
    /// With which outcomes.
    pub outcomes: Outcomes,
    /// The file.
    pub file: Option<FileSettings>,
    /// The socket of a syslog daemon (`/dev/log`).
    pub syslog: Option<PathBuf>,
    /// The socket of systemd's journal (`/run/systemd/journal/socket`).
    pub journal: Option<PathBuf>,
}

/// Which operations are written, by their outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outcomes {
    /// All.
    #[default]
    All,
    /// Those that were refused or failed.
    Failures,
}

/// The file that lines are appended to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    /// Its path.
    pub path: PathBuf,
    /// The bytes that it may have; before it would have more, it is renamed to `PATH.1`. None: it is never renamed.
    pub bytes_max: Option<u64>,
    /// How many renamed files are kept, at least one: `PATH.1`, the newest, to `PATH.N`.
    pub kept: u32,
}

/// A sink that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the access log cannot be written to {}: {error}", path.display())]
pub struct OpenError {
    /// The file or socket.
    pub path: PathBuf,
    /// Why.
    pub error: io::Error,
}

impl Default for Settings {
    /// The usual kinds, and no sink.
    fn default() -> Self {
        let outcomes = Outcomes::All;
        Self { kinds: Kinds::USUAL, outcomes, file: None, syslog: None, journal: None }
    }
}

impl Settings {
    /// Whether there is a sink.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.file.is_some() || self.syslog.is_some() || self.journal.is_some()
    }
}

impl Outcomes {
    pub(crate) fn include(self, outcome: Outcome) -> bool {
        self == Self::All || outcome != Outcome::Done
    }
}
