//! Chores that are done by other programs.

use std::process::{Command, ExitCode};

use crate::repository;

/// How a chore ended: the exit code that says so, or why it could not be done.
pub(crate) type Chore = Result<ExitCode, String>;

/// Runs a script of the repository; its exit status is the chore's.
pub(crate) fn script(path: &str, arguments: &[String]) -> Chore {
    let mut command = Command::new(repository::top().join(path));
    let status = command.args(arguments).status().map_err(|e| format!("{path}: {e}"))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from))
}
