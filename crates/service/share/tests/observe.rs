//! Changes by others, as an observer tells them that a test speaks through.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_share::{
    Caller, Case, ChangeAction, ChangeKinds, Identity, NewObject, Proof, Seen, Settings, Share, ShareId,
    Watch,
};
use parking_lot::{Condvar, Mutex};
use storage::conformance::MAY;
use storage::fault::{self, Fault, FaultyStore, Rule};
use storage::memory::MemoryStore;
use storage::{
    Capabilities, Deed, Device, Error, FileKind, Handle, MayWait, Name, NewKind, NewNode, Node, NodeRef,
    Observed, ObservedId, Observer, Result, SetAttributes, Space, Storage, Wait, Want,
};

#[expect(dead_code, reason = "what other tests use")]
mod fronts;

use fronts::{SMB, call};

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
struct Script {
    /// Guards what is to be told, and whether somebody was woken.
    told: Mutex<(VecDeque<ScriptedNews>, bool)>,
    news: Condvar,
    is_full: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
enum ScriptedNews {
    Entry(ObservedId, &'static str, Deed),
    Lost,
}

impl Script {
    fn tell(&self, told: &[ScriptedNews]) {
        self.told.lock().0.extend(told);
        self.news.notify_all();
    }
}

impl Observer for Script {
    fn observe(&self, dir: &dyn Node) -> Result<ObservedId> {
        if self.is_full.load(Ordering::SeqCst) {
            Err(Error::OutOfResources)
        } else {
            Ok(ObservedId(dir.id().number))
        }
    }

    fn ignore(&self, _dir: ObservedId) {}

    fn wait(&self, each: &mut dyn FnMut(Observed<'_>)) -> Result<bool> {
        let mut told = self.told.lock();
        while told.0.is_empty() && !std::mem::take(&mut told.1) {
            self.news.wait(&mut told);
        }
        for told in told.0.drain(..) {
            each(match told {
                ScriptedNews::Entry(dir, name, deed) => {
                    Observed::Entry { dir, name: name.as_bytes(), is_dir: false, deed }
                }
                ScriptedNews::Lost => Observed::Lost,
            });
        }
        Ok(true)
    }

    fn wake(&self) {
        self.told.lock().1 = true;
        self.news.notify_all();
    }
}

/// A store of which a script says what others do.
struct Store(Arc<dyn Storage>, Arc<Script>);

impl Storage for Store {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn root(&self) -> NodeRef {
        self.0.root()
    }

    fn by_handle(&self, handle: &Handle, wait: Wait<'_>) -> Result<NodeRef> {
        self.0.by_handle(handle, wait)
    }

    fn space(&self, may: MayWait<'_>) -> Result<Space> {
        self.0.space(may)
    }

    fn observer(&self) -> Result<Arc<dyn Observer>> {
        Ok(Arc::<Script>::clone(&self.1))
    }
}

struct Scripted {
    share: Arc<Share>,
    script: Arc<Script>,
    top: ObservedId,
}

impl Scripted {
    fn new() -> Self {
        Self::around(Arc::new(MemoryStore::new()))
    }

    fn around(store: Arc<dyn Storage>) -> Self {
        let script = Arc::<Script>::default();
        let store = Store(store, Arc::clone(&script));
        let share = Share::new(ShareId(1), Settings::new("s"), Arc::new(store));
        let top = ObservedId(share.root().id().number);
        Self { share, script, top }
    }

    fn watch(&self, recursive: bool) -> Watch {
        let kinds = ChangeKinds::FILE_NAME | ChangeKinds::SIZE;
        let superuser = call(&SMB, Caller::new(Identity::unix(0, 0, Vec::new()), Proof::Stated));
        self.share.watch(&superuser.caller, &Arc::clone(self.share.root()), recursive, kinds).unwrap()
    }

    async fn observed(&self, directories: usize) {
        while self.share.changes().observed_directories() != directories {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    async fn make(&self, name: &str) {
        let caller = call(&SMB, Caller::new(Identity::unix(0, 0, Vec::new()), Proof::Stated));
        let new = NewObject {
            kind: FileKind::Regular,
            target: Vec::new(),
            device: Device::default(),
            mode: 0o644,
            umask: 0,
            mode_bounds: false,
            security: None,
            set: SetAttributes::default(),
            want: Want::empty(),
        };
        let root = self.share.root();
        self.share.create(&caller, root, name.as_bytes(), Case::Sensitive, new).await.unwrap();
    }
}

async fn next(watch: &Watch) -> Vec<(ChangeAction, String)> {
    match tokio::time::timeout(PATIENCE, watch.seen()).await.unwrap() {
        Seen::Changes(changes) => {
            changes.into_iter().map(|c| (c.action, String::from_utf8(c.path).unwrap())).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_lost_is_an_overflow_for_all() {
    let test = Scripted::new();
    let (flat, deep) = (test.watch(false), test.watch(true));
    test.observed(1).await;
    test.script.tell(&[ScriptedNews::Lost]);
    for watch in [&flat, &deep] {
        assert_eq!(tokio::time::timeout(PATIENCE, watch.seen()).await.unwrap(), Seen::Overflow);
    }
    test.script.tell(&[ScriptedNews::Entry(test.top, "a", Deed::Made)]);
    for watch in [&flat, &deep] {
        assert_eq!(next(watch).await, [(ChangeAction::Added, "a".to_owned())]);
    }
}

#[tokio::test(flavor = "current_thread")]
async fn where_no_more_can_be_observed_own_changes_are_still_told() {
    let test = Scripted::new();
    test.script.is_full.store(true, Ordering::SeqCst);
    let watch = test.watch(true);
    test.make("own").await;
    assert_eq!(next(&watch).await, [(ChangeAction::Added, "own".to_owned())]);
    assert_eq!(test.share.changes().observed_directories(), 0);
}

#[tokio::test(flavor = "current_thread")]
async fn own_changes_are_told_once_whenever_the_observer_sees_them() {
    let test = Scripted::new();
    let watch = test.watch(false);
    test.observed(1).await;
    let top = test.top;
    test.make("own").await;
    test.script.tell(&[
        ScriptedNews::Entry(top, "own", Deed::Made),
        ScriptedNews::Entry(top, "own", Deed::Attributes),
        ScriptedNews::Entry(top, "own", Deed::Written),
        ScriptedNews::Entry(top, "a", Deed::MovedAway(7)),
        ScriptedNews::Entry(top, "b", Deed::MovedHere(7)),
        ScriptedNews::Entry(top, "c", Deed::MovedHere(8)),
        ScriptedNews::Entry(top, "own", Deed::Removed),
    ]);
    let mut told = Vec::new();
    while told.len() < 5 {
        told.extend(next(&watch).await);
    }
    let expected = [
        (ChangeAction::Added, "own"),
        (ChangeAction::RenamedFrom, "a"),
        (ChangeAction::RenamedTo, "b"),
        (ChangeAction::Added, "c"),
        (ChangeAction::Removed, "own"),
    ];
    assert_eq!(told, expected.map(|(action, name)| (action, name.to_owned())));
    drop(watch);
    test.observed(0).await;
}

/// A directory takes a descriptor as long as it is known: a tree has more of them than the server may have.
#[tokio::test]
async fn a_tree_with_very_many_directories_takes_few_of_them() {
    const MANY: usize = 5000;
    const OBSERVED: usize = 4096;
    let memory = MemoryStore::new();
    let new = NewNode { kind: NewKind::Directory, mode: 0o755, uid: 0, gid: 0 };
    for n in 0..MANY {
        memory.root().create(Name::new(n.to_string().as_bytes()).unwrap(), &new, MAY).unwrap();
    }
    let store = FaultyStore::new(Arc::new(memory));
    let looked_up = Arc::<AtomicUsize>::default();
    let count = {
        let looked_up = Arc::clone(&looked_up);
        Fault::Slow(Arc::new(move || {
            looked_up.fetch_add(1, Ordering::SeqCst);
        }))
    };
    store.inject(Rule::always(fault::Call::Lookup, count));
    let test = Scripted::around(Arc::new(store));
    let _watch = test.watch(true);
    test.observed(OBSERVED).await;
    assert!(looked_up.load(Ordering::SeqCst) <= OBSERVED, "{looked_up:?}");
}
