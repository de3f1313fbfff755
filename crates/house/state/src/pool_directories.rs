//! Directories that the server makes in pools: each belongs to a share, which is there or deleted, or is to be removed.
//!
//! A directory is written down as abandoned before it is made, and is so no more when its share is kept; it is abandoned again when its
//! share is purged. Both are one step of the database: a server that is killed at any time has either the share or a directory to
//! remove.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::deleted_shares::DELETED;
use crate::records::ShareRecord;
use crate::state::MADE_SHARES;
use crate::store::{Form, Table};
use crate::{Result, State};

/// Directories that are to be removed, as JSON, by the numbers of their marks.
pub(crate) const ABANDONED: Table = Table { name: "abandoned-directories", form: Form::TextToBytes };

/// What is known of a directory that the server made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PoolDirectory {
    /// The name of the pool.
    pub pool: String,
    /// The number of the pool, as in the mark on the pool's directory: 32 hexadecimal digits.
    pub pool_mark: String,
    /// The number of the directory, as in its mark: 32 hexadecimal digits.
    pub mark: String,
}

/// A directory that the server has made, or is about to make, and that belongs to no share.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AbandonedDirectory {
    /// The name of the share for which it was made.
    pub share: String,
    /// Its path: absolute.
    pub directory: PathBuf,
    /// What the server made.
    pub made: PoolDirectory,
    /// What its share could hold, in bytes: that much of the pool may be in use until it is gone.
    pub size: u64,
    /// No share had it yet when this was written: there is nothing in it, or it stays. So a database that was restored from a copy
    /// made in this very moment removes no files of the share that has it since.
    pub is_new: bool,
}

impl State {
    /// The directories that are to be removed.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn abandoned_directories(&self) -> Result<Vec<AbandonedDirectory>> {
        self.records(ABANDONED)
    }

    /// Notes that a directory is to be removed, whether it is there or not.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn abandon_directory(&self, directory: &AbandonedDirectory) -> Result<()> {
        self.keep(ABANDONED, &directory.made.mark, directory)
    }

    /// Keeps a new share, to which its directory belongs from now on; together or not at all.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn keep_share_of_pool(&self, share: &ShareRecord, made: &PoolDirectory) -> Result<()> {
        let json = serde_json::to_vec(&share.kept()).map_err(|e| self.trouble(e))?;
        self.change(vec![
            MADE_SHARES.put(share.name.to_lowercase().as_bytes(), &json),
            ABANDONED.remove(made.mark.as_bytes()),
        ])
    }

    /// Forgets a removed share, whose directory is to be removed; together or not at all.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn abandon_deleted_share(&self, number: u32, directory: &AbandonedDirectory) -> Result<()> {
        let json = serde_json::to_vec(directory).map_err(|e| self.trouble(e))?;
        self.change(vec![
            DELETED.remove(number.to_string().as_bytes()),
            ABANDONED.put(directory.made.mark.as_bytes(), &json),
        ])
    }

    /// Forgets a directory that is gone.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn forget_abandoned_directory(&self, mark: &str) -> Result<()> {
        self.change(vec![ABANDONED.remove(mark.as_bytes())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_belongs_to_a_share_or_is_to_be_removed() {
        let place = tempfile::tempdir().unwrap();
        let open = || State::open(&place.path().join("state")).unwrap();
        let state = open();
        let made =
            PoolDirectory { pool: "fast".to_owned(), mark: "7".repeat(32), ..PoolDirectory::default() };
        let data = ShareRecord {
            name: "Data".to_owned(),
            directory: "/srv/pool/Data".into(),
            pool: Some(made.clone()),
            ..ShareRecord::default()
        };
        let directory = AbandonedDirectory {
            share: "Data".to_owned(),
            directory: data.directory.clone(),
            made: made.clone(),
            size: 1 << 20,
            is_new: true,
        };
        state.abandon_directory(&directory).unwrap();
        assert_eq!(state.abandoned_directories().unwrap(), std::slice::from_ref(&directory));
        state.keep_share_of_pool(&data, &made).unwrap();
        assert_eq!(state.abandoned_directories().unwrap(), []);
        drop(state);
        let state = open();
        assert_eq!(state.made_shares().unwrap(), std::slice::from_ref(&data));
        let number = state.server().share_id("data").unwrap();
        let gone = state.delete_share(&data, 5, 9).unwrap();
        assert_eq!((gone.number, gone.share.pool.as_ref()), (number, Some(&made)));
        state.abandon_deleted_share(number, &directory).unwrap();
        assert_eq!(
            (state.deleted_shares().unwrap(), state.abandoned_directories().unwrap().len()),
            (vec![], 1)
        );
        assert!(!state.undelete_share(&gone).unwrap(), "its directory is being removed");
        state.forget_abandoned_directory(&made.mark).unwrap();
        assert_eq!(state.abandoned_directories().unwrap(), []);
    }
}
