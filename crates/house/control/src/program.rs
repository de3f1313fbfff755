//! What the API tells of the program around the server: its log, and advice.

use serde::{Deserialize, Serialize};

use crate::Refusal;
use crate::shares::ShareChange;

/// The program around the server. It has parts that the server does without.
pub trait Program: Send + Sync {
    /// Lines of the log that could not be written.
    fn lost_log_lines(&self) -> u64;
    /// The last lines of the log that have a higher number than `after`, oldest first. This never waits.
    fn log(&self, after: u64) -> Log;
    /// Watches a client for some seconds, and says what is worth changing. This waits for so long.
    ///
    /// # Errors
    /// No such client is connected, or it has done nothing meanwhile.
    fn advise(&self, client: &str, seconds: u64) -> Result<Advices, Refusal>;
}

/// The end of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    /// The lines, oldest first.
    pub lines: Vec<LogLine>,
    /// Lines of the log that could not be written to standard error since the program started.
    pub lost: u64,
}

/// A line of the log.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The number of the line since the program started; the first has number 1.
    pub number: u64,
    /// The line, as it stands in the log.
    pub text: String,
}

/// Advice on what a client does.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Advices {
    /// One entry for each share and protocol that the client used meanwhile.
    pub works: Vec<WorkAdvice>,
}

/// Advice on what a client does in one share over one protocol.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkAdvice {
    /// The client.
    pub client: String,
    /// The share.
    pub share: String,
    /// What the client does, in words.
    pub figures: Vec<String>,
    /// What the rules say of that.
    pub advice: Vec<AdvicePiece>,
    /// The one change of the share that the advice comes to and that can be reverted; none if there is none.
    pub change: Option<AdvisedChange>,
}

/// One piece of advice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdvicePiece {
    /// The rule behind it: see docs/advice.md.
    pub rule: u8,
    /// `green`: good, or worth having; `yellow`: makes no difference, or depends; `red`: costs something, or should be changed.
    pub verdict: String,
    /// What to do, or what is as it should be.
    pub text: String,
    /// The figures that lead to it.
    pub figures: Vec<String>,
    /// The commands that change it.
    pub commands: Vec<String>,
}

/// A change of a share, and its reversal.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdvisedChange {
    /// The rule that asks for the change.
    pub rule: u8,
    /// The change in words.
    pub what: String,
    /// The body of `PATCH /v1/shares/{name}` that makes the change.
    pub forth: ShareChange,
    /// The body that reverts it.
    pub back: ShareChange,
    /// The command that does the same.
    pub command: String,
}
