//! Shares that were removed, as long as they can be brought back.

use serde::{Deserialize, Serialize};

use crate::policies::DONE;
use crate::quotas::GRACES;
use crate::records::ShareRecord;
use crate::replications::{DESTINATIONS, REPLICATIONS};
use crate::restores::RESTORES;
use crate::server_records::{CREDITS, SHARES};
use crate::state::MADE_SHARES;
use crate::store::{Batch, Change, Form, Table};
use crate::{Result, State, handles};

/// Removed shares, as JSON, by their numbers in decimal.
pub(crate) const DELETED: Table = Table { name: "deleted-shares", form: Form::TextToBytes };

/// A share that was removed, and can be brought back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DeletedShare {
    /// The number of the share, which no other share is given: two deleted shares of one name are told apart by it.
    pub number: u32,
    /// When it was removed, in seconds of the Unix epoch.
    pub deleted: u64,
    /// When it is forgotten, in seconds of the Unix epoch.
    pub until: u64,
    /// The record comes from a copy of the database: perhaps the share was brought back after the copy was made, and has been in use
    /// since. Or its directory was to be taken for a restored one. So files are removed by command only.
    pub is_of_copy: bool,
    /// What it was.
    pub share: ShareRecord,
}

impl State {
    /// The removed shares that can be brought back, in the order of their removal.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn deleted_shares(&self) -> Result<Vec<DeletedShare>> {
        let mut all: Vec<DeletedShare> = self.records(DELETED)?;
        for deleted in &mut all {
            deleted.share = std::mem::take(&mut deleted.share).of_kept();
        }
        all.sort_by_key(|deleted| (deleted.deleted, deleted.number));
        Ok(all)
    }

    /// Removes a share that was created by command, and keeps what it was; together or not at all.
    ///
    /// # Errors
    /// The database cannot be read or written.
    pub fn delete_share(&self, share: &ShareRecord, deleted: u64, until: u64) -> Result<DeletedShare> {
        let gone = DeletedShare {
            number: self.server().share_id(&share.name)?,
            deleted,
            until,
            is_of_copy: false,
            share: share.clone(),
        };
        let kept = DeletedShare { share: share.kept(), ..gone.clone() };
        let json = serde_json::to_vec(&kept).map_err(|e| self.trouble(e))?;
        let mut changes = Self::without_share(&share.name, true);
        changes.push(DELETED.put(gone.number.to_string().as_bytes(), &json));
        self.change(changes)?;
        Ok(gone)
    }

    /// Notes that all these records come from a copy of the database.
    ///
    /// # Errors
    /// The database cannot be read or written.
    pub fn note_deleted_shares_of_copy(&self) -> Result<()> {
        let mut all: Vec<DeletedShare> = self.records(DELETED)?;
        let mut changes = Vec::new();
        for deleted in &mut all {
            deleted.is_of_copy = true;
            let json = serde_json::to_vec(deleted).map_err(|e| self.trouble(e))?;
            changes.push(DELETED.put(deleted.number.to_string().as_bytes(), &json));
        }
        self.change(changes)
    }

    /// Notes that the files of a removed share are removed by command only. False: the share is no longer there.
    ///
    /// # Errors
    /// The database cannot be read or written.
    pub fn spare_deleted_share(&self, number: u32) -> Result<bool> {
        let key = number.to_string();
        let Some(known) = self.read(DELETED, &key)? else { return Ok(false) };
        let mut deleted: DeletedShare = serde_json::from_slice(&known).map_err(|e| self.trouble(e))?;
        deleted.is_of_copy = true;
        let json = serde_json::to_vec(&deleted).map_err(|e| self.trouble(e))?;
        self.write(&Batch {
            expected: vec![DELETED.expect(key.as_bytes(), Some(&known))],
            changes: vec![DELETED.put(key.as_bytes(), &json)],
        })
    }

    /// Brings a removed share back under the name that its record has now, with the number that it had. False: it is no longer there,
    /// or a share has the name.
    ///
    /// # Errors
    /// The database cannot be read or written.
    pub fn undelete_share(&self, back: &DeletedShare) -> Result<bool> {
        let (number, name) = (back.number.to_string(), back.share.name.to_lowercase());
        let Some(known) = self.read(DELETED, &number)? else { return Ok(false) };
        let json = serde_json::to_vec(&back.share.kept()).map_err(|e| self.trouble(e))?;
        self.write(&Batch {
            expected: vec![
                DELETED.expect(number.as_bytes(), Some(&known)),
                MADE_SHARES.expect(name.as_bytes(), None),
            ],
            changes: vec![
                DELETED.remove(number.as_bytes()),
                MADE_SHARES.put(name.as_bytes(), &json),
                SHARES.put(name.as_bytes(), &back.number.to_le_bytes()),
            ],
        })
    }

    /// The changes after which nothing is known of a share, or nothing of its directory.
    pub(crate) fn without_share(name: &str, is_removed: bool) -> Vec<Change> {
        let name = name.to_lowercase();
        let key = name.as_bytes();
        let of_share = [MADE_SHARES, DONE, RESTORES, GRACES, REPLICATIONS, DESTINATIONS];
        let made = is_removed.then(|| of_share.map(|table| table.remove(key)));
        let rest =
            [SHARES.remove(key), CREDITS.remove(key), Change::Drop { table: handles::names_table(&name) }];
        made.into_iter().flatten().chain(rest).collect()
    }

    /// Forgets a removed share: nobody can bring it back.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn forget_deleted_share(&self, number: u32) -> Result<()> {
        self.change(vec![DELETED.remove(number.to_string().as_bytes())])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str) -> ShareRecord {
        ShareRecord { name: name.to_owned(), directory: "/srv/data".into(), ..ShareRecord::default() }
    }

    #[test]
    fn a_removed_share_comes_back_as_it_was() {
        let place = tempfile::tempdir().unwrap();
        let open = || State::open(&place.path().join("state")).unwrap();
        let state = open();
        let mut data = record("Data");
        data.comment = "What we do".to_owned();
        data.rules.elevated = vec!["anna".to_owned()];
        state.keep_share(&data).unwrap();
        let number = state.server().share_id("data").unwrap();
        let gone = state.delete_share(&data, 5, 9).unwrap();
        assert_eq!((gone.number, state.made_shares().unwrap().len()), (number, 0));
        // The name is free, and whoever has it then has another number.
        let other = state.server().share_id("data").unwrap();
        assert_ne!(other, number);
        drop(state);
        let state = open();
        assert_eq!(state.deleted_shares().unwrap(), std::slice::from_ref(&gone));
        assert!(state.undelete_share(&gone).unwrap());
        assert_eq!(state.made_shares().unwrap(), [data]);
        assert_eq!(
            (state.server().share_id("data").unwrap(), state.deleted_shares().unwrap()),
            (number, vec![])
        );
        assert!(!state.undelete_share(&gone).unwrap(), "it comes back once");
        let again = state.delete_share(&record("data"), 7, 9).unwrap();
        state.note_deleted_shares_of_copy().unwrap();
        assert_eq!(state.deleted_shares().unwrap(), [DeletedShare { is_of_copy: true, ..again }]);
        assert!(state.server().share_id("another").unwrap() > other);
    }

    #[test]
    fn two_of_one_name_are_told_apart_and_a_name_in_use_stays_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let state = State::open(&place.path().join("state")).unwrap();
        let mut removed = Vec::new();
        for at in [5, 6] {
            state.keep_share(&record("data")).unwrap();
            removed.push(state.delete_share(&record("data"), at, 9).unwrap());
        }
        assert_eq!(state.deleted_shares().unwrap(), removed);
        state.keep_share(&record("DATA")).unwrap();
        assert!(!state.undelete_share(&removed[0]).unwrap());
        assert_eq!(state.made_shares().unwrap(), [record("DATA")]);
        let back = DeletedShare { share: record("old"), ..removed[0].clone() };
        assert!(state.undelete_share(&back).unwrap());
        state.forget_deleted_share(removed[1].number).unwrap();
        assert_eq!(state.deleted_shares().unwrap(), []);
        assert_eq!(state.server().share_id("old").unwrap(), removed[0].number);
    }

    #[test]
    fn a_share_takes_only_its_own_handles_away() {
        let place = tempfile::tempdir().unwrap();
        let state = State::open(&place.path().join("state")).unwrap();
        let named = storage_local::NameRecord {
            generation: 1,
            directory: 2,
            directory_generation: 3,
            name: b"f".to_vec(),
        };
        let shares = ["a", "a.b", "a.names"].map(|share| state.handle_records(share));
        shares.iter().for_each(|records| records.enter(&[(7, named.clone())]).unwrap());
        state.keep_share(&record("a")).unwrap();
        state.delete_share(&record("a"), 5, 9).unwrap();
        let kept = shares.map(|records| records.names(&[7]).unwrap() == [Some(named.clone())]);
        assert_eq!(kept, [false, true, true]);
    }
}
