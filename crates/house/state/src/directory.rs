//! The state directory: that it is for its owner alone.

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use crate::{Error, Result};

/// The bits of a mode by which others than the owner may do something.
const OTHERS: u32 = 0o077;

/// Makes the directory where it is missing, for its owner only.
///
/// # Errors
/// It cannot be made, is none, is another user's, or others may enter it.
pub fn prepare(directory: &Path) -> Result<()> {
    match fs::metadata(directory) {
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
            made.map_err(|e| unusable(directory, &e))?;
        }
        _ => {}
    }
    check(directory)
}

fn unusable(directory: &Path, e: &io::Error) -> Error {
    Error::new(
        format!("cannot use the state directory {}: {e}", directory.display()),
        "Pass a directory that this user may write: --state DIR",
    )
}

/// Checks a directory that is there, and changes nothing.
///
/// # Errors
/// It is not there, is none, is another user's, or others may enter it.
pub fn check(directory: &Path) -> Result<()> {
    let found = fs::metadata(directory).map_err(|e| unusable(directory, &e))?;
    if !found.is_dir() {
        return Err(unusable(directory, &ErrorKind::NotADirectory.into()));
    }
    let (mode, owner, me) = (found.mode(), found.uid(), rustix::process::geteuid().as_raw());
    let directory = directory.display();
    if owner != me {
        return Err(Error::new(
            format!("the state directory {directory} is another user's (uid {owner})"),
            format!("Its owner could store other passwords in it. Make it yours: chown {me} {directory}"),
        ));
    }
    if mode & OTHERS == 0 {
        return Ok(());
    }
    Err(Error::new(
        format!("others may enter the state directory {directory} (mode {:o})", mode & 0o777),
        format!("It contains keys and password hashes. Restrict it to its owner: chmod 700 {directory}"),
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
            assert!(problem.advice.contains("chmod 700"), "{problem}");
        }
        mode(0o700);
        prepare(&new).unwrap();
        if rustix::process::geteuid().is_root() {
            chown(&new, Some(1000), None).unwrap();
            let problem = prepare(&new).unwrap_err();
            assert!(problem.what.contains("uid 1000") && problem.advice.contains("chown 0"), "{problem}");
        }
    }
}
