//! NFSv4 clients that hold something, in the state database: they may reclaim it after this program has ended, however it
//! ended.

use std::io;
use std::sync::Arc;

use nfs_server::{ClientRecord, ClientRecords};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableError};

/// Clients by the names that they have for themselves.
const CLIENTS: TableDefinition<'_, &[u8], ()> = TableDefinition::new("nfs-clients");

/// The table of clients.
pub struct Known(pub Arc<Database>);

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Known")
    }
}

impl Known {
    /// One transaction: redb has it on stable storage when it is committed.
    fn change(
        &self,
        change: impl FnOnce(&mut redb::Table<'_, &[u8], ()>) -> Result<(), redb::StorageError>,
    ) -> Result<(), redb::Error> {
        let transaction = self.0.begin_write()?;
        change(&mut transaction.open_table(CLIENTS)?)?;
        transaction.commit()?;
        Ok(())
    }

    fn read(&self) -> Result<Vec<ClientRecord>, redb::Error> {
        let transaction = self.0.begin_read()?;
        let clients = match transaction.open_table(CLIENTS) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
            other => other?,
        };
        let mut all = Vec::new();
        for entry in clients.iter()? {
            all.push(ClientRecord { owner: entry?.0.value().to_vec() });
        }
        Ok(all)
    }
}

impl ClientRecords for Known {
    fn keep(&self, record: &ClientRecord) -> io::Result<()> {
        let kept = self.change(|clients| clients.insert(record.owner.as_slice(), ()).map(|_| ()));
        kept.map_err(io::Error::other)
    }

    fn forget(&self, records: &[ClientRecord]) -> io::Result<()> {
        let forgotten = self.change(|clients| {
            records.iter().try_for_each(|record| clients.remove(record.owner.as_slice()).map(|_| ()))
        });
        forgotten.map_err(io::Error::other)
    }

    fn all(&self) -> io::Result<Vec<ClientRecord>> {
        self.read().map_err(io::Error::other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::State;

    fn record(owner: &[u8]) -> ClientRecord {
        ClientRecord { owner: owner.to_vec() }
    }

    #[test]
    fn what_is_kept_is_there_after_a_restart_and_what_is_forgotten_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let state = State::open(&directory.path().join("state")).unwrap();
        let known = Known(state.database());
        assert_eq!(known.all().unwrap(), []);
        for owner in [&b"a"[..], b"b\0\xff", b"c", b"a"] {
            known.keep(&record(owner)).unwrap();
        }
        known.forget(&[record(b"c"), record(b"nobody")]).unwrap();
        drop((known, state));
        let state = State::open(&directory.path().join("state")).unwrap();
        assert_eq!(Known(state.database()).all().unwrap(), [record(b"a"), record(b"b\0\xff")]);
    }
}
