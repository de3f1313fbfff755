//! Creating, linking, removing and renaming.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Statx, linkat, makedev, mkdirat, mknodat,
    openat, renameat_with, symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::path::DecInt;
use storage::{
    Capabilities, Device, Error, FileKind, Name, NewKind, NewNode, ObjectId, Replace, Result, Timestamp,
};

use crate::attributes::{btime_of, ctime_of, device_of, kind_of, stat, stat_name};
use crate::errno::from_errno;
use crate::node::LocalNode;
use crate::{descriptor, dos};

/// Flags that create a file for the server itself. They fail if the name is taken, even by a symbolic link.
const NEW_FILE: OFlags =
    OFlags::CREATE.union(OFlags::EXCL).union(OFlags::RDWR).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// In a directory that has been removed nothing is found: report the directory as stale, not the name as missing.
fn stale(error: Error) -> Error {
    if error == Error::NotFound { Error::Stale } else { error }
}

impl LocalNode {
    /// Makes an object. Returns it with the result of statx.
    pub(crate) fn make(&self, name: Name<'_>, new: &NewNode<'_>) -> Result<(Arc<Self>, Statx)> {
        self.check_enters(name)?;
        let begun = coarse_now();
        let opened = if new.kind == NewKind::Regular {
            Some(self.make_file(name, new).map_err(stale)?)
        } else {
            self.make_other(name, new).map_err(from_errno).map_err(stale)?;
            None
        };
        let completed = self.complete(name, opened, new, begun);
        if completed.as_ref().is_err_and(|e| *e != Error::Busy) {
            // The object is incomplete and must not stay.
            let flags = if new.kind == NewKind::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
            if let Err(errno) = unlinkat(&self.fd, name.as_bytes(), flags) {
                tracing::warn!("an object that could not be completed stays: {errno}");
            }
        }
        completed
    }

    /// Checks that a name may be entered in this directory: reserved names may not.
    fn check_enters(&self, name: Name<'_>) -> Result<()> {
        if self.kind != FileKind::Directory {
            return Err(Error::NotDirectory);
        }
        if self.store.reserved.has(name.as_bytes()) {
            Err(Error::PermissionDenied)
        } else {
            self.check_place()
        }
    }

    /// Checks that a name may be removed from this directory: reserved names do not exist for clients.
    fn check_has(&self, name: Name<'_>) -> Result<()> {
        if self.kind != FileKind::Directory {
            return Err(Error::NotDirectory);
        }
        if self.store.reserved.has(name.as_bytes()) { Err(Error::NotFound) } else { self.check_place() }
    }

    fn make_file(&self, name: Name<'_>, new: &NewNode<'_>) -> Result<OwnedFd> {
        // Special mode bits are set with the owner, not before.
        let mode = Mode::from_raw_mode(new.mode & 0o777);
        self.store.with_descriptor(|| openat(&self.fd, name.as_bytes(), NEW_FILE, mode))
    }

    /// Makes an object of a kind that creating does not open.
    fn make_other(&self, name: Name<'_>, new: &NewNode<'_>) -> std::result::Result<(), Errno> {
        let (dir, bytes) = (&self.fd, name.as_bytes());
        let mode = Mode::from_raw_mode(new.mode & 0o777);
        let node =
            |kind, device: Device| mknodat(dir, bytes, kind, mode, makedev(device.major, device.minor));
        match new.kind {
            NewKind::Regular => Err(Errno::INVAL),
            NewKind::Directory => mkdirat(dir, bytes, mode),
            NewKind::Symlink([]) => Err(Errno::INVAL),
            NewKind::Symlink(text) => symlinkat(text, dir, bytes),
            NewKind::Fifo => node(FileType::Fifo, Device::default()),
            NewKind::Socket => node(FileType::Socket, Device::default()),
            NewKind::BlockDevice(device) => node(FileType::BlockDevice, device),
            NewKind::CharDevice(device) => node(FileType::CharacterDevice, device),
        }
    }

    /// Gives a new object its owner and mode.
    ///
    /// # Errors
    /// [`Error::Busy`] when another object was moved over the name meanwhile. That object keeps its owner.
    fn complete(
        &self,
        name: Name<'_>,
        opened: Option<OwnedFd>,
        new: &NewNode<'_>,
        begun: Timestamp,
    ) -> Result<(Arc<Self>, Statx)> {
        let is_open = opened.is_some();
        let fd = match opened {
            Some(fd) => fd,
            None => self.store.pin(&self.fd, name.as_bytes(), ResolveFlags::empty())?,
        };
        let mut made = stat(&fd)?;
        if device_of(&made) != self.store.device || !(is_open || is_new(&made, new.kind, begun)) {
            return Err(Error::Busy);
        }
        let node = Self::new(&self.store, fd, is_open, &made);
        let is_owned = (made.stx_uid, made.stx_gid) == (new.uid, new.gid);
        let chown = !is_owned && self.store.capabilities.contains(Capabilities::OWNERS);
        if chown {
            node.set_owner(Some(new.uid), Some(new.gid))?;
        }
        let mode = new.mode & 0o7777;
        let chmod = node.kind != FileKind::Symlink && u32::from(made.stx_mode) & 0o7777 != mode;
        if chmod {
            node.set_mode(mode)?;
        }
        if chown || chmod {
            made = stat(&node.fd)?;
        }
        let node = self.store.cache.enter(node);
        let as_of = Some(ctime_of(&made));
        // Others may have found the object already, and know more.
        node.dos.lock().get_or_insert(dos::KnownDos::none(as_of));
        node.security.lock().get_or_insert(descriptor::KnownDescriptor::none(as_of));
        Ok((node, made))
    }

    pub(crate) fn add_name(&self, name: Name<'_>, target: &Self) -> Result<()> {
        self.check_enters(name)?;
        if target.kind == FileKind::Directory {
            return Err(Error::IsDirectory);
        }
        let (from, fd) = (&self.store.descriptors, DecInt::from_fd(&target.fd));
        let linked = linkat(from, fd, &self.fd, name.as_bytes(), AtFlags::SYMLINK_FOLLOW);
        linked.map_err(from_errno).map_err(stale)
    }

    pub(crate) fn remove_name(&self, name: Name<'_>, directory: bool) -> Result<()> {
        self.check_has(name)?;
        let stat = stat_name(&self.fd, name.as_bytes())?;
        match (kind_of(&stat), directory) {
            (FileKind::Directory, false) => Err(Error::IsDirectory),
            (FileKind::Directory, true) | (_, false) => {
                self.remove_known(name, ObjectId::live(stat.stx_ino), kind_of(&stat), stat.stx_nlink)
            }
            (_, true) => Err(Error::NotDirectory),
        }
    }

    /// Removes the name of an object whose attributes were just read. If another object has the name by now, that one
    /// is removed.
    pub(crate) fn remove_known(
        &self,
        name: Name<'_>,
        id: ObjectId,
        kind: FileKind,
        links: u32,
    ) -> Result<()> {
        self.check_has(name)?;
        let pinned = self.store.pin_for_removal(&self.fd, name.as_bytes(), kind);
        let flags = if kind == FileKind::Directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        unlinkat(&self.fd, name.as_bytes(), flags).map_err(|errno| match errno {
            // rmdir(2) allows either error.
            Errno::EXIST => Error::NotEmpty,
            other => from_errno(other),
        })?;
        self.store.let_go(id, kind, links);
        self.store.end_streams(pinned);
        Ok(())
    }

    pub(crate) fn move_name(
        &self,
        name: Name<'_>,
        to: &Self,
        to_name: Name<'_>,
        replace: Replace,
    ) -> Result<()> {
        if self.kind != FileKind::Directory || to.kind != FileKind::Directory {
            return Err(Error::NotDirectory);
        }
        if self.store.reserved.has(name.as_bytes()) {
            return Err(Error::NotFound);
        }
        self.check_place()?;
        to.check_enters(to_name)?;
        let (flags, replaced) = match replace {
            Replace::Never => (RenameFlags::NOREPLACE, None),
            Replace::Yes => (RenameFlags::empty(), stat_name(&to.fd, to_name.as_bytes()).ok()),
        };
        let pinned = replaced
            .as_ref()
            .and_then(|stat| self.store.pin_for_removal(&to.fd, to_name.as_bytes(), kind_of(stat)));
        let moved = renameat_with(&self.fd, name.as_bytes(), &to.fd, to_name.as_bytes(), flags);
        moved.map_err(|errno| match errno {
            Errno::EXIST if replace == Replace::Yes => Error::NotEmpty,
            other => from_errno(other),
        })?;
        if let Some(stat) = replaced {
            self.store.let_go(ObjectId::live(stat.stx_ino), kind_of(&stat), stat.stx_nlink);
        }
        self.store.end_streams(pinned);
        self.store.handles.moved(to, to_name);
        Ok(())
    }
}

impl crate::store::Shared {
    /// Notes that an object lost one of its names.
    fn let_go(&self, id: ObjectId, kind: FileKind, links: u32) {
        let is_directory = kind == FileKind::Directory;
        if is_directory {
            self.cache.forget(id);
        } else {
            self.cache.release(id);
        }
        if is_directory || links <= 1 {
            self.handles.forget(id);
        }
    }
}

/// A time slightly in the past: file systems stamp new objects with a clock that ticks slowly.
fn coarse_now() -> Timestamp {
    let before = SystemTime::now() - Duration::from_millis(50);
    let since = before.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp { secs: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanos: since.subsec_nanos() }
}

/// Whether this is the object that was just created, and not an older one.
fn is_new(stat: &Statx, kind: NewKind<'_>, begun: Timestamp) -> bool {
    let made = match kind {
        NewKind::Regular => FileKind::Regular,
        NewKind::Directory => FileKind::Directory,
        NewKind::Symlink(_) => FileKind::Symlink,
        NewKind::Fifo => FileKind::Fifo,
        NewKind::Socket => FileKind::Socket,
        NewKind::BlockDevice(_) => FileKind::BlockDevice,
        NewKind::CharDevice(_) => FileKind::CharDevice,
    };
    kind_of(stat) == made && btime_of(stat).is_none_or(|btime| btime >= begun)
}
