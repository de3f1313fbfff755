//! Persistent opens of SMB clients, in the state database: what their clients reclaim after this program has ended, however
//! it ended.

use std::io;
use std::sync::Arc;

use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableError};
use smb_server::{Change, PersistentOpen, PersistentOpens};

/// Opens by their persistent identifiers, as JSON.
const OPENS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("persistent-opens");

/// The table of persistent opens.
pub struct Kept(pub Arc<Database>);

impl std::fmt::Debug for Kept {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Kept")
    }
}

impl Kept {
    /// One transaction: redb has it on stable storage when it is committed.
    fn commit(&self, changes: &[Change]) -> Result<(), redb::Error> {
        let transaction = self.0.begin_write()?;
        {
            let mut opens = transaction.open_table(OPENS)?;
            for change in changes {
                match change {
                    Change::Keep(open) => {
                        let json = serde_json::to_vec(open).map_err(io::Error::from)?;
                        opens.insert(open.id, json.as_slice())?;
                    }
                    Change::Forget(id) => {
                        opens.remove(id)?;
                    }
                }
            }
        }
        transaction.commit()?;
        Ok(())
    }

    fn read(&self) -> Result<Vec<PersistentOpen>, redb::Error> {
        let transaction = self.0.begin_read()?;
        let opens = match transaction.open_table(OPENS) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            other => other?,
        };
        let mut all = Vec::new();
        for entry in opens.iter()? {
            let (id, json) = entry?;
            match serde_json::from_slice(json.value()) {
                Ok(open) => all.push(open),
                Err(error) => tracing::warn!("the persistent open {:x} is given up: {error}", id.value()),
            }
        }
        Ok(all)
    }
}

impl PersistentOpens for Kept {
    fn write(&self, changes: &[Change]) -> io::Result<()> {
        self.commit(changes).map_err(io::Error::other)
    }

    fn all(&self) -> io::Result<Vec<PersistentOpen>> {
        self.read().map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use smb_server::{PersistentLease, PersistentLock};

    use super::*;
    use crate::State;

    fn open(id: u64, path: &str) -> PersistentOpen {
        let lock = PersistentLock { offset: u64::MAX, length: 1, exclusive: true };
        let lease = PersistentLease { key: [7; 16], version: 2, epoch: 9, parent_key: Some([8; 16]) };
        PersistentOpen {
            id,
            path: path.to_owned(),
            handle: vec![0, 255],
            locks: vec![lock],
            lease: Some(lease),
            app_instance_version: Some((1, u64::MAX)),
            lock_sequence: vec![None, Some(15)],
            ..PersistentOpen::default()
        }
    }

    #[test]
    fn what_is_kept_is_there_after_a_restart_and_what_is_forgotten_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(&directory.path().join("state")).unwrap();
        let kept = Kept(state.database());
        assert_eq!(kept.all().unwrap(), []);
        let keep = |open: PersistentOpen| Change::Keep(Box::new(open));
        kept.write(&[keep(open(1, "a")), keep(open(u64::MAX, "b")), keep(open(3, "c"))]).unwrap();
        kept.write(&[keep(open(3, "d")), Change::Forget(1), Change::Forget(9)]).unwrap();
        drop((kept, state));
        let state = State::open(&directory.path().join("state")).unwrap();
        assert_eq!(Kept(state.database()).all().unwrap(), [open(3, "d"), open(u64::MAX, "b")]);
    }

    #[test]
    fn what_cannot_be_read_is_given_up_and_the_others_are_not() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(&directory.path().join("state")).unwrap();
        let database = state.database();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(OPENS).unwrap().insert(7, b"{".as_slice()).unwrap();
        transaction.commit().unwrap();
        let kept = Kept(database);
        kept.write(&[Change::Keep(Box::new(open(8, "a")))]).unwrap();
        assert_eq!(kept.all().unwrap(), [open(8, "a")]);
    }
}
