//! Chores that other programs do.

use std::process::{Command, ExitCode, ExitStatus, Stdio};

use crate::repository;

/// The end of a chore: its exit code, or the reason why it could not be done.
pub(crate) type Chore = Result<ExitCode, String>;

/// Runs a script of the repository. Its exit status becomes that of the chore.
pub(crate) fn script(path: &str, arguments: &[String]) -> Chore {
    passed_on(Command::new(repository::top().join(path)).args(arguments))
}

/// Runs a command. Its exit status becomes that of the chore.
pub(crate) fn passed_on(command: &mut Command) -> Chore {
    let code = status(command)?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Runs a command that must succeed.
pub(crate) fn ran(command: &mut Command) -> Result<(), String> {
    let status = status(command)?;
    if status.success() { Ok(()) } else { Err(format!("{}: {status}", name(command))) }
}

/// Runs a command, given as its words, that must succeed.
pub(crate) fn ran_words(command: &str) -> Result<(), String> {
    let mut words = command.split_whitespace();
    ran(Command::new(words.next().unwrap_or_default()).args(words)).map_err(|_| format!("failed: {command}"))
}

/// The standard output of a command, which must succeed.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let done = command.stderr(Stdio::inherit()).output().map_err(|e| format!("{}: {e}", name(command)))?;
    if !done.status.success() {
        return Err(format!("{}: {}", name(command), done.status));
    }
    String::from_utf8(done.stdout).map_err(|e| format!("{}: {e}", name(command)))
}

/// Like [`output`], without surrounding whitespace.
pub(crate) fn said(command: &mut Command) -> Result<String, String> {
    Ok(output(command)?.trim().to_owned())
}

fn status(command: &mut Command) -> Result<ExitStatus, String> {
    command.status().map_err(|e| format!("{}: {e}", name(command)))
}

fn name(command: &Command) -> String {
    command.get_program().display().to_string()
}
