//! The index of names, used where the file system gives the server no handles. It leads from an object to the directory
//! that contains it and its name there.

use std::sync::atomic::{AtomicBool, Ordering};

use redb::{Durability, ReadableDatabase, TableDefinition};
use storage::{Error, ObjectId, Result};

use crate::store::LocalState;

/// The deepest chain of directories that is followed.
const DEPTH_MAX: usize = 4096;
/// An entry on disk, keyed by the object's number: its generation, the directory's number and generation, the name.
type DiskEntry<'a> = (u64, u64, u64, &'a [u8]);

/// Identifies an object for good: its number, and what distinguishes it from others that have had the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) id: ObjectId,
    pub(crate) generation: u64,
}

/// The index of one store. Entries are durable after [`Index::flush`]. A server that is killed before that forgets the
/// latest entries, and their handles become stale.
pub(crate) struct Index {
    state: LocalState,
    table: String,
    unsafe_entries: AtomicBool,
}

fn failed(error: impl std::fmt::Display) -> Error {
    tracing::warn!("the index of handles failed: {error}");
    Error::Io(libc::EIO)
}

impl Index {
    /// Opens the index, and creates it if it does not exist.
    pub(crate) fn open(state: LocalState) -> Result<Self> {
        let table = format!("storage-local.{}.names", state.name);
        let index = Self { state, table, unsafe_entries: AtomicBool::new(false) };
        index.write(|_| Ok(()))?;
        Ok(index)
    }

    fn definition(&self) -> TableDefinition<'_, u64, DiskEntry<'static>> {
        TableDefinition::new(&self.table)
    }

    fn write(
        &self,
        change: impl FnOnce(&mut redb::Table<'_, u64, DiskEntry<'static>>) -> Result<()>,
    ) -> Result<()> {
        let mut transaction = self.state.database.begin_write().map_err(failed)?;
        transaction.set_durability(Durability::None).map_err(failed)?;
        change(&mut transaction.open_table(self.definition()).map_err(failed)?)?;
        transaction.commit().map_err(failed)?;
        self.unsafe_entries.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn read<T>(
        &self,
        look: impl FnOnce(&redb::ReadOnlyTable<u64, DiskEntry<'static>>) -> Result<T>,
    ) -> Result<T> {
        let transaction = self.state.database.begin_read().map_err(failed)?;
        look(&transaction.open_table(self.definition()).map_err(failed)?)
    }

    /// Enters objects, each with its directory and name, unless they are already entered like this.
    pub(crate) fn insert(&self, entries: &[(Key, Key, &[u8])]) -> Result<()> {
        let on_disk = |key: &Key, dir: &Key| (key.generation, dir.id.number, dir.generation);
        let is_entered = self.read(|table| {
            for (key, dir, name) in entries {
                let (generation, dir_id, dir_generation) = on_disk(key, dir);
                let entry = table.get(key.id.number).map_err(failed)?;
                if entry.is_none_or(|e| e.value() != (generation, dir_id, dir_generation, *name)) {
                    return Ok(false);
                }
            }
            Ok(true)
        })?;
        if is_entered {
            return Ok(());
        }
        self.write(|table| {
            for (key, dir, name) in entries {
                let (generation, dir_id, dir_generation) = on_disk(key, dir);
                let entry = (generation, dir_id, dir_generation, *name);
                table.insert(key.id.number, entry).map_err(failed)?;
            }
            Ok(())
        })
    }

    /// Whether an object with that number is entered.
    pub(crate) fn has(&self, id: ObjectId) -> Result<bool> {
        self.read(|table| Ok(table.get(id.number).map_err(failed)?.is_some()))
    }

    pub(crate) fn remove(&self, id: ObjectId) -> Result<()> {
        if !self.has(id)? {
            return Ok(());
        }
        self.write(|table| table.remove(id.number).map(drop).map_err(failed))
    }

    /// The names from an object up to the root, the object's first.
    pub(crate) fn path(&self, key: Key, root: Key) -> Result<Vec<Vec<u8>>> {
        self.read(|table| {
            let (mut at, mut names) = (key, Vec::new());
            while at != root {
                let entry = table.get(at.id.number).map_err(failed)?.ok_or(Error::Stale)?;
                let (generation, dir_id, dir_generation, name) = entry.value();
                if generation != at.generation || names.len() >= DEPTH_MAX {
                    return Err(Error::Stale);
                }
                names.push(name.to_vec());
                at = Key { id: ObjectId::live(dir_id), generation: dir_generation };
            }
            Ok(names)
        })
    }

    /// Puts all entries on stable storage.
    pub(crate) fn flush(&self) -> Result<()> {
        if self.unsafe_entries.swap(false, Ordering::Relaxed) {
            // A durable commit also makes the earlier ones durable.
            self.state.database.begin_write().map_err(failed)?.commit().map_err(failed)?;
        }
        Ok(())
    }
}
