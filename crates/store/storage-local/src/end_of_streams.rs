//! Streams go with the last name of their object, and only with that.

use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::ResolveFlags;
use storage::{FileKind, Result};

use crate::attributes::stat;
use crate::depot::{Depot, open_directory, remove_folder};
use crate::errno::from_errno;
use crate::kernel_handle;
use crate::old_depot;
use crate::store::Shared;
use crate::streams_number::{identity_of, number_of, owner_of};

/// An object that may be losing its last name.
#[derive(Debug)]
pub(crate) struct PinnedForRemoval(OwnedFd);

impl Shared {
    /// Called before a name is removed: holds the object of the name, if it may have streams that are to be removed
    /// with it.
    pub(crate) fn pin_for_removal(
        &self,
        dir: &OwnedFd,
        name: &[u8],
        kind: FileKind,
    ) -> Option<PinnedForRemoval> {
        self.depot.as_ref()?.present()?;
        if !matches!(kind, FileKind::Regular | FileKind::Directory) {
            return None;
        }
        self.pin(dir, name, ResolveFlags::empty()).ok().map(PinnedForRemoval)
    }

    /// Called after a name was removed: removes the streams of the object, unless it has another name.
    pub(crate) fn end_streams(&self, pinned: Option<PinnedForRemoval>) {
        let Some(PinnedForRemoval(fd)) = pinned else { return };
        let Some(depot) = self.depot.as_ref() else { return };
        let Some(dir) = depot.present() else { return };
        // A name that the object was given meanwhile counts. The streams stay unless the object is certainly gone.
        if !stat(&fd).is_ok_and(|stat| stat.stx_nlink == 0) {
            return;
        }
        if let Err(e) = remove_streams(&fd, depot, dir) {
            tracing::warn!("streams of an object that is gone stay until the next start: {e}");
        }
    }
}

/// Removes the directory of an object that is gone, but not the one of another object that carries its number.
fn remove_streams(fd: &OwnedFd, depot: &Depot, dir: BorrowedFd<'_>) -> Result<()> {
    if let Some(number) = number_of(fd, depot.xattr)? {
        let name = number.folder_name();
        let _lock = depot.lock(number);
        if let Some(folder) = open_directory(dir, name.as_bytes())? {
            let is_own = owner_of(&folder)? == Some(identity_of(fd, depot)?);
            return if is_own { remove_folder(dir, name.as_bytes()) } else { Ok(()) };
        }
    }
    if depot.has_old() {
        let handle = kernel_handle::name_to_handle(std::os::fd::AsFd::as_fd(fd)).map_err(from_errno)?;
        return remove_folder(dir, old_depot::folder_path(depot.root, &handle).as_bytes());
    }
    Ok(())
}
