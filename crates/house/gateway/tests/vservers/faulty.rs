//! A store in which gateways agree, of which parts fail or do not answer.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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
/// The group of a vserver that listens, and cannot write down that it answers before [`Faulty::answer`].
pub(crate) const LATE_GROUP: &str = "vserver late";
/// How often whoever serves a vserver asks for its records before that.
const BEFORE_LATE: usize = 2;

/// How the groups of vservers begin that can be taken, and are neither read nor written then, before [`Faulty::heal`].
pub(crate) const FAILING_GROUPS: &str = "vserver failing";

/// See the module.
#[derive(Debug)]
pub(crate) struct Faulty {
    store: Arc<dyn ClusterStore>,
    /// Guards whether the silent group answers.
    answers: Mutex<bool>,
    answer: Condvar,
    /// How often somebody has asked for the records of the late group.
    asked_late: AtomicUsize,
    /// Guards which of the failing groups were used; None: they fail no more.
    failing: Mutex<Option<HashSet<String>>>,
}

/// Has a store answer when this is dropped: a gateway whose store does not answer would not end, and so hide why a test has failed.
#[derive(Debug)]
pub(crate) struct AnswersAtTheEnd(pub(crate) Arc<Faulty>);

impl Drop for AnswersAtTheEnd {
    fn drop(&mut self) {
        self.0.answer();
    }
}

impl Faulty {
    pub(crate) fn new(store: Arc<dyn ClusterStore>) -> Arc<Self> {
        let failing = Mutex::new(Some(HashSet::new()));
        let (answers, answer, asked_late) = (Mutex::default(), Condvar::new(), AtomicUsize::default());
        Arc::new(Self { store, answers, answer, asked_late, failing })
    }

    /// The silent group answers from now on.
    pub(crate) fn answer(&self) {
        *self.answers.lock() = true;
        self.answer.notify_all();
    }

    /// Whether whoever serves the late vserver waits to write down that it answers.
    pub(crate) fn is_late(&self) -> bool {
        self.asked_late.load(Ordering::SeqCst) > BEFORE_LATE
    }

    fn wait(&self) {
        let mut answers = self.answers.lock();
        while !*answers {
            self.answer.wait(&mut answers);
        }
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
        if group == SILENT_GROUP {
            self.wait();
        }
        self.store.take(group, instead_of)
    }
    fn records(&self, group: &str, owner: &Owner) -> Result<Arc<dyn Store>, StoreError> {
        self.check_failing(group)?;
        if group == LATE_GROUP && self.asked_late.fetch_add(1, Ordering::SeqCst) >= BEFORE_LATE {
            self.wait();
        }
        self.store.records(group, owner)
    }
    fn tell(&self, topic: &str, message: &[u8]) -> Result<(), StoreError> {
        self.store.tell(topic, message)
    }
    fn listen(&self, topic: &str, heard: Heard) -> Result<Box<dyn Listening>, StoreError> {
        self.store.listen(topic, heard)
    }
}
