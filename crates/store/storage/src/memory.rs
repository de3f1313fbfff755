//! The in-memory store: the model for property tests, and the store under the servers' tests.
//!
//! It behaves like POSIX file systems on Linux, including the order of their checks, except that reading changes no
//! time. Handles are valid as long as the store value lives, and numbers are never reused. A store may hold further file
//! systems, each with numbers of its own, and snapshots: stores of their own ([`Storage::snapshots`]), or directories in its
//! root that take no changes.

mod data;
mod directory;
mod file_systems;
mod namespace;
mod node;
mod object;
mod snapshots;
mod streams;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::{
    Capabilities, Error, Feed, FeedLimits, Handle, MayWait, NoSnapshots, NodeRef, ObjectId, OwnChanges,
    Result, SnapshotName, Snapshots, Space, Storage, Timestamp, Wait,
};
use data::PAGE_BYTES;
use node::MemoryNode;
use object::{Content, Object};
use snapshots::MemorySnapshots;

/// The number of the root.
const ROOT: ObjectId = ObjectId::live(1);
/// How much a feed keeps.
const FEED_LIMITS: FeedLimits = FeedLimits { directories: 1024, changes: 256 };
/// How much a store holds by default, in bytes.
const CAPACITY: u64 = 1 << 30;
/// Where the store's own clock starts: 2026-01-01.
const EPOCH_SECS: i64 = 1_767_225_600;

/// A store that keeps everything in memory.
#[derive(Debug)]
pub struct MemoryStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Whether calls with [`Wait::Never`] succeed.
    at_hand: AtomicBool,
    /// Whether the store has feeds.
    has_feeds: AtomicBool,
    state: Mutex<State>,
}

/// All objects. A node holds its object (`held`), a directory names it (`names`). An object is freed when neither is
/// left.
#[derive(Debug)]
struct State {
    objects: HashMap<ObjectId, Object>,
    /// The last number given out in each file system.
    last_numbers: Vec<u64>,
    /// The last snapshot.
    last_snapshot: u32,
    /// The snapshots that are stores of their own.
    taken: BTreeMap<u32, SnapshotName>,
    /// How many of them there can be.
    taken_max: usize,
    clock: Clock,
    pages: u64,
    pages_max: u64,
    /// The feeds that report changes of directories.
    changes: OwnChanges,
}

#[derive(Debug)]
enum Clock {
    /// One microsecond passes with each change.
    Ticks(u32),
    Given(fn() -> Timestamp),
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryStore {
    /// An empty store with a clock of its own, which advances by a microsecond with each change.
    #[must_use]
    pub fn new() -> Self {
        Self::build(Clock::Ticks(0), CAPACITY)
    }

    /// An empty store that takes the time from `clock`.
    #[must_use]
    pub fn with_clock(clock: fn() -> Timestamp) -> Self {
        Self::build(Clock::Given(clock), CAPACITY)
    }

    /// An empty store that holds at most `bytes` of data.
    #[must_use]
    pub fn with_capacity(bytes: u64) -> Self {
        Self::build(Clock::Ticks(0), bytes)
    }

    fn build(mut clock: Clock, capacity: u64) -> Self {
        let mut root = Object::new(ROOT, Content::Directory(directory::Directory::default()), clock.now());
        root.mode = 0o777;
        let state = State {
            objects: HashMap::from([(ROOT, root)]),
            last_numbers: vec![ROOT.number],
            last_snapshot: 0,
            taken: BTreeMap::new(),
            taken_max: usize::MAX,
            clock,
            pages: 0,
            pages_max: capacity / PAGE_BYTES,
            changes: OwnChanges::new(FEED_LIMITS),
        };
        let (at_hand, has_feeds) = (AtomicBool::new(true), AtomicBool::new(false));
        Self { shared: Arc::new(Shared { at_hand, has_feeds, state: Mutex::new(state) }) }
    }

    /// The same store, which reports changes of its directories from now on ([`Storage::feed`]), so that callers may cache
    /// what they read of them.
    #[must_use]
    pub fn with_feeds(self) -> Self {
        self.shared.has_feeds.store(true, Ordering::Relaxed);
        self
    }

    /// The same store, which has at most so many snapshots at a time ([`Error::SnapshotLimit`]).
    #[must_use]
    pub fn with_snapshots_max(self, most: u32) -> Self {
        self.shared.state.lock().taken_max = usize::try_from(most).unwrap_or(usize::MAX);
        self
    }

    /// Sets whether calls with [`Wait::Never`] succeed (the default) or return [`Error::WouldBlock`].
    pub fn set_at_hand(&self, at_hand: bool) {
        self.shared.at_hand.store(at_hand, Ordering::Relaxed);
    }
}

impl Storage for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::all()
    }

    fn root(&self) -> NodeRef {
        MemoryNode::pin(&self.shared, &mut self.shared.state.lock(), ROOT, crate::FileKind::Directory)
    }

    fn by_handle(&self, handle: &Handle, wait: Wait<'_>) -> Result<NodeRef> {
        let id = file_systems::id_of(handle)?;
        if self.shared.state.lock().taken.contains_key(&id.snapshot) {
            return Err(Error::BadHandle);
        }
        self.shared.find(id, wait)
    }

    fn snapshots(&self) -> std::result::Result<Arc<dyn Snapshots>, NoSnapshots> {
        Ok(Arc::new(MemorySnapshots::of(&self.shared)))
    }

    fn feed(&self) -> Result<Arc<dyn Feed>> {
        if !self.shared.has_feeds.load(Ordering::Relaxed) {
            return Err(Error::NotSupported);
        }
        let shared = Arc::clone(&self.shared);
        let is_own = move |node: &dyn crate::Node| {
            let node: Option<&MemoryNode> = node.as_any().downcast_ref();
            node.is_some_and(|node| node.is_of(&shared))
        };
        Ok(Arc::new(self.shared.state.lock().changes.feed(is_own)))
    }

    fn space(&self, _: MayWait<'_>) -> Result<Space> {
        Ok(self.shared.space())
    }

    fn sync(&self, _: MayWait<'_>) -> Result<()> {
        Ok(())
    }
}

impl Shared {
    fn check_wait(&self, wait: Wait<'_>) -> Result<()> {
        let waits = wait.is_never() && !self.at_hand.load(Ordering::Relaxed);
        if waits { Err(Error::WouldBlock) } else { Ok(()) }
    }

    /// The object of a handle.
    fn find(self: &Arc<Self>, id: ObjectId, wait: Wait<'_>) -> Result<NodeRef> {
        self.check_wait(wait)?;
        let mut state = self.state.lock();
        if !state.may_have_made(id) {
            return Err(Error::BadHandle);
        }
        let object = state.object(id)?;
        if object.is_directory() && object.names.is_empty() && !state.is_top(id) {
            return Err(Error::Stale);
        }
        let kind = object.kind();
        Ok(MemoryNode::pin(self, &mut state, id, kind))
    }

    fn space(&self) -> Space {
        let state = self.state.lock();
        let free = state.pages_max.saturating_sub(state.pages) * PAGE_BYTES;
        let files = u64::from(u32::MAX);
        Space {
            total: state.pages_max * PAGE_BYTES,
            free,
            available: free,
            files,
            files_free: files.saturating_sub(state.objects.len() as u64),
            block: u32::try_from(PAGE_BYTES).unwrap_or(u32::MAX),
        }
    }
}

impl State {
    fn object(&self, id: ObjectId) -> Result<&Object> {
        self.objects.get(&id).ok_or(Error::Stale)
    }

    fn object_mut(&mut self, id: ObjectId) -> Result<&mut Object> {
        file_systems::check_live(id)?;
        self.objects.get_mut(&id).ok_or(Error::Stale)
    }

    fn now(&mut self) -> Timestamp {
        self.clock.now()
    }

    /// Whether the object is the root of this store, or of a snapshot that is a store of its own.
    fn is_top(&self, id: ObjectId) -> bool {
        id == ROOT || id.number == ROOT.number && self.taken.contains_key(&id.snapshot)
    }

    /// Changes the data of a file if the store has room for the range (offset and length) that the change fills.
    fn change_data(
        &mut self,
        id: ObjectId,
        (offset, length): (u64, u64),
        change: impl FnOnce(&mut data::Data),
    ) -> Result<()> {
        let grows = self.object(id)?.data()?.absent(offset, length);
        if self.pages.saturating_add(grows) > self.pages_max {
            return Err(Error::NoSpace);
        }
        let now = self.now();
        let object = self.object_mut(id)?;
        let data = object.data_mut()?;
        let before = data.pages();
        change(data);
        let after = data.pages();
        object.mtime = now;
        object.ctime = now;
        self.pages = (self.pages + after).saturating_sub(before);
        Ok(())
    }

    /// Frees an object that has no name and that nobody holds.
    fn free_unused(&mut self, id: ObjectId) {
        if !self.is_top(id) && self.objects.get(&id).is_some_and(|o| o.held == 0 && o.names.is_empty()) {
            let Some(object) = self.objects.remove(&id) else { return };
            self.pages = self.pages.saturating_sub(object.pages());
            for stream in object.streams.into_values() {
                self.leave_stream(stream);
            }
        }
    }
}

impl Clock {
    fn now(&mut self) -> Timestamp {
        match self {
            Self::Given(clock) => clock(),
            Self::Ticks(ticks) => {
                *ticks = ticks.wrapping_add(1);
                let secs = EPOCH_SECS + i64::from(*ticks / 1_000_000);
                Timestamp { secs, nanos: *ticks % 1_000_000 * 1000 }
            }
        }
    }
}
