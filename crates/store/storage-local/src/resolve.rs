//! Finding objects below the root.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, ResolveFlags, Statx, openat, openat2, readlinkat};
use rustix::io::Errno;
use rustix::path::DecInt;
use storage::{Capabilities, Error, FileKind, Name, ObjectId, Result};

use crate::attributes::{device_of, stat, stat_name};
use crate::btrfs;
use crate::errno::from_errno;
use crate::node::LocalNode;
use crate::store::{Reach, Shared};

/// Flags that pin an object without opening it. A symbolic link is pinned itself.
pub(crate) const PIN: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Never out of the directory, and never onto another file system.
pub(crate) const BELOW: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_XDEV);

/// The name of the parent directory.
const ABOVE: &std::ffi::CStr = c"..";

impl Shared {
    /// The node of an object that was just pinned.
    pub(crate) fn adopt(self: &Arc<Self>, fd: OwnedFd, is_open: bool) -> Result<Arc<LocalNode>> {
        Ok(self.adopt_with_stat(fd, is_open)?.0)
    }

    fn adopt_with_stat(self: &Arc<Self>, fd: OwnedFd, is_open: bool) -> Result<(Arc<LocalNode>, Statx)> {
        let stat = stat(&fd)?;
        if device_of(&stat) != self.device {
            return Err(self.check_is_there().err().unwrap_or(Error::PermissionDenied));
        }
        if self.is_placeholder(&stat) {
            return Err(Error::PermissionDenied);
        }
        Ok((self.cache.enter(LocalNode::new(self, fd, is_open, &stat)), stat))
    }

    /// Whether a snapshot has this in the place of a subvolume, which clients cannot enter either. All of these have one number, and a
    /// handle that leads nowhere.
    fn is_placeholder(&self, stat: &Statx) -> bool {
        let is_read_only = !self.capabilities.contains(Capabilities::WRITE);
        is_read_only && self.can_have_snapshots.is_ok() && stat.stx_ino == btrfs::PLACEHOLDER
    }

    /// Fails if the root is a subvolume of Btrfs that was removed: it and everything below have no device then.
    fn check_is_there(&self) -> Result<()> {
        if device_of(&stat(&self.root)?) == self.device { Ok(()) } else { Err(Error::Stale) }
    }

    /// Runs a call that needs a descriptor. If none is left, drops cached nodes and tries once more.
    pub(crate) fn with_descriptor<T>(&self, call: impl Fn() -> std::result::Result<T, Errno>) -> Result<T> {
        match call() {
            Err(Errno::MFILE | Errno::NFILE) => {
                self.cache.drop_unreferred();
                call()
            }
            other => other,
        }
        .map_err(from_errno)
    }

    /// Pins the object that a name stands for, unless it is on another file system.
    pub(crate) fn pin(&self, dir: &OwnedFd, name: &[u8], resolve: ResolveFlags) -> Result<OwnedFd> {
        let pinned = self.with_descriptor(|| openat2(dir, name, PIN, Mode::empty(), BELOW | resolve));
        pinned.map_err(|e| if e == Error::CrossDevice { Error::PermissionDenied } else { e })
    }

    /// The parent of an open directory; None when it does not lie below the root.
    fn parent_below_root(self: &Arc<Self>, fd: &OwnedFd) -> Result<Option<Arc<LocalNode>>> {
        let up = stat_name(fd, ABOVE)?;
        let at_hand = self.cache.get(ObjectId::live(up.stx_ino)).filter(|node| node.is_object_of(&up));
        let parent = match at_hand {
            Some(parent) => parent,
            None => self.adopt(self.open_parent(fd)?, false)?,
        };
        let is_below = parent.id == self.root_id
            || self.is_root(&stat_name(&parent.fd, ABOVE)?)
            || self.is_below_root(&parent.fd, parent.id)?;
        Ok(is_below.then_some(parent))
    }

    fn open_parent(&self, fd: &OwnedFd) -> Result<OwnedFd> {
        self.with_descriptor(|| openat(fd, ABOVE, PIN | OFlags::DIRECTORY, Mode::empty()))
    }

    fn is_root(&self, stat: &Statx) -> bool {
        device_of(stat) == self.device && ObjectId::live(stat.stx_ino) == self.root_id
    }

    /// The path of an open object according to the kernel.
    pub(crate) fn kernel_path(&self, fd: &OwnedFd) -> Result<Vec<u8>> {
        let path = readlinkat(&self.descriptors, DecInt::from_fd(fd), Vec::new()).map_err(from_errno)?;
        Ok(path.into_bytes())
    }
}

impl LocalNode {
    /// The object with that name, and the result of statx.
    pub(crate) fn find(&self, name: Name<'_>, reach: Reach) -> Result<(Arc<Self>, Statx)> {
        if self.kind != FileKind::Directory {
            return Err(Error::NotDirectory);
        }
        if self.store.reserved.has(name.as_bytes()) {
            return Err(Error::NotFound);
        }
        self.check_place()?;
        let mut resolve = ResolveFlags::empty();
        if reach == Reach::Device || self.store.is_in_memory {
            let stat = stat_name(&self.fd, name.as_bytes())?;
            let at_hand = self.store.cache.get(ObjectId::live(stat.stx_ino));
            if let Some(node) = at_hand.filter(|node| node.is_object_of(&stat)) {
                self.vouch_for(&node);
                return Ok((node, stat));
            }
        } else {
            resolve = ResolveFlags::CACHED;
        }
        let found = self.store.pin(&self.fd, name.as_bytes(), resolve);
        let found = found.and_then(|fd| self.store.adopt_with_stat(fd, false));
        if found.as_ref().is_err_and(|e| *e == Error::PermissionDenied) {
            self.tell_other_file_system(name);
        }
        let (node, stat) = found?;
        self.vouch_for(&node);
        Ok((node, stat))
    }

    pub(crate) fn find_parent(&self) -> Result<Arc<Self>> {
        if self.kind != FileKind::Directory {
            return Err(Error::NotDirectory);
        }
        if self.id == self.store.root_id {
            return self.store.adopt(self.fd.try_clone().map_err(|_| Error::OutOfResources)?, false);
        }
        if stat(&self.fd)?.stx_nlink == 0 {
            return Err(Error::Stale);
        }
        self.store.parent_below_root(&self.fd)?.ok_or(Error::Stale)
    }

    /// The number of the parent directory. It is only reported: nobody works there by it.
    pub(crate) fn number_above(&self) -> Result<ObjectId> {
        if self.kind != FileKind::Directory {
            return Err(Error::NotDirectory);
        }
        self.check_place()?;
        if self.id == self.store.root_id {
            return Ok(self.id);
        }
        let up = stat_name(&self.fd, ABOVE)?;
        if device_of(&up) == self.store.device { Ok(ObjectId::live(up.stx_ino)) } else { Err(Error::Stale) }
    }

    /// The path below the root according to the kernel.
    pub(crate) fn path_below_root(&self) -> Result<Vec<u8>> {
        const DELETED: &[u8] = b" (deleted)";
        let root = self.store.kernel_path(&self.store.root)?;
        let path = self.store.kernel_path(&self.fd)?;
        let below = path.strip_prefix(root.strip_suffix(b"/").unwrap_or(&root)).ok_or(Error::Stale)?;
        let below = match below {
            [] => below,
            [b'/', below @ ..] => below,
            _ => return Err(Error::Stale),
        };
        // A name may really end like this. That is not checked on a file system that may stop answering.
        if below.ends_with(DELETED) && (self.store.closer.is_some() || !self.is_at(below)) {
            return Err(Error::Stale);
        }
        Ok(below.to_vec())
    }

    fn is_at(&self, path: &[u8]) -> bool {
        let found = self.store.pin(&self.store.root, path, ResolveFlags::empty());
        found.and_then(stat).is_ok_and(|stat| self.is_object_of(&stat))
    }
}
