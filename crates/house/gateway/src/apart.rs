//! Directories that must not contain each other: those of shares and of pools, and the state directory. A pool holds the shares that the
//! server made in it.
//!
//! Directories are compared by their paths without symbolic links, and by their places on their file systems, so that
//! it does not matter through which mount a directory is named. An overlay shows the directories of its layers. A file
//! system that is mounted below a share's directory does not belong to the share (`RESOLVE_NO_XDEV`).

use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use crate::directories::absolute;
use crate::problem::{Cause, Problem, Result};
use crate::{cephfs, in_time};

/// How many overlays may lie on each other. Linux: `FILESYSTEM_MAX_STACK_DEPTH` in linux/fs.h.
const STACKED_MAX: usize = 2;

/// The directories that shares use, pools, and the state directory.
#[derive(Debug)]
pub(crate) struct Apart {
    mounts: Vec<Mount>,
    state: Location,
    shares: Vec<(String, Location)>,
    pools: Vec<(String, Location)>,
    /// What the server removes, or will.
    doomed: Vec<(String, Location)>,
}

/// The place of a directory.
#[derive(Debug)]
struct Location {
    /// Absolute, without symbolic links.
    path: PathBuf,
    /// File systems, and the paths on them: one, as far as the system reports it, and those below an overlay.
    on_disk: Vec<(String, PathBuf)>,
}

/// One line of `/proc/self/mountinfo` (proc(5)).
#[derive(Debug)]
struct Mount {
    file_system: String,
    /// The directory of the file system that is mounted.
    root: PathBuf,
    point: PathBuf,
    /// The directories that an overlay shows.
    layers: Vec<PathBuf>,
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
        let mounts = read_mounts(&mountinfo().unwrap_or_default());
        let state = Location::of(directory, &mounts);
        Self { mounts, state, shares: Vec::new(), pools: Vec::new(), doomed: Vec::new() }
    }

    /// Adds the directory of a share.
    pub(crate) fn take(&mut self, name: &str, directory: &Path) {
        self.shares.push((name.to_owned(), Location::of(directory, &self.mounts)));
    }

    /// Adds the directory of a share whose storage does not answer, by its path as given.
    pub(crate) fn take_unseen(&mut self, name: &str, directory: &Path) {
        self.shares.push((name.to_owned(), Location::at(absolute(directory), &self.mounts)));
    }

    /// Adds a pool, in which no other share may be than those that the server made in it.
    pub(crate) fn take_pool(&mut self, name: &str, directory: &Path) {
        self.pools.push((name.to_owned(), Location::of(directory, &self.mounts)));
    }

    /// Adds a directory that the server made for this share, which is removed, and that goes with it. No share is served there.
    pub(crate) fn take_doomed(&mut self, name: &str, directory: &Path) {
        self.doomed.push((name.to_owned(), Location::at(absolute(directory), &self.mounts)));
    }

    /// The share, if any, whose directory is this one, holds it or lies in it.
    pub(crate) fn share_at(&self, directory: &Path) -> Option<&str> {
        let place = Location::of(directory, &self.mounts);
        let (share, _) = self.shares.iter().find(|(_, taken)| place.lie(taken).is_some())?;
        Some(share)
    }

    /// Whether this directory may be a pool.
    ///
    /// # Errors
    /// The directory is, holds or lies in that of a share or another pool, or the state directory.
    pub(crate) fn check_pool(&self, name: &str, directory: &Path) -> Result<()> {
        let place = Location::of(directory, &self.mounts);
        let state = [("the state directory".to_owned(), &self.state)];
        let shares = self.shares.iter().map(|(name, at)| (format!("the directory of the share {name}"), at));
        let pools = self.pools.iter().map(|(name, at)| (format!("the pool {name}"), at));
        for (other, at) in state.into_iter().chain(shares).chain(pools) {
            let Some(lie) = place.lie(at) else { continue };
            let (directory, at) = (directory.display(), at.path.display());
            let what = format!("the directory {directory} of the pool {name} {} {other} ({at})", lie.how());
            return Err(Problem::new(Cause::Directory, what, "Declare a directory that only the pool uses."));
        }
        Ok(())
    }

    /// Whether a share may serve this directory.
    ///
    /// # Errors
    /// The directory is, holds or lies in that of another share, a pool, the state directory, or what the server removes.
    pub(crate) fn check(&self, name: &str, directory: &Path) -> Result<()> {
        self.check_place(name, directory, &Location::of(directory, &self.mounts))
    }

    /// The same for a path without symbolic links. No storage is asked.
    pub(crate) fn check_resolved(&self, name: &str, directory: &Path) -> Result<()> {
        self.check_place(name, directory, &Location::at(absolute(directory), &self.mounts))
    }

    fn check_place(&self, name: &str, directory: &Path, place: &Location) -> Result<()> {
        if let Some(lie) = place.lie(&self.state) {
            let how = lie.how();
            let (directory, state) = (directory.display(), self.state.path.display());
            return Err(Problem::new(
                Cause::Directory,
                format!("the directory {directory} of the share {name} {how} the state directory {state}"),
                "Clients could read the keys and the password hashes there: serve another directory, or pass another state \
                 directory: --state DIR",
            ));
        }
        if let Some((pool, lie)) = self.pools.iter().find_map(|(pool, at)| Some((pool, place.lie(at)?))) {
            let (directory, how) = (directory.display(), lie.how());
            return Err(Problem::new(
                Cause::Directory,
                format!("the directory {directory} of the share {name} {how} the pool {pool}"),
                format!(
                    "Let the server make the directory (share create {name} --pool {pool} --size SIZE), or serve another one."
                ),
            ));
        }
        if let Some((gone, at, lie)) =
            self.doomed.iter().find_map(|(gone, at)| Some((gone, at, place.lie(at)?)))
        {
            let (directory, how, at) = (directory.display(), lie.how(), at.path.display());
            return Err(Problem::new(
                Cause::Directory,
                format!(
                    "the directory {directory} of the share {name} {how} that of the deleted share {gone} ({at}), which the server made \
                     and removes when the time of that share is over"
                ),
                "Bring that share back, or have its files kept: share purge NAME --keep-files. If they are being removed already, wait \
                 until they are gone (pool list).",
            ));
        }
        let lies = |(other, taken)| Some((other, taken, place.lie(taken)?));
        match self.shares.iter().map(|(other, taken)| (other, taken)).find_map(lies) {
            Some((other, taken, lie)) => Err(overlap(name, directory, lie, other, &taken.path)),
            None => Ok(()),
        }
    }
}

impl Lie {
    fn how(self) -> &'static str {
        match self {
            Self::Same => "is",
            Self::In => "lies in",
            Self::Around => "holds",
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
        Self::at(resolved_in_time(directory), mounts)
    }

    fn at(path: PathBuf, mounts: &[Mount]) -> Self {
        let on_disk = on_disk(&path, mounts, STACKED_MAX);
        Self { path, on_disk }
    }

    fn lie(&self, other: &Self) -> Option<Lie> {
        let of_pair = |mine: &(String, PathBuf), theirs: &(String, PathBuf)| {
            if mine.0 == theirs.0 { lie(&mine.1, &theirs.1) } else { None }
        };
        let on_disk =
            || self.on_disk.iter().find_map(|mine| other.on_disk.iter().find_map(|o| of_pair(mine, o)));
        lie(&self.path, &other.path).or_else(on_disk)
    }
}

/// The file systems on which a directory is, and its paths there.
fn on_disk(path: &Path, mounts: &[Mount], stacked: usize) -> Vec<(String, PathBuf)> {
    // Of several mounts at one place, the last one is visible.
    let mount = mounts.iter().filter(|mount| path.starts_with(&mount.point));
    let Some(mount) = mount.max_by_key(|mount| mount.point.components().count()) else { return Vec::new() };
    let place = mount.root.join(path.strip_prefix(&mount.point).unwrap_or(path));
    let mut found = Vec::new();
    if let (Some(stacked), Ok(below)) = (stacked.checked_sub(1), place.strip_prefix("/")) {
        for layer in &mount.layers {
            found.extend(on_disk(&resolved_in_time(&layer.join(below)), mounts, stacked));
        }
    }
    found.push((mount.file_system.clone(), place));
    found
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

/// As [`resolved`], and the path as given if the storage does not answer.
fn resolved_in_time(path: &Path) -> PathBuf {
    let given = path.to_owned();
    in_time::answer(move || resolved(&given)).unwrap_or_else(|| absolute(path))
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

/// Whether something is mounted below a directory, or on it; or nobody knows.
pub(crate) fn mounted_below(directory: &Path) -> bool {
    let mounts = mountinfo().map(|text| read_mounts(&text));
    mounts.is_none_or(|mounts| mounts.iter().any(|mount| mount.point.starts_with(directory)))
}

/// `/proc/self/mountinfo`. Bytes of names that are no UTF-8 are written as their numbers are, so that no line is lost for them.
fn mountinfo() -> Option<String> {
    let bytes = fs::read("/proc/self/mountinfo").ok()?;
    Some(as_text(&bytes))
}

fn as_text(bytes: &[u8]) -> String {
    bytes.utf8_chunks().fold(String::new(), |mut text, chunk| {
        text += chunk.valid();
        for byte in chunk.invalid() {
            let _ = write!(text, "\\{byte:03o}"); // a string takes everything
        }
        text
    })
}

fn read_mounts(mountinfo: &str) -> Vec<Mount> {
    let of_line = |line: &str| {
        let (of_mount, of_file_system) = line.split_once(" - ")?;
        let mut fields = of_mount.split(' ').skip(2);
        let file_system = fields.next()?.to_owned();
        let (root, point) = (unescaped(fields.next()?), unescaped(fields.next()?));
        Some(Mount { file_system, root, point, layers: layers(of_file_system) })
    };
    mountinfo.lines().filter_map(of_line).collect()
}

/// The layers of an overlay, from its type and options. Linux: Documentation/filesystems/overlayfs.rst.
fn layers(of_file_system: &str) -> Vec<PathBuf> {
    let Some(("overlay", of_overlay)) = of_file_system.split_once(' ') else { return Vec::new() };
    let options = of_overlay.rsplit(' ').next().unwrap_or_default().split(',');
    let of_option = |option: &str| match option.split_once('=') {
        Some(("lowerdir", several)) => several.split(':').map(unescaped).collect(),
        Some(("lowerdir+" | "datadir+" | "upperdir", one)) => vec![unescaped(one)],
        _ => Vec::new(),
    };
    // One that is not absolute counts from where somebody was when it was mounted.
    options.flat_map(of_option).filter(|layer| layer.is_absolute()).collect()
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
    fn what_is_to_be_removed_is_served_by_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("pool/films/new")).unwrap();
        let mut apart = Apart::from_state(&at("state"));
        apart.take_doomed("films", &at("pool/films"));
        for place in ["pool", "pool/films", "pool/films/new"] {
            let refused = apart.check("docs", &at(place)).unwrap_err();
            assert!(refused.what.contains("that of the deleted share films"), "{refused:?}");
        }
        apart.check("docs", &at("pool/films-2")).unwrap();
        apart.take("docs", &at("pool/films/new"));
        assert_eq!((apart.share_at(&at("pool/films")), apart.share_at(&at("pool/x"))), (Some("docs"), None));
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

    #[test]
    fn a_mount_whose_name_is_no_text_is_a_mount() {
        let mounts = read_mounts(&as_text(
            b"22 1 8:1 / /mnt/\xff\\040x rw - ext4 /dev/sda1 rw\n23 1 8:2 / /srv rw - ext4 /dev/sda2 rw\n",
        ));
        let points: Vec<_> = mounts.into_iter().map(|mount| mount.point).collect();
        let odd = OsString::from_vec(b"/mnt/\xff x".to_vec());
        assert_eq!(points, [PathBuf::from(odd), PathBuf::from("/srv")]);
        assert!(mounted_below(Path::new("/")) && !mounted_below(Path::new("/no/such/directory")));
    }

    #[test]
    fn an_overlay_shows_its_layers() {
        let mounts = read_mounts(
            "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n\
             30 22 0:40 / /mnt/one rw - overlay none rw,lowerdir=/nowhere/a\\040b:/nowhere/c,upperdir=/nowhere/up,workdir=/nowhere/w\n\
             31 22 0:41 / /mnt/two rw - overlay none ro,lowerdir+=/mnt/one/x,lowerdir+=relative\n\
             32 22 0:40 /part /mnt/part rw - overlay none rw,lowerdir=/nowhere/a\\040b:/nowhere/c,upperdir=/nowhere/up\n\
             33 22 0:42 / /nowhere/self rw - overlay none ro,lowerdir=/nowhere/self\n",
        );
        let lie = |one: &str, other: &str| {
            Location::of(Path::new(one), &mounts).lie(&Location::of(Path::new(other), &mounts))
        };
        assert_eq!(lie("/mnt/one", "/nowhere/a b/state"), Some(Lie::Around));
        assert_eq!(lie("/mnt/one/x", "/nowhere/c/x"), Some(Lie::Same));
        assert_eq!(lie("/nowhere/up/x/y", "/mnt/one/x"), Some(Lie::In));
        assert_eq!(lie("/mnt/two", "/nowhere/c/x/state"), Some(Lie::Around));
        assert_eq!(lie("/mnt/part", "/nowhere/up/part/state"), Some(Lie::Around));
        assert_eq!(lie("/mnt/part", "/nowhere/up/state"), None);
        assert_eq!(lie("/mnt/one", "/nowhere/w"), None);
        assert_eq!(lie("/nowhere/self", "/nowhere/other"), None);
    }
}
