//! What one server remembers, wherever it is kept: who it is, the key of its filehandles, the numbers of its shares, and the burst
//! credits that they have left. A machine that is a server of its own keeps it in the state database; several servers of one process
//! have a store each.

use std::collections::HashSet;
use std::sync::Arc;

use crate::deleted_shares::{DELETED, DeletedShare};
use crate::store::{Batch, Form, Store, Table};
use crate::{Error, Result};

/// Single values by name.
pub(crate) const ABOUT: Table = Table { name: "about", form: Form::TextToBytes };
/// Numbers of shares by name in lower case.
pub(crate) const SHARES: Table = Table { name: "shares", form: Form::TextToU32 };
/// Burst credits that shares have left, by name in lower case.
pub(crate) const CREDITS: Table = Table { name: "burst-credits", form: Form::TextToU64 };
/// The highest number that a share was given.
const LAST_SHARE: &str = "last-share";

/// The records of one server.
#[derive(Debug, Clone)]
pub struct ServerRecords {
    store: Arc<dyn Store>,
    /// What errors begin with.
    place: String,
}

impl ServerRecords {
    /// The records in this store, which errors call `place`: "the state database /var/lib/anabranch/anabranch.redb".
    pub fn new(store: Arc<dyn Store>, place: impl Into<String>) -> Self {
        Self { store, place: place.into() }
    }

    /// The store itself, for tables that others have in it.
    pub fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    pub(crate) fn trouble(&self, error: impl std::fmt::Display) -> Error {
        Error::new(format!("{}: {error}", self.place), "")
    }

    /// The value of this name; the first time what `make` says, kept from then on.
    pub(crate) fn lasting<const N: usize>(
        &self,
        name: &str,
        make: impl Fn() -> Result<[u8; N]>,
    ) -> Result<[u8; N]> {
        loop {
            if let Some(found) = self.read(ABOUT, name)? {
                let wrong = |_| self.trouble(format!("{name} has the wrong length: the file is damaged"));
                return found.try_into().map_err(wrong);
            }
            let made = make()?;
            let batch = Batch {
                expected: vec![ABOUT.expect(name.as_bytes(), None)],
                changes: vec![ABOUT.put(name.as_bytes(), &made)],
            };
            if self.write(&batch)? {
                return Ok(made);
            }
        }
    }

    pub(crate) fn read(&self, table: Table, key: &str) -> Result<Option<Vec<u8>>> {
        self.store.read(table, key.as_bytes()).map_err(|e| self.trouble(e))
    }

    /// False: something is not as it was expected, and nothing was written.
    pub(crate) fn write(&self, batch: &Batch) -> Result<bool> {
        self.store.write(batch).map_err(|e| self.trouble(e))
    }

    /// A number of so many bytes.
    pub(crate) fn number<const N: usize>(&self, bytes: Vec<u8>) -> Result<[u8; N]> {
        bytes.try_into().map_err(|_| self.trouble("a value has the wrong length: the file is damaged"))
    }

    fn random(&self) -> Result<[u8; 16]> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|e| self.trouble(format!("no random numbers: {e}")))?;
        Ok(bytes)
    }

    /// Who this server is to SMB clients, for as long as its state lives.
    ///
    /// # Errors
    /// The database cannot be read, or not written the first time.
    pub fn server_guid(&self) -> Result<[u8; 16]> {
        self.lasting("server-guid", || self.random())
    }

    /// The key that NFS filehandles are signed with.
    ///
    /// # Errors
    /// The database cannot be read, or not written the first time.
    pub fn nfs_handle_key(&self) -> Result<[u8; 16]> {
        self.lasting("nfs-handle-key", || self.random())
    }

    /// The key that the stores of this server's shares sign their handles with, where the server and not the machine keeps it.
    ///
    /// # Errors
    /// The database cannot be read, or not written the first time.
    pub fn store_handle_key(&self) -> Result<[u8; 16]> {
        self.lasting("store-handle-key", || self.random())
    }

    /// The number of a share: the same whenever a share of this name is served.
    ///
    /// # Errors
    /// The database cannot be used, or there are no more numbers.
    pub fn share_id(&self, name: &str) -> Result<u32> {
        let name = name.to_lowercase();
        loop {
            if let Some(found) = self.read(SHARES, &name)? {
                return Ok(u32::from_le_bytes(self.number(found)?));
            }
            let last = self.read(ABOUT, LAST_SHARE)?;
            let id = self.highest_share(last.as_deref())?.checked_add(1);
            let id = id.ok_or_else(|| self.trouble("no more numbers for shares"))?.to_le_bytes();
            let last_share = LAST_SHARE.as_bytes();
            let batch = Batch {
                expected: vec![
                    SHARES.expect(name.as_bytes(), None),
                    ABOUT.expect(last_share, last.as_deref()),
                ],
                changes: vec![SHARES.put(name.as_bytes(), &id), ABOUT.put(last_share, &id)],
            };
            if self.write(&batch)? {
                return Ok(u32::from_le_bytes(id));
            }
        }
    }

    /// Forgets the numbers and the credits of all shares but these. The numbers are not given again.
    ///
    /// # Errors
    /// The database cannot be used.
    pub fn forget_shares_but(&self, names: &[&str]) -> Result<()> {
        let stays: HashSet<_> = names.iter().map(|name| name.to_lowercase()).collect();
        let mut batch = Batch::default();
        for (name, number) in self.store.scan(SHARES).map_err(|e| self.trouble(e))? {
            if !std::str::from_utf8(&name).is_ok_and(|name| stays.contains(name)) {
                batch.expected.push(SHARES.expect(&name, Some(&number)));
                batch.changes.extend([SHARES, CREDITS].map(|table| table.remove(&name)));
            }
        }
        if batch.changes.is_empty() {
            return Ok(());
        }
        let last = self.read(ABOUT, LAST_SHARE)?;
        let highest = self.highest_share(last.as_deref())?.to_le_bytes();
        batch.changes.push(ABOUT.put(LAST_SHARE.as_bytes(), &highest));
        // Whoever else writes is another owner, who forgets them too.
        self.write(&batch).map(drop)
    }

    /// The highest number that a share has or had: clients may have filehandles of shares that are gone.
    fn highest_share(&self, last: Option<&[u8]>) -> Result<u32> {
        let mut highest = last.and_then(|last| last.try_into().ok()).map_or(0, u32::from_le_bytes);
        for (_, id) in self.store.scan(SHARES).map_err(|e| self.trouble(e))? {
            highest = highest.max(u32::from_le_bytes(self.number(id)?));
        }
        // In a database of long ago, only these tell.
        for (_, json) in self.store.scan(DELETED).map_err(|e| self.trouble(e))? {
            let gone: DeletedShare = serde_json::from_slice(&json).map_err(|e| self.trouble(e))?;
            highest = highest.max(gone.number);
        }
        Ok(highest)
    }

    /// The burst credits that were written down for a share.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn credits(&self, name: &str) -> Result<Option<u64>> {
        let left = self.read(CREDITS, &name.to_lowercase())?;
        left.map(|left| self.number(left).map(u64::from_le_bytes)).transpose()
    }

    /// Writes down the burst credits of shares; None: the share has no bursts. A share that is forgotten has none either.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn keep_credits(&self, shares: &[(String, Option<u64>)]) -> Result<()> {
        loop {
            let mut batch = Batch::default();
            for (name, left) in shares {
                let name = name.to_lowercase();
                let known = self.read(SHARES, &name)?;
                batch.expected.push(SHARES.expect(name.as_bytes(), known.as_deref()));
                batch.changes.push(match left.filter(|_| known.is_some()) {
                    Some(left) => CREDITS.put(name.as_bytes(), &left.to_le_bytes()),
                    None => CREDITS.remove(name.as_bytes()),
                });
            }
            if self.write(&batch)? {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use redb::Database;
    use redb::backends::InMemoryBackend;

    use super::*;
    use crate::redb_store::RedbStore;
    use crate::store::{Change, KeyValue, StoreError};

    fn in_memory() -> Arc<dyn Store> {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        Arc::new(RedbStore(Arc::new(database)))
    }

    /// Another machine with the same store, which is quicker once.
    #[derive(Debug)]
    struct Raced {
        store: Arc<dyn Store>,
        first: parking_lot::Mutex<Option<Batch>>,
    }

    impl Store for Raced {
        fn read(&self, table: Table, key: &[u8]) -> std::result::Result<Option<Vec<u8>>, StoreError> {
            self.store.read(table, key)
        }

        fn scan(&self, table: Table) -> std::result::Result<Vec<KeyValue>, StoreError> {
            self.store.scan(table)
        }

        fn write(&self, batch: &Batch) -> std::result::Result<bool, StoreError> {
            if let Some(first) = self.first.lock().take() {
                assert!(self.store.write(&first)?);
            }
            self.store.write(batch)
        }
    }

    #[test]
    fn who_was_quicker_is_believed() {
        let records = ServerRecords::new(in_memory(), "memory");
        let raced = |first: Vec<Change>| {
            let first = parking_lot::Mutex::new(Some(first.into()));
            ServerRecords::new(Arc::new(Raced { store: records.store(), first }), "memory")
        };
        let other = raced(vec![ABOUT.put(b"server-guid", &[9; 16])]);
        assert_eq!(other.server_guid().unwrap(), [9; 16]);
        let number = 4_u32.to_le_bytes();
        let other = raced(vec![SHARES.put(b"quick", &number), ABOUT.put(LAST_SHARE.as_bytes(), &number)]);
        assert_eq!((other.share_id("slow").unwrap(), records.share_id("quick").unwrap()), (5, 4));
        records.keep_credits(&[("slow".to_owned(), Some(7))]).unwrap();
        let other = raced(vec![SHARES.remove(b"slow"), CREDITS.remove(b"slow")]);
        other.keep_credits(&[("slow".to_owned(), Some(8))]).unwrap();
        assert_eq!(records.credits("slow").unwrap(), None);
    }

    #[test]
    fn a_share_that_comes_after_one_of_its_name_has_another_number() {
        let records = ServerRecords::new(in_memory(), "memory");
        let numbers = ["a", "B", "c"].map(|name| records.share_id(name).unwrap());
        records.keep_credits(&["a", "B"].map(|name| (name.to_owned(), Some(7)))).unwrap();
        records.forget_shares_but(&["A", "d"]).unwrap();
        assert_eq!((records.credits("a").unwrap(), records.credits("b").unwrap()), (Some(7), None));
        let again = ["a", "b", "c"].map(|name| records.share_id(name).unwrap());
        assert_eq!((numbers, again), ([1, 2, 3], [1, 4, 5]));
        records.forget_shares_but(&["a", "b", "c"]).unwrap();
        assert_eq!(["c", "b"].map(|name| records.share_id(name).unwrap()), [5, 4]);
    }
}
