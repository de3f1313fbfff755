//! The source and the destination, in one process.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use anabranch_replica::{
    Compared, Converged, Convergence, Failure, Progress, Records, Result, Source, Takes, changes,
    write_objects,
};
use replica_wire::{Record, Wanted};
use storage::conformance::MAY;
use storage::{SnapshotId, Snapshots, Storage};
use storage_local::{LocalOptions, LocalStore};

use crate::disk;

/// What was said, read again: each record goes through its bytes.
pub(crate) struct Said(pub(crate) VecDeque<Vec<u8>>);

impl Said {
    pub(crate) fn by(say: impl FnOnce(&mut dyn FnMut(&Record) -> Result<()>) -> Result<()>) -> Result<Self> {
        let mut said = VecDeque::new();
        say(&mut |record| {
            if *record == Record::Alive {
                return Ok(());
            }
            let mut bytes = Vec::new();
            record.encode_into(&mut bytes);
            said.push_back(bytes);
            Ok(())
        })?;
        Ok(Self(said))
    }
}

impl Records for Said {
    fn next(&mut self) -> Result<Record> {
        let bytes = self.0.pop_front().ok_or_else(|| Failure::Source("cut off".to_owned()))?;
        Ok(Record::decode(&bytes).unwrap().unwrap().0)
    }
}

/// The snapshot at the source, which is cut off after some records.
pub(crate) struct Far<'a> {
    pub(crate) compared: &'a Compared,
    pub(crate) left: &'a mut u64,
}

impl Source for Far<'_> {
    fn objects(&mut self, wanted: &Wanted) -> Result<Box<dyn Records + '_>> {
        let wanted = Wanted::decode(&wanted.encode()).unwrap();
        let mut said = Said::by(|say| write_objects(self.compared, &wanted, MAY, say))?;
        let most = usize::try_from(*self.left).unwrap();
        *self.left = self.left.saturating_sub(said.0.len() as u64);
        said.0.truncate(most);
        Ok(Box::new(said))
    }
}

/// Makes the destination like a snapshot, at once.
pub(crate) fn converge(
    snapshots: &Arc<dyn Snapshots>,
    (from, to): (Option<SnapshotId>, SnapshotId),
    (destination, replication): (&Arc<dyn Storage>, u64),
) -> Converged {
    let compared = Compared::open(snapshots, from.map(|from| (from, None)), (to, None), MAY).unwrap();
    let mut said = Said::by(|say| changes(&compared, MAY, say)).unwrap();
    let mut far = Far { compared: &compared, left: &mut (u64::MAX >> 1) };
    let (progress, takes) = (Progress::default(), Takes { devices: true, set_id: true });
    let (store, adopts) = (destination, from.is_none());
    Convergence { store, replication, adopts, takes, progress: &progress, may: MAY }
        .run(&mut said, &mut far)
        .unwrap();
    progress.figures()
}

/// A store in a subvolume of its own.
pub(crate) fn subvolume(at: &Path) -> Option<Arc<dyn Storage>> {
    disk::succeeds("btrfs", &["-q", "subvolume", "create"], &[at]).then(|| {
        let store = LocalStore::open(at, LocalOptions::default()).unwrap();
        Arc::new(store) as Arc<dyn Storage>
    })
}
