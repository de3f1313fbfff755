//! Finding objects below the root.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, ResolveFlags, Statx, openat, openat2, readlinkat};
use rustix::io::Errno;
use rustix::path::DecInt;
use storage::{Error, FileId, FileKind, Name, Result, Wait};

use crate::attributes::{device_of, stat, stat_name};
use crate::depot;
use crate::errno::from_errno;
use crate::node::LocalNode;
use crate::store::Shared;

/// Pins an object without opening it; a symbolic link is the object itself.
pub(crate) const PIN: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Never out of the directory, and never onto another file system.
pub(crate) const BELOW: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_MAGICLINKS)
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_XDEV);
/// The deepest directory that is told from one outside of the root.
const DEPTH_MAX: usize = 4096;

impl Shared {
    /// The node of an object that was just pinned.
    pub(crate) fn adopt(self: &Arc<Self>, fd: OwnedFd, is_open: bool) -> Result<Arc<LocalNode>> {
        Ok(self.adopt_with_stat(fd, is_open)?.0)
    }

    fn adopt_with_stat(self: &Arc<Self>, fd: OwnedFd, is_open: bool) -> Result<(Arc<LocalNode>, Statx)> {
        let stat = stat(&fd)?;
        if device_of(&stat) != self.device {
            return Err(Error::PermissionDenied);
        }
        Ok((self.cache.enter(LocalNode::new(self, fd, is_open, &stat)), stat))
    }

    /// Runs a call that needs a descriptor; when there is none left, once more after letting go of nodes.
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

    /// Pins what a name stands for, and nothing on another file system.
    pub(crate) fn pin(&self, dir: &OwnedFd, name: &[u8], resolve: ResolveFlags) -> Result<OwnedFd> {
        let pinned = self.with_descriptor(|| openat2(dir, name, PIN, Mode::empty(), BELOW | resolve));
        pinned.map_err(|e| if e == Error::CrossDevice { Error::PermissionDenied } else { e })
    }

    /// The directory above an open one, by walking up; None when the root is not above.
    fn parent_below_root(self: &Arc<Self>, fd: &OwnedFd) -> Result<Option<Arc<LocalNode>>> {
        let up = self.open_parent(fd)?;
        let parent = self.adopt(up, false)?;
        Ok(self.is_below_root(&parent.fd, parent.id)?.then_some(parent))
    }

    fn open_parent(&self, fd: &OwnedFd) -> Result<OwnedFd> {
        self.with_descriptor(|| openat(fd, c"..", PIN | OFlags::DIRECTORY, Mode::empty()))
    }

    /// Whether a directory is the root or lies below it: some directory above it must be the root.
    pub(crate) fn is_below_root(&self, fd: &OwnedFd, id: FileId) -> Result<bool> {
        let (mut id, mut at) = (id, None);
        for _ in 0..DEPTH_MAX {
            if id == self.root_id {
                return Ok(true);
            }
            let up = self.open_parent(at.as_ref().unwrap_or(fd))?;
            let stat = stat(&up)?;
            if device_of(&stat) != self.device || FileId(stat.stx_ino) == id {
                return Ok(false);
            }
            id = FileId(stat.stx_ino);
            at = Some(up);
        }
        Ok(false)
    }

    /// Where the kernel says that an open object is.
    fn kernel_path(&self, fd: &OwnedFd) -> Result<Vec<u8>> {
        let path = readlinkat(&self.descriptors, DecInt::from_fd(fd), Vec::new()).map_err(from_errno)?;
        Ok(path.into_bytes())
    }
}

impl LocalNode {
    /// The object of that name, and what statx said of it.
    pub(crate) fn find(&self, name: Name<'_>, wait: Wait) -> Result<(Arc<Self>, Statx)> {
        if self.kind != FileKind::Directory {
            return Err(Error::NotDirectory);
        }
        if depot::is_reserved(name.as_bytes()) {
            return Err(Error::NotFound);
        }
        let mut resolve = ResolveFlags::empty();
        if wait == Wait::May || self.store.is_in_memory {
            let stat = stat_name(&self.fd, name.as_bytes())?;
            let at_hand = self.store.cache.get(FileId(stat.stx_ino));
            if let Some(node) = at_hand.filter(|node| node.is_object_of(&stat)) {
                return Ok((node, stat));
            }
        } else {
            resolve = ResolveFlags::CACHED;
        }
        let fd = self.store.pin(&self.fd, name.as_bytes(), resolve)?;
        self.store.adopt_with_stat(fd, false)
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

    /// The path below the root, as the kernel knows it.
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
        // A name may also really end like that.
        if below.ends_with(DELETED) && !self.is_at(below) {
            return Err(Error::Stale);
        }
        Ok(below.to_vec())
    }

    fn is_at(&self, path: &[u8]) -> bool {
        let found = self.store.pin(&self.store.root, path, ResolveFlags::empty());
        found.and_then(stat).is_ok_and(|stat| self.is_object_of(&stat))
    }
}
