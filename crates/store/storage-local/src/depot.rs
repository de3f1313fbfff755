//! The depot: where named streams are stored.
//!
//! The depot is the directory `.anabranch-streams` in the share's root. No lookup, no listing and no handle of the
//! store leads there, so neither protocol shows it. It contains:
//!
//! * one directory for the root to which the depot belongs, named by the root's handle and birth time, so that a copy
//!   of the share does not take the streams it brings along for its own;
//! * in it, one directory for each object that has streams, named by the object's handle. The handle contains the
//!   generation, so it names no later object with the same number, and it does not change when the object is renamed or
//!   linked;
//! * in that, a file for each stream (see [`storage::depot::StreamPath`]).
//!
//! An object's directory is removed with the object's last name. If the server is killed in between, or if a local
//! program removes a name, a directory without an object remains. It is removed when the store is opened again, if the
//! file system itself reports that the object does not exist. Only a server that may use handles
//! (`CAP_DAC_READ_SEARCH`) can ask that; other servers leave such directories.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use rustix::fs::{
    Access, AtFlags, Mode, OFlags, RawDir, Statx, accessat, fstat, mkdirat, openat, openat2, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use siphasher::sip::SipHasher24;
use storage::depot::{DEPOT_NAME, STREAM_DEPTH_MAX};
use storage::{Error, FileKind, Result};

use crate::attributes::{btime_of, stat};
use crate::errno::from_errno;
use crate::handle::Handles;
use crate::node::LocalNode;
use crate::probe;
use crate::resolve::BELOW;
use crate::store::Shared;
use crate::sys::{self, KernelHandle};

const NAME: &[u8] = DEPOT_NAME.as_bytes();
const NAME_IN_OTHER_CASE: &[u8] = b".ANABRANCH-STREAMS";
/// Only the server may look inside.
const PRIVATE: Mode = Mode::RWXU;
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// How much of a listing is read at a time, in bytes.
const BUFFER_BYTES: usize = 32 << 10;
/// The longest handle from which a valid directory name can be made.
const HANDLE_BYTES_MAX: usize = 120;

/// Where the streams of a store are.
#[derive(Debug)]
pub(crate) struct Depot {
    /// The name of this root's directory in the depot.
    root_name: String,
    /// This root's directory, once it exists.
    dir: OnceLock<OwnedFd>,
}

/// An object that may be losing its last name.
#[derive(Debug)]
pub(crate) struct PinnedForRemoval(OwnedFd);

impl Depot {
    /// The depot of a root, if the root can have one: this needs lasting handles and a place for the directory.
    pub(crate) fn open(root: &OwnedFd, root_stat: &Statx) -> Result<Option<Self>> {
        let Ok(handle) = sys::name_to_handle(root.as_fd()) else { return Ok(None) };
        if !probe::has_lasting_handles(root)? || handle.bytes.len() > HANDLE_BYTES_MAX {
            return Ok(None);
        }
        let depot = Self { root_name: root_name(&handle, root_stat), dir: OnceLock::new() };
        match depot.reach(root, false) {
            Ok(Some(_)) => Ok(Some(depot)),
            Ok(None) => {
                let writable = accessat(root, c".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS);
                Ok(writable.is_ok().then_some(depot))
            }
            Err(e) => {
                tracing::warn!("there are no named streams, because of what is at .anabranch-streams: {e}");
                Ok(None)
            }
        }
    }

    /// The directory of this root; None when there is none and `make` is not set.
    fn reach(&self, root: &OwnedFd, make: bool) -> Result<Option<BorrowedFd<'_>>> {
        if let Some(dir) = self.dir.get() {
            return Ok(Some(dir.as_fd()));
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
        if make {
            make_directory(&top, self.root_name.as_bytes())?;
        }
        let Some(dir) = open_directory(&top, self.root_name.as_bytes())? else { return Ok(None) };
        Ok(Some(self.dir.get_or_init(|| dir).as_fd()))
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

fn root_name(handle: &KernelHandle, stat: &Statx) -> String {
    let born = btime_of(stat).unwrap_or_default();
    let born = [&born.secs.to_le_bytes()[..], &born.nanos.to_le_bytes()].concat();
    let parts = [&handle.kind.to_le_bytes()[..], &handle.bytes, &born].concat();
    format!("{:016x}", SipHasher24::new().hash(&parts))
}

/// The name of an object's directory: the type of its handle, and the bytes.
fn folder_name(handle: &KernelHandle) -> String {
    let hex: String = handle.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{:x}.{hex}", handle.kind)
}

/// The handle from which a directory's name was made.
fn handle_of_folder(name: &[u8]) -> Option<KernelHandle> {
    let (kind, hex) = std::str::from_utf8(name).ok()?.split_once('.')?;
    let kind = i32::from_str_radix(kind, 16).ok()?;
    let digits = hex.as_bytes();
    if digits.is_empty() || digits.len() % 2 != 0 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes = digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>()?;
    Some(KernelHandle { kind, bytes })
}

/// The names in a directory of the depot.
pub(crate) fn entries(dir: &OwnedFd) -> Result<Vec<Vec<u8>>> {
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

impl LocalNode {
    /// The directory of this object's streams; None when there is none and `make` is not set.
    pub(crate) fn stream_folder(&self, make: bool) -> Result<Option<OwnedFd>> {
        if !matches!(self.kind, FileKind::Regular | FileKind::Directory) {
            return Err(Error::WrongKind);
        }
        let depot = self.store.depot.as_ref().ok_or(Error::NotSupported)?;
        let Some(dir) = depot.reach(&self.store.root, make)? else { return Ok(None) };
        let handle = sys::name_to_handle(self.fd.as_fd()).map_err(from_errno)?;
        let name = folder_name(&handle);
        if make {
            make_directory(dir, name.as_bytes())?;
        }
        self.store.with_descriptor(|| match openat2(dir, &name, DIRECTORY, Mode::empty(), BELOW) {
            Err(Errno::NOENT) => Ok(None),
            found => found.map(Some),
        })
    }

    /// Removes the directory of this object's streams if it is empty.
    pub(crate) fn tidy_folder(&self) {
        let Some(dir) = self.store.depot.as_ref().and_then(|depot| depot.dir.get()) else { return };
        if let Ok(handle) = sys::name_to_handle(self.fd.as_fd()) {
            // Both failures are fine: the directory is not empty, or has been removed already.
            let _ = unlinkat(dir, folder_name(&handle), AtFlags::REMOVEDIR);
        }
    }
}

impl Shared {
    /// Called before a name is removed: holds the object of the name, if it may have streams that are to be removed
    /// with it.
    pub(crate) fn pin_for_removal(
        &self,
        dir: &OwnedFd,
        name: &[u8],
        kind: FileKind,
    ) -> Option<PinnedForRemoval> {
        self.depot.as_ref()?.dir.get()?;
        if !matches!(kind, FileKind::Regular | FileKind::Directory) {
            return None;
        }
        self.pin(dir, name, rustix::fs::ResolveFlags::empty()).ok().map(PinnedForRemoval)
    }

    /// Called after a name was removed: removes the streams of the object, unless it has another name.
    pub(crate) fn end_streams(&self, pinned: Option<PinnedForRemoval>) {
        let Some(PinnedForRemoval(fd)) = pinned else { return };
        // A name that the object was given meanwhile counts. The streams stay unless the object is certainly gone.
        if !stat(&fd).is_ok_and(|stat| stat.stx_nlink == 0) {
            return;
        }
        let Ok(handle) = sys::name_to_handle(fd.as_fd()) else { return };
        if let Err(e) = self.remove_folder(folder_name(&handle).as_bytes()) {
            tracing::warn!("streams of an object that is gone stay until the next start: {e}");
        }
    }

    fn remove_folder(&self, name: &[u8]) -> Result<()> {
        let Some(depot) = self.depot.as_ref().and_then(|depot| depot.dir.get()) else { return Ok(()) };
        let Some(folder) = open_directory(depot, name)? else { return Ok(()) };
        empty(&folder, STREAM_DEPTH_MAX)?;
        gone(unlinkat(depot, name, AtFlags::REMOVEDIR))
    }

    /// Removes directories whose object no longer exists, according to the file system itself.
    pub(crate) fn sweep_depot(self: &Arc<Self>) {
        let Some(depot) = self.depot.as_ref().and_then(|depot| depot.dir.get()) else { return };
        if !matches!(self.handles, Handles::Native(_)) {
            return;
        }
        let names = entries(depot).unwrap_or_else(|e| {
            tracing::warn!("the depot of streams cannot be listed: {e}");
            Vec::new()
        });
        for name in names {
            let Some(handle) = handle_of_folder(&name) else { continue };
            if self.cache.is_closed() {
                return;
            }
            if matches!(self.open_handle(&handle), Err(Errno::STALE))
                && let Err(e) = self.remove_folder(&name)
            {
                tracing::warn!("streams of an object that is gone cannot be removed: {e}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_by_handles() {
        let handle = KernelHandle { kind: 0x81, bytes: vec![0x01, 0xab, 0x00, 0xff] };
        assert_eq!(folder_name(&handle), "81.01ab00ff");
        assert_eq!(handle_of_folder(b"81.01ab00ff"), Some(handle));
        for other in [&b"81"[..], b"81.", b"81.0", b"81.0g", b".01", b"x.01", b"81.+1", b"\xff.01"] {
            assert_eq!(handle_of_folder(other), None, "{other:?}");
        }
    }
}
