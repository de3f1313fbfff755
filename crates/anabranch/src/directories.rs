//! The directories of the shares: there, directories, usable.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use share::Terms;

use crate::problem::{Cause, Problem, Result};

/// The absolute path of a share's directory.
///
/// # Errors
/// It is missing, is no directory, or this process may not do there what the share needs.
pub(crate) fn check(name: &str, path: &Path, terms: Terms) -> Result<PathBuf> {
    let refuse = |why: &str, advice: String| {
        Problem::new(Cause::Directory, format!("share {name}: {} {why}", path.display()), advice)
    };
    let absolute = path.canonicalize().map_err(|e| match e.kind() {
        ErrorKind::NotFound => refuse("does not exist", format!("Create it: mkdir -p {}", path.display())),
        _ => refuse(&format!("cannot be used: {e}"), String::new()),
    })?;
    if !fs::metadata(&absolute).is_ok_and(|found| found.is_dir()) {
        return Err(refuse("is not a directory", "A share serves a directory.".to_owned()));
    }
    if access(&absolute, Access::READ_OK | Access::EXEC_OK).is_err() {
        return Err(refuse(
            "may not be read by this user",
            "Change its mode, or start as another user.".to_owned(),
        ));
    }
    if !terms.contains(Terms::READ_ONLY) && access(&absolute, Access::WRITE_OK).is_err() {
        return Err(refuse(
            "may not be written by this user",
            "Change its mode, start as another user, or make the share read-only (read-only = true in the file)."
                .to_owned(),
        ));
    }
    Ok(absolute)
}

/// Shares of which one lies in another: what two clients do through different shares is not kept apart.
pub(crate) fn overlapping(shares: &[(String, PathBuf)]) -> Vec<(&str, &str)> {
    let inside = |(inner, outer): (&Path, &Path)| inner.starts_with(outer);
    let mut found = Vec::new();
    for (i, (name, path)) in shares.iter().enumerate() {
        for (other, other_path) in shares.iter().skip(i + 1) {
            if inside((path, other_path)) || inside((other_path, path)) {
                found.push((name.as_str(), other.as_str()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(directory: impl AsRef<Path>) -> Result<PathBuf> {
        check("data", directory.as_ref(), Terms::empty())
    }

    #[test]
    fn a_missing_directory_is_explained() {
        let problem = checked("/no/such/directory").unwrap_err();
        assert_eq!(problem.cause, Cause::Directory);
        assert_eq!(problem.what, "share data: /no/such/directory does not exist");
        assert_eq!(problem.advice, "Create it: mkdir -p /no/such/directory");
    }

    #[test]
    fn a_file_is_not_a_directory() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(checked(file.path()).unwrap_err().what.ends_with("is not a directory"));
    }

    #[test]
    fn a_relative_path_becomes_absolute() {
        assert!(checked(".").unwrap().is_absolute());
    }

    #[test]
    fn shares_in_each_other_are_found() {
        let shares =
            [("a", "/srv/a"), ("b", "/srv/ab"), ("c", "/srv/a/c")].map(|(n, p)| (n.to_owned(), p.into()));
        assert_eq!(overlapping(&shares), [("a", "c")]);
    }
}
