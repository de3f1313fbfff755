//! Which snapshots stay, although what they were taken for needs them no more.

use std::path::Path;

use schedule::Utc;
use state::{ProtectedSnapshot, State};

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
    pub(crate) fn contains(&self, name: &str) -> bool {
        let is_protected = self.protected.iter().any(|one| one.name == name && one.until > self.now);
        is_protected || self.restored_from.as_deref() == Some(name)
    }

    /// Forgets that a snapshot, which is removed, was protected once.
    pub(crate) fn forget(&self, state: &State, directory: &Path, name: &str) {
        if self.protected.iter().any(|one| one.name == name)
            && let Err(e) = state.forget_protection(directory, name)
        {
            tracing::error!("the protection of {name}: {}", e.what);
        }
    }
}

#[cfg(test)]
mod tests {
    use state::RestoreRecord;

    use super::*;

    #[test]
    fn what_is_protected_or_restored_from_stays() {
        let place = tempfile::tempdir().unwrap();
        let state = State::open(&place.path().join("state")).unwrap();
        let directory = Path::new("/srv/copy");
        for (name, until) in [("protected", 101), ("over", 100)] {
            let kept = ProtectedSnapshot { directory: directory.to_owned(), name: name.to_owned(), until };
            state.protect_snapshot(&kept).unwrap();
        }
        let snapshot = "restored".to_owned();
        let restore = RestoreRecord { share: "copy".to_owned(), snapshot, ..RestoreRecord::default() };
        state.keep_restore(&restore).unwrap();
        let kept = Kept::of(&state, "copy", directory, Utc::from_secs(100)).unwrap();
        assert!(kept.contains("protected") && kept.contains("restored"));
        assert!(!kept.contains("over") && !kept.contains("other"));
        kept.forget(&state, directory, "over");
        assert_eq!(state.protected_snapshots(directory).unwrap().len(), 1);
        let of_other = Kept::of(&state, "other", Path::new("/srv/other"), Utc::from_secs(100)).unwrap();
        assert!(!of_other.contains("protected") && !of_other.contains("restored"));
    }
}
