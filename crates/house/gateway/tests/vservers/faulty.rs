//! A store in which gateways agree, of which parts fail or do not answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use state::cluster::{ClusterStore, Heard, Holder, Listening, Owner, Taken};
use state::store::{Store, StoreError};

/// The group of a vserver of which nothing can be read.
pub(crate) const BAD_GROUP: &str = "vserver bad";
/// The lease of a gateway of which nobody knows whether it is there.
pub(crate) const BAD_LEASE: &str = "gateway bad";
/// The group of a vserver that nobody can take before [`Faulty::answer`].
pub(crate) const SILENT_GROUP: &str = "vserver silent";

/// See the module.
#[derive(Debug)]
pub(crate) struct Faulty {
    store: Arc<dyn ClusterStore>,
    /// Guards whether the silent group answers.
    answers: Mutex<bool>,
    answer: Condvar,
}

impl Faulty {
    pub(crate) fn new(store: Arc<dyn ClusterStore>) -> Arc<Self> {
        Arc::new(Self { store, answers: Mutex::default(), answer: Condvar::new() })
    }

    /// The silent group answers from now on.
    pub(crate) fn answer(&self) {
        *self.answers.lock() = true;
        self.answer.notify_all();
    }
}

fn check(name: &str, bad: &str) -> Result<(), StoreError> {
    if name == bad { Err("a fault of the test".into()) } else { Ok(()) }
}

impl ClusterStore for Faulty {
    fn take_lease(&self, lease: &str, length: Duration) -> Result<Taken, StoreError> {
        self.store.take_lease(lease, length)
    }
    fn renew_lease(&self, lease: &str, length: Duration) -> Result<Option<Instant>, StoreError> {
        self.store.renew_lease(lease, length)
    }
    fn end_lease(&self, lease: &str) -> Result<(), StoreError> {
        self.store.end_lease(lease)
    }
    fn lease_holder(&self, lease: &str) -> Result<Option<Holder>, StoreError> {
        check(lease, BAD_LEASE)?;
        self.store.lease_holder(lease)
    }
    fn fence(&self, holder: &Holder) -> Result<(), StoreError> {
        self.store.fence(holder)
    }
    fn owner(&self, group: &str) -> Result<Option<Owner>, StoreError> {
        check(group, BAD_GROUP)?;
        self.store.owner(group)
    }
    fn take(&self, group: &str, instead_of: Option<&Owner>) -> Result<Option<Owner>, StoreError> {
        let mut answers = self.answers.lock();
        while group == SILENT_GROUP && !*answers {
            self.answer.wait(&mut answers);
        }
        drop(answers);
        self.store.take(group, instead_of)
    }
    fn records(&self, group: &str, owner: &Owner) -> Result<Arc<dyn Store>, StoreError> {
        self.store.records(group, owner)
    }
    fn tell(&self, topic: &str, message: &[u8]) -> Result<(), StoreError> {
        self.store.tell(topic, message)
    }
    fn listen(&self, topic: &str, heard: Heard) -> Result<Box<dyn Listening>, StoreError> {
        self.store.listen(topic, heard)
    }
}
