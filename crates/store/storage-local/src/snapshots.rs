//! The snapshots of a store whose root is a subvolume of Btrfs.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use rustix::fs::{Mode, OFlags, Statx, StatxAttributes, open, openat2};
use rustix::io::Errno;
use storage::{
    Error, FoundSnapshot, Handle, MayWait, NoSnapshots, Result, Snapshot, SnapshotId, Snapshots, Storage,
    Timestamp, in_order, is_nowhere, name_beside,
};

use crate::attributes::stat;
use crate::btrfs::{self, Writing};
use crate::errno::from_errno;
use crate::handle::Handles;
use crate::others_snapshots::{open_by_id, others_of};
use crate::probe;
use crate::resolve::{BELOW, PIN};
use crate::revert::{Place, revert};
use crate::snapshot_folder::{InFolder, make_folder, open_folder, subvolumes};
use crate::snapshot_store::SnapshotStore;
use crate::store::Shared;
use crate::touched::touched;

/// Whether a root can have snapshots.
pub(crate) fn can_have_snapshots(root: &OwnedFd, known: &Statx) -> std::result::Result<(), NoSnapshots> {
    match probe::is_btrfs(root) {
        true if known.stx_ino == btrfs::TOP => Ok(()),
        true => Err(NoSnapshots::NoSubvolume),
        false => Err(NoSnapshots::FileSystem),
    }
}

/// The snapshots of a store.
#[derive(Debug)]
pub(crate) struct LocalSnapshots {
    store: Arc<Shared>,
}

impl LocalSnapshots {
    pub(crate) fn of(store: &Arc<Shared>) -> Self {
        Self { store: Arc::clone(store) }
    }

    /// Those in the folder.
    fn own(&self) -> Result<Vec<(InFolder, FoundSnapshot)>> {
        let Some(folder) = open_folder(&self.store.root)? else { return Ok(Vec::new()) };
        let found = subvolumes(&folder)?.into_iter();
        Ok(found.filter_map(|found| found.as_snapshot().map(|snapshot| (found, snapshot))).collect())
    }

    /// Those that others made. Only a server that may use handles can open them.
    fn others(&self, own: &BTreeSet<SnapshotId>) -> Result<Vec<FoundSnapshot>> {
        let Handles::Native(_) = self.store.handles else { return Ok(Vec::new()) };
        let mut others = others_of(&self.store.root)?;
        others.retain(|other| !own.contains(&other.id));
        Ok(others)
    }

    fn listed(&self) -> Result<Vec<Snapshot>> {
        let mut found: Vec<_> = self.own()?.into_iter().map(|(_, snapshot)| snapshot).collect();
        let own = found.iter().map(|snapshot| snapshot.id).collect();
        found.extend(self.others(&own)?);
        Ok(in_order(found))
    }

    /// One in the folder.
    fn find_own(&self, id: SnapshotId) -> Result<Option<InFolder>> {
        Ok(self.own()?.into_iter().find(|(_, snapshot)| snapshot.id == id).map(|(found, _)| found))
    }

    fn is_others(&self, id: SnapshotId) -> Result<bool> {
        Ok(self.others(&BTreeSet::new())?.iter().any(|other| other.id == id))
    }

    /// The top directory of a snapshot of the present root, if the server may open it by its handle: without a list.
    fn top_by_handle(&self, id: SnapshotId) -> Option<OwnedFd> {
        let Handles::Native(_) = self.store.handles else { return None };
        let top = open_by_id(&self.store.root, id).ok()?;
        let (of, live) = (btrfs::subvolume_of(&top).ok()?, btrfs::subvolume_of(&self.store.root).ok()?);
        (of.parent_uuid == live.uuid).then_some(top)
    }

    /// The top directory of a snapshot.
    fn top(&self, id: SnapshotId) -> Result<OwnedFd> {
        if let Some(top) = self.top_by_handle(id) {
            return Ok(top);
        }
        match self.find_own(id)? {
            Some(found) => Ok(found.top),
            None if self.is_others(id)? => open_by_id(&self.store.root, id),
            None => Err(Error::NotFound),
        }
    }
}

impl Snapshots for LocalSnapshots {
    fn list(&self, _: MayWait<'_>) -> Result<Vec<Snapshot>> {
        self.listed()
    }

    fn file_system(&self) -> Vec<u8> {
        btrfs::file_system_of(&self.store.root).map_or_else(|_| Vec::new(), Vec::from)
    }

    fn take(&self, label: &str, _: MayWait<'_>) -> Result<Snapshot> {
        let _alone = self.store.taking_snapshots.lock();
        let name = name_beside(label, now(), &self.listed()?).ok_or(Error::InvalidName)?;
        let folder = make_folder(&self.store.root)?;
        let text = name.to_string();
        btrfs::snapshot(&self.store.root, &folder, text.as_bytes(), Writing::Refused).map_err(from_errno)?;
        let made = InFolder::open(&folder, text.as_bytes())?;
        let id = SnapshotId(u32::try_from(made.subvolume.id).map_err(|_| Error::OutOfResources)?);
        let taken = Timestamp { secs: name.secs(), nanos: 0 };
        Ok(Snapshot { id, name: text, taken, is_own: true, uuid: Some(made.subvolume.uuid) })
    }

    fn open(&self, id: SnapshotId, _: MayWait<'_>) -> Result<Arc<dyn Storage>> {
        Ok(Arc::new(SnapshotStore::open(self.top(id)?, &self.store, id)?))
    }

    fn with_path(&self, path: &[u8], among: &[SnapshotId], _: MayWait<'_>) -> Result<Vec<SnapshotId>> {
        let mut tops: BTreeMap<_, _> =
            self.own()?.into_iter().map(|(found, snapshot)| (snapshot.id, found.top)).collect();
        let others: BTreeSet<_> = if among.iter().all(|id| tops.contains_key(id)) {
            BTreeSet::new()
        } else {
            self.others(&BTreeSet::new())?.into_iter().map(|other| other.id).collect()
        };
        let mut having = Vec::new();
        for id in among {
            let top = match tops.remove(id) {
                Some(top) => Ok(top),
                None if others.contains(id) => open_by_id(&self.store.root, *id),
                None => continue,
            };
            match top.and_then(|top| leads_somewhere(&top, path)) {
                Ok(()) => having.push(*id),
                Err(e) if is_nowhere(e) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(having)
    }

    fn remove(&self, id: SnapshotId, _: MayWait<'_>) -> Result<()> {
        let _alone = self.store.taking_snapshots.lock();
        let (Some(found), Some(folder)) = (self.find_own(id)?, open_folder(&self.store.root)?) else {
            return Err(if self.is_others(id)? { Error::NotPermitted } else { Error::NotFound });
        };
        btrfs::remove_subvolume(&folder, &found.name).map_err(from_errno)
    }

    fn handle_in(&self, live: &Handle, id: SnapshotId) -> Result<Handle> {
        self.store.handles.translated(live, None, (Some(id), u64::from(id.0)))
    }

    fn live_handle(&self, handle: &Handle, id: SnapshotId) -> Result<Handle> {
        let subvolume = btrfs::subvolume_of(&self.store.root).map_err(from_errno)?.id;
        self.store.handles.translated(handle, Some(id), (None, subvolume))
    }

    fn can_revert(&self, _: MayWait<'_>) -> std::result::Result<(), NoSnapshots> {
        let is_mounted = stat(&self.store.root)
            .is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
        if is_mounted { Err(NoSnapshots::MountPoint) } else { Ok(()) }
    }

    fn revert(&self, id: SnapshotId, may: MayWait<'_>) -> Result<Snapshot> {
        let _alone = self.store.taking_snapshots.lock();
        let top = self.top(id)?;
        self.can_revert(may).map_err(|_| Error::NotSupported)?;
        let place = Place::of(&self.store.root, &self.store.kernel_path(&self.store.root)?)?;
        revert(&self.store.root, &top, &place)
    }

    fn touched(
        &self,
        earlier: SnapshotId,
        later: SnapshotId,
        goes_on: &mut dyn FnMut() -> ControlFlow<()>,
        _: MayWait<'_>,
    ) -> Result<Option<HashSet<u64>>> {
        touched(&self.top(earlier)?, &self.top(later)?, goes_on)
    }

    fn clone_to(&self, id: SnapshotId, at: &Path, _: MayWait<'_>) -> Result<()> {
        let top = self.top(id)?;
        let name = at.file_name().ok_or(Error::InvalidName)?;
        let above = at.parent().ok_or(Error::InvalidName)?;
        let above = open(above, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        let above = above.map_err(from_errno)?;
        if !probe::is_btrfs(&above) {
            return Err(Error::CrossDevice);
        }
        btrfs::snapshot(&top, &above, name.as_bytes(), Writing::Allowed).map_err(from_errno)
    }
}

fn leads_somewhere(top: &OwnedFd, path: &[u8]) -> Result<()> {
    let path = if path.is_empty() { b"." } else { path };
    openat2(top, path, PIN, Mode::empty(), BELOW).map(drop).map_err(|errno| match errno {
        // A subvolume below the root is not in a snapshot.
        Errno::XDEV => Error::NotFound,
        errno => from_errno(errno),
    })
}

/// The system's clock.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp { secs: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanos: since.subsec_nanos() }
}
