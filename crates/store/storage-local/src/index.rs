//! The index of names, used where the file system gives the server no handles. It leads from an object to the directory
//! that contains it and its name there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use storage::{Error, ObjectId, Result};

use crate::handle_records::{HandleRecords, NameRecord};

/// The deepest chain of directories that is followed.
const DEPTH_MAX: usize = 4096;

/// Identifies an object for good: its number, and what distinguishes it from others that have had the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) id: ObjectId,
    pub(crate) generation: u64,
}

/// The index of one store. Entries are durable after [`Index::flush`]. A server that is killed before that forgets the
/// latest entries, and their handles become stale.
pub(crate) struct Index {
    records: Arc<dyn HandleRecords>,
    has_unsafe_entries: AtomicBool,
}

fn failed(error: impl std::fmt::Display) -> Error {
    tracing::warn!("the index of handles failed: {error}");
    Error::Io(libc::EIO)
}

impl Index {
    pub(crate) fn new(records: Arc<dyn HandleRecords>) -> Self {
        Self { records, has_unsafe_entries: AtomicBool::new(false) }
    }

    fn record(&self, number: u64) -> Result<Option<NameRecord>> {
        let mut records = self.records.names(&[number]).map_err(failed)?;
        Ok(records.pop().flatten())
    }

    /// Enters objects, each with its directory and name, unless they are already entered like this.
    pub(crate) fn insert(&self, entries: &[(Key, Key, &[u8])]) -> Result<()> {
        let record = |&(key, dir, name): &(Key, Key, &[u8])| {
            let Key { id: directory, generation: directory_generation } = dir;
            let (generation, directory, name) = (key.generation, directory.number, name.to_vec());
            (key.id.number, NameRecord { generation, directory, directory_generation, name })
        };
        let records: Vec<_> = entries.iter().map(record).collect();
        let numbers: Vec<u64> = records.iter().map(|(number, _)| *number).collect();
        let known = self.records.names(&numbers).map_err(failed)?;
        if known.iter().map(Option::as_ref).eq(records.iter().map(|(_, record)| Some(record))) {
            return Ok(());
        }
        self.records.enter(&records).map_err(failed)?;
        self.has_unsafe_entries.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Whether an object with that number is entered.
    pub(crate) fn has(&self, id: ObjectId) -> Result<bool> {
        Ok(self.record(id.number)?.is_some())
    }

    pub(crate) fn remove(&self, id: ObjectId) -> Result<()> {
        if !self.has(id)? {
            return Ok(());
        }
        self.records.remove(id.number).map_err(failed)?;
        self.has_unsafe_entries.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// The names from an object up to the root, the object's first.
    pub(crate) fn path(&self, key: Key, root: Key) -> Result<Vec<Vec<u8>>> {
        let (mut at, mut names) = (key, Vec::new());
        while at != root {
            let record = self.record(at.id.number)?.ok_or(Error::Stale)?;
            if record.generation != at.generation || names.len() >= DEPTH_MAX {
                return Err(Error::Stale);
            }
            names.push(record.name);
            at = Key { id: ObjectId::live(record.directory), generation: record.directory_generation };
        }
        Ok(names)
    }

    /// Puts all entries on stable storage.
    pub(crate) fn flush(&self) -> Result<()> {
        if self.has_unsafe_entries.swap(false, Ordering::Relaxed) {
            self.records.flush().map_err(failed)?;
        }
        Ok(())
    }
}
