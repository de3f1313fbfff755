//! Reserved names, which do not exist for clients: those of the depot and of the snapshots' folder, and those with a special
//! meaning to the file system.
//!
//! On CephFS, creating a directory in `.snap` makes a snapshot; `.zfs` of ZFS leads to the snapshots. Clients cannot
//! look up, list, create, remove or rename these names, in any directory and in any case, so that nobody can tell that
//! they exist. On other file systems they are ordinary names.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, open};
use storage::depot::is_depot_name;
use storage::{Error, ReservedNames, Result};

use crate::attributes::{device_of, stat};
use crate::errno::from_errno;
use crate::probe;
use crate::snapshot_folder::is_folder_name;

/// statfs(2) of CephFS and ZFS.
const CEPHFS_MAGIC: i64 = 0x00c3_6400;
const ZFS_MAGIC: i64 = 0x2fc1_2fc1;
const FUSE_MAGIC: i64 = 0x6573_5546;
/// The name on CephFS unless the mount sets another one (mount.ceph(8), `snapdirname`).
const CEPHFS_NAME: &str = ".snap";
const ZFS_NAME: &str = ".zfs";

/// The reserved names.
#[derive(Debug)]
pub(crate) struct Reserved {
    of_file_system: ReservedNames,
    /// Those of them that were given.
    given: Vec<String>,
}

impl Reserved {
    /// The names reserved by the file system of this root, and the `given` names.
    ///
    /// # Errors
    /// [`Error::NotSupported`] if the file system has a reserved name that it does not tell and that is not given.
    pub(crate) fn of(root: &OwnedFd, given: &[String]) -> Result<Self> {
        let OfFileSystem { mut names, is_complete } = of_file_system(root)?;
        if !is_complete && given.is_empty() {
            return Err(Error::NotSupported);
        }
        names.extend_from_slice(given);
        if !names.is_empty() {
            tracing::info!("names hidden from clients: {}", names.join(", "));
        }
        Ok(Self { of_file_system: names.into_iter().collect(), given: given.to_vec() })
    }

    /// Whether a name is reserved.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        is_depot_name(name) || is_folder_name(name) || self.of_file_system.has(name)
    }

    /// The names that were given.
    pub(crate) fn given(&self) -> &[String] {
        &self.given
    }
}

/// Whether the file system of this directory has a reserved name that it does not tell: ceph-fuse with another
/// `client_snapdir` than `.snap`. [`LocalStore::open`](crate::LocalStore::open) then needs the name among
/// [`reserved_names`](crate::LocalOptions::reserved_names).
///
/// # Errors
/// The directory cannot be opened.
pub fn lacks_reserved_names(directory: &Path) -> Result<bool> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = open(directory, flags, Mode::empty()).map_err(from_errno)?;
    Ok(!of_file_system(&root)?.is_complete)
}

/// The names that a file system reserves.
#[derive(Debug, PartialEq, Eq)]
struct OfFileSystem {
    names: Vec<String>,
    /// Whether these are all of them.
    is_complete: bool,
}

fn of_file_system(root: &OwnedFd) -> Result<OfFileSystem> {
    let magic = probe::file_system(root)?;
    if !matches!(magic, CEPHFS_MAGIC | ZFS_MAGIC | FUSE_MAGIC) {
        return Ok(OfFileSystem { names: Vec::new(), is_complete: true });
    }
    let device = device_of(&stat(root)?);
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let mount = Mount::of(&mounts, &format!("{}:{}", device.major, device.minor));
    // A snapshot directory exists in every directory that is not in a snapshot, but in no listing.
    let is_complete = !mount.is_ceph_fuse() || is_looked_up(root, CEPHFS_NAME);
    Ok(OfFileSystem { names: names_of(magic, &mount), is_complete })
}

fn is_looked_up(root: &OwnedFd, name: &str) -> bool {
    rustix::fs::statat(root, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
}

fn names_of(magic: i64, mount: &Mount<'_>) -> Vec<String> {
    match magic {
        ZFS_MAGIC => vec![ZFS_NAME.to_owned()],
        CEPHFS_MAGIC => vec![mount.option("snapdirname").unwrap_or_else(|| CEPHFS_NAME.to_owned())],
        FUSE_MAGIC if mount.is_ceph_fuse() => vec![CEPHFS_NAME.to_owned()],
        _ => Vec::new(),
    }
}

/// What the kernel reports about a mount: its type and the options of its file system. proc_pid_mountinfo(5)
#[derive(Debug, Default, PartialEq, Eq)]
struct Mount<'a> {
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    /// The mount of this device; empty if there is none.
    fn of(mounts: &'a str, device: &str) -> Self {
        let mut of_device = mounts.lines().filter(|line| line.split(' ').nth(2) == Some(device));
        let found = of_device.find_map(|line| {
            // After a lone hyphen: type, source, options.
            let mut last = line.split_once(" - ")?.1.split(' ');
            Some(Self { kind: last.next()?, options: last.nth(1)? })
        });
        found.unwrap_or_default()
    }

    fn is_ceph_fuse(&self) -> bool {
        self.kind.starts_with("fuse.ceph")
    }

    fn option(&self, key: &str) -> Option<String> {
        let mut options = self.options.split(',').filter_map(|option| option.split_once('='));
        options.find(|(name, _)| *name == key).map(|(_, value)| unescaped(value))
    }
}

/// The kernel writes characters that would separate options as a backslash and three octal digits.
fn unescaped(value: &str) -> String {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, behind)) = rest.split_once('\\') {
        text.push_str(before);
        let coded = behind.get(..3).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match coded {
            Some(byte) => text.push(char::from(byte)),
            None => text.push('\\'),
        }
        rest = behind.get(if coded.is_some() { 3 } else { 0 }..).unwrap_or_default();
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "22 1 8:2 / / rw - ext4 /dev/sda2 rw,errors=remount-ro\n\
        31 22 0:41 / /c rw,relatime shared:1 - ceph 10.0.0.1:6789:/ rw,name=admin,secret=<hidden>,acl\n\
        32 22 0:42 / /d rw - ceph 10.0.0.1:6789:/ rw,snapdirname=.back\\040ups\\054x,acl\n\
        33 22 0:43 / /e rw - fuse.ceph-fuse ceph-fuse rw,user_id=0\n\
        34 22 0:44 / /f rw - fuse.sshfs sshfs rw,user_id=0\n";

    fn names(magic: i64, device: &str) -> Vec<String> {
        names_of(magic, &Mount::of(MOUNTS, device))
    }

    #[test]
    fn the_mount_says_how_its_snapshots_are_called() {
        assert_eq!(names(CEPHFS_MAGIC, "0:41"), [".snap"]);
        assert_eq!(names(CEPHFS_MAGIC, "0:42"), [".back ups,x"]);
        assert_eq!(names(CEPHFS_MAGIC, "0:99"), [".snap"], "not to be found: as it is without a word");
        assert_eq!(names(FUSE_MAGIC, "0:43"), [".snap"]);
        assert_eq!(names(ZFS_MAGIC, "0:99"), [".zfs"]);
        assert!(names(FUSE_MAGIC, "0:44").is_empty() && names(0xef53, "8:2").is_empty());
        assert_eq!(unescaped("a\\b\\"), "a\\b\\");
    }

    #[test]
    fn names_are_reserved_where_they_mean_something_and_the_depots_everywhere() {
        let of = |names: &[&str]| Reserved { of_file_system: names.iter().collect(), given: Vec::new() };
        let ceph = of(&[".snap"]);
        assert!(ceph.has(b".SNAP") && ceph.has(b".anabranch-streams") && !ceph.has(b".zfs"));
        assert!(!of(&[]).has(b".snap") && of(&[]).has(b".anabranch-streams"));
        assert!(of(&[]).has(b".Anabranch-Snapshots"));
    }
}
