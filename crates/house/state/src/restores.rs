//! What is being restored from snapshots, or was last.
//!
//! A restore that has not ended goes on when the server starts again. Each share has one at most.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::store::{Form, Table};
use crate::{Result, State};

/// Restores, as JSON, by name of the share in lower case.
pub(crate) const RESTORES: Table = Table { name: "restores", form: Form::TextToBytes };

/// A restore.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RestoreRecord {
    /// The share.
    pub share: String,
    /// The directory that the share served when the restore was ordered.
    pub directory: PathBuf,
    /// The name of the snapshot.
    pub snapshot: String,
    /// The path in the snapshot.
    pub source: String,
    /// The path in the share.
    pub target: String,
    /// Files take the place of those that are there.
    pub replace: bool,
    /// When it was ordered, in nanoseconds of the Unix epoch. This tells it from other restores.
    pub ordered: u64,
    /// An administrator has cancelled it: it does not go on.
    pub cancelled: bool,
    /// None: it has not ended.
    pub ended: Option<RestoreEnd>,
}

/// How a restore has ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RestoreEnd {
    /// When, in seconds of the Unix epoch.
    pub at: u64,
    /// Whether an administrator has cancelled it.
    pub cancelled: bool,
    /// Why it could not go on.
    pub problem: Option<String>,
    /// How many files were restored.
    pub restored: u64,
    /// How many were as in the snapshot already.
    pub unchanged: u64,
    /// How many files and directories were left alone.
    pub left: u64,
    /// The paths of the first of these, and why.
    pub named: Vec<(String, String)>,
    /// How many bytes the files have that were gone through.
    pub bytes: u64,
}

impl State {
    /// The restore of each share that has or had one.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn restores(&self) -> Result<Vec<RestoreRecord>> {
        self.records(RESTORES)
    }

    /// The last restore of a share.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn restore_of(&self, share: &str) -> Result<Option<RestoreRecord>> {
        let json = self.read(RESTORES, &share.to_lowercase())?;
        json.map(|json| serde_json::from_slice(&json).map_err(|e| self.trouble(e))).transpose()
    }

    /// Keeps a restore, in the place of the share's last one.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn keep_restore(&self, restore: &RestoreRecord) -> Result<()> {
        self.keep(RESTORES, &restore.share.to_lowercase(), restore)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_one_restore_which_goes_with_it() {
        let place = tempfile::tempdir().unwrap();
        let directory = place.path().join("state");
        let state = State::open(&directory).unwrap();
        assert_eq!(state.restore_of("data").unwrap(), None);
        let restore = RestoreRecord { share: "Data".to_owned(), ordered: 5, ..RestoreRecord::default() };
        state.keep_restore(&restore).unwrap();
        let ended = RestoreEnd { at: 7, named: vec![("a".into(), "b".into())], ..RestoreEnd::default() };
        let restore = RestoreRecord { ended: Some(ended), ..restore };
        state.keep_restore(&restore).unwrap();
        drop(state);
        let state = State::open(&directory).unwrap();
        assert_eq!(state.restore_of("DATA").unwrap(), Some(restore.clone()));
        assert_eq!(state.restores().unwrap(), [restore]);
        state.forget_share("data").unwrap();
        assert_eq!(state.restore_of("data").unwrap(), None);
    }
}
