//! Files and directories that are restored from a snapshot into the share, while clients use it.
//!
//! What is restored is made beside its place, under a name of its own ([`Restoration::temporary`]), and takes the place by a rename:
//! a server that is killed leaves what was there or what is restored, and nothing in between. So an order can be carried out again
//! from the start, as often as it is interrupted; what needs no restoring is left alone ([`known`]).
//!
//! It is the server itself that restores, for an administrator: permissions and the rates of the plan do not count, the size of the
//! share does.

mod copies;
mod known;
mod progress;
mod run;

use std::sync::Arc;
use std::time::Duration;

use storage::{FileKind, MayWait, Name, NodeRef, SnapshotId, Storage, StoreThread, View, Wait, Want};

use crate::schedule::Work;
use crate::{Answering, Error, Result, Share};

pub use self::progress::{LEFT_NAMED_MAX, LeftAlone, RestoreFigures, RestoreProgress};

/// How names begin under which something is made that will take its place. A number of 16 hexadecimal digits follows.
const TEMPORARY: &str = ".anabranch-restoring-";

/// What is to be restored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restoration {
    /// The snapshot.
    pub from: SnapshotId,
    /// The names that lead to what is restored, from the root of the snapshot. None: all of it.
    pub source: Vec<Vec<u8>>,
    /// The names that lead to its place, from the root of the share.
    pub target: Vec<Vec<u8>>,
    /// Files take the place of those that are there.
    pub replace: bool,
    /// When it was ordered, since 1970: what was made since then may be of an earlier attempt.
    pub ordered: Duration,
    /// Tells the order from all others.
    pub number: u64,
}

/// How a restoration that has not failed has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restored {
    /// All of it was gone through.
    Whole,
    /// It was to stop ([`RestoreProgress::stop`]), or the share is no longer served.
    Stopped,
}

/// Why nothing can be restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotRestore {
    /// The snapshot has nothing at the path.
    #[error("the snapshot has nothing there")]
    NoSource,
    /// The share has no directory in which the place would be.
    #[error("the directory above the place is not there")]
    NoPlace,
    /// Something is at the place.
    #[error("something is there already")]
    Exists,
    /// A directory is at the place of a file, or the other way round.
    #[error("a directory is in the place of a file, or a file in that of a directory")]
    OtherKind,
    /// Anything else.
    #[error(transparent)]
    Failed(#[from] Error),
}

/// What a restoration failed at, after all that it had done until then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoreFailure {
    /// The path in the share.
    pub path: Vec<u8>,
    /// Why.
    pub error: Error,
}

impl Restoration {
    /// The name under which something is made before it takes its place.
    fn temporary(&self) -> String {
        format!("{TEMPORARY}{:016x}", self.number)
    }
}

/// Whether something has this name that was being restored when the snapshot was taken.
fn is_temporary(name: &[u8]) -> bool {
    name.strip_prefix(TEMPORARY.as_bytes())
        .is_some_and(|number| number.len() == 16 && number.iter().all(u8::is_ascii_hexdigit))
}

impl Share {
    /// Checks an order before it is begun. Returns whether a directory is restored.
    ///
    /// # Errors
    /// What is in the way.
    pub async fn check_restoration(
        self: &Arc<Self>,
        order: Restoration,
    ) -> std::result::Result<bool, CannotRestore> {
        let check = move |share: &Arc<Self>, may: MayWait<'_>| Ok(share.check_restoration_now(&order, may));
        self.run_unasked(Work::Blocking, check).await?
    }

    fn check_restoration_now(
        &self,
        order: &Restoration,
        may: MayWait<'_>,
    ) -> std::result::Result<bool, CannotRestore> {
        self.check_writable(self.store.root().id())?;
        let store = self.snapshot_store(order.from, may)?;
        let source =
            walk(store.root(), &order.source, may).map_err(|e| nothing(e, CannotRestore::NoSource))?;
        let is_dir = source.kind() == FileKind::Directory;
        let Some((name, above)) = order.target.split_last() else {
            return if !is_dir {
                Err(CannotRestore::OtherKind)
            } else if order.replace {
                Ok(is_dir)
            } else {
                Err(CannotRestore::Exists)
            };
        };
        let root = Arc::clone(self.store.root());
        let above = walk(root, above, may).map_err(|e| nothing(e, CannotRestore::NoPlace))?;
        if above.kind() != FileKind::Directory {
            return Err(CannotRestore::NoPlace);
        }
        let name = Name::new(name).map_err(Error::from)?;
        match above.lookup(name, Wait::May(may)) {
            Err(storage::Error::NotFound) => Ok(is_dir),
            Ok(_) if !order.replace => Err(CannotRestore::Exists),
            Ok(there) if (there.kind() == FileKind::Directory) == is_dir => Ok(is_dir),
            Ok(_) => Err(CannotRestore::OtherKind),
            Err(e) => Err(Error::from(e).into()),
        }
    }

    /// Carries out an order, on this thread; `wait` waits for a client that has yet to give up what it caches, or for some time only:
    /// then it is called again. What stands in the way of single files is in the progress.
    ///
    /// # Errors
    /// Where it could not go on.
    pub fn restore_from(
        self: &Arc<Self>,
        order: &Restoration,
        progress: &RestoreProgress,
        wait: &dyn Fn(Answering),
        thread: &StoreThread,
    ) -> std::result::Result<Restored, RestoreFailure> {
        let may = thread.may_wait(View::FRESH);
        run::Run::new(self, order, progress, wait, may)?.finish()
    }

    /// Counts what an order has to go through, on this thread.
    pub fn count_restoration(&self, order: &Restoration, progress: &RestoreProgress, thread: &StoreThread) {
        let may = thread.may_wait(View::FRESH);
        let counted = self
            .snapshot_store(order.from, may)
            .and_then(|store| Ok(walk(store.root(), &order.source, may)?))
            .and_then(|source| run::count(source, || progress.is_stopped() || self.is_withdrawn(), may));
        // Only those who look miss it.
        if let Ok(Some((files, bytes))) = counted {
            progress.counted(files, bytes);
        }
    }

    /// The store of a snapshot.
    fn snapshot_store(&self, id: SnapshotId, may: MayWait<'_>) -> Result<Arc<dyn Storage>> {
        let snapshots = self.store.storage().snapshots().map_err(|_| storage::Error::NotSupported)?;
        Ok(snapshots.open(id, may)?)
    }
}

fn nothing(error: storage::Error, told: CannotRestore) -> CannotRestore {
    if storage::is_nowhere(error) { told } else { Error::from(error).into() }
}

/// What a path leads to. Symbolic links are not followed.
fn walk(root: NodeRef, path: &[Vec<u8>], may: MayWait<'_>) -> storage::Result<NodeRef> {
    let mut at = root;
    for name in path {
        if at.kind() != FileKind::Directory {
            return Err(storage::Error::NotDirectory);
        }
        at = at.lookup(Name::new(name)?, Wait::May(may))?;
    }
    // A node of a cache is there even if nothing is.
    at.attributes(Want::empty(), Wait::May(may))?;
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_name_is_known_again() {
        let order = Restoration {
            from: SnapshotId(1),
            source: Vec::new(),
            target: Vec::new(),
            replace: false,
            ordered: Duration::ZERO,
            number: 0x0123_4567_89ab_cdef,
        };
        assert_eq!(order.temporary(), ".anabranch-restoring-0123456789abcdef");
        assert!(is_temporary(order.temporary().as_bytes()));
        for other in [".anabranch-restoring-", ".anabranch-restoring-0123456789abcdeg", "x", ""] {
            assert!(!is_temporary(other.as_bytes()), "{other}");
        }
    }
}
