//! A store in which gateways agree, of which parts fail or do not answer.

use std::collections::HashSet;
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

/// How the groups of vservers begin that can be taken, and are neither read nor written then, before [`Faulty::heal`].
pub(crate) const FAILING_GROUPS: &str = "vserver failing";

/// See the module.
#[derive(Debug)]
pub(crate) struct Faulty {
    store: Arc<dyn ClusterStore>,
    /// Guards whether the silent group answers.
    answers: Mutex<bool>,
    answer: Condvar,
    /// Guards which of the failing groups were used; None: they fail no more.
    failing: Mutex<Option<HashSet<String>>>,
}

impl Faulty {
    pub(crate) fn new(store: Arc<dyn ClusterStore>) -> Arc<Self> {
        let failing = Mutex::new(Some(HashSet::new()));
        Arc::new(Self { store, answers: Mutex::default(), answer: Condvar::new(), failing })
    }

    /// The silent group answers from now on.
    pub(crate) fn answer(&self) {
        *self.answers.lock() = true;
        self.answer.notify_all();
    }
}

impl Faulty {
    /// No group fails any more.
    pub(crate) fn heal(&self) {
        *self.failing.lock() = None;
    }

    /// Each failing group is used once without a fault, by whoever takes it.
    fn check_failing(&self, group: &str) -> Result<(), StoreError> {
        let mut failing = self.failing.lock();
        let used = failing.as_mut().filter(|_| group.starts_with(FAILING_GROUPS));
        if used.is_none_or(|used| used.insert(group.to_owned())) {
            return Ok(());
        }
        Err("a fault of the test".into())
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
        self.check_failing(group)?;
        self.store.records(group, owner)
    }
    fn tell(&self, topic: &str, message: &[u8]) -> Result<(), StoreError> {
        self.store.tell(topic, message)
    }
    fn listen(&self, topic: &str, heard: Heard) -> Result<Box<dyn Listening>, StoreError> {
        self.store.listen(topic, heard)
    }
}
