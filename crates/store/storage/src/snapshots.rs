//! Snapshots: what a store held at one moment, kept while the store goes on changing.

use std::collections::{BTreeSet, HashSet};
use std::fmt::Debug;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::{Error, Handle, MayWait, Name, Result, SnapshotName, Storage, Timestamp, Wait};

/// A number of a snapshot. A store never gives it to a second one, and gives higher ones to snapshots that it takes later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotId(pub u32);

/// A snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// By which the store knows it.
    pub id: SnapshotId,
    /// A [`SnapshotName`], or, if others made the snapshot, whatever they call it.
    pub name: String,
    /// When it was taken: a whole second (UTC) that no other snapshot of the store has. Where several were taken within one
    /// second, these are the next free ones.
    pub taken: Timestamp,
    /// Whether [`Snapshots::take`] or [`Snapshots::revert`] made it, and not another program.
    pub is_own: bool,
    /// What no other snapshot has, of any store. None where the file system gives none.
    pub uuid: Option<[u8; 16]>,
}

impl Snapshot {
    /// What tells the snapshot from all others of its store, also from a later one with its name, and stays when it is renamed:
    /// `uuid:` and its UUID, which tells it from those of other stores, too; without one, `number:` and its number.
    #[must_use]
    pub fn identity(&self) -> String {
        match self.uuid {
            Some(uuid) => format!("uuid:{:032x}", u128::from_be_bytes(uuid)),
            None => format!("number:{}", self.id.0),
        }
    }
}

/// The snapshots of a store: [`Storage::snapshots`]. All calls wait.
pub trait Snapshots: Send + Sync + Debug + 'static {
    /// All snapshots, also those that other programs have made, as far as the store can find them. Oldest first.
    ///
    /// # Errors
    /// Those of the device.
    fn list(&self, may: MayWait<'_>) -> Result<Vec<Snapshot>>;

    /// What tells the file system from others: no two snapshots of one are to be taken or removed at a time. Stores that cannot tell all
    /// say the same.
    fn file_system(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes a snapshot of the whole store. The label becomes a part of the name ([`SnapshotName`]).
    ///
    /// Whatever was answered before the call is in it, data too. Of two changes that are made during the call, one after the
    /// other, it has the second only if it has the first. This does not hold for data that is not asked to be safe
    /// ([`crate::Stability::Unstable`]), as in a power cut.
    ///
    /// # Errors
    /// [`crate::Error::InvalidName`] for a label that a name cannot have; [`crate::Error::SnapshotLimit`] if there are as many as the
    /// file system keeps; [`crate::Error::NotPermitted`] if the server may take none; [`crate::Error::NoSpace`] and those of the
    /// device: then there is no snapshot.
    fn take(&self, label: &str, may: MayWait<'_>) -> Result<Snapshot>;

    /// The snapshot as a store of its own, which can be read. It has no [`crate::Capabilities::WRITE`], and what would
    /// change something returns [`crate::Error::ReadOnly`]. Its objects have the numbers
    /// ([`crate::ObjectId::number`]) of those that they are pictures of. Handles of the one store are none of the other; they are valid
    /// again when the snapshot is opened again.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] for a snapshot that is not there.
    fn open(&self, id: SnapshotId, may: MayWait<'_>) -> Result<Arc<dyn Storage>>;

    /// Of these snapshots, those in which a path ([`crate::Node::path`]) leads to something. Symbolic links are not followed.
    /// One that is not there is left out.
    ///
    /// # Errors
    /// Those of the device.
    fn with_path(&self, path: &[u8], among: &[SnapshotId], may: MayWait<'_>) -> Result<Vec<SnapshotId>> {
        let mut having = Vec::new();
        for id in among {
            match self.open(*id, may).and_then(|store| leads_somewhere(&*store, path, may)) {
                Ok(()) => having.push(*id),
                Err(e) if is_nowhere(e) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(having)
    }

    /// Removes a snapshot. Its space comes back later. Whoever has it open reads what was there, or learns that it is gone
    /// ([`crate::Error::Stale`], for names also [`crate::Error::NotFound`]).
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] for a snapshot that is not there; [`crate::Error::NotPermitted`] for one that others made,
    /// who remove it themselves, and if the server may remove none.
    fn remove(&self, id: SnapshotId, may: MayWait<'_>) -> Result<()>;

    /// Whether the store can go back to a snapshot.
    ///
    /// # Errors
    /// Why it cannot.
    fn can_revert(&self, may: MayWait<'_>) -> std::result::Result<(), NoSnapshots>;

    /// Makes the store what it was when the snapshot was taken. What it held until now becomes a snapshot with the label
    /// [`BEFORE_REVERT`], which is returned. Snapshots stay.
    ///
    /// Nobody may use the store meanwhile, and it must be opened again afterwards. Handles of before are stale then. A server
    /// that is killed meanwhile leaves the one state or the other, also when it is opened again.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] for a snapshot that is not there; [`crate::Error::NotSupported`] where
    /// [`Snapshots::can_revert`] says so; [`crate::Error::NoSpace`].
    fn revert(&self, id: SnapshotId, may: MayWait<'_>) -> Result<Snapshot>;

    /// The handle that an object with this handle of the store itself has in a snapshot, whether it is there or not.
    ///
    /// # Errors
    /// [`Error::BadHandle`]; [`Error::NotSupported`] for a store that does not know it.
    fn handle_in(&self, live: &Handle, id: SnapshotId) -> Result<Handle> {
        let _ = (live, id);
        Err(Error::NotSupported)
    }

    /// The handle that an object with this handle of a snapshot has in the store itself, whether it is there or not.
    ///
    /// # Errors
    /// As [`Snapshots::handle_in`].
    fn live_handle(&self, handle: &Handle, id: SnapshotId) -> Result<Handle> {
        let _ = (handle, id);
        Err(Error::NotSupported)
    }

    /// The numbers ([`crate::ObjectId::number`], in the file system of the root) of all objects of a snapshot of which anything may be
    /// different from what it was in an earlier snapshot, and of the directories above them. All of an object counts: its
    /// attributes and its change time, its data, its extended attributes, its names, its streams, and the names in a directory.
    /// What is not among these is as it was, with all that is below it. None: the store does not know, or does not know it of these
    /// two. The search may take long: `goes_on` is asked again and again, and on [`ControlFlow::Break`] there is an end, with None.
    ///
    /// # Errors
    /// [`Error::NotFound`] for a snapshot that is not there; those of the device.
    fn touched(
        &self,
        earlier: SnapshotId,
        later: SnapshotId,
        goes_on: &mut dyn FnMut() -> ControlFlow<()>,
        may: MayWait<'_>,
    ) -> Result<Option<HashSet<u64>>> {
        let _ = (earlier, later, goes_on, may);
        Ok(None)
    }

    /// Makes a directory of this machine that holds what the snapshot holds and can be changed: a store of its own, which shares its
    /// blocks with this one. `at` is absolute; nothing is there yet, and the directory above is.
    ///
    /// # Errors
    /// [`Error::NotSupported`] for a store that cannot do this; [`Error::CrossDevice`] for a place that is not in its file system;
    /// [`Error::NotFound`] for a snapshot that is not there; [`Error::Exists`]; [`Error::NoSpace`]. Then nothing was made.
    fn clone_to(&self, id: SnapshotId, at: &Path, may: MayWait<'_>) -> Result<()> {
        let _ = (id, at, may);
        Err(Error::NotSupported)
    }
}

fn leads_somewhere(store: &dyn Storage, path: &[u8], may: MayWait<'_>) -> Result<()> {
    let mut at = store.root();
    for name in path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
        at = at.lookup(Name::new(name)?, Wait::May(may))?;
    }
    Ok(())
}

/// Whether a failed look-up means that there is nothing at the path.
#[must_use]
pub fn is_nowhere(error: Error) -> bool {
    matches!(
        error,
        Error::NotFound | Error::NotDirectory | Error::SymlinkLoop | Error::Stale | Error::InvalidName
    )
}

/// The label of the snapshot that a revert makes.
pub const BEFORE_REVERT: &str = "before-revert";

/// Why a store has no snapshots, or cannot go back to one, and what would be needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoSnapshots {
    /// The kind of store has none.
    #[error(
        "this kind of storage has no snapshots: they need a directory that is a Btrfs subvolume, or one of CephFS"
    )]
    Storage,
    /// The file system has none.
    #[error(
        "the file system has no snapshots: they need Btrfs, where the share's directory must be a subvolume of its own, or CephFS"
    )]
    FileSystem,
    /// The directory is on Btrfs, and not the top of a subvolume.
    #[error(
        "the directory is not a Btrfs subvolume: make one (btrfs subvolume create), move everything into it, and let it take \
         the directory's place"
    )]
    NoSubvolume,
    /// Only for [`Snapshots::can_revert`]: the subvolume is mounted, so nothing else can take its place.
    #[error(
        "a file system is mounted at the directory: mount the directory above instead, so that another subvolume can take \
         this one's place"
    )]
    MountPoint,
    /// Only for [`Snapshots::can_revert`]: the file system cannot do it.
    #[error(
        "CephFS cannot go back to a snapshot: copy what is needed out of it, by the previous versions of SMB clients or out of \
         .snapshot of NFS clients"
    )]
    NoRevert,
    /// Only for [`Snapshots::can_revert`]: the store shows a snapshot, of a replica.
    #[error("the share is a replica, which is like the share that it is a replica of: break it off first")]
    Replica,
}

/// A moment before which a snapshot was not taken, since 1970: of snapshots of one second, all but the first are said to be taken in
/// the seconds that follow. None if it is not among them.
#[must_use]
pub fn not_before(snapshots: &[Snapshot], id: SnapshotId) -> Option<Duration> {
    let at = snapshots.iter().position(|one| one.id == id)?;
    let mut secs = snapshots.get(at)?.taken.secs;
    for before in snapshots.get(..at).unwrap_or_default().iter().rev() {
        if before.taken.secs + 1 != secs {
            break;
        }
        secs = before.taken.secs;
    }
    Some(Duration::from_secs(u64::try_from(secs).unwrap_or(0)))
}

/// A snapshot as a store finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSnapshot {
    /// By which the store knows it.
    pub id: SnapshotId,
    /// Its name.
    pub name: String,
    /// When it was taken, as the store has recorded it.
    pub recorded: Timestamp,
    /// Whether this server made it.
    pub is_own: bool,
    /// As [`Snapshot::uuid`].
    pub uuid: Option<[u8; 16]>,
}

/// These snapshots, oldest first, each with a second of its own: own ones with the second in their name, as long as no other
/// has it.
#[must_use]
pub fn in_order(found: Vec<FoundSnapshot>) -> Vec<Snapshot> {
    let mut named: Vec<_> = found
        .into_iter()
        .map(|found| {
            let by_name = SnapshotName::parse(&found.name).filter(|_| found.is_own);
            (by_name.is_none(), by_name.map_or(found.recorded.secs, |name| name.secs()), found)
        })
        .collect();
    named.sort_by_key(|(is_unnamed, secs, found)| (*is_unnamed, *secs, found.recorded, found.id));
    let mut seconds = BTreeSet::new();
    let mut snapshots = Vec::new();
    for (_, secs, FoundSnapshot { id, name, is_own, uuid, .. }) in named {
        let secs = free_second(secs, &seconds);
        seconds.insert(secs);
        snapshots.push(Snapshot { id, name, taken: Timestamp { secs, nanos: 0 }, is_own, uuid });
    }
    snapshots.sort_by_key(|snapshot| snapshot.taken);
    snapshots
}

/// The name of a snapshot that is taken now: in this second or, if other snapshots have it, in the next free one.
#[must_use]
pub fn name_beside(label: &str, now: Timestamp, others: &[Snapshot]) -> Option<SnapshotName> {
    let seconds = others.iter().map(|other| other.taken.secs).collect();
    SnapshotName::new(label, free_second(now.secs, &seconds))
}

fn free_second(wanted: i64, seconds: &BTreeSet<i64>) -> i64 {
    (wanted..=i64::MAX).find(|second| !seconds.contains(second)).unwrap_or(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(id: u32, name: &str, secs: i64, is_own: bool) -> FoundSnapshot {
        let recorded = Timestamp { secs, nanos: 7 };
        FoundSnapshot { id: SnapshotId(id), name: name.to_owned(), recorded, is_own, uuid: None }
    }

    #[test]
    fn each_snapshot_has_a_second_of_its_own() {
        let own = "anabranch.manual.2026-11-23T05:45:18Z";
        let at = SnapshotName::parse(own).unwrap().secs();
        let snapshots = in_order(vec![
            found(3, "1/snapshot", at, false),
            found(4, own, at + 5, true),
            found(1, "2/snapshot", at - 1, false),
            found(2, own, at - 1, false),
            found(5, "mine", at + 7, true),
        ]);
        let told: Vec<_> = snapshots.iter().map(|s| (s.id.0, s.taken.secs - at, s.taken.nanos)).collect();
        assert_eq!(told, [(1, -1, 0), (4, 0, 0), (2, 1, 0), (3, 2, 0), (5, 7, 0)]);
        assert_eq!(in_order(Vec::new()), []);
    }

    #[test]
    fn a_snapshot_is_told_by_its_uuid_or_else_by_its_number() {
        let [one] = &in_order(vec![found(7, "a", 100, true)])[..] else { panic!("one was found") };
        assert_eq!(one.identity(), "number:7");
        let known =
            Snapshot { uuid: Some([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]), ..one.clone() };
        assert_eq!(known.identity(), "uuid:000102030405060708090a0b0c0d0eff");
    }

    #[test]
    fn of_snapshots_in_a_row_each_may_be_as_old_as_the_first() {
        let taken = |secs| found(u32::try_from(secs).unwrap(), "x", secs, true);
        let snapshots = in_order([5, 8, 9, 10].map(taken).into());
        let moment = |id| not_before(&snapshots, SnapshotId(id)).map(|moment| moment.as_secs());
        assert_eq!([5, 8, 9, 10].map(moment), [Some(5), Some(8), Some(8), Some(8)]);
        assert_eq!(moment(7), None);
    }

    #[test]
    fn a_new_one_takes_the_next_free_second() {
        let others = in_order(vec![found(1, "a", 100, false), found(2, "b", 101, false)]);
        let secs = |now| name_beside("x", Timestamp { secs: now, nanos: 9 }, &others).map(|name| name.secs());
        assert_eq!((secs(99), secs(100), secs(101), secs(102)), (Some(99), Some(102), Some(102), Some(102)));
        assert_eq!(name_beside("a.b", Timestamp::default(), &others), None);
    }
}
