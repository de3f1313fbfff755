//! The records of handles in the state database of this machine, in two tables: the keys of all stores by their names,
//! and the names of one store's objects.

use std::fmt;
use std::sync::Arc;

use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, TableError};
use storage_local::{HandleKey, HandleRecords, NameRecord, RecordsError};

/// The keys of handles, by the name of the store.
pub(crate) const KEYS: TableDefinition<'_, &str, HandleKey> = TableDefinition::new("storage-local.keys");
/// A record of a name, by the object's number: the object's generation, the directory's number and generation, the name.
pub(crate) type OnDisk<'a> = (u64, u64, u64, &'a [u8]);

/// The records of one store.
pub(crate) struct HandleTables {
    database: Arc<Database>,
    /// The name of the store.
    store: String,
    /// The name of the table with the names of objects.
    names: String,
}

impl fmt::Debug for HandleTables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandleTables").field("store", &self.store).finish_non_exhaustive()
    }
}

/// Whether this is the name of a table with the names of a store's objects.
pub(crate) fn is_names_table(name: &str) -> bool {
    name.starts_with("storage-local.") && name.ends_with(".names")
}

/// The name of the table with the names of one store's objects.
pub(crate) fn names_table(store: &str) -> String {
    format!("storage-local.{store}.names")
}

impl HandleTables {
    pub(crate) fn new(database: Arc<Database>, store: String) -> Self {
        let names = names_table(&store);
        Self { database, store, names }
    }

    fn names_table(&self) -> TableDefinition<'_, u64, OnDisk<'static>> {
        TableDefinition::new(&self.names)
    }

    /// Changes the names, without waiting for stable storage.
    fn change(
        &self,
        change: impl FnOnce(&mut redb::Table<'_, u64, OnDisk<'static>>) -> Result<(), RecordsError>,
    ) -> Result<(), RecordsError> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::None)?;
        change(&mut transaction.open_table(self.names_table())?)?;
        Ok(transaction.commit()?)
    }
}

impl HandleRecords for HandleTables {
    fn key(&self, new: HandleKey) -> Result<HandleKey, RecordsError> {
        let transaction = self.database.begin_write()?;
        let key = {
            let mut keys = transaction.open_table(KEYS)?;
            let old = keys.get(self.store.as_str())?.map(|key| key.value());
            if old.is_none() {
                keys.insert(self.store.as_str(), new)?;
            }
            old.unwrap_or(new)
        };
        transaction.commit()?;
        Ok(key)
    }

    fn names(&self, objects: &[u64]) -> Result<Vec<Option<NameRecord>>, RecordsError> {
        let table = match self.database.begin_read()?.open_table(self.names_table()) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(vec![None; objects.len()]),
            table => table?,
        };
        let record = |object: &u64| {
            let found = table.get(object)?;
            Ok(found.map(|found| {
                let (generation, directory, directory_generation, name) = found.value();
                NameRecord { generation, directory, directory_generation, name: name.to_vec() }
            }))
        };
        objects.iter().map(record).collect()
    }

    fn enter(&self, records: &[(u64, NameRecord)]) -> Result<(), RecordsError> {
        self.change(|table| {
            for (object, record) in records {
                let NameRecord { generation, directory, directory_generation, name } = record;
                table.insert(object, (*generation, *directory, *directory_generation, name.as_slice()))?;
            }
            Ok(())
        })
    }

    fn remove(&self, object: u64) -> Result<(), RecordsError> {
        self.change(|table| Ok(table.remove(object).map(drop)?))
    }

    /// A durable commit also makes the earlier ones durable.
    fn flush(&self) -> Result<(), RecordsError> {
        Ok(self.database.begin_write()?.commit()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> Arc<Database> {
        let database = redb::Builder::new().create_with_backend(redb::backends::InMemoryBackend::new());
        Arc::new(database.unwrap())
    }

    #[test]
    fn each_store_has_a_key_that_stays() {
        let database = database();
        let records = |store: &str| HandleTables::new(Arc::clone(&database), store.to_owned());
        assert_eq!(records("a").key([1; 16]).unwrap(), [1; 16]);
        assert_eq!(records("a").key([2; 16]).unwrap(), [1; 16]);
        assert_eq!(records("b").key([2; 16]).unwrap(), [2; 16]);
    }

    #[test]
    fn names_are_entered_replaced_and_removed_for_one_store() {
        let database = database();
        let records = HandleTables::new(Arc::clone(&database), "a".to_owned());
        let of = |name: &str| NameRecord {
            generation: 1,
            directory: 2,
            directory_generation: 3,
            name: name.into(),
        };
        assert_eq!(records.names(&[7, 8]).unwrap(), [None, None]);
        records.enter(&[(7, of("seven")), (8, of("eight"))]).unwrap();
        records.enter(&[(7, of("seven again"))]).unwrap();
        assert_eq!(records.names(&[8, 9, 7]).unwrap(), [Some(of("eight")), None, Some(of("seven again"))]);
        records.remove(8).unwrap();
        records.remove(9).unwrap();
        records.flush().unwrap();
        assert_eq!(records.names(&[7, 8]).unwrap(), [Some(of("seven again")), None]);
        assert_eq!(HandleTables::new(database, "b".to_owned()).names(&[7]).unwrap(), [None]);
    }
}
