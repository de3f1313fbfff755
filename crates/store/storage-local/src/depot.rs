//! The depot: where named streams are stored. [`storage::depot`] is its layout.
//!
//! No lookup, no listing and no handle of the store leads to the depot, so neither protocol shows it. An object's
//! directory is found by the number that the object carries ([`crate::stream_folder`]), and removed with the object's
//! last name ([`crate::end_of_streams`]). What a server that was killed has left, and what belongs to objects that
//! local programs have removed, goes at the next start ([`crate::depot_sweep`]).
//!
//! Version 0.1.0 named a directory by its object's handle, below a directory for the root ([`crate::old_depot`]).

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use rustix::fs::{
    Access, AtFlags, Mode, OFlags, RawDir, Statx, accessat, fstat, mkdirat, openat, openat2, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use siphasher::sip::SipHasher24;
use storage::depot::{DEPOT_NAME, STREAM_DEPTH_MAX, StreamsNumber};
use storage::{Capabilities, Error, Result};

use crate::attributes::{btime_of, stat_name};
use crate::errno::from_errno;
use crate::kernel_handle::{self, KernelHandle};
use crate::old_depot;
use crate::probe;
use crate::resolve::BELOW;

const NAME: &[u8] = DEPOT_NAME.as_bytes();
const NAME_IN_OTHER_CASE: &[u8] = b".ANABRANCH-STREAMS";
/// Only the server may look inside.
const PRIVATE: Mode = Mode::RWXU;
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// How much of a listing is read at a time, in bytes.
const BUFFER_BYTES: usize = 32 << 10;
/// The longest handle that is kept as an owner.
const HANDLE_BYTES_MAX: usize = 120;
/// How many locks guard the directories of objects.
const LOCKS: usize = 64;

/// Where the streams of a store are.
#[derive(Debug)]
pub(crate) struct Depot {
    /// Tells this root from others, also from copies of it.
    pub(crate) root: u64,
    /// The attribute of objects that holds their number.
    pub(crate) xattr: &'static str,
    /// The depot's directory, once it exists.
    dir: OnceLock<OwnedFd>,
    /// Whether there are directories of the old naming for this root.
    has_old: AtomicBool,
    /// Each guards the directories of some numbers: whom they belong to, and that they are there. It is held while a
    /// directory is copied, so that it does not go meanwhile.
    locks: [Mutex<()>; LOCKS],
    /// Held while a directory is made and its owner recorded: one that has no owner was left by a server that was killed.
    /// It guards no data, and no other lock is taken under it.
    pub(crate) making: Mutex<()>,
}

impl Depot {
    /// The depot of a root, if the root can have one: this needs lasting handles, extended attributes and a place for
    /// the directory.
    pub(crate) fn open(
        root: &OwnedFd,
        root_stat: &Statx,
        capabilities: Capabilities,
    ) -> Result<Option<Self>> {
        let Ok(handle) = kernel_handle::name_to_handle(root.as_fd()) else { return Ok(None) };
        let has_attributes = capabilities.contains(Capabilities::XATTRS);
        if !has_attributes || !probe::has_lasting_handles(root)? || handle.bytes.len() > HANDLE_BYTES_MAX {
            return Ok(None);
        }
        let depot = Self {
            root: number_of_root(&handle, root_stat),
            xattr: probe::number_xattr(root),
            dir: OnceLock::new(),
            has_old: AtomicBool::new(false),
            locks: std::array::from_fn(|_| Mutex::new(())),
            making: Mutex::new(()),
        };
        match depot.reach(root, false) {
            Ok(Some(_)) => Ok(Some(depot)),
            Ok(None) => {
                let writable = accessat(root, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS);
                // Where nothing can be written, there are no streams; who makes one learns why that cannot be.
                Ok(matches!(writable, Ok(()) | Err(Errno::ROFS)).then_some(depot))
            }
            Err(e) => {
                tracing::warn!("there are no named streams, because of what is at .anabranch-streams: {e}");
                Ok(None)
            }
        }
    }

    /// The depot's directory; None when there is none and `make` is not set.
    pub(crate) fn reach(&self, root: &OwnedFd, make: bool) -> Result<Option<BorrowedFd<'_>>> {
        if let Some(dir) = self.present() {
            return Ok(Some(dir));
        }
        if make {
            make_directory(root, NAME)?;
        }
        let Some(top) = open_directory(root, NAME)? else { return Ok(None) };
        let known = fstat(&top).map_err(from_errno)?;
        if known.st_uid != geteuid().as_raw() {
            // The directory belongs to another user, who could look inside.
            return Err(Error::PermissionDenied);
        }
        let other = open_directory(root, NAME_IN_OTHER_CASE)?.map(fstat).transpose().map_err(from_errno)?;
        if other.is_some_and(|other| other.st_ino == known.st_ino) {
            // The directory ignores case: clients would find it by other names.
            if make {
                gone(unlinkat(root, NAME, AtFlags::REMOVEDIR))?;
            }
            return Err(Error::NotSupported);
        }
        let has_old = stat_name(&top, old_depot::root_name(self.root)).is_ok();
        let dir = self.dir.get_or_init(|| {
            self.has_old.store(has_old, Ordering::Relaxed);
            top
        });
        Ok(Some(dir.as_fd()))
    }

    /// The depot's directory, if it was reached before.
    pub(crate) fn present(&self) -> Option<BorrowedFd<'_>> {
        self.dir.get().map(AsFd::as_fd)
    }

    /// Whether there may be directories of the old naming.
    pub(crate) fn has_old(&self) -> bool {
        self.has_old.load(Ordering::Acquire)
    }

    /// Notes that there are no directories of the old naming any more.
    pub(crate) fn note_no_old(&self) {
        self.has_old.store(false, Ordering::Release);
    }

    /// The lock on the directory with this number.
    pub(crate) fn lock(&self, number: StreamsNumber) -> MutexGuard<'_, ()> {
        self.locks[number.lock_of(LOCKS)].lock()
    }
}

/// Makes a directory of the depot unless it exists.
pub(crate) fn make_directory(dir: impl AsFd, name: &[u8]) -> Result<()> {
    match mkdirat(dir, name, PRIVATE) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(errno) => Err(from_errno(errno)),
    }
}

/// A directory of the depot, open for working in it and listing it; None when it does not exist.
pub(crate) fn open_directory(dir: impl AsFd, name: &[u8]) -> Result<Option<OwnedFd>> {
    match openat2(dir, name, DIRECTORY, Mode::empty(), BELOW) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(from_errno(errno)),
    }
}

/// A hash of the root's handle and of its birth time.
pub(crate) fn number_of_root(handle: &KernelHandle, stat: &Statx) -> u64 {
    let born = btime_of(stat).unwrap_or_default();
    let born = [&born.secs.to_le_bytes()[..], &born.nanos.to_le_bytes()].concat();
    SipHasher24::new().hash(&[&handle.kind.to_le_bytes()[..], &handle.bytes, &born].concat())
}

/// The names in a directory of the depot.
pub(crate) fn entries(dir: impl AsFd) -> Result<Vec<Vec<u8>>> {
    // Opens another descriptor, since the position belongs to the descriptor.
    let fd = openat(dir, c".", DIRECTORY, Mode::empty()).map_err(from_errno)?;
    let mut buffer: Vec<u8> = Vec::with_capacity(BUFFER_BYTES);
    let mut listing = RawDir::new(&fd, buffer.spare_capacity_mut());
    let mut names = Vec::new();
    while let Some(entry) = listing.next() {
        let entry = entry.map_err(from_errno)?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(name.to_vec());
        }
    }
    Ok(names)
}

/// Removes a directory of the depot with everything in it. It need not exist.
pub(crate) fn remove_folder(dir: impl AsFd, name: &[u8]) -> Result<()> {
    let Some(folder) = open_directory(&dir, name)? else { return Ok(()) };
    empty(&folder, STREAM_DEPTH_MAX)?;
    gone(unlinkat(dir, name, AtFlags::REMOVEDIR))
}

/// Removes everything in a directory of the depot: files, and directories a few levels deep.
fn empty(dir: &OwnedFd, depth: usize) -> Result<()> {
    for name in entries(dir)? {
        match unlinkat(dir, name.as_slice(), AtFlags::empty()) {
            Err(Errno::ISDIR) if depth > 0 => {
                if let Some(below) = open_directory(dir, &name)? {
                    empty(&below, depth.saturating_sub(1))?;
                }
                gone(unlinkat(dir, name.as_slice(), AtFlags::REMOVEDIR))?;
            }
            removed => gone(removed)?,
        }
    }
    Ok(())
}

fn gone(removed: rustix::io::Result<()>) -> Result<()> {
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(from_errno(errno)),
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::open;

    use super::*;
    use crate::attributes::stat;

    #[test]
    fn without_extended_attributes_there_is_no_depot() {
        let dir = tempfile::tempdir().unwrap();
        let root = open(dir.path(), DIRECTORY, Mode::empty()).unwrap();
        let known = stat(&root).unwrap();
        let depot = |capabilities| Depot::open(&root, &known, capabilities).unwrap();
        assert!(depot(Capabilities::all()).is_some());
        assert!(depot(Capabilities::all() - Capabilities::XATTRS).is_none());
    }
}
