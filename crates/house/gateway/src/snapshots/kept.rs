//! Which snapshots stay, although what they were taken for needs them no more.

use std::path::Path;

use schedule::Utc;
use state::{ProtectedSnapshot, State};
use storage::Snapshot;

/// Those of one share.
#[derive(Debug)]
pub(crate) struct Kept {
    protected: Vec<ProtectedSnapshot>,
    restored_from: Option<String>,
    now: u64,
}

impl Kept {
    /// Those of the share that serves this directory.
    ///
    /// # Errors
    /// The state database cannot be read.
    pub(crate) fn of(state: &State, share: &str, directory: &Path, now: Utc) -> state::Result<Self> {
        let restore = state.restore_of(share)?.filter(|restore| restore.ended.is_none());
        Ok(Self {
            protected: state.protected_snapshots(directory)?,
            restored_from: restore.map(|restore| restore.snapshot),
            now: now.secs_since_1970(),
        })
    }

    /// Whether a snapshot is protected, or is being restored from.
    pub(crate) fn contains(&self, snapshot: &Snapshot) -> bool {
        let until = protected_until(&self.protected, snapshot);
        until.is_some_and(|until| until > self.now) || self.restored_from.as_ref() == Some(&snapshot.name)
    }

    /// Forgets that a snapshot, which is removed, was protected once.
    pub(crate) fn forget(&self, state: &State, snapshot: &Snapshot) {
        for protected in self.protected.iter().filter(|one| is_of(one, snapshot)) {
            if let Err(e) = state.forget_protection(protected) {
                tracing::error!("the protection of {}: {}", snapshot.name, e.what);
            }
        }
    }
}

/// Until when a snapshot of this server is protected, as these say. None: it never was, or another program made it, which removes it
/// whatever is said here.
pub(crate) fn protected_until(protected: &[ProtectedSnapshot], snapshot: &Snapshot) -> Option<u64> {
    protected.iter().filter(|one| is_of(one, snapshot)).map(|one| one.until).max()
}

/// The protection of a snapshot of a directory until a time.
pub(crate) fn protection(directory: &Path, snapshot: &Snapshot, until: u64) -> ProtectedSnapshot {
    let (directory, name) = (directory.to_owned(), snapshot.name.clone());
    ProtectedSnapshot { directory, name, until, identity: Some(snapshot.identity()) }
}

fn is_of(protected: &ProtectedSnapshot, snapshot: &Snapshot) -> bool {
    snapshot.is_own && protected.is_of(&snapshot.identity(), &snapshot.name)
}

#[cfg(test)]
mod tests {
    use state::RestoreRecord;
    use storage::{SnapshotId, Timestamp};

    use super::*;

    fn snapshot(id: u32, name: &str) -> Snapshot {
        let taken = Timestamp { secs: 5, nanos: 0 };
        Snapshot { id: SnapshotId(id), name: name.to_owned(), taken, is_own: true, uuid: None }
    }

    #[test]
    fn a_protection_is_that_of_one_snapshot_whatever_its_name_is() {
        let uuid = Some([7; 16]);
        let known = Snapshot { uuid, ..snapshot(1, "a") };
        let of = |identity: Option<String>| ProtectedSnapshot {
            identity,
            ..protection(Path::new("/srv"), &known, 9)
        };
        let until = |one: &Snapshot| protected_until(&[protection(Path::new("/srv"), &known, 9)], one);
        assert_eq!(until(&known), Some(9));
        assert_eq!(until(&Snapshot { name: "b".to_owned(), ..known.clone() }), Some(9), "it was renamed");
        assert_eq!(until(&Snapshot { uuid: Some([8; 16]), ..known.clone() }), None, "another with its name");
        assert_eq!(until(&Snapshot { is_own: false, ..known.clone() }), None);
        let both = [of(None), of(Some(known.identity()))];
        let longer = [ProtectedSnapshot { until: 10, ..both[0].clone() }, both[1].clone()];
        assert_eq!(protected_until(&longer, &known), Some(10), "each holds");
    }

    #[test]
    fn what_is_protected_or_restored_from_stays() {
        let place = tempfile::tempdir().unwrap();
        let state = State::open(&place.path().join("state")).unwrap();
        let directory = Path::new("/srv/copy");
        let (protected, over) = (snapshot(1, "protected"), snapshot(2, "over"));
        for (name, until) in [(&protected, 101), (&over, 100)] {
            state.protect_snapshot(&protection(directory, name, until)).unwrap();
        }
        let snapshot = "restored".to_owned();
        let restore = RestoreRecord { share: "copy".to_owned(), snapshot, ..RestoreRecord::default() };
        state.keep_restore(&restore).unwrap();
        let kept = Kept::of(&state, "copy", directory, Utc::from_secs(100)).unwrap();
        let restored = self::snapshot(3, "restored");
        assert!(kept.contains(&protected) && kept.contains(&restored));
        assert!(!kept.contains(&over) && !kept.contains(&self::snapshot(4, "protected")));
        kept.forget(&state, &over);
        assert_eq!(state.protected_snapshots(directory).unwrap().len(), 1);
        let of_other = Kept::of(&state, "other", Path::new("/srv/other"), Utc::from_secs(100)).unwrap();
        assert!(!of_other.contains(&protected) && !of_other.contains(&restored));
    }
}
