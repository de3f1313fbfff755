//! Completions of shells and manual pages, both made from the definition of the command line.

use std::fs::DirBuilder;
use std::io::{ErrorKind, Write};
use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::problem::{Cause, Problem, Result};

/// Prints the completions of a shell.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn completions(shell: Shell) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "anabranch", &mut script);
    match std::io::stdout().write_all(&script) {
        // The reader has seen enough.
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|e| Problem::new(Cause::Asking, format!("cannot print: {e}"), "")),
    }
}

/// Writes a manual page for each command into a new folder.
///
/// # Errors
/// The folder exists, or cannot be written.
pub(crate) fn pages(folder: &Path) -> Result<()> {
    let failed =
        |e| Problem::new(Cause::Settings, format!("{}: {e}", folder.display()), "Name a new folder.");
    DirBuilder::new().create(folder).map_err(failed)?;
    clap_mangen::generate_to(Cli::command(), folder).map_err(failed)
}
