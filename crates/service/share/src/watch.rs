//! Watches for changes in a share.

mod observe;
mod own_changes;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use bitflags::bitflags;
use file_state::Access;
use parking_lot::Mutex;
use storage::{MayWait, Name, NodeRef, ObjectId, Wait};
use tokio::sync::Notify;

use self::observe::Observation;
use crate::permission::{self, Object};
use crate::{Caller, Error, Identity, Result};

/// Changes that wait in a watch until they are fetched. With more, the watch drops them and reports an overflow.
const CHANGES_MAX: usize = 4096;
/// Bytes of changes that wait in all watches of a share together. Beyond that, a watch with a further change overflows.
const CHANGES_BYTES_MAX: usize = 64 << 20;

bitflags! {
    /// Kinds of changes: the bits of CompletionFilter, [MS-SMB2] 2.2.35.
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

/// What happened to a name: the values of FILE_NOTIFY_INFORMATION, [MS-FSCC] 2.7.1.
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
#[derive(Debug)]
pub struct Changes {
    root: NodeRef,
    /// Guards the lists of watchers by watched directory, with recursive ones separate.
    watchers: Mutex<(Watchers, Watchers)>,
    waiting_bytes: Arc<AtomicUsize>,
    count: AtomicUsize,
    count_max: usize,
    observation: Observation,
}

/// A watch on a directory. It collects changes from its creation until it is dropped.
#[derive(Debug)]
pub struct Watch {
    share: Arc<crate::Share>,
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
    pub(crate) fn new(root: NodeRef, count_max: usize) -> Self {
        Self {
            root,
            watchers: Mutex::default(),
            waiting_bytes: Arc::default(),
            count: AtomicUsize::new(0),
            count_max,
            observation: Observation::default(),
        }
    }

    /// The number of directories that are observed for changes by local programs. It follows the watches with a short delay:
    /// an ended watch may still be counted, and a new one not yet.
    #[must_use]
    pub fn observed_directories(&self) -> usize {
        self.observation.directories.load(Ordering::Relaxed)
    }

    /// The observation of local programs.
    pub(crate) fn observation(&self) -> &Observation {
        &self.observation
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
}

/// Keeps only watchers that may traverse a directory above a change and have the further right in it, so that a watch
/// reveals no names hidden from its user.
fn retain_who_may(
    watching: &mut Vec<(Arc<Watcher>, usize)>,
    dir: &NodeRef,
    needed: Access,
    may: MayWait<'_>,
) {
    if watching.iter().all(|(watcher, _)| watcher.identity.is_superuser()) {
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

impl crate::Share {
    /// Watches a directory that the caller may list, or the whole tree below it, for changes of these kinds. In a tree the
    /// caller sees what it could find by listing: changes in directories that it may reach and list.
    ///
    /// # Errors
    /// [`Error::LimitReached`].
    pub fn watch(
        self: &Arc<Self>,
        caller: &Caller,
        dir: &NodeRef,
        recursive: bool,
        kinds: ChangeKinds,
    ) -> Result<Watch> {
        let changes = self.changes();
        if changes.count.fetch_add(1, Ordering::Relaxed) >= changes.count_max {
            changes.count.fetch_sub(1, Ordering::Relaxed);
            return Err(Error::LimitReached("watches"));
        }
        let queue = Queue { kinds, changes: VecDeque::new(), bytes: 0, overflow: false, gone: false };
        let watcher = Arc::new(Watcher {
            dir: Arc::clone(dir),
            identity: Arc::clone(&caller.identity),
            recursive,
            waiting_bytes: Arc::clone(&changes.waiting_bytes),
            queue: Mutex::new(queue),
            ready: Notify::new(),
        });
        {
            let mut watchers = changes.watchers.lock();
            let table = if recursive { &mut watchers.1 } else { &mut watchers.0 };
            table.entry(dir.id()).or_default().push(Arc::clone(&watcher));
        }
        changes.observation.begin(self, dir, recursive);
        Ok(Watch { share: Arc::clone(self), watcher })
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
        let changes = self.share.changes();
        changes.observation.end(&self.watcher.dir, self.watcher.recursive);
        changes.count.fetch_sub(1, Ordering::Relaxed);
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
