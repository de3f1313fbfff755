//! The snapshots of a store: those that CephFS has of the store's root.
//!
//! CephFS shows the snapshots of a directory in its directory `.snap`, which no listing shows. A directory made there is a snapshot.
//! Those that others made are there, too, by hand or with Ceph's own schedule, and as `_NAME_NUMBER` those of the directories above.
//! An own one is told by its name alone, so that another gateway knows it after it has taken over.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use rustix::io::Errno;
use storage::{
    Error, FileKind, FoundSnapshot, MayWait, NoSnapshots, Result, Snapshot, SnapshotId, SnapshotName,
    Snapshots, Storage, Timestamp, in_order, is_nowhere, name_beside,
};

use crate::attributes::{kind_of, now, timestamp};
use crate::errno::from_errno;
use crate::inode::{Inode, Make};
use crate::library::CStat;
use crate::listing::Listing;
use crate::place::text;
use crate::snapshot_store::SnapshotStore;
use crate::store::Shared;

/// The name of the directory of snapshots, which is reserved everywhere in a store.
pub(crate) const SNAPSHOT_FOLDER: &str = ".snap";
const FOLDER: &CStr = c".snap";
/// When a snapshot was taken: seconds, a dot and nanoseconds. Ceph does not list the attribute.
pub(crate) const TAKEN: &CStr = c"ceph.snap.btime";
/// How many snapshots of a directory Ceph allows by default (`mds_max_snaps_per_dir`).
const LIMIT: usize = 100;
/// So many before the limit, it is told.
const NEAR: usize = 5;
/// The mode and the owner of a directory of snapshots are those of the original, whatever is asked for.
const MODE: u32 = 0o755;
const OWNER: (u32, u32) = (0, 0);

/// The snapshots of a store.
#[derive(Debug)]
pub(crate) struct CephSnapshots {
    store: Arc<Shared>,
}

/// An entry of the directory of snapshots.
struct InFolder {
    name: Vec<u8>,
    /// By which CephFS knows it.
    number: u64,
}

impl InFolder {
    fn id(&self) -> Option<SnapshotId> {
        u32::try_from(self.number).ok().map(SnapshotId)
    }

    /// The name, if a gateway has made the snapshot.
    fn own_name(&self) -> Option<SnapshotName> {
        SnapshotName::parse(std::str::from_utf8(&self.name).ok()?)
    }

    /// The snapshot. None: it is gone, or CephFS gave it a number that is too large.
    fn as_snapshot(&self, folder: &Inode) -> Result<Option<FoundSnapshot>> {
        let Some(id) = self.id() else { return Ok(None) };
        let own = self.own_name();
        let recorded = match &own {
            Some(name) => Timestamp { secs: name.secs(), nanos: 0 },
            None => match taken_at(folder, &self.name) {
                Err(Error::NotFound | Error::Stale) => return Ok(None),
                taken => taken?,
            },
        };
        let name = String::from_utf8_lossy(&self.name).into_owned();
        Ok(Some(FoundSnapshot { id, name, recorded, is_own: own.is_some(), uuid: None }))
    }
}

/// When a snapshot was taken.
fn taken_at(folder: &Inode, name: &[u8]) -> Result<Timestamp> {
    let (top, stat) = folder.lookup(&text(name)?).map_err(from_errno)?;
    match top.xattr(TAKEN) {
        Ok(value) => Ok(parse_time(&value).unwrap_or_else(|| timestamp(stat.ctime))),
        // Servers before Ceph 14 do not tell it.
        Err(Errno::NODATA) => Ok(timestamp(stat.ctime)),
        Err(errno) => Err(from_errno(errno)),
    }
}

fn parse_time(value: &[u8]) -> Option<Timestamp> {
    let (secs, nanos) = std::str::from_utf8(value).ok()?.split_once('.')?;
    Some(Timestamp { secs: secs.parse().ok()?, nanos: nanos.parse().ok()? })
}

impl CephSnapshots {
    pub(crate) fn of(store: &Arc<Shared>) -> Self {
        Self { store: Arc::clone(store) }
    }

    fn folder(&self) -> Result<Inode> {
        Ok(self.store.root.lookup(FOLDER).map_err(from_errno)?.0)
    }

    /// All entries of the directory of snapshots.
    fn entries(folder: &Inode) -> Result<Vec<InFolder>> {
        let mut listing = Listing::of_names(folder).map_err(from_errno)?;
        let mut found = Vec::new();
        while let Some(entry) = listing.next().map_err(from_errno)? {
            if !matches!(entry.name(), b"." | b"..") {
                found.push(InFolder { name: entry.name().to_vec(), number: entry.stat.device });
            }
        }
        Ok(found)
    }

    fn listed(folder: &Inode) -> Result<Vec<Snapshot>> {
        let found = Self::entries(folder)?.into_iter().map(|entry| entry.as_snapshot(folder));
        Ok(in_order(found.filter_map(Result::transpose).collect::<Result<_>>()?))
    }

    fn find(folder: &Inode, id: SnapshotId) -> Result<InFolder> {
        Self::entries(folder)?.into_iter().find(|entry| entry.id() == Some(id)).ok_or(Error::NotFound)
    }
}

impl Snapshots for CephSnapshots {
    fn list(&self, _: MayWait<'_>) -> Result<Vec<Snapshot>> {
        Self::listed(&self.folder()?)
    }

    fn take(&self, label: &str, _: MayWait<'_>) -> Result<Snapshot> {
        let _alone = self.store.taking_snapshots.lock();
        let folder = self.folder()?;
        let others = Self::listed(&folder)?;
        let name = name_beside(label, now(), &others).ok_or(Error::InvalidName)?;
        let text = name.to_string();
        let called = CString::new(text.as_str()).map_err(|_| Error::InvalidName)?;
        let (_, stat) = folder.make(&called, &Make::Directory, MODE, OWNER).map_err(|errno| match errno {
            // As many as the metadata servers allow for a directory (`mds_max_snaps_per_dir`), which they do not tell otherwise.
            Errno::MLINK => Error::SnapshotLimit(u32::try_from(others.len()).unwrap_or(u32::MAX)),
            errno => without_right(errno),
        })?;
        warn_of_limit(others.len() + 1);
        let id = SnapshotId(u32::try_from(stat.device).map_err(|_| Error::OutOfResources)?);
        let taken = Timestamp { secs: name.secs(), nanos: 0 };
        Ok(Snapshot { id, name: text, taken, is_own: true, uuid: None })
    }

    fn open(&self, id: SnapshotId, _: MayWait<'_>) -> Result<Arc<dyn Storage>> {
        let folder = self.folder()?;
        let InFolder { name, number } = Self::find(&folder, id)?;
        Ok(Arc::new(SnapshotStore::open(&self.store, &folder, &text(&name)?, number)?))
    }

    fn with_path(&self, path: &[u8], among: &[SnapshotId], _: MayWait<'_>) -> Result<Vec<SnapshotId>> {
        let folder = self.folder()?;
        let entries = Self::entries(&folder)?;
        let mut having = Vec::new();
        for id in among {
            let Some(entry) = entries.iter().find(|entry| entry.id() == Some(*id)) else { continue };
            match leads_somewhere(&folder, &entry.name, path) {
                Ok(()) => having.push(*id),
                Err(error) if is_nowhere(error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(having)
    }

    fn remove(&self, id: SnapshotId, _: MayWait<'_>) -> Result<()> {
        let _alone = self.store.taking_snapshots.lock();
        let folder = self.folder()?;
        let found = Self::find(&folder, id)?;
        if found.own_name().is_none() {
            return Err(Error::NotPermitted);
        }
        folder.remove(&text(&found.name)?, true).map_err(without_right)
    }

    fn can_revert(&self, _: MayWait<'_>) -> std::result::Result<(), NoSnapshots> {
        Err(NoSnapshots::NoRevert)
    }

    fn revert(&self, _: SnapshotId, _: MayWait<'_>) -> Result<Snapshot> {
        Err(Error::NotSupported)
    }
}

/// The meaning of an error number where snapshots are taken and removed: only a missing right keeps the server's user from that.
fn without_right(errno: Errno) -> Error {
    if errno == Errno::ACCESS { Error::NotPermitted } else { from_errno(errno) }
}

/// Tells the limit before it is reached. What a cluster allows instead of the default is known by trying alone.
fn warn_of_limit(count: usize) {
    if (LIMIT - NEAR..=LIMIT).contains(&count) {
        tracing::warn!(
            snapshots = count,
            "CephFS keeps at most {LIMIT} snapshots of a directory, unless mds_max_snaps_per_dir of the cluster says otherwise"
        );
    }
}

fn leads_somewhere(folder: &Inode, snapshot: &[u8], path: &[u8]) -> Result<()> {
    let find = |dir: &Inode, name: &[u8]| dir.lookup(&text(name)?).map_err(from_errno);
    let mut at: (Inode, CStat) = find(folder, snapshot)?;
    for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        if kind_of(&at.1) != FileKind::Directory {
            return Err(Error::NotDirectory);
        }
        at = find(&at.0, name)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_snapshot_is_read() {
        let time = |secs, nanos| Some(Timestamp { secs, nanos });
        assert_eq!(parse_time(b"1795764020.014202280"), time(1_795_764_020, 14_202_280));
        assert_eq!(parse_time(b"0.000000000"), time(0, 0));
        for bad in [&b""[..], b"5", b".", b"5.", b"x.1", b"1.x", b"\xff.1", b"99999999999999999999.0"] {
            assert_eq!(parse_time(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn only_what_a_gateway_has_taken_is_own() {
        let entry = |name: &str, number| InFolder { name: name.as_bytes().to_vec(), number };
        let own = entry("anabranch.daily-office.2026-11-23T05:45:18Z", 7);
        assert!(own.own_name().is_some() && own.id() == Some(SnapshotId(7)));
        for name in [
            "scheduled-2026-11-23-05_45_18_UTC",
            "_anabranch.daily.2026-11-23T05:45:18Z_1099511627776",
            "anabranch",
        ] {
            assert!(entry(name, 7).own_name().is_none(), "{name}");
        }
        assert_eq!(entry("x", 1 << 32).id(), None);
    }
}
