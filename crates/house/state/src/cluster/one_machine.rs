//! [`ClusterStore`] of one machine: records in a database of redb, the rest in the memory of this process, which has the database for
//! itself. When the process ends, its leases end.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use redb::{Database, ReadTransaction, ReadableDatabase, WriteTransaction};

use super::{ClusterStore, Fenced, Heard, Holder, Listening, NotOwner, Owner, Taken};
use crate::redb_store::{read_in, read_own_text, scan_in, write_in};
use crate::store::{Batch, Form, KeyValue, Store, StoreError, Table};

/// The owners of groups, by group.
const OWNERS: Table = Table { name: "owners", form: Form::TextToBytes };

/// The store, for gateways of this process.
#[derive(Clone)]
pub struct OneMachine(Arc<Shared>);

struct Shared {
    database: Arc<Database>,
    memory: Mutex<Memory>,
    numbers: AtomicU64,
}

/// What ends with the process.
#[derive(Default)]
struct Memory {
    leases: HashMap<String, Lease>,
    /// Numbers of gateways.
    fenced: HashSet<u64>,
    /// By topic, with the number of the listener.
    listeners: HashMap<String, Vec<(u64, Arc<Heard>)>>,
}

struct Lease {
    holder: Holder,
    until: Instant,
}

/// The store as a gateway of this process sees it.
#[derive(Clone)]
struct Gateway {
    store: OneMachine,
    name: String,
    number: u64,
}

impl fmt::Debug for OneMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OneMachine")
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gateway")
            .field("name", &self.name)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

impl OneMachine {
    /// The store in this database.
    pub fn new(database: Database) -> Self {
        let shared =
            Shared { database: Arc::new(database), memory: Mutex::default(), numbers: AtomicU64::default() };
        Self(Arc::new(shared))
    }

    /// The store as a gateway of this name sees it. Two of the same name are two gateways.
    pub fn gateway(&self, name: &str) -> Arc<dyn ClusterStore> {
        Arc::new(Gateway { store: self.clone(), name: name.to_owned(), number: self.number() })
    }

    fn number(&self) -> u64 {
        self.0.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

impl Gateway {
    fn holder(&self) -> Holder {
        Holder { gateway: self.name.clone(), address: self.number.to_string() }
    }

    /// The memory, for a gateway that is not fenced.
    fn memory(&self) -> Result<parking_lot::MutexGuard<'_, Memory>, StoreError> {
        let memory = self.store.0.memory.lock();
        if memory.fenced.contains(&self.number) { Err(Fenced.into()) } else { Ok(memory) }
    }

    fn reading(&self) -> Result<ReadTransaction, StoreError> {
        drop(self.memory()?);
        Ok(self.store.0.database.begin_read()?)
    }

    /// A transaction of a gateway that was not fenced when it began: whoever takes a group after the fence waits for its end.
    fn writing(&self) -> Result<WriteTransaction, StoreError> {
        let transaction = self.store.0.database.begin_write()?;
        drop(self.memory()?);
        Ok(transaction)
    }
}

impl ClusterStore for Gateway {
    fn take_lease(&self, lease: &str, length: Duration) -> Result<Taken, StoreError> {
        let until = Instant::now() + length;
        let mut memory = self.memory()?;
        match memory.leases.get(lease) {
            Some(held) if held.holder != self.holder() && Instant::now() < held.until => {
                Ok(Taken::By(held.holder.clone()))
            }
            _ => {
                memory.leases.insert(lease.to_owned(), Lease { holder: self.holder(), until });
                Ok(Taken::Until(until))
            }
        }
    }

    fn renew_lease(&self, lease: &str, length: Duration) -> Result<Option<Instant>, StoreError> {
        let until = Instant::now() + length;
        let mut memory = self.memory()?;
        let held = memory.leases.get_mut(lease);
        let held = held.filter(|held| held.holder == self.holder() && Instant::now() < held.until);
        Ok(held.map(|held| {
            held.until = until;
            until
        }))
    }

    fn end_lease(&self, lease: &str) -> Result<(), StoreError> {
        let mut memory = self.memory()?;
        if memory.leases.get(lease).is_some_and(|held| held.holder == self.holder()) {
            memory.leases.remove(lease);
        }
        Ok(())
    }

    fn lease_holder(&self, lease: &str) -> Result<Option<Holder>, StoreError> {
        let memory = self.memory()?;
        let held = memory.leases.get(lease).filter(|held| Instant::now() < held.until);
        Ok(held.map(|held| held.holder.clone()))
    }

    fn fence(&self, holder: &Holder) -> Result<(), StoreError> {
        self.memory()?.fenced.insert(holder.address.parse()?);
        Ok(())
    }

    fn owner(&self, group: &str) -> Result<Option<Owner>, StoreError> {
        let kept = read_in(&self.reading()?, "", OWNERS, group.as_bytes())?;
        kept.as_deref().map(Owner::of_kept).transpose()
    }

    fn take(&self, group: &str, instead_of: Option<&Owner>) -> Result<Option<Owner>, StoreError> {
        let owner = Owner::next(instead_of, &self.name);
        let seen = instead_of.map(Owner::kept);
        let batch = Batch {
            expected: vec![OWNERS.expect(group.as_bytes(), seen.as_deref())],
            changes: vec![OWNERS.put(group.as_bytes(), &owner.kept())],
        };
        Ok(write_in(self.writing()?, "", &batch)?.then_some(owner))
    }

    fn records(&self, group: &str, owner: &Owner) -> Result<Arc<dyn Store>, StoreError> {
        Ok(Arc::new(Records { gateway: self.clone(), group: group.to_owned(), owner: owner.clone() }))
    }

    fn tell(&self, topic: &str, message: &[u8]) -> Result<(), StoreError> {
        let listeners = self.memory()?.listeners.get(topic).cloned().unwrap_or_default();
        for (_, heard) in listeners {
            heard(message);
        }
        Ok(())
    }

    fn listen(&self, topic: &str, heard: Heard) -> Result<Box<dyn Listening>, StoreError> {
        let number = self.store.number();
        self.memory()?.listeners.entry(topic.to_owned()).or_default().push((number, Arc::new(heard)));
        Ok(Box::new(Listener { store: self.store.clone(), topic: topic.to_owned(), number }))
    }
}

/// The records of a group, whose tables have its name before theirs.
#[derive(Debug)]
struct Records {
    gateway: Gateway,
    group: String,
    owner: Owner,
}

impl Records {
    fn prefix(&self) -> String {
        format!("group {}: ", self.group)
    }

    fn check(&self, kept: Option<&[u8]>) -> Result<(), StoreError> {
        let now = kept.map(Owner::of_kept).transpose()?;
        if now.as_ref() == Some(&self.owner) {
            return Ok(());
        }
        Err(NotOwner { group: self.group.clone(), epoch: self.owner.epoch, now }.into())
    }

    /// A transaction in which the owner is this one.
    fn reading(&self) -> Result<ReadTransaction, StoreError> {
        let transaction = self.gateway.reading()?;
        self.check(read_in(&transaction, "", OWNERS, self.group.as_bytes())?.as_deref())?;
        Ok(transaction)
    }
}

impl Store for Records {
    fn read(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        read_in(&self.reading()?, &self.prefix(), table, key)
    }

    fn scan(&self, table: Table) -> Result<Vec<KeyValue>, StoreError> {
        scan_in(&self.reading()?, &self.prefix(), table)
    }

    fn write(&self, batch: &Batch) -> Result<bool, StoreError> {
        let transaction = self.gateway.writing()?;
        self.check(read_own_text(&transaction, OWNERS, &self.group)?.as_deref())?;
        write_in(transaction, &self.prefix(), batch)
    }
}

struct Listener {
    store: OneMachine,
    topic: String,
    number: u64,
}

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").field("topic", &self.topic).finish_non_exhaustive()
    }
}

impl Listening for Listener {
    fn is_broken(&self) -> bool {
        false
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut memory = self.store.0.memory.lock();
        if let Some(listeners) = memory.listeners.get_mut(&self.topic) {
            listeners.retain(|(number, _)| *number != self.number);
        }
    }
}

#[cfg(test)]
mod tests {
    use redb::backends::InMemoryBackend;

    use super::*;
    use crate::cluster::conformance;

    #[test]
    fn it_is_a_cluster_store() {
        let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
        let store = OneMachine::new(database);
        conformance::check(&|name| store.gateway(name));
    }

    #[test]
    fn groups_outlive_the_process_and_leases_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("database");
        let table = Table { name: "t", form: Form::TextToBytes };
        let owner = {
            let gateway = OneMachine::new(Database::create(&file).unwrap()).gateway("a");
            gateway.take_lease("a", Duration::from_secs(3600)).unwrap();
            let owner = gateway.take("group", None).unwrap().unwrap();
            let batch = vec![table.put(b"k", b"v")].into();
            assert!(gateway.records("group", &owner).unwrap().write(&batch).unwrap());
            owner
        };
        let gateway = OneMachine::new(Database::create(&file).unwrap()).gateway("b");
        assert_eq!(gateway.lease_holder("a").unwrap(), None);
        assert_eq!(gateway.owner("group").unwrap(), Some(owner.clone()));
        assert_eq!(gateway.records("group", &owner).unwrap().read(table, b"k").unwrap().unwrap(), b"v");
    }
}
