//! The log on standard error, and the few other words of a server. None of them may end or hold up what it tells of.

use std::os::fd::AsFd;
use std::time::Duration;

use gateway::in_time;
use logging::{Format, write_taken};

use crate::log_names;
use crate::print::counted;
use crate::problem::{Result, serving};
use crate::settings::{Given, LogFormat};

/// How long the ready line, the last lines of the log and the last word of a program may wait for their reader.
const READER_PATIENCE: Duration = Duration::from_secs(2);

/// Says how many lines were lost since this was last said.
pub(crate) fn tell_lost_lines() {
    let lost = logging::newly_lost_lines();
    if lost > 0 {
        let lines = counted(lost, "line");
        tracing::warn!("{lines} of the log could not be written");
    }
}

/// Logs to standard error; standard output is for the ready line alone.
///
/// # Errors
/// What is to be logged names no level or no part of this program; the system has no more threads.
pub(crate) fn start(given: &Given) -> Result<()> {
    let filter = check(given)?;
    let format = match given.log_format {
        None | Some(LogFormat::Text) => Format::Text,
        Some(LogFormat::Json) => Format::Json,
    };
    logging::start(&filter, format).map_err(serving("cannot start a thread"))
}

/// The filter of what is to be logged.
///
/// # Errors
/// It names no level or no part of this program.
pub(crate) fn check(given: &Given) -> Result<String> {
    log_names::parse(given.log.as_deref().unwrap_or("info"))
}

/// Waits a moment until all that was logged is written.
pub(crate) fn finish() {
    logging::finish(READER_PATIENCE);
}

/// Says something to whoever started the program, if it is taken within a moment: the ready line, the last error.
pub(crate) fn say(to: impl AsFd + Send + 'static, text: &str) {
    let text = text.to_owned();
    in_time::answer_within(2 * READER_PATIENCE, move || write_taken(to, text.as_bytes(), READER_PATIENCE));
}
