//! A gateway in a test has no program around it.

use control::Refusal;
use control::program::{Advices, Log, Program};

/// A test has no log, and no advice.
pub(crate) struct NoProgram;

impl Program for NoProgram {
    fn lost_log_lines(&self) -> u64 {
        0
    }
    fn log(&self, _: u64) -> Log {
        Log::default()
    }
    fn advise(&self, _: &str, _: u64) -> Result<Advices, Refusal> {
        Ok(Advices::default())
    }
}
