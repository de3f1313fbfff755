//! A wrapper around any store that makes calls fail or wait on demand, for tests.
//!
//! ```
//! use std::sync::Arc;
//! use anabranch_storage::conformance::MAY;
//! use anabranch_storage::fault::{Call, Fault, FaultyStore, Rule};
//! use anabranch_storage::memory::MemoryStore;
//! use anabranch_storage::{Error, Storage};
//!
//! let store = FaultyStore::new(Arc::new(MemoryStore::new()));
//! store.inject(Rule::once(Call::Space, Fault::Fail(Error::Io(5))));
//! assert_eq!(store.space(MAY), Err(Error::Io(5)));
//! assert!(store.space(MAY).is_ok());
//! ```

mod node;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::{
    Capabilities, Error, Feed, Handle, MayWait, NoSnapshots, Node, NodeRef, Observed, ObservedId, Observer,
    Result, Snapshots, Space, Storage, Uncertain, Wait,
};
use node::FaultyNode;

/// The calls that can be made to fail, named like the methods of the traits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the method of that name")]
pub enum Call {
    ByHandle,
    Space,
    IsReadOnly,
    Handle,
    Path,
    Attributes,
    Security,
    Lookup,
    Parent,
    ReadDir,
    ReadLink,
    Read,
    SetAttributes,
    SetSecurity,
    Create,
    Link,
    RemoveFile,
    RemoveDir,
    Rename,
    Write,
    Commit,
    Allocate,
    PunchHole,
    Seek,
    CopyRange,
    CloneRange,
    Xattr,
    Xattrs,
    SetXattr,
    RemoveXattr,
    Streams,
    Stream,
    CreateStream,
    RemoveStream,
    RenameStream,
}

impl Call {
    /// The calls that read or change names and attributes.
    pub const METADATA: [Self; 22] = [
        Self::ByHandle,
        Self::Attributes,
        Self::Security,
        Self::Lookup,
        Self::Parent,
        Self::ReadDir,
        Self::ReadLink,
        Self::SetAttributes,
        Self::SetSecurity,
        Self::Create,
        Self::Link,
        Self::RemoveFile,
        Self::RemoveDir,
        Self::Rename,
        Self::Xattr,
        Self::Xattrs,
        Self::SetXattr,
        Self::RemoveXattr,
        Self::Streams,
        Self::Stream,
        Self::CreateStream,
        Self::RemoveStream,
    ];
    /// The calls that read or write data.
    pub const DATA: [Self; 4] = [Self::Read, Self::Write, Self::Commit, Self::Space];
}

/// What happens to a call.
#[derive(Clone)]
pub enum Fault {
    /// The call fails, and nothing is done.
    Fail(Error),
    /// The call is slow: with [`Wait::Never`] it returns [`Error::WouldBlock`]; otherwise it first runs this function,
    /// which may sleep or wait for the test.
    Slow(Arc<dyn Fn() + Send + Sync>),
}

impl std::fmt::Debug for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Fail(error) => write!(f, "Fail({error:?})"),
            Self::Slow(_) => f.write_str("Slow"),
        }
    }
}

/// Which calls meet a fault.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The kind of call.
    pub call: Call,
    /// How many such calls to let through first.
    pub skip: u64,
    /// How many calls after these meet the fault.
    pub times: u64,
    /// What happens to these calls.
    pub fault: Fault,
}

impl Rule {
    /// The next call.
    #[must_use]
    pub fn once(call: Call, fault: Fault) -> Self {
        Self { call, skip: 0, times: 1, fault }
    }

    /// All calls from now on.
    #[must_use]
    pub fn always(call: Call, fault: Fault) -> Self {
        Self { call, skip: 0, times: u64::MAX, fault }
    }
}

/// Calls hang while this value exists ([`FaultyStore::stall`]).
#[derive(Debug, Default)]
pub struct Stall(Arc<(Mutex<bool>, Condvar)>);

impl Drop for Stall {
    fn drop(&mut self) {
        *self.0.0.lock() = true;
        self.0.1.notify_all();
    }
}

/// A store whose calls fail or wait by rules.
#[derive(Debug)]
pub struct FaultyStore(Arc<Shared>);

struct Shared {
    store: Arc<dyn Storage>,
    /// Whether the store is treated as not known to be local: without [`Capabilities::LOCAL`], and every call with
    /// `Wait::Never` would block.
    is_distant: bool,
    /// Guards the rules and the counts.
    plan: Mutex<Plan>,
}

#[derive(Debug, Default)]
struct Plan {
    rules: Vec<Rule>,
    calls: HashMap<Call, u64>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.plan.lock().fmt(f)
    }
}

impl FaultyStore {
    /// A store that behaves like `store` until rules are added.
    #[must_use]
    pub fn new(store: Arc<dyn Storage>) -> Self {
        Self(Arc::new(Shared { store, is_distant: false, plan: Mutex::default() }))
    }

    /// Like [`FaultyStore::new`], for a store that is not known to be local: calls that must not wait would block.
    #[must_use]
    pub fn distant(store: Arc<dyn Storage>) -> Self {
        Self(Arc::new(Shared { store, is_distant: true, plan: Mutex::default() }))
    }

    /// Adds a rule. If several rules match a call, the oldest is applied; all of them count the call.
    pub fn inject(&self, rule: Rule) {
        self.0.plan.lock().rules.push(rule);
    }

    /// Makes every call that may wait hang, until the returned value is dropped.
    #[must_use]
    pub fn stall(&self) -> Stall {
        self.stall_these(Call::METADATA.into_iter().chain(Call::DATA))
    }

    /// Makes calls of one kind hang, until the returned value is dropped.
    #[must_use]
    pub fn hang(&self, call: Call) -> Stall {
        self.stall_these([call])
    }

    fn stall_these(&self, calls: impl IntoIterator<Item = Call>) -> Stall {
        let stall = Stall::default();
        let over = Arc::clone(&stall.0);
        let hang: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
            let mut is_over = over.0.lock();
            over.1.wait_while(&mut is_over, |is_over| !*is_over);
        });
        for call in calls {
            self.inject(Rule::always(call, Fault::Slow(Arc::clone(&hang))));
        }
        stall
    }

    /// Removes all rules.
    pub fn clear(&self) {
        self.0.plan.lock().rules.clear();
    }

    /// How many calls of a kind have been made, including those that failed.
    #[must_use]
    pub fn calls(&self, call: Call) -> u64 {
        self.0.plan.lock().calls.get(&call).copied().unwrap_or(0)
    }
}

impl Shared {
    /// Lets a call through, or applies a fault to it. A call that is brief must not wait.
    fn enter(&self, call: Call, is_brief: bool) -> Result<()> {
        if self.is_distant && is_brief {
            return Err(Error::WouldBlock);
        }
        // The lock is not held while the fault runs.
        let fault = self.plan.lock().meet(call);
        match fault {
            None => Ok(()),
            Some(Fault::Fail(error)) => Err(error),
            Some(Fault::Slow(_)) if is_brief => Err(Error::WouldBlock),
            Some(Fault::Slow(run)) => {
                run();
                Ok(())
            }
        }
    }
}

impl Plan {
    fn meet(&mut self, call: Call) -> Option<Fault> {
        *self.calls.entry(call).or_insert(0) += 1;
        let mut met = None;
        for rule in self.rules.iter_mut().filter(|rule| rule.call == call && rule.times > 0) {
            if let Some(skip) = rule.skip.checked_sub(1) {
                rule.skip = skip;
            } else if met.is_none() {
                rule.times -= 1;
                met = Some(rule.fault.clone());
            }
        }
        met
    }
}

impl Storage for FaultyStore {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.0.store.capabilities();
        capabilities
            .set(Capabilities::LOCAL, capabilities.contains(Capabilities::LOCAL) && !self.0.is_distant);
        capabilities
    }

    fn root(&self) -> NodeRef {
        FaultyNode::wrap(&self.0, self.0.store.root())
    }

    fn by_handle(&self, handle: &Handle, wait: Wait<'_>) -> Result<NodeRef> {
        self.0.enter(Call::ByHandle, wait.is_never())?;
        Ok(FaultyNode::wrap(&self.0, self.0.store.by_handle(handle, wait)?))
    }

    fn observer(&self) -> Result<Arc<dyn Observer>> {
        Ok(Arc::new(FaultyObserver(self.0.store.observer()?)))
    }

    fn feed(&self) -> Result<Arc<dyn Feed>> {
        if self.0.is_distant {
            return Err(Error::NotSupported);
        }
        Ok(Arc::new(FaultyFeed(self.0.store.feed()?)))
    }

    fn snapshots(&self) -> std::result::Result<Arc<dyn Snapshots>, NoSnapshots> {
        self.0.store.snapshots()
    }

    fn space(&self, may: MayWait<'_>) -> Result<Space> {
        self.0.enter(Call::Space, false)?;
        self.0.store.space(may)
    }

    fn is_read_only(&self, may: MayWait<'_>) -> Result<bool> {
        match self.0.enter(Call::IsReadOnly, false) {
            Err(Error::ReadOnly) => Ok(true),
            answer => answer.and_then(|()| self.0.store.is_read_only(may)),
        }
    }

    fn is_in_place(&self, may: MayWait<'_>) -> Result<bool> {
        self.0.store.is_in_place(may)
    }

    fn sync(&self, may: MayWait<'_>) -> Result<()> {
        self.0.enter(Call::Commit, false)?;
        self.0.store.sync(may)
    }
}

/// The store's observer, which accepts nodes of the wrapper. Its calls never fail on demand.
#[derive(Debug)]
struct FaultyObserver(Arc<dyn Observer>);

impl Observer for FaultyObserver {
    fn observe(&self, dir: &dyn Node) -> Result<ObservedId> {
        self.0.observe(&**node::inner(dir)?)
    }

    fn ignore(&self, dir: ObservedId) {
        self.0.ignore(dir);
    }

    fn wait(&self, each: &mut dyn FnMut(Observed<'_>)) -> Result<bool> {
        self.0.wait(each)
    }

    fn wake(&self) {
        self.0.wake();
    }
}

/// The store's feed, which accepts nodes of the wrapper. Its calls never fail on demand.
#[derive(Debug)]
struct FaultyFeed(Arc<dyn Feed>);

impl Feed for FaultyFeed {
    fn follow(&self, dir: &NodeRef) -> Result<ObservedId> {
        self.0.follow(node::inner(&**dir)?)
    }

    fn unfollow(&self, dir: ObservedId) {
        self.0.unfollow(dir);
    }

    fn is_followed(&self, dir: ObservedId) -> bool {
        self.0.is_followed(dir)
    }

    fn directories_max(&self) -> usize {
        self.0.directories_max()
    }

    fn drain(&self, each: &mut dyn FnMut(Uncertain<'_>)) {
        self.0.drain(each);
    }
}

#[cfg(test)]
mod tests {
    use crate::conformance::MAY;
    use std::io::IoSlice;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::memory::MemoryStore;
    use crate::{Name, NewKind, NewNode, Stability, View, Want};

    fn store() -> FaultyStore {
        FaultyStore::new(Arc::new(MemoryStore::new()))
    }

    #[test]
    fn the_nth_call_fails_and_does_nothing() {
        let store = store();
        let new = NewNode { kind: NewKind::Regular, mode: 0o600, uid: 0, gid: 0 };
        let node = store.root().create(Name::new(b"f").unwrap(), &new, MAY).unwrap();
        let fault = Fault::Fail(Error::NoSpace);
        store.inject(Rule { call: Call::Write, skip: 1, times: 2, fault });
        let write = |byte| node.write(0, &[IoSlice::new(&[byte])], Stability::Unstable, Wait::May(MAY));
        let results = [1, 2, 3, 4].map(write);
        assert_eq!(results, [Ok(1), Err(Error::NoSpace), Err(Error::NoSpace), Ok(1)]);
        assert_eq!(store.calls(Call::Write), 4);
        store.inject(Rule::always(Call::Write, Fault::Fail(Error::Io(5))));
        assert_eq!(write(5), Err(Error::Io(5)));
        let mut byte = [0];
        node.read(0, &mut byte, Wait::May(MAY)).unwrap();
        assert_eq!(byte, [4]);
        store.clear();
        assert_eq!(write(6), Ok(1));
    }

    #[test]
    fn a_slow_call_waits_or_would_block() {
        let store = store();
        let runs = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&runs);
        let fault = Fault::Slow(Arc::new(move || _ = counted.fetch_add(1, Ordering::Relaxed)));
        store.inject(Rule::always(Call::Attributes, fault));
        assert_eq!(store.root().attributes(Want::empty(), Wait::Never(View::FRESH)), Err(Error::WouldBlock));
        assert_eq!(runs.load(Ordering::Relaxed), 0);
        assert!(store.root().attributes(Want::empty(), Wait::May(MAY)).is_ok());
        assert_eq!(runs.load(Ordering::Relaxed), 1);
    }

    struct Faulty(FaultyStore);

    impl crate::conformance::Subject for Faulty {
        fn store(&self) -> &dyn Storage {
            &self.0
        }

        fn restart(&mut self) {}

        fn at_once(&self, jobs: &[&(dyn Fn() + Sync)]) {
            std::thread::scope(|scope| jobs.iter().for_each(|job| _ = scope.spawn(job)));
        }
    }

    /// Without rules the wrapper behaves like any other store.
    fn subject() -> Faulty {
        Faulty(FaultyStore::new(Arc::new(MemoryStore::new().with_feeds())))
    }

    crate::conformance_tests!(subject);
}
