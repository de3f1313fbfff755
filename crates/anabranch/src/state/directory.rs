//! The state directory: which one it is, and that it is for its owner alone.

use std::fs::{self, DirBuilder};
use std::io::{self, BufRead, ErrorKind, IsTerminal, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::problem::{Cause, Problem, Result};

/// Where the state is, unless told otherwise.
pub(crate) const DEFAULT: &str = "/var/lib/anabranch";
/// Names the state directory where no flag and no file does.
pub(crate) const VARIABLE: &str = "ANABRANCH_STATE";
/// The bits of a mode by which others than the owner may do something.
const OTHERS: u32 = 0o077;

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
    Err(Problem::new(
        Cause::State,
        format!("no state directory is given, and {DEFAULT} is not there"),
        format!("Name one: --state DIR, or {VARIABLE}=DIR. To use the default: mkdir -m 700 {DEFAULT}"),
    ))
}

fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn is_wanted() -> io::Result<bool> {
    write!(io::stderr(), "No state directory is given. Make {DEFAULT}? [y/N] ")?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str()))
}

/// Makes the directory where it is missing, for its owner only.
///
/// # Errors
/// It cannot be made, is none, is another user's, or others may enter it.
pub(crate) fn prepare(directory: &Path) -> Result<()> {
    let refuse = |e: io::Error| {
        Problem::new(
            Cause::State,
            format!("cannot use the state directory {}: {e}", directory.display()),
            "Pass a directory that this user may write: --state DIR",
        )
    };
    match fs::metadata(directory) {
        Ok(found) if !found.is_dir() => return Err(refuse(ErrorKind::NotADirectory.into())),
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(refuse)?;
        }
        Err(e) => return Err(refuse(e)),
    }
    let found = fs::metadata(directory).map_err(refuse)?;
    let (mode, owner, me) = (found.mode(), found.uid(), rustix::process::geteuid().as_raw());
    let directory = directory.display();
    if owner != me {
        return Err(Problem::new(
            Cause::State,
            format!("the state directory {directory} is another user's (uid {owner})"),
            format!("Whose it is can put others' passwords there. Make it yours: chown {me} {directory}"),
        ));
    }
    if mode & OTHERS == 0 {
        return Ok(());
    }
    Err(Problem::new(
        Cause::State,
        format!("others may enter the state directory {directory} (mode {:o})", mode & 0o777),
        format!("Keys and password hashes are in it. Keep it to its owner: chmod 700 {directory}"),
    ))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    #[test]
    fn a_directory_that_others_may_enter_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let new = directory.path().join("a/new");
        prepare(&new).unwrap();
        let mode = |mode| fs::set_permissions(&new, fs::Permissions::from_mode(mode)).unwrap();
        for open in [0o755, 0o750, 0o711, 0o701, 0o770] {
            mode(open);
            let problem = prepare(&new).unwrap_err();
            assert!(problem.cause == Cause::State && problem.advice.contains("chmod 700"), "{problem}");
        }
        mode(0o700);
        prepare(&new).unwrap();
        if rustix::process::geteuid().is_root() {
            chown(&new, Some(1000), None).unwrap();
            let problem = prepare(&new).unwrap_err();
            assert!(problem.what.contains("uid 1000") && problem.advice.contains("chown 0"), "{problem}");
        }
    }

    #[test]
    fn a_flag_goes_before_the_environment() {
        assert_eq!(given(Some("/a".into())), Some("/a".into()));
    }
}
