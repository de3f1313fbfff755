//! Finding, creating, linking, removing, renaming and listing.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::makedev;
use rustix::io::Errno;
use storage::{Device, DirEntry, Error, FileKind, Name, NewKind, NewNode, ObjectId, Replace, Result};

use crate::attributes::kind_of;
use crate::data::Files;
use crate::errno::from_errno;
use crate::inode::Make;
use crate::library::{CStat, SET_GID, SET_MODE, SET_UID};
use crate::listing::Listing;
use crate::node::CephNode;
use crate::place::{stale, text};
use crate::store::Losing;

/// The longest text of a symbolic link, in bytes (PATH_MAX, with its NUL).
const LINK_TEXT_BYTES_MAX: usize = 4095;

fn special(kind: u32, device: Device) -> Make<'static> {
    Make::Special(kind, makedev(device.major, device.minor))
}

impl CephNode {
    pub(crate) fn check_directory(&self) -> Result<()> {
        if self.kind == FileKind::Directory { Ok(()) } else { Err(Error::NotDirectory) }
    }

    /// Checks that a name may be entered in this directory: reserved names may not.
    fn check_enters(&self, name: Name<'_>) -> Result<()> {
        self.check_directory()?;
        if self.store.reserved.has(name.as_bytes()) {
            return Err(Error::PermissionDenied);
        }
        if self.is_removed() { Err(Error::Stale) } else { Ok(()) }
    }

    /// Checks that a name may be looked for in this directory: reserved names do not exist for clients.
    fn check_has(&self, name: Name<'_>) -> Result<()> {
        self.check_directory()?;
        if self.store.reserved.has(name.as_bytes()) { Err(Error::NotFound) } else { Ok(()) }
    }

    /// The object with this name. If there is none while a name was replaced in two calls ([`CephNode::move_name`]), it is looked for
    /// again when that is over: it may have been this name.
    pub(crate) fn find(self: &Arc<Self>, name: Name<'_>) -> Result<(Arc<Self>, CStat)> {
        let store = &self.store;
        let before = store.replaced_in_two.load(Ordering::Acquire);
        match self.find_now(name) {
            Err(Error::NotFound)
                if store.name_locks.is_locked(self.id, name)
                    || store.replaced_in_two.load(Ordering::Acquire) != before =>
            {
                let _locked = store.name_locks.one(self.id, name);
                self.find_now(name)
            }
            found => found,
        }
    }

    /// The object with this name, as the library knows it now. The caller holds the name's lock, or looks again.
    fn find_now(self: &Arc<Self>, name: Name<'_>) -> Result<(Arc<Self>, CStat)> {
        self.check_has(name)?;
        let (inode, stat) = self.inode.lookup(&text(name.as_bytes())?).map_err(from_errno)?;
        let node = self.store.adopt(inode, &stat);
        node.is_in(self, name.as_bytes());
        if let Some(snapshot) = &self.store.snapshot {
            let is_directory = node.kind == FileKind::Directory;
            snapshot.places.note(node.id.number, self.id.number, name.as_bytes(), is_directory);
        }
        Ok((node, stat))
    }

    /// Makes an object. Returns it with what is known about it.
    pub(crate) fn make(self: &Arc<Self>, name: Name<'_>, new: &NewNode<'_>) -> Result<(Arc<Self>, CStat)> {
        self.check_enters(name)?;
        let _locked = self.store.name_locks.one(self.id, name);
        let made = self.make_object(name, new)?;
        let (node, stat) = match made.complete(new) {
            Ok(done) => done,
            Err(error) => {
                // The object is incomplete and must not stay.
                let is_directory = new.kind == NewKind::Directory;
                if let Err(errno) = self.inode.remove(&text(name.as_bytes())?, is_directory) {
                    tracing::warn!("an object that could not be completed stays: {errno}");
                }
                return Err(error);
            }
        };
        node.is_in(self, name.as_bytes());
        self.store.changes.tell_name(self.id, name.as_bytes(), false);
        Ok((node, stat))
    }

    fn make_object(&self, name: Name<'_>, new: &NewNode<'_>) -> Result<Made> {
        let (called, mode, owner) = (text(name.as_bytes())?, new.mode & 0o7777, (new.uid, new.gid));
        let link;
        let make = match new.kind {
            NewKind::Regular => {
                let ((inode, stat), file) =
                    self.inode.create(&called, mode, owner).map_err(from_errno).map_err(stale)?;
                let node = self.store.adopt_with(inode, &stat, Files::made(file));
                return Ok(Made { node, stat });
            }
            NewKind::Directory => Make::Directory,
            NewKind::Symlink([]) => return Err(Error::InvalidArgument),
            NewKind::Symlink(to) if to.len() > LINK_TEXT_BYTES_MAX => return Err(Error::NameTooLong),
            NewKind::Symlink(to) => {
                link = text(to).map_err(|_| Error::InvalidArgument)?;
                Make::Symlink(&link)
            }
            NewKind::Fifo => special(libc::S_IFIFO, Device::default()),
            NewKind::Socket => special(libc::S_IFSOCK, Device::default()),
            NewKind::BlockDevice(device) => special(libc::S_IFBLK, device),
            NewKind::CharDevice(device) => special(libc::S_IFCHR, device),
        };
        let made = self.inode.make(&called, &make, mode, owner);
        let (inode, stat) = made.map_err(from_errno).map_err(stale)?;
        Ok(Made { node: self.store.adopt(inode, &stat), stat })
    }

    pub(crate) fn add_name(self: &Arc<Self>, name: Name<'_>, target: &Self) -> Result<()> {
        self.check_enters(name)?;
        if target.kind == FileKind::Directory {
            return Err(Error::IsDirectory);
        }
        let _locked = self.store.name_locks.one(self.id, name);
        if target.stat()?.links == 0 {
            return Err(Error::Stale);
        }
        let linked = target.inode.link(&self.inode, &text(name.as_bytes())?);
        linked.map_err(from_errno).map_err(stale)?;
        self.store.changes.tell_name(self.id, name.as_bytes(), false);
        Ok(())
    }

    pub(crate) fn remove_name(self: &Arc<Self>, name: Name<'_>, is_directory: bool) -> Result<()> {
        self.check_has(name)?;
        let _locked = self.store.name_locks.one(self.id, name);
        let (node, stat) = self.find_now(name)?;
        match (node.kind, is_directory) {
            (FileKind::Directory, false) => return Err(Error::IsDirectory),
            (FileKind::Directory, true) | (_, false) => {}
            (_, true) => return Err(Error::NotDirectory),
        }
        let losing = Losing::of(node, stat.links);
        self.inode.remove(&text(name.as_bytes())?, is_directory).map_err(|errno| match errno {
            // rmdir(2) allows either error.
            Errno::EXIST => Error::NotEmpty,
            other => from_errno(other),
        })?;
        self.store.end_name(self, name, &losing);
        self.store.changes.tell_name(self.id, name.as_bytes(), is_directory);
        Ok(())
    }

    pub(crate) fn move_name(
        self: &Arc<Self>,
        name: Name<'_>,
        to: &Arc<Self>,
        to_name: Name<'_>,
        replace: Replace,
    ) -> Result<()> {
        self.check_directory()?;
        to.check_directory()?;
        self.check_has(name)?;
        let _locked = self.store.name_locks.two((self.id, name), (to.id, to_name));
        let (moved, _) = self.find_now(name)?;
        // Two moves of directories at a time could each see the places before the other.
        let _moving = (moved.kind == FileKind::Directory).then(|| self.store.moving.lock());
        if to.is_removed() {
            return Err(Error::NotFound);
        }
        to.check_enters(to_name)?;
        let replaced = match to.find_now(to_name) {
            Ok(found) => Some(found),
            Err(Error::NotFound) => None,
            Err(error) => return Err(error),
        };
        if let Some((replaced, _)) = &replaced {
            if replace == Replace::Never {
                return Err(Error::Exists);
            }
            if replaced.id == moved.id {
                return Ok(());
            }
        }
        check_move(self, &moved, to, replaced.as_ref().map(|(replaced, _)| &**replaced))?;
        let replaced = replaced.map(|(replaced, stat)| Losing::of(replaced, stat.links));
        let called = text(to_name.as_bytes())?;
        let takes_two = replaced.as_ref().is_some_and(|replaced| !replaced.is_last);
        if takes_two {
            // When a rename replaces one of several names of a file, the library (16.2.15) forgets the others. So the name is
            // removed first. Who looks for it meanwhile waits for the lock. Whoever is killed in between leaves the moved object
            // under its old name.
            to.inode.remove(&called, false).map_err(from_errno)?;
        }
        let renamed = self.inode.rename(&text(name.as_bytes())?, &to.inode, &called);
        if takes_two {
            self.store.replaced_in_two.fetch_add(1, Ordering::Release);
        }
        renamed.map_err(|errno| match errno {
            Errno::EXIST => Error::NotEmpty,
            other => from_errno(other),
        })?;
        if let Some(replaced) = &replaced {
            self.store.end_name(to, to_name, replaced);
        }
        moved.is_in(to, to_name.as_bytes());
        let changes = &self.store.changes;
        changes.tell_name(self.id, name.as_bytes(), moved.kind == FileKind::Directory);
        let is_dir_gone = replaced.is_some_and(|replaced| replaced.node.kind == FileKind::Directory);
        changes.tell_name(to.id, to_name.as_bytes(), is_dir_gone);
        if moved.kind == FileKind::Directory {
            changes.tell_moved(moved.id);
        }
        Ok(())
    }

    /// Passes the entries behind `cookie` to `each` until it breaks. Returns whether the end was reached.
    pub(crate) fn list(
        &self,
        cookie: u64,
        each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        self.check_directory()?;
        if self.is_removed() {
            return Err(Error::Stale);
        }
        let mut listing = Listing::behind(&self.inode, cookie).map_err(from_errno).map_err(stale)?;
        while let Some(entry) = listing.next().map_err(from_errno).map_err(stale)? {
            let name = entry.name();
            if name == b"." || name == b".." || self.store.reserved.has(name) {
                continue;
            }
            let (id, kind) = (ObjectId::live(entry.stat.number), Some(kind_of(&entry.stat)));
            if each(DirEntry { name, id, kind, cookie: entry.cookie }).is_break() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Checks what Linux checks before an object is moved from one directory to another, where it replaces one, and in the same order.
/// The metadata server has another order.
fn check_move(
    dir: &Arc<CephNode>,
    moved: &CephNode,
    to: &Arc<CephNode>,
    replaced: Option<&CephNode>,
) -> Result<()> {
    if moved.holds(to) {
        return Err(Error::InvalidArgument);
    }
    let Some(replaced) = replaced else { return Ok(()) };
    let is_directory = |node: &CephNode| node.kind == FileKind::Directory;
    match (is_directory(moved), is_directory(replaced)) {
        _ if replaced.holds(dir) => Err(Error::NotEmpty),
        (false, true) => Err(Error::IsDirectory),
        (true, false) => Err(Error::NotDirectory),
        (true, true) | (false, false) => Ok(()),
    }
}

/// An object that was just made.
struct Made {
    node: Arc<CephNode>,
    stat: CStat,
}

impl Made {
    /// Gives the object the owner and the mode that were asked for, where the metadata server gave it others: in a directory with
    /// the set-group-id bit.
    fn complete(self, new: &NewNode<'_>) -> Result<(Arc<CephNode>, CStat)> {
        let mode = new.mode & 0o7777;
        let is_owned = (self.stat.uid, self.stat.gid) == (new.uid, new.gid);
        let has_mode = self.node.kind == FileKind::Symlink || u32::from(self.stat.mode) & 0o7777 == mode;
        if is_owned && has_mode {
            return Ok((self.node, self.stat));
        }
        let wanted =
            CStat { uid: new.uid, gid: new.gid, mode: u16::try_from(mode).unwrap_or_default(), ..self.stat };
        let mask = SET_UID | SET_GID | if self.node.kind == FileKind::Symlink { 0 } else { SET_MODE };
        self.node.inode.set_stat(&wanted, mask).map_err(from_errno)?;
        let stat = self.node.stat()?;
        Ok((self.node, stat))
    }
}
