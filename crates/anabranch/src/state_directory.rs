//! Which directory is the state directory.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use crate::problem::{Cause, Problem, Result};

/// Where the state is, unless told otherwise.
pub(crate) const DEFAULT: &str = "/var/lib/anabranch";
/// Names the state directory where no flag and no file does.
pub(crate) const VARIABLE: &str = "ANABRANCH_STATE";

/// The directory that is given: by flag or file, else by the environment.
pub(crate) fn given(by_flag: Option<PathBuf>) -> Option<PathBuf> {
    let named = || std::env::var_os(VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from);
    by_flag.or_else(named)
}

/// Whether the default directory may be used, though nobody has named it: where it is there, or whoever sits at the
/// terminal says so.
///
/// # Errors
/// It is missing, and nobody wants it made.
pub(crate) fn confirm_default() -> Result<()> {
    if Path::new(DEFAULT).exists() || (is_interactive() && is_wanted().unwrap_or(false)) {
        return Ok(());
    }
    Err(missing())
}

/// The problem of a state directory that nobody has named, and that is not there.
pub(crate) fn missing() -> Problem {
    Problem::new(
        Cause::State,
        format!("no state directory is given, and {DEFAULT} does not exist"),
        format!("Name one: --state DIR, or {VARIABLE}=DIR. To use the default: mkdir -m 700 {DEFAULT}"),
    )
}

fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn is_wanted() -> io::Result<bool> {
    write!(io::stderr(), "No state directory is given. Create {DEFAULT}? [y/N] ")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_goes_before_the_environment() {
        assert_eq!(given(Some("/a".into())), Some("/a".into()));
    }
}
