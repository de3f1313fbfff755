//! What a store remembers across restarts, so that handles stay valid.

use std::collections::HashMap;
use std::error::Error;
use std::fmt::Debug;

use parking_lot::Mutex;

/// Why records cannot be read or written, in words.
pub type RecordsError = Box<dyn Error + Send + Sync>;

/// The key of a handle's checksum.
pub type HandleKey = [u8; 16];

/// The directory that contains an object, and the name of the object there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameRecord {
    /// Distinguishes the object from others that have had its number.
    pub generation: u64,
    /// The number of the directory.
    pub directory: u64,
    /// Distinguishes the directory from others that have had its number.
    pub directory_generation: u64,
    /// The name.
    pub name: Vec<u8>,
}

/// The records of one store. Only a store that uses no handles of the file system has records of names.
pub trait HandleRecords: Debug + Send + Sync {
    /// The key, which never changes. If there is none yet, `new` is the key, durably.
    ///
    /// # Errors
    /// The records cannot be read or written.
    fn key(&self, new: HandleKey) -> Result<HandleKey, RecordsError>;

    /// The record of each of these objects, which are given by their numbers.
    ///
    /// # Errors
    /// The records cannot be read.
    fn names(&self, objects: &[u64]) -> Result<Vec<Option<NameRecord>>, RecordsError>;

    /// Makes these the records of objects. They are durable after the next [`HandleRecords::flush`].
    ///
    /// # Errors
    /// The records cannot be written.
    fn enter(&self, records: &[(u64, NameRecord)]) -> Result<(), RecordsError>;

    /// Removes the record of an object, durably after the next [`HandleRecords::flush`].
    ///
    /// # Errors
    /// The records cannot be written.
    fn remove(&self, object: u64) -> Result<(), RecordsError>;

    /// Puts all changes on stable storage.
    ///
    /// # Errors
    /// The records cannot be written.
    fn flush(&self) -> Result<(), RecordsError>;
}

/// Records in memory: handles are valid as long as they live.
#[derive(Debug, Default)]
pub struct RecordsInMemory {
    /// Guards the records.
    records: Mutex<(Option<HandleKey>, HashMap<u64, NameRecord>)>,
}

impl HandleRecords for RecordsInMemory {
    fn key(&self, new: HandleKey) -> Result<HandleKey, RecordsError> {
        Ok(*self.records.lock().0.get_or_insert(new))
    }

    fn names(&self, objects: &[u64]) -> Result<Vec<Option<NameRecord>>, RecordsError> {
        let (_, names) = &*self.records.lock();
        Ok(objects.iter().map(|object| names.get(object).cloned()).collect())
    }

    fn enter(&self, records: &[(u64, NameRecord)]) -> Result<(), RecordsError> {
        self.records.lock().1.extend(records.iter().cloned());
        Ok(())
    }

    fn remove(&self, object: u64) -> Result<(), RecordsError> {
        self.records.lock().1.remove(&object);
        Ok(())
    }

    fn flush(&self) -> Result<(), RecordsError> {
        Ok(())
    }
}
