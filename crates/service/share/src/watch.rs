//! Watches for changes in a share.
//!
//! This part knows no other part of a share. Who changes something publishes it here ([`Changes::publish`]); what local programs
//! change is found by a thread of this part.

mod observe;
mod own_changes;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bitflags::bitflags;
use file_state::Access;
use parking_lot::Mutex;
use storage::{MayWait, Name, NodeRef, ObjectId, Storage, Wait};
use tokio::sync::Notify;

use self::observe::Observation;
use self::own_changes::UnderWay;
use crate::security::{Object, permission};
use crate::{Caller, Error, Identity, Result};

/// Changes that wait in a watch until they are fetched. With more, the watch drops them and reports an overflow.
pub const CHANGES_MAX: usize = 4096;
/// Bytes of changes that wait in all watches of a share together. Beyond that, a watch with a further change overflows.
pub const CHANGES_BYTES_MAX: usize = 64 << 20;

bitflags! {
    /// Kinds of changes. The bits are fixed: a front passes on those of its protocol.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct ChangeKinds: u32 {
        /// The name of a file was created, removed or changed.
        const FILE_NAME = 0x001;
        /// The name of a directory was created, removed or changed.
        const DIR_NAME = 0x002;
        /// Attributes.
        const ATTRIBUTES = 0x004;
        /// Length of the data.
        const SIZE = 0x008;
        /// Time of the last write.
        const LAST_WRITE = 0x010;
        /// Time of the last access.
        const LAST_ACCESS = 0x020;
        /// Time of creation.
        const CREATION = 0x040;
        /// Extended attributes.
        const EA = 0x080;
        /// Owner or permissions.
        const SECURITY = 0x100;
        /// The name of a named stream was created, removed or changed.
        const STREAM_NAME = 0x200;
        /// Length of a named stream.
        const STREAM_SIZE = 0x400;
        /// Data of a named stream.
        const STREAM_WRITE = 0x800;
    }
}

/// What happened to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChangeAction {
    /// The name was created.
    Added = 1,
    /// The name was removed.
    Removed = 2,
    /// The object with this name changed.
    Modified = 3,
    /// The object was renamed: the old name.
    RenamedFrom = 4,
    /// The object was renamed: the new name.
    RenamedTo = 5,
    /// A named stream was created. The name consists of the file's name, a colon, and the stream's name, which has no colon.
    AddedStream = 6,
    /// A named stream was removed.
    RemovedStream = 7,
    /// A named stream changed.
    ModifiedStream = 8,
}

/// One change, as a watch sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What happened.
    pub action: ChangeAction,
    /// The path of the name, relative to the watched directory: `a/b`.
    pub path: Vec<u8>,
}

/// A change as it happens: its directory and name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event<'a> {
    pub dir: &'a NodeRef,
    pub name: &'a [u8],
    pub action: ChangeAction,
    pub kinds: ChangeKinds,
    /// Watches for these kinds are told by another event.
    pub unless: ChangeKinds,
}

impl Event<'_> {
    /// The name of the file, without that of a stream, which has no colon of its own.
    fn file_name(&self) -> &[u8] {
        let is_stream = matches!(
            self.action,
            ChangeAction::AddedStream | ChangeAction::RemovedStream | ChangeAction::ModifiedStream
        );
        let colon = self.name.iter().rposition(|byte| *byte == b':').filter(|_| is_stream);
        self.name.get(..colon.unwrap_or(self.name.len())).unwrap_or_default()
    }
}

#[derive(Debug)]
struct Watcher {
    dir: NodeRef,
    /// The user that watches.
    identity: Arc<Identity>,
    recursive: bool,
    /// Bytes that wait in all watches of the share.
    waiting_bytes: Arc<AtomicUsize>,
    /// Guards the list and the overflow mark.
    queue: Mutex<Queue>,
    ready: Notify,
}

#[derive(Debug)]
struct Queue {
    kinds: ChangeKinds,
    changes: VecDeque<Change>,
    /// The part of `waiting_bytes` that this queue takes.
    bytes: usize,
    overflow: bool,
    /// The watched directory itself is being deleted.
    gone: bool,
}

type Watchers = HashMap<ObjectId, Vec<Arc<Watcher>>>;

/// The watches of a share.
///
/// Locks: that of the watchers comes before that of a watcher's queue. No call to the store is made under either.
pub struct Changes {
    /// The name of the share, for the log.
    name: String,
    store: Arc<dyn Storage>,
    root: NodeRef,
    /// Guards the lists of watchers by watched directory, with recursive ones separate.
    watchers: Mutex<(Watchers, Watchers)>,
    waiting_bytes: Arc<AtomicUsize>,
    count: AtomicUsize,
    count_max: usize,
    observation: Observation,
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Changes")
            .field("name", &self.name)
            .field("count", &self.count)
            .finish_non_exhaustive()
    }
}

/// A watch on a directory. It collects changes from its creation until it is dropped.
#[derive(Debug)]
pub struct Watch {
    changes: Arc<Changes>,
    watcher: Arc<Watcher>,
}

/// What a watch has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// These changes, oldest first.
    Changes(Vec<Change>),
    /// There were too many changes, and the list was dropped: the client must read the directory again.
    Overflow,
    /// The watched directory is being deleted.
    Gone,
}

impl Changes {
    /// The watches of the share with this name on this store, at most `count_max`.
    pub(crate) fn new(name: &str, store: &Arc<dyn Storage>, count_max: usize) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            store: Arc::clone(store),
            root: store.root(),
            watchers: Mutex::default(),
            waiting_bytes: Arc::default(),
            count: AtomicUsize::new(0),
            count_max,
            observation: Observation::default(),
        })
    }

    /// The number of directories that are observed for changes by local programs. It follows the watches with a short delay:
    /// an ended watch may still be counted, and a new one not yet.
    #[must_use]
    pub fn observed_directories(&self) -> usize {
        self.observation.directories.load(Ordering::Relaxed)
    }

    /// Begins a call of the server to the store that may change something. The call publishes its changes before it ends.
    pub(crate) fn work_begins(&self) -> Option<UnderWay<'_>> {
        self.observation.own.begin()
    }

    /// Whether there are any watches.
    #[must_use]
    pub fn is_watched(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Publishes a change by the server to its watchers.
    pub(crate) fn publish(&self, event: &Event<'_>, may: MayWait<'_>) {
        if !self.is_watched() {
            return;
        }
        self.observation.own.tell(event.dir.id(), event.file_name(), event.action.into(), Instant::now());
        self.announce(event, may);
    }

    /// Publishes a change by the server or by others to its watchers.
    pub(crate) fn announce(&self, event: &Event<'_>, may: MayWait<'_>) {
        let (direct, is_deep) = {
            let watchers = self.watchers.lock();
            (watchers.0.get(&event.dir.id()).cloned().unwrap_or_default(), !watchers.1.is_empty())
        };
        for watcher in direct {
            watcher.see(event, event.name);
        }
        if is_deep {
            self.publish_upwards(event, may);
        }
    }

    /// Publishes a change to the watchers of trees above it that could find it there. The path upwards is walked once for
    /// all of them.
    fn publish_upwards(&self, event: &Event<'_>, may: MayWait<'_>) {
        let Ok(mut path) = event.dir.path() else { return };
        let parts: Vec<usize> = path.split(|b| *b == b'/').map(<[u8]>::len).filter(|len| *len > 0).collect();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(event.name);
        let (mut dir, mut start) = (Arc::clone(&self.root), 0);
        let mut parts = parts.into_iter();
        // The watchers, and where the path that each sees begins.
        let mut watching: Vec<(Arc<Watcher>, usize)> = Vec::new();
        loop {
            let here = self.watchers.lock().1.get(&dir.id()).cloned().unwrap_or_default();
            watching.extend(here.into_iter().map(|watcher| (watcher, start)));
            let Some(length) = parts.next() else { break };
            let end = start.saturating_add(length);
            let name = Name::new(path.get(start..end).unwrap_or_default());
            let Ok(next) = name.and_then(|name| dir.lookup(name, Wait::May(may))) else {
                // The directory was just moved or removed: it is no longer known who could find the change.
                return watching.iter().for_each(|(watcher, _)| watcher.overflow());
            };
            (dir, start) = (next, end.saturating_add(1));
            let needed = if dir.id() == event.dir.id() { Access::LIST_DIRECTORY } else { Access::empty() };
            retain_who_may(&mut watching, &dir, needed, may);
        }
        for (watcher, start) in watching {
            watcher.see(event, path.get(start..).unwrap_or_default());
        }
    }

    /// Makes all watches overflow, because the changes are not known individually.
    pub(crate) fn overflow(&self) {
        let watchers = self.watchers.lock();
        for watcher in [&watchers.0, &watchers.1].into_iter().flat_map(HashMap::values).flatten() {
            watcher.overflow();
        }
    }

    /// Tells the watchers of a directory that it is being deleted.
    pub(crate) fn publish_gone(&self, dir: ObjectId) {
        if !self.is_watched() {
            return;
        }
        let watchers = self.watchers.lock();
        for watcher in [&watchers.0, &watchers.1].into_iter().filter_map(|all| all.get(&dir)).flatten() {
            watcher.queue.lock().gone = true;
            watcher.ready.notify_one();
        }
    }

    /// Watches a directory that the caller may list, or the whole tree below it, for changes of these kinds. In a tree the
    /// caller sees what it could find by listing: changes in directories that it may reach and list.
    ///
    /// # Errors
    /// [`Error::LimitReached`].
    pub(crate) fn watch(
        self: &Arc<Self>,
        caller: &Caller,
        dir: &NodeRef,
        recursive: bool,
        kinds: ChangeKinds,
    ) -> Result<Watch> {
        if self.count.fetch_add(1, Ordering::Relaxed) >= self.count_max {
            self.count.fetch_sub(1, Ordering::Relaxed);
            return Err(Error::LimitReached("watches"));
        }
        let queue = Queue { kinds, changes: VecDeque::new(), bytes: 0, overflow: false, gone: false };
        let watcher = Arc::new(Watcher {
            dir: Arc::clone(dir),
            identity: Arc::clone(&caller.identity),
            recursive,
            waiting_bytes: Arc::clone(&self.waiting_bytes),
            queue: Mutex::new(queue),
            ready: Notify::new(),
        });
        {
            let mut watchers = self.watchers.lock();
            let table = if recursive { &mut watchers.1 } else { &mut watchers.0 };
            table.entry(dir.id()).or_default().push(Arc::clone(&watcher));
        }
        self.observation.begin(self, dir, recursive);
        Ok(Watch { changes: Arc::clone(self), watcher })
    }
}

/// Keeps only watchers that may traverse a directory above a change and have the further right in it, so that a watch
/// reveals no names hidden from its user.
fn retain_who_may(
    watching: &mut Vec<(Arc<Watcher>, usize)>,
    dir: &NodeRef,
    needed: Access,
    may: MayWait<'_>,
) {
    if watching.iter().all(|(watcher, _)| watcher.identity.is_exempt()) {
        return;
    }
    let known = dir.protection(Wait::May(may));
    watching.retain(|(watcher, _)| {
        known.as_ref().is_ok_and(|protection| {
            let dir = Object::from(protection);
            permission::check_traverse(&watcher.identity, dir).is_ok()
                && permission::permitted(&watcher.identity, dir).contains(needed)
        })
    });
}

impl Watcher {
    fn overflow(&self) {
        let mut queue = self.queue.lock();
        self.empty(&mut queue);
        queue.overflow = true;
        self.ready.notify_one();
    }

    fn see(&self, event: &Event<'_>, path: &[u8]) {
        let mut queue = self.queue.lock();
        let wanted = queue.kinds.intersects(event.kinds) && !queue.kinds.intersects(event.unless);
        if !wanted || queue.overflow {
            return;
        }
        let change = Change { action: event.action, path: path.to_vec() };
        // The same object changed again before the changes were fetched: one entry is enough.
        let once = matches!(change.action, ChangeAction::Modified | ChangeAction::ModifiedStream);
        if !once || queue.changes.back() != Some(&change) {
            let bytes = size_of::<Change>().saturating_add(path.len());
            let before = self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
            queue.bytes = queue.bytes.saturating_add(bytes);
            queue.changes.push_back(change);
            if queue.changes.len() > CHANGES_MAX || before.saturating_add(bytes) > CHANGES_BYTES_MAX {
                self.empty(&mut queue);
                queue.overflow = true;
            }
        }
        self.ready.notify_one();
    }

    /// Removes and returns the waiting changes.
    fn empty(&self, queue: &mut Queue) -> VecDeque<Change> {
        self.waiting_bytes.fetch_sub(std::mem::take(&mut queue.bytes), Ordering::Relaxed);
        std::mem::take(&mut queue.changes)
    }
}

impl Watch {
    /// Removes and returns what has been seen so far, if anything.
    #[must_use]
    pub fn take(&self) -> Option<Seen> {
        let mut queue = self.watcher.queue.lock();
        if std::mem::take(&mut queue.gone) {
            return Some(Seen::Gone);
        }
        if std::mem::take(&mut queue.overflow) {
            return Some(Seen::Overflow);
        }
        (!queue.changes.is_empty()).then(|| Seen::Changes(self.watcher.empty(&mut queue).into()))
    }

    /// Whether [`Watch::take`] would return anything.
    #[must_use]
    pub fn has_seen(&self) -> bool {
        let queue = self.watcher.queue.lock();
        queue.gone || queue.overflow || !queue.changes.is_empty()
    }

    /// Waits until something is seen. It remains to be taken.
    pub async fn until_seen(&self) {
        while !self.has_seen() {
            self.watcher.ready.notified().await;
        }
    }

    /// Waits until something is seen, and takes it.
    pub async fn seen(&self) -> Seen {
        loop {
            if let Some(seen) = self.take() {
                return seen;
            }
            self.watcher.ready.notified().await;
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let changes = &self.changes;
        changes.observation.end(&self.watcher.dir, self.watcher.recursive);
        let before = changes.count.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a watch that ends was counted");
        self.watcher.empty(&mut self.watcher.queue.lock());
        let mut watchers = changes.watchers.lock();
        let table = if self.watcher.recursive { &mut watchers.1 } else { &mut watchers.0 };
        let dir = self.watcher.dir.id();
        if let Some(list) = table.get_mut(&dir) {
            list.retain(|w| !Arc::ptr_eq(w, &self.watcher));
            if list.is_empty() {
                table.remove(&dir);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use storage::conformance::MAY;
    use storage::memory::MemoryStore;
    use storage::{NewKind, NewNode};
    use storage_local::{LocalOptions, LocalStore};

    use super::*;
    use crate::Proof;

    fn caller(uid: u32) -> Caller {
        Caller::new(Identity::unix(uid, 7, Vec::new()), Proof::Stated)
    }

    fn make_dir(dir: &NodeRef, name: &str, mode: u32) -> NodeRef {
        let new = NewNode { kind: NewKind::Directory, mode, uid: 0, gid: 0 };
        dir.create(Name::new(name.as_bytes()).unwrap(), &new, MAY).unwrap()
    }

    /// The watches of a share of its own, at most so many.
    fn changes(count_max: usize) -> Arc<Changes> {
        let store: Arc<dyn Storage> = Arc::new(MemoryStore::new());
        Changes::new("data", &store, count_max)
    }

    fn publish(changes: &Changes, dir: &NodeRef, name: &str) {
        let (name, kinds, unless) = (name.as_bytes(), ChangeKinds::FILE_NAME, ChangeKinds::empty());
        changes.publish(&Event { dir, name, action: ChangeAction::Added, kinds, unless }, MAY);
    }

    fn added(path: &str) -> Change {
        Change { action: ChangeAction::Added, path: path.as_bytes().to_vec() }
    }

    #[test]
    fn there_is_an_end_to_watches_and_a_dropped_one_leaves_nothing() {
        let changes = changes(2);
        let watch = || changes.watch(&caller(0), &changes.root, true, ChangeKinds::all());
        let first = watch().unwrap();
        let second = watch().unwrap();
        assert!(matches!(watch(), Err(Error::LimitReached("watches"))));
        publish(&changes, &changes.root, "a");
        drop(first);
        assert!(second.has_seen() && watch().is_ok());
        drop(second);
        assert!(!changes.is_watched() && changes.watchers.lock().1.is_empty());
        assert_eq!(changes.waiting_bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_watch_that_nobody_fetches_overflows_at_its_limit() {
        let changes = changes(1);
        let watch = changes.watch(&caller(0), &changes.root, false, ChangeKinds::FILE_NAME).unwrap();
        for n in 0..CHANGES_MAX {
            publish(&changes, &changes.root, &n.to_string());
        }
        let Some(Seen::Changes(all)) = watch.take() else { panic!("as many as fit") };
        assert_eq!((all.len(), watch.take()), (CHANGES_MAX, None));
        for n in 0..=CHANGES_MAX {
            publish(&changes, &changes.root, &n.to_string());
        }
        assert_eq!((watch.take(), watch.take()), (Some(Seen::Overflow), None));
        assert_eq!(changes.waiting_bytes.load(Ordering::Relaxed), 0);
        publish(&changes, &changes.root, "later");
        assert_eq!(watch.take(), Some(Seen::Changes(vec![added("later")])));
    }

    #[test]
    fn a_tree_shows_its_user_what_the_user_could_find() {
        let changes = changes(3);
        let open = make_dir(&changes.root, "open", 0o755);
        let hidden = make_dir(&open, "hidden", 0o700);
        let watch = |uid| changes.watch(&caller(uid), &changes.root, true, ChangeKinds::FILE_NAME).unwrap();
        let (root, user) = (watch(0), watch(1000));
        let direct = changes.watch(&caller(1000), &open, false, ChangeKinds::FILE_NAME).unwrap();
        publish(&changes, &open, "a");
        publish(&changes, &hidden, "b");
        let all = vec![added("open/a"), added("open/hidden/b")];
        assert_eq!(root.take(), Some(Seen::Changes(all)));
        assert_eq!(user.take(), Some(Seen::Changes(vec![added("open/a")])));
        assert_eq!(direct.take(), Some(Seen::Changes(vec![added("a")])));
        changes.publish_gone(open.id());
        assert_eq!((direct.take(), root.take()), (Some(Seen::Gone), None));
    }

    #[tokio::test]
    async fn what_local_programs_do_is_seen_and_the_server_is_not_taken_for_one() {
        let place = tempfile::tempdir().unwrap();
        let store: Arc<dyn Storage> =
            Arc::new(LocalStore::open(place.path(), LocalOptions::default()).unwrap());
        let changes = Changes::new("data", &store, 1);
        assert!(changes.work_begins().is_none(), "nothing is observed");
        let watch = changes.watch(&caller(0), &changes.root, false, ChangeKinds::FILE_NAME).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while changes.observed_directories() == 0 {
            assert!(Instant::now() < deadline, "the directory is not observed");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let own = changes.work_begins();
        assert!(own.is_some());
        std::fs::write(place.path().join("own"), b"").unwrap();
        publish(&changes, &changes.root, "own");
        drop(own);
        std::fs::write(place.path().join("theirs"), b"").unwrap();
        let mut seen = Vec::new();
        while seen.last() != Some(&added("theirs")) {
            let Seen::Changes(more) = watch.seen().await else { panic!("few changes") };
            seen.extend(more);
        }
        assert_eq!(seen, [added("own"), added("theirs")]);
    }
}
