//! The place of the snapshots that this server takes: `.anabranch-snapshots` in the root. The name is reserved, so no client
//! comes there.
//!
//! It is a subvolume of its own. A snapshot of the root has an empty directory in its place, and a revert moves all
//! snapshots with one rename. Nobody else may look inside: access to a file may have been wider when a snapshot was taken.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, fchmod, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use storage::{Error, FoundSnapshot, Result, SnapshotId};

use crate::attributes::stat;
use crate::btrfs::{self, Subvolume};
use crate::depot::{entries, open_directory};
use crate::errno::from_errno;

/// The name in the root. It is reserved everywhere in a store, as the depot's is.
pub(crate) const NAME: &str = ".anabranch-snapshots";

const TOP: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Whether a name is the folder's, ignoring case.
pub(crate) fn is_folder_name(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(NAME.as_bytes())
}

/// A subvolume in the folder.
#[derive(Debug)]
pub(crate) struct InFolder {
    pub(crate) name: Vec<u8>,
    pub(crate) top: OwnedFd,
    pub(crate) subvolume: Subvolume,
}

/// The folder of a root; None when there is none.
///
/// # Errors
/// [`Error::PermissionDenied`] if another user could look inside.
pub(crate) fn open_folder(root: &OwnedFd) -> Result<Option<OwnedFd>> {
    let Some(folder) = open_directory(root, NAME.as_bytes())? else { return Ok(None) };
    let known = stat(&folder)?;
    if known.stx_ino != btrfs::TOP {
        // What a snapshot has in its place: the root was made of one.
        return Ok(None);
    }
    if known.stx_uid == geteuid().as_raw() { Ok(Some(folder)) } else { Err(Error::PermissionDenied) }
}

/// The folder of a root, which is made unless it exists.
///
/// # Errors
/// [`Error::NotEmpty`] if something else is in its place.
pub(crate) fn make_folder(root: &OwnedFd) -> Result<OwnedFd> {
    if let Some(folder) = open_folder(root)? {
        return Ok(folder);
    }
    remove_placeholder(root)?;
    match btrfs::make_subvolume(root, NAME.as_bytes()) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(errno) => return Err(from_errno(errno)),
    }
    let folder = open_folder(root)?.ok_or(Error::NotFound)?;
    fchmod(&folder, Mode::RWXU).map_err(from_errno)?;
    Ok(folder)
}

/// Removes the empty directory that a snapshot has in place of the folder.
pub(crate) fn remove_placeholder(root: &OwnedFd) -> Result<()> {
    match unlinkat(root, NAME, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(from_errno(errno)),
    }
}

/// All subvolumes in the folder, those too that can be written.
pub(crate) fn subvolumes(folder: &OwnedFd) -> Result<Vec<InFolder>> {
    let own = btrfs::subvolume_of(folder).map_err(from_errno)?.id;
    let mut found = Vec::new();
    for name in entries(folder)? {
        match InFolder::open(folder, &name) {
            Ok(opened) if opened.subvolume.id != own => found.push(opened),
            // Removed meanwhile, or no subvolume.
            Ok(_) | Err(Error::NotFound | Error::NotDirectory | Error::SymlinkLoop) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(found)
}

impl InFolder {
    /// The one with this name.
    pub(crate) fn open(folder: &OwnedFd, name: &[u8]) -> Result<Self> {
        let top = openat(folder, name, TOP, Mode::empty()).map_err(from_errno)?;
        let subvolume = btrfs::subvolume_of(&top).map_err(from_errno)?;
        Ok(Self { name: name.to_vec(), top, subvolume })
    }

    /// The subvolume as a snapshot. None for what can be written, which is none.
    pub(crate) fn as_snapshot(&self) -> Option<FoundSnapshot> {
        let id = u32::try_from(self.subvolume.id).ok().filter(|_| self.subvolume.is_read_only)?;
        Some(FoundSnapshot {
            id: SnapshotId(id),
            name: String::from_utf8_lossy(&self.name).into_owned(),
            recorded: self.subvolume.made,
            is_own: true,
            uuid: Some(self.subvolume.uuid),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_folders_in_any_case() {
        assert!(is_folder_name(b".anabranch-snapshots") && is_folder_name(b".Anabranch-Snapshots"));
        assert!(!is_folder_name(b".anabranch-snapshot") && !is_folder_name(b""));
    }
}
