//! The directory below: what is asked of the file system is done there, by root. The kernel has checked permissions before.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use fuser::{FileAttr, FileType as Kind, TimeOrNow};
use parking_lot::Mutex;
use rustix::fs::{
    self, AtFlags, CWD, FileType, Gid, Mode, OFlags, RawDir, RenameFlags, SeekFrom, StatVfs, Timestamps, Uid,
    XattrFlags,
};
use rustix::io::Errno;
use rustix::mount::{OpenTreeFlags, open_tree};
use storage_local::kernel_handle::{name_to_handle, open_by_handle};

use crate::attributes::{attributes, kind, to_set};
use crate::nodes::{Found, Nodes};
use crate::opens::{Open, Opens};

/// The number of the root, for the kernel.
const ROOT: u64 = 1;
/// The access list that new objects of a directory get (acl(5)).
const DEFAULT_ACL: &str = "system.posix_acl_default";

/// Bytes of a directory that are read at a time: at least what the kernel takes at a time.
const LISTING: usize = 32 << 10;

/// An object: its attributes, and its generation.
pub(crate) type Entry = (FileAttr, u64);

/// A name in a directory.
#[derive(Debug)]
pub(crate) struct Listed<'a> {
    pub(crate) name: &'a OsStr,
    /// The number of its object.
    pub(crate) number: u64,
    /// The kind of its object.
    pub(crate) kind: Kind,
    /// The place behind it.
    pub(crate) next: u64,
}

/// Whether there is room for more names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Room {
    Left,
    None,
}

/// A directory, and all that was looked up in it.
#[derive(Debug)]
pub(crate) struct Below {
    /// The directory in a mount of its own: what is shown may lie on top of it.
    root: OwnedFd,
    /// That mount, which ends with this.
    _mount: OwnedFd,
    device: u64,
    root_inode: u64,
    nodes: Nodes,
    pub(crate) opens: Opens,
}

/// Who makes something, and with which permissions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Maker {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mode: u32,
    pub(crate) umask: u32,
}

/// Attributes to set; None: as they are.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) size: Option<u64>,
    pub(crate) accessed: Option<TimeOrNow>,
    pub(crate) changed: Option<TimeOrNow>,
}

impl Below {
    pub(crate) fn over(source: &Path) -> io::Result<Self> {
        let mount =
            open_tree(CWD, source, OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = fs::openat(&mount, ".", flags, Mode::empty())?;
        name_to_handle(root.as_fd())?;
        let stat = fs::fstat(&root)?;
        let (nodes, opens) = (Nodes::default(), Opens::default());
        Ok(Self { root, _mount: mount, device: stat.st_dev, root_inode: stat.st_ino, nodes, opens })
    }

    /// An object that the kernel knows by this number, opened with O_PATH.
    fn node(&self, number: u64) -> io::Result<OwnedFd> {
        if number == ROOT {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            return Ok(fs::openat(&self.root, ".", flags, Mode::empty())?);
        }
        match self.nodes.find(number)? {
            Found::Handle(handle) => Ok(open_by_handle(self.root.as_fd(), &handle)?),
            Found::Kept(fd) => Ok(fd.try_clone()?),
        }
    }

    /// An object that was found: from now on the kernel knows it.
    fn enter(&self, fd: BorrowedFd<'_>) -> io::Result<Entry> {
        let stat = fs::fstat(fd)?;
        if stat.st_dev != self.device {
            // Its numbers are not of this file system.
            return Err(Errno::XDEV.into());
        }
        if stat.st_ino == self.root_inode {
            return Ok((attributes(&stat, ROOT), 0));
        }
        let generation = self.nodes.enter(stat.st_ino, name_to_handle(fd)?);
        Ok((attributes(&stat, stat.st_ino), generation))
    }

    /// The object of a name. `.` and `..` are asked for by who has a handle: `.` of any object.
    pub(crate) fn lookup(&self, parent: u64, name: &OsStr) -> io::Result<Entry> {
        if name == "." {
            let node = self.node(parent)?;
            // The kernel asks for what it does not have: nobody has it open, and without a name it is gone.
            let is_there = fs::fstat(&node)?.st_nlink > 0;
            return if is_there { self.enter(node.as_fd()) } else { Err(Errno::STALE.into()) };
        }
        if parent == ROOT && name == ".." {
            return Err(Errno::NOENT.into());
        }
        self.found(&self.node(parent)?, name)
    }

    fn found(&self, parent: &OwnedFd, name: &OsStr) -> io::Result<Entry> {
        self.enter(beheld(parent, name)?.as_fd())
    }

    pub(crate) fn attributes(&self, number: u64) -> io::Result<FileAttr> {
        Ok(attributes(&fs::fstat(self.node(number)?)?, number))
    }

    pub(crate) fn change(&self, number: u64, changes: &Changes) -> io::Result<FileAttr> {
        let node = self.node(number)?;
        if changes.uid.is_some() || changes.gid.is_some() {
            let (uid, gid) = (changes.uid.map(Uid::from_raw), changes.gid.map(Gid::from_raw));
            fs::chownat(&node, "", uid, gid, AtFlags::EMPTY_PATH)?;
        }
        if let Some(mode) = changes.mode {
            fs::chmod(path_of(&node), Mode::from_raw_mode(mode & 0o7777))?;
        }
        if let Some(size) = changes.size {
            fs::ftruncate(reopened(&node, OFlags::WRONLY)?, size)?;
        }
        if changes.accessed.is_some() || changes.changed.is_some() {
            let times = Timestamps {
                last_access: to_set(changes.accessed),
                last_modification: to_set(changes.changed),
            };
            fs::utimensat(CWD, path_of(&node), &times, AtFlags::empty())?;
        }
        Ok(attributes(&fs::fstat(&node)?, number))
    }

    pub(crate) fn target(&self, number: u64) -> io::Result<Vec<u8>> {
        Ok(fs::readlinkat(self.node(number)?, "", Vec::new())?.into_bytes())
    }

    pub(crate) fn make(&self, parent: u64, name: &OsStr, device: u32, by: Maker) -> io::Result<Entry> {
        let parent = self.node(parent)?;
        let kind = FileType::from_raw_mode(by.mode);
        fs::mknodat(&parent, name, kind, by.bits(), device.into())?;
        self.made(&parent, name, by)
    }

    pub(crate) fn make_directory(&self, parent: u64, name: &OsStr, by: Maker) -> io::Result<Entry> {
        let parent = self.node(parent)?;
        fs::mkdirat(&parent, name, by.bits())?;
        self.made(&parent, name, by)
    }

    pub(crate) fn make_link(&self, parent: u64, name: &OsStr, to: &Path, by: Maker) -> io::Result<Entry> {
        let parent = self.node(parent)?;
        fs::symlinkat(to, &parent, name)?;
        let group = by.group_in(&parent)?;
        fs::chownat(&parent, name, Some(Uid::from_raw(by.uid)), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
        self.found(&parent, name)
    }

    /// Makes a file, opens it, and gives it a number.
    pub(crate) fn create(
        &self,
        parent: u64,
        name: &OsStr,
        flags: i32,
        by: Maker,
    ) -> io::Result<(Entry, u64)> {
        let parent = self.node(parent)?;
        let new = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // One that is there now was made below meanwhile: the kernel looks again.
        let file = fs::openat(&parent, name, access(flags) | new, by.bits())
            .map_err(|e| if e == Errno::EXIST { Errno::STALE } else { e })?;
        let entry = self.made(&parent, name, by)?;
        Ok((entry, self.opens.enter(Open::File(file.into()))))
    }

    /// What was made belongs to its maker, and has the permissions that the file system below would have given it.
    fn made(&self, parent: &OwnedFd, name: &OsStr, by: Maker) -> io::Result<Entry> {
        let node = beheld(parent, name)?;
        let (uid, gid) = (Some(Uid::from_raw(by.uid)), Some(by.group_in(parent)?));
        fs::chownat(&node, "", uid, gid, AtFlags::EMPTY_PATH)?;
        let now = Mode::from_raw_mode(fs::fstat(&node)?.st_mode);
        let has_acl = fs::getxattr(path_of(parent), DEFAULT_ACL, &mut [0_u8; 0][..]).is_ok();
        let (asked, umask) = (by.bits(), Mode::from_raw_mode(by.umask));
        // With an access list to inherit, the mask of who makes it does not count (acl(5)).
        let permissions = if has_acl {
            now | (asked & (Mode::SUID | Mode::SGID))
        } else {
            (asked - umask) | (now & Mode::SGID)
        };
        if permissions != now {
            fs::chmod(path_of(&node), permissions)?;
        }
        self.enter(node.as_fd())
    }

    pub(crate) fn link(&self, number: u64, parent: u64, name: &OsStr) -> io::Result<Entry> {
        let (node, parent) = (self.node(number)?, self.node(parent)?);
        fs::linkat(CWD, path_of(&node), &parent, name, AtFlags::SYMLINK_FOLLOW)?;
        self.found(&parent, name)
    }

    pub(crate) fn remove(&self, parent: u64, name: &OsStr, is_directory: bool) -> io::Result<()> {
        let parent = self.node(parent)?;
        let removed = beheld(&parent, name)?;
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        fs::unlinkat(parent, name, flags)?;
        self.keep(removed);
        Ok(())
    }

    pub(crate) fn rename(
        &self,
        (parent, name): (u64, &OsStr),
        (to_parent, to_name): (u64, &OsStr),
        flags: u32,
    ) -> io::Result<()> {
        let (from, to) = (self.node(parent)?, self.node(to_parent)?);
        let replaced = beheld(&to, to_name);
        fs::renameat_with(from, name, to, to_name, RenameFlags::from_bits_retain(flags))?;
        replaced.into_iter().for_each(|replaced| self.keep(replaced));
        Ok(())
    }

    /// An object that has no name any more cannot be found by its handle: it is kept until nobody has it open.
    fn keep(&self, object: OwnedFd) {
        match fs::fstat(&object) {
            Ok(stat) if stat.st_nlink == 0 => self.nodes.keep(stat.st_ino, object),
            _ => (),
        }
    }

    /// The kernel forgets an object that it was told so often.
    pub(crate) fn forget(&self, number: u64, times: u64) {
        self.nodes.forget(number, times);
    }

    /// Flushes a directory.
    pub(crate) fn sync_directory(&self, open: u64) -> io::Result<()> {
        match &*self.opens.find(open)? {
            Open::Directory(directory) => Ok(fs::fsync(&*directory.lock())?),
            Open::File(_) => Err(Errno::NOTDIR.into()),
        }
    }

    pub(crate) fn open(&self, number: u64, flags: i32) -> io::Result<u64> {
        let file = reopened(&self.node(number)?, access(flags))?;
        Ok(self.opens.enter(Open::File(file.into())))
    }

    pub(crate) fn open_directory(&self, number: u64) -> io::Result<u64> {
        let directory = reopened(&self.node(number)?, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(self.opens.enter(Open::Directory(Mutex::new(directory))))
    }

    /// Tells `tell` what a directory holds, from a place on, until it has no more room.
    pub(crate) fn list(
        &self,
        open: u64,
        from: u64,
        mut tell: impl FnMut(Listed<'_>) -> Room,
    ) -> io::Result<()> {
        let open = self.opens.find(open)?;
        let Open::Directory(directory) = &*open else { return Err(Errno::NOTDIR.into()) };
        let directory = directory.lock();
        fs::seek(&*directory, SeekFrom::Start(from))?;
        let mut buffer = [MaybeUninit::uninit(); LISTING];
        let mut entries = RawDir::new(&*directory, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let listed = Listed {
                name: OsStr::from_bytes(entry.file_name().to_bytes()),
                number: entry.ino(),
                kind: kind(entry.file_type()),
                next: entry.next_entry_cookie(),
            };
            if tell(listed) == Room::None {
                break;
            }
        }
        Ok(())
    }

    pub(crate) fn space(&self) -> io::Result<StatVfs> {
        Ok(fs::fstatvfs(&self.root)?)
    }

    pub(crate) fn set_xattr(&self, number: u64, name: &OsStr, value: &[u8], flags: i32) -> io::Result<()> {
        let flags = XattrFlags::from_bits_retain(flags.unsigned_abs());
        Ok(fs::setxattr(path_of(&self.node(number)?), name, value, flags)?)
    }

    /// The value of an extended attribute, or an empty one if there is no room: the length is what is asked for then.
    pub(crate) fn xattr(&self, number: u64, name: &OsStr, room: u32) -> io::Result<(usize, Vec<u8>)> {
        let node = self.node(number)?;
        in_room(room, |value| fs::getxattr(path_of(&node), name, value))
    }

    /// The names of the extended attributes, each with a zero byte after it; as for [`Below::xattr`].
    pub(crate) fn xattr_names(&self, number: u64, room: u32) -> io::Result<(usize, Vec<u8>)> {
        let node = self.node(number)?;
        in_room(room, |names| fs::listxattr(path_of(&node), names))
    }

    pub(crate) fn remove_xattr(&self, number: u64, name: &OsStr) -> io::Result<()> {
        Ok(fs::removexattr(path_of(&self.node(number)?), name)?)
    }
}

impl Maker {
    /// The permissions, before the mask of who makes it.
    fn bits(self) -> Mode {
        Mode::from_raw_mode(self.mode & 0o7777)
    }

    /// The group of what is made in a directory: the directory's if its set-group-ID bit is set (inode(7)).
    fn group_in(self, parent: &OwnedFd) -> io::Result<Gid> {
        let parent = fs::fstat(parent)?;
        let is_inherited = Mode::from_raw_mode(parent.st_mode).contains(Mode::SGID);
        Ok(Gid::from_raw(if is_inherited { parent.st_gid } else { self.gid }))
    }
}

fn in_room(
    room: u32,
    read: impl FnOnce(&mut [u8]) -> rustix::io::Result<usize>,
) -> io::Result<(usize, Vec<u8>)> {
    let mut value = vec![0; usize::try_from(room).unwrap_or_default()];
    let length = read(&mut value)?;
    value.truncate(length);
    Ok((length, value))
}

/// The path of an object that is open. Calls without a form for O_PATH take it (proc(5)).
fn path_of(node: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", node.as_raw_fd())
}

/// The object of a name, opened with O_PATH.
fn beheld(parent: &OwnedFd, name: &OsStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(fs::openat(parent, name, flags, Mode::empty())?)
}

fn reopened(node: &OwnedFd, flags: OFlags) -> io::Result<OwnedFd> {
    Ok(fs::open(path_of(node), flags | OFlags::CLOEXEC, Mode::empty())?)
}

fn flags_of(flags: i32) -> OFlags {
    OFlags::from_bits_retain(flags.cast_unsigned())
}

/// The access that an opening asks for. The kernel has done the rest: it says where to write also with O_APPEND, and has truncated.
fn access(flags: i32) -> OFlags {
    flags_of(flags) & (OFlags::RWMODE | OFlags::SYNC | OFlags::DSYNC)
}

/// Writes, as far as there is room. Root does not lose the set-user-ID and set-group-ID bits of a file by writing; whoever is said to
/// do so loses them here (write(2)).
pub(crate) fn write(file: &File, data: &[u8], at: u64, ends_set_id: bool) -> io::Result<usize> {
    let mut written = 0;
    while let Some(rest) = data.get(written..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pwrite(file, rest, at + written as u64) {
            Ok(some) => written += some,
            Err(_) if written > 0 => break,
            Err(e) => return Err(e.into()),
        }
    }
    if ends_set_id {
        let mode = Mode::from_raw_mode(fs::fstat(file)?.st_mode);
        let group = if mode.contains(Mode::XGRP) { Mode::SGID } else { Mode::empty() };
        let after = mode - Mode::SUID - group;
        if after != mode {
            fs::fchmod(file, after)?;
        }
    }
    Ok(written)
}

/// Reads at most so many bytes.
pub(crate) fn read(file: &File, at: u64, bytes: u32) -> io::Result<Vec<u8>> {
    let mut data = vec![0; usize::try_from(bytes).unwrap_or_default()];
    let mut filled = 0;
    while let Some(rest) = data.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pread(file, rest, at + filled as u64)? {
            0 => break,
            some => filled += some,
        }
    }
    data.truncate(filled);
    Ok(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_found_again_by_its_number() {
        let source = tempfile::tempdir().unwrap();
        std::fs::create_dir(source.path().join("d")).unwrap();
        std::fs::write(source.path().join("d/file"), "content").unwrap();
        // Without root, there is no mount.
        let Ok(below) = Below::over(source.path()) else { return };
        let (directory, _) = below.lookup(ROOT, OsStr::new("d")).unwrap();
        let (file, generation) = below.lookup(directory.ino.0, OsStr::new("file")).unwrap();
        assert_eq!(below.lookup(file.ino.0, OsStr::new(".")).unwrap(), (file, generation));
        assert_eq!(below.lookup(directory.ino.0, OsStr::new("..")).unwrap().0.ino.0, ROOT);
        assert!(below.lookup(ROOT, OsStr::new("..")).is_err());
        assert_eq!(below.lookup(ROOT, OsStr::new(".")).unwrap().0.ino.0, ROOT);
    }

    #[test]
    fn who_writes_ends_set_id() {
        let source = tempfile::tempdir().unwrap();
        let file = File::create(source.path().join("file")).unwrap();
        let mode = |mode| fs::fchmod(&file, Mode::from_raw_mode(mode)).unwrap();
        let now = || fs::fstat(&file).unwrap().st_mode & 0o7777;
        for (before, after) in [(0o6775, 0o775), (0o2664, 0o2664), (0o4644, 0o644)] {
            mode(before);
            assert_eq!(write(&file, b"data", 0, true).unwrap(), 4);
            assert_eq!(now(), after, "{before:o}");
        }
    }
}
