//! Going back to a snapshot: a copy of it takes the place of the root, which becomes a snapshot.
//!
//! The copy, which can be written, is made beside the root, in the directory above. Then the two change places, which is one
//! call; all before that is undone, and all after it is finished, by the next start if need be. So that a start knows which it
//! is, the copy carries the number of the subvolume whose place it takes ([`MARK`]) until everything is finished:
//!
//! * the root carries the mark of another subvolume: they have changed places;
//! * what is beside the root carries the mark of the root: they have not.

use std::os::fd::OwnedFd;

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, StatxAttributes, XattrFlags, fgetxattr, fremovexattr, fsetxattr,
    open, openat, readlink, renameat_with, statat, syncfs,
};
use rustix::io::Errno;
use rustix::path::DecInt;
use storage::{BEFORE_REVERT, Error, Result, Snapshot, in_order, name_beside};

use crate::attributes::stat;
use crate::btrfs::{self, Subvolume, Writing};
use crate::errno::from_errno;
use crate::pool_mark;
use crate::snapshot_folder::{self, InFolder, make_folder, open_folder, remove_placeholder, subvolumes};
use crate::snapshots::now;

/// The attribute of the copy: the number of the subvolume whose place it takes, 64 bits, little-endian.
const MARK: &str = "user.anabranch.revert";

const TOP: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Where a root is.
#[derive(Debug)]
pub(crate) struct Place {
    above: OwnedFd,
    name: Vec<u8>,
}

impl Place {
    /// The place of a root with this path.
    ///
    /// # Errors
    /// [`Error::Stale`] if the path does not lead to the root.
    pub(crate) fn of(root: &OwnedFd, path: &[u8]) -> Result<Self> {
        let slash = path.iter().rposition(|byte| *byte == b'/').ok_or(Error::Stale)?;
        let (above, name) = path.split_at(slash);
        let above = if above.is_empty() { b"/" } else { above };
        let above = open(above, TOP, Mode::empty()).map_err(from_errno)?;
        let name = name.strip_prefix(b"/").unwrap_or(name).to_vec();
        let found = statat(&above, name.as_slice(), AtFlags::SYMLINK_NOFOLLOW).map_err(from_errno)?;
        let known = rustix::fs::fstat(root).map_err(from_errno)?;
        let is_there = (found.st_dev, found.st_ino) == (known.st_dev, known.st_ino);
        if is_there { Ok(Self { above, name }) } else { Err(Error::Stale) }
    }

    fn beside(&self, subvolume: u64) -> Result<Option<OwnedFd>> {
        match openat(&self.above, name_of(subvolume), TOP, Mode::empty()) {
            Ok(top) => Ok(Some(top)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(from_errno(errno)),
        }
    }
}

/// What is beside a root while this subvolume's place is taken: first the copy, then this subvolume.
fn name_of(subvolume: u64) -> String {
    format!(".anabranch-revert-{subvolume}")
}

/// Which subvolume's place this one takes.
fn mark_of(top: &OwnedFd) -> Option<u64> {
    let mut mark = [0; 8];
    let count = fgetxattr(top, MARK, &mut mark).ok()?;
    (count == mark.len()).then(|| u64::from_le_bytes(mark))
}

/// Makes the root what the snapshot with this top directory is.
pub(crate) fn revert(root: &OwnedFd, snapshot: &OwnedFd, place: &Place) -> Result<Snapshot> {
    let former = btrfs::subvolume_of(root).map_err(from_errno)?;
    undo(place, former)?;
    let copy = prepare(snapshot, place, former).and_then(|copy| {
        let name = name_of(former.id);
        let exchanged = renameat_with(
            &place.above,
            place.name.as_slice(),
            &place.above,
            name.as_str(),
            RenameFlags::EXCHANGE,
        );
        exchanged.map(|()| copy).map_err(from_errno)
    });
    match copy {
        Ok(copy) => finish(&copy, place, former.id),
        Err(e) => {
            // The first error counts. If this fails, too, the next start removes the copy.
            let _ = undo(place, former);
            Err(e)
        }
    }
}

/// Makes the copy beside the root.
fn prepare(snapshot: &OwnedFd, place: &Place, former: Subvolume) -> Result<OwnedFd> {
    let name = name_of(former.id);
    btrfs::snapshot(snapshot, &place.above, name.as_bytes(), Writing::Allowed).map_err(from_errno)?;
    let copy = openat(&place.above, name, TOP, Mode::empty()).map_err(from_errno)?;
    fsetxattr(&copy, MARK, &former.id.to_le_bytes(), XattrFlags::empty()).map_err(from_errno)?;
    remove_placeholder(&copy)?;
    Ok(copy)
}

/// Removes a copy that has not taken the root's place.
fn undo(place: &Place, root: Subvolume) -> Result<()> {
    let Some(copy) = place.beside(root.id)? else { return Ok(()) };
    // It is marked after it was made.
    let is_copy = mark_of(&copy).is_none_or(|mark| mark == root.id);
    if !is_copy || stat(&copy)?.stx_ino != btrfs::TOP {
        return Err(Error::Exists);
    }
    btrfs::remove_subvolume(&place.above, name_of(root.id).as_bytes()).map_err(from_errno)
}

/// The copy is the root now: the snapshots go with it, and the former root becomes one of them.
fn finish(root: &OwnedFd, place: &Place, former: u64) -> Result<Snapshot> {
    if let Some(top) = place.beside(former)? {
        if open_folder(root)?.is_none() && open_folder(&top)?.is_some() {
            let name = snapshot_folder::NAME;
            renameat_with(&top, name, root, name, RenameFlags::NOREPLACE).map_err(from_errno)?;
        }
        let folder = make_folder(root)?;
        let others = in_order(subvolumes(&folder)?.iter().filter_map(InFolder::as_snapshot).collect());
        let name = name_beside(BEFORE_REVERT, now(), &others).ok_or(Error::InvalidName)?.to_string();
        // What is read-only cannot be moved.
        renameat_with(&place.above, name_of(former), &folder, name, RenameFlags::NOREPLACE)
            .map_err(from_errno)?;
    }
    let folder = make_folder(root)?;
    for found in subvolumes(&folder)?.iter().filter(|found| found.subvolume.id == former) {
        pool_mark::pass_on(&found.top, root)?;
        btrfs::refuse_writing(&found.top).map_err(from_errno)?;
    }
    syncfs(root).map_err(from_errno)?;
    fremovexattr(root, MARK).map_err(from_errno)?;
    let snapshots = in_order(subvolumes(&folder)?.iter().filter_map(InFolder::as_snapshot).collect());
    snapshots.into_iter().find(|snapshot| u64::from(snapshot.id.0) == former).ok_or(Error::NotFound)
}

/// Finishes or undoes what a server that was killed has begun at this root, which is the top of a subvolume.
pub(crate) fn recover(root: &OwnedFd) -> Result<()> {
    let own = btrfs::subvolume_of(root).map_err(from_errno)?;
    let is_mounted = stat(root)?.stx_attributes.contains(StatxAttributes::MOUNT_ROOT);
    if own.is_read_only || is_mounted {
        return Ok(());
    }
    let path = readlink([b"/proc/self/fd/", DecInt::from_fd(root).as_bytes()].concat(), Vec::new());
    let place = Place::of(root, path.map_err(from_errno)?.as_bytes());
    match mark_of(root) {
        Some(former) => {
            tracing::warn!("going back to a snapshot was interrupted, and is finished now");
            finish(root, &place?, former).map(drop)
        }
        // Who may not look at the directory above has begun nothing there.
        None => place.map_or(Ok(()), |place| undo(&place, own)),
    }
}
