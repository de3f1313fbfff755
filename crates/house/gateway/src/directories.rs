//! Checks the directories of the shares: they must exist, be directories, and be usable.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD, StatxFlags, access, statx};
use rustix::io::Errno;
use share::Terms;

use crate::problem::{Cause, Problem, Result};
use crate::{cephfs, in_time};

/// What the unit of the service hides (`ProtectHome=`).
const HOMES: [&str; 3] = ["/home", "/root", "/run/user"];

/// The absolute path of a share's directory, however long its storage takes to answer. A directory in CephFS is looked at when it is
/// opened.
///
/// # Errors
/// The directory is missing, is not a directory, or this process does not have the permissions that the share needs.
pub(crate) fn check(name: &str, path: &Path, terms: Terms) -> Result<PathBuf> {
    let refuse = |why: &str, advice: String| {
        Problem::new(Cause::Directory, format!("share {name}: {} {why}", path.display()), advice)
    };
    if let Some(at) = cephfs::absolute(path) {
        return at.map_err(|why| {
            refuse(why, "Write cephfs: and the path from the top of the file system.".to_owned())
        });
    }
    let absolute = path.canonicalize().map_err(|e| match e.kind() {
        ErrorKind::NotFound => refuse("does not exist", how_to_create(path)),
        _ => refuse(&format!("cannot be used: {e}"), String::new()),
    })?;
    let found = fs::metadata(&absolute);
    if !found.map_err(|e| refuse(&format!("cannot be used: {e}"), String::new()))?.is_dir() {
        return Err(refuse("is not a directory", "A share serves a directory.".to_owned()));
    }
    if access(&absolute, Access::READ_OK | Access::EXEC_OK).is_err() {
        return Err(refuse(
            "may not be read by this user",
            "Change its mode, or start as another user.".to_owned(),
        ));
    }
    if !terms.contains(Terms::READ_ONLY)
        && let Err(errno) = access(&absolute, Access::WRITE_OK)
    {
        // What nobody can write is served read-only. What only this process cannot write is a mistake in its unit.
        if errno != Errno::ROFS || is_read_only_here_alone(&absolute) {
            let (why, advice) = not_writable(errno);
            return Err(refuse(why, advice.to_owned()));
        }
    }
    Ok(absolute)
}

/// The path from the top of this machine, or where it is in CephFS, without a look at the storage.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    match cephfs::absolute(path) {
        Some(at) => at.unwrap_or_else(|_| path.to_owned()),
        None => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    }
}

fn how_to_create(path: &Path) -> String {
    let create = format!("Create it: mkdir -p {}", path.display());
    if HOMES.iter().any(|home| path.starts_with(home)) {
        return create
            + "  If it exists, the service does not see it without the drop-in homes.conf (docs/service.md).";
    }
    create
}

/// Whether a path is below a mount that is read-only, of a file system that is not. systemd makes such mounts for services.
fn is_read_only_here_alone(path: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID);
    found.is_ok_and(|found| is_mounted_read_only(&mounts, found.stx_mnt_id))
}

/// proc_pid_mountinfo(5): the first field is the number of the mount, the sixth are its options, the last are those of the file
/// system.
fn is_mounted_read_only(mounts: &str, number: u64) -> bool {
    let has_ro = |options: Option<&str>| {
        options.is_some_and(|options| options.split(',').any(|option| option == "ro"))
    };
    let number = number.to_string();
    let mount = mounts.lines().find(|line| line.split(' ').next() == Some(&number));
    mount.is_some_and(|line| has_ro(line.split(' ').nth(5)) && !has_ro(line.split(' ').next_back()))
}

/// Why a directory may not be written, and what to do.
fn not_writable(errno: Errno) -> (&'static str, &'static str) {
    match errno {
        Errno::ROFS => (
            "is on a file system that is read-only for this process",
            "Let the service write there with the drop-in paths.conf (docs/service.md), or make the share read-only \
             (read-only = true in the file).",
        ),
        _ => (
            "may not be written by this user",
            "Change its mode, start as another user, or make the share read-only (read-only = true in the file).",
        ),
    }
}

/// Like [`check`], for a caller that must not wait for a storage that does not answer.
///
/// # Errors
/// Those of [`check`], and that the storage does not answer.
pub(crate) fn check_in_time(name: &str, path: &Path, terms: Terms) -> Result<PathBuf> {
    let asked = (name.to_owned(), path.to_owned());
    in_time::answer(move || check(&asked.0, &asked.1, terms)).unwrap_or_else(|| Err(no_answer(name, path)))
}

/// The problem of a storage that does not answer.
pub(crate) fn no_answer(name: &str, path: &Path) -> Problem {
    let what = format!("share {name}: the storage of {} does not answer", path.display());
    Problem::new(Cause::Silent, what, "Look at what is mounted there, and try again.")
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
    fn what_the_service_keeps_from_the_server_is_explained() {
        let problem = checked("/home/no-such-user/share").unwrap_err();
        assert!(problem.advice.contains("homes.conf"), "{problem:?}");
        assert!(not_writable(Errno::ROFS).1.contains("paths.conf"));
        assert!(not_writable(Errno::ACCESS).0.contains("by this user"));
        let mounts = "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                      22 21 8:1 / /srv ro,nosuid - ext4 /dev/sda1 rw,errors=remount-ro\n\
                      23 21 8:2 / /mnt ro,relatime - ext4 /dev/sdb1 ro\n";
        let found = [1, 21, 22, 23].map(|number| is_mounted_read_only(mounts, number));
        assert_eq!(found, [false, false, true, false]);
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
}
