//! Directories that must not contain each other: those of two shares, or that of a share and the state directory.
//!
//! Directories are compared by their paths without symbolic links, and by their places on their file systems, so that
//! it does not matter through which mount a directory is named. A file system that is mounted below a share's directory
//! does not belong to the share (`RESOLVE_NO_XDEV`).

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use crate::directories::absolute;
use crate::problem::{Cause, Problem, Result};
use crate::{cephfs, in_time};

/// The directories that shares use, and the state directory.
#[derive(Debug)]
pub(crate) struct Apart {
    mounts: Vec<Mount>,
    state: Location,
    shares: Vec<(String, Location)>,
}

/// The place of a directory.
#[derive(Debug)]
struct Location {
    /// Absolute, without symbolic links.
    path: PathBuf,
    /// The file system, and the path on it; None: the system does not report it.
    on_disk: Option<(String, PathBuf)>,
}

/// One line of `/proc/self/mountinfo` (proc(5)).
#[derive(Debug)]
struct Mount {
    file_system: String,
    /// The directory of the file system that is mounted.
    root: PathBuf,
    point: PathBuf,
}

/// The relation of one directory to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    Same,
    In,
    Around,
}

impl Apart {
    /// Starts with this state directory, which may not exist yet.
    pub(crate) fn from_state(directory: &Path) -> Self {
        let mounts = read_mounts(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default());
        let state = Location::of(directory, &mounts);
        Self { mounts, state, shares: Vec::new() }
    }

    /// Adds the directory of a share.
    pub(crate) fn take(&mut self, name: &str, directory: &Path) {
        self.shares.push((name.to_owned(), Location::of(directory, &self.mounts)));
    }

    /// Adds the directory of a share whose storage does not answer, by its path as given.
    pub(crate) fn take_unseen(&mut self, name: &str, directory: &Path) {
        self.shares.push((name.to_owned(), Location::at(absolute(directory), &self.mounts)));
    }

    /// Whether a share may serve this directory.
    ///
    /// # Errors
    /// The directory is, holds or lies in that of another share, or the state directory.
    pub(crate) fn check(&self, name: &str, directory: &Path) -> Result<()> {
        let place = Location::of(directory, &self.mounts);
        if let Some(lie) = place.lie(&self.state) {
            let how = match lie {
                Lie::Same => "is",
                Lie::In => "lies in",
                Lie::Around => "holds",
            };
            let (directory, state) = (directory.display(), self.state.path.display());
            return Err(Problem::new(
                Cause::Directory,
                format!("the directory {directory} of the share {name} {how} the state directory {state}"),
                "Clients could read the keys and the password hashes there: serve another directory, or pass another state \
                 directory: --state DIR",
            ));
        }
        let lies = |(other, taken)| Some((other, taken, place.lie(taken)?));
        match self.shares.iter().map(|(other, taken)| (other, taken)).find_map(lies) {
            Some((other, taken, lie)) => Err(overlap(name, directory, lie, other, &taken.path)),
            None => Ok(()),
        }
    }
}

fn overlap(name: &str, directory: &Path, lie: Lie, other: &str, other_directory: &Path) -> Problem {
    let how = match lie {
        Lie::Same => "is served already, by",
        Lie::In => "lies in that of",
        Lie::Around => "holds that of",
    };
    Problem::new(
        Cause::Directory,
        format!(
            "the directory {} of the share {name} {how} the share {other} ({})",
            directory.display(),
            other_directory.display()
        ),
        "Locks and share modes would not hold between the two: serve a directory of its own.",
    )
}

impl Location {
    fn of(directory: &Path, mounts: &[Mount]) -> Self {
        let path = directory.to_owned();
        let resolved = in_time::answer(move || resolved(&path));
        Self::at(resolved.unwrap_or_else(|| absolute(directory)), mounts)
    }

    fn at(path: PathBuf, mounts: &[Mount]) -> Self {
        // Of several mounts at one place, the last one is visible.
        let mount = mounts.iter().filter(|mount| path.starts_with(&mount.point));
        let mount = mount.max_by_key(|mount| mount.point.components().count());
        let on_disk = mount.and_then(|mount| {
            let below = path.strip_prefix(&mount.point).ok()?;
            Some((mount.file_system.clone(), mount.root.join(below)))
        });
        Self { path, on_disk }
    }

    fn lie(&self, other: &Self) -> Option<Lie> {
        let on_disk = || match (&self.on_disk, &other.on_disk) {
            (Some((mine, path)), Some((theirs, other))) if mine == theirs => lie(path, other),
            _ => None,
        };
        lie(&self.path, &other.path).or_else(on_disk)
    }
}

fn lie(one: &Path, other: &Path) -> Option<Lie> {
    if one == other {
        Some(Lie::Same)
    } else if one.starts_with(other) {
        Some(Lie::In)
    } else if other.starts_with(one) {
        Some(Lie::Around)
    } else {
        None
    }
}

/// The path without symbolic links. The part that does not exist yet stays as written.
fn resolved(path: &Path) -> PathBuf {
    let path = absolute(path);
    if cephfs::path_of(&path).is_some() {
        return path;
    }
    let there = path.ancestors().find_map(|there| Some((there, there.canonicalize().ok()?)));
    let Some((there, mut resolved)) = there else { return path };
    for component in path.strip_prefix(there).unwrap_or_else(|_| Path::new("")).components() {
        match component {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::Normal(name) => resolved.push(name),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    resolved
}

fn read_mounts(mountinfo: &str) -> Vec<Mount> {
    let of_line = |line: &str| {
        let mut fields = line.split(' ').skip(2);
        let file_system = fields.next()?.to_owned();
        Some(Mount { file_system, root: unescaped(fields.next()?), point: unescaped(fields.next()?) })
    };
    mountinfo.lines().filter_map(of_line).collect()
}

/// Decodes blanks and similar characters, which are written as three octal digits.
fn unescaped(field: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = field.as_bytes();
    while let [first, after @ ..] = rest {
        let digits = after.get(..3).filter(|_| *first == b'\\').and_then(|d| std::str::from_utf8(d).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(3..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_share_lies_in_another_one_or_around_it() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for name in ["state", "a/inside", "ab"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        std::os::unix::fs::symlink(at("a"), at("link")).unwrap();
        let mut apart = Apart::from_state(&at("state"));
        apart.take("A", &at("a"));
        apart.check("b", &at("ab")).unwrap();
        let refused = |path: &Path| apart.check("b", path).unwrap_err().what;
        assert!(refused(&at("a")).contains("is served already, by the share A"));
        assert!(refused(&at("link")).contains("is served already, by the share A"));
        assert!(refused(&at("link/inside")).contains("lies in that of the share A"));
        assert!(refused(&at("state/../a/./inside")).contains("lies in that of the share A"));
    }

    #[test]
    fn the_state_directory_is_in_no_share_whether_it_is_there_or_not() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path();
        std::os::unix::fs::symlink(top, top.join("link")).unwrap();
        for state in [top.join("new/state"), top.join("link/new/state"), top.join("new/x/../state")] {
            let apart = Apart::from_state(&state);
            assert!(apart.check("a", top).unwrap_err().what.contains("of the share a holds the state"));
            assert!(apart.check("a", &top.join("new/state/x")).unwrap_err().what.contains("a lies in the"));
            assert!(apart.check("a", &top.join("new/state")).unwrap_err().what.contains("a is the state"));
            apart.check("a", &top.join("new/data")).unwrap();
        }
    }

    #[test]
    fn directories_in_cephfs_are_apart_from_each_other_and_from_those_of_the_machine() {
        let mut apart = Apart::from_state(Path::new("/var/lib/state"));
        apart.take("a", Path::new("cephfs:/a"));
        apart.take_unseen("data", Path::new("/"));
        let refused = |path: &str| apart.check("b", Path::new(path)).unwrap_err().what;
        assert!(refused("cephfs:/a").contains("is served already, by the share a"));
        assert!(refused("cephfs:/a/b").contains("lies in that of the share a"));
        assert!(refused("cephfs:/").contains("holds that of the share a"));
        apart.check("b", Path::new("cephfs:/ab")).unwrap();
    }

    #[test]
    fn it_does_not_matter_by_which_mount_a_directory_is_named() {
        let mounts = read_mounts(
            "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
             30 22 8:1 /srv/a\\040b /mnt/other rw - ext4 /dev/sda1 rw\n\
             31 22 8:2 / /var/lib rw - ext4 /dev/sda2 rw\n\
             32 22 8:2 /x /mnt/x rw - ext4 /dev/sda2 rw\n",
        );
        let lie = |one: &str, other: &str| {
            Location::of(Path::new(one), &mounts).lie(&Location::of(Path::new(other), &mounts))
        };
        assert_eq!(lie("/mnt/other/state", "/srv/a b"), Some(Lie::In));
        assert_eq!(lie("/srv", "/mnt/other"), Some(Lie::Around));
        assert_eq!(lie("/mnt/x", "/var/lib/x"), Some(Lie::Same));
        assert_eq!(lie("/mnt/x", "/var/lib/y"), None);
        assert_eq!(lie("/srv/a", "/mnt/other"), None);
    }
}
