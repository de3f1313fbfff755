//! The size of a share: how much it may hold, and how much of that is used.
//!
//! The used size is the sum of the files' lengths, as Azure Files counts it, whatever the store needs for them. A file with
//! several names counts once. Named streams count from when they are written until the next walk. The size is counted once
//! by a walk through the share in the background, then updated with the server's own changes. The next walk finds the
//! changes of local programs ([`WALK_AGAIN`]). Until the first walk has ended, nothing is refused. A share whose plan has no
//! size only checks one number.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use limits::Limits;
use parking_lot::Mutex;
use storage::{Attributes, FileKind, MayWait, Name, NodeRef, Space, StoreThread, View, Wait, Want};

use crate::{Error, Result};

/// Changes by local programs are found after this time at most, while the share is in use.
const WALK_AGAIN: Duration = Duration::from_secs(600);
/// How often a walk is repeated if something changed meanwhile.
const WALKS_MAX: u32 = 3;
/// No limit.
const NONE: u64 = u64::MAX;

/// The size of a share.
#[derive(Debug)]
pub(crate) struct Capacity {
    limit: AtomicU64,
    /// The limit for one file.
    file: AtomicU64,
    counted: Counted,
}

/// What is counted: the files below a root. Cheap to clone.
#[derive(Debug, Clone)]
struct Counted {
    /// The name of the share, for the log.
    name: Arc<str>,
    root: NodeRef,
    /// Guards all that is known of the used size. Not held while the store is asked.
    used: Arc<Mutex<Used>>,
}

/// Guarded as a whole by [`Counted::used`].
#[derive(Debug, Default)]
struct Used {
    /// Bytes in use, once counted.
    bytes: Option<i128>,
    /// The bytes changed since the present walk began, and the number of changes.
    since_walk: i128,
    changes: u64,
    files: Option<u64>,
    walked: Option<Instant>,
    is_walking: bool,
    /// Files that are growing at this moment, by file number.
    growing: HashMap<storage::ObjectId, Growing>,
}

#[derive(Debug)]
struct Growing {
    /// The length that is counted for the file.
    counted: u64,
    writers: usize,
}

/// The result of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Content {
    bytes: u64,
    objects: u64,
}

impl Used {
    fn add(&mut self, bytes: i128) {
        if let Some(used) = &mut self.bytes {
            *used += bytes;
        }
        self.since_walk += bytes;
        self.changes += 1;
    }

    fn fits(&self, more: u64, limit: u64) -> bool {
        self.bytes.is_none_or(|used| used + i128::from(more) <= i128::from(limit))
    }
}

impl Capacity {
    /// The size of the share with this name and root.
    pub(super) fn new(limits: &Limits, name: &str, root: &NodeRef) -> Self {
        let counted = Counted { name: name.into(), root: Arc::clone(root), used: Arc::default() };
        let capacity = Self { limit: AtomicU64::new(NONE), file: AtomicU64::new(NONE), counted };
        capacity.change(limits);
        capacity
    }

    pub(super) fn change(&self, limits: &Limits) {
        self.limit.store(limits.capacity.unwrap_or(NONE), Ordering::Relaxed);
        self.file.store(limits.file_size.unwrap_or(NONE), Ordering::Relaxed);
    }

    /// The most bytes of one file; `u64::MAX` where the plan says nothing.
    pub(crate) fn file_bytes_max(&self) -> u64 {
        self.file.load(Ordering::Relaxed)
    }

    fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|limit| *limit != NONE)
    }

    /// Whether a file may grow up to `end` without [`Capacity::grow`].
    pub(crate) fn lets_grow(&self, end: u64) -> bool {
        end <= self.file_bytes_max() && self.limit().is_none()
    }

    /// Prepares the growth of a file up to `end`. Refuses if the file or the share would become too large. Returns whether the
    /// growth is counted: then [`Capacity::grown`] must follow when the write has ended.
    ///
    /// # Errors
    /// [`storage::Error::TooLarge`], [`Error::PlanFull`], the store's.
    pub(crate) fn grow(&self, node: &NodeRef, end: u64, may: MayWait<'_>) -> Result<bool> {
        // A file that is too large already, because of an earlier plan or local programs, may be changed but not grow.
        if end > self.file_bytes_max() && end > node.attributes(Want::empty(), Wait::May(may))?.size {
            return Err(storage::Error::TooLarge.into());
        }
        let Some(limit) = self.limit() else { return Ok(false) };
        self.counted.keep_count();
        let size = node.attributes(Want::empty(), Wait::May(may))?.size;
        if end <= size {
            return Ok(false);
        }
        let mut used = self.counted.used.lock();
        let counted = used.growing.get(&node.id()).map_or(size, |growing| growing.counted);
        let more = end.saturating_sub(counted);
        if more > 0 && !used.fits(more, limit) {
            return Err(Error::PlanFull);
        }
        used.add(i128::from(more));
        let growing = used.growing.entry(node.id()).or_insert(Growing { counted, writers: 0 });
        growing.counted = counted.max(end);
        growing.writers += 1;
        Ok(true)
    }

    /// Ends a growth that is counted. When the last call that makes the file grow has ended, its actual length is counted.
    pub(crate) fn grown(&self, node: &NodeRef, may: MayWait<'_>) {
        let mut used = self.counted.used.lock();
        let Some(growing) = used.growing.get_mut(&node.id()) else { return };
        growing.writers -= 1;
        if growing.writers > 0 {
            return;
        }
        let counted = growing.counted;
        used.growing.remove(&node.id());
        drop(used);
        if let Ok(attributes) = node.attributes(Want::empty(), Wait::May(may)) {
            self.counted.used.lock().add(i128::from(attributes.size) - i128::from(counted));
        }
    }

    /// Counts bytes that a file has lost.
    pub(crate) fn freed(&self, bytes: u64) {
        if self.limit().is_some() {
            self.counted.used.lock().add(-i128::from(bytes));
        }
    }

    /// Counts the removal of a name of an object with these attributes.
    pub(crate) fn removed(&self, attributes: &Attributes) {
        if attributes.kind == FileKind::Regular && attributes.links <= 1 {
            self.freed(attributes.size);
        }
    }

    /// The size of the share as its clients see it: the provisioned size and what is left of it, at most what the store has.
    pub(crate) fn provisioned_space(&self, store: Space) -> Space {
        let Some(limit) = self.limit() else { return store };
        self.counted.keep_count();
        let used = self.used().unwrap_or_else(|| store.total.saturating_sub(store.free));
        let left = limit.saturating_sub(used);
        Space { total: limit, free: left.min(store.free), available: left.min(store.available), ..store }
    }

    /// The number of files and directories found by the last walk, once counted.
    pub(super) fn files(&self) -> Option<u64> {
        self.counted.used.lock().files
    }

    /// Bytes in use, once counted.
    pub(super) fn used(&self) -> Option<u64> {
        self.counted.used.lock().bytes.map(|bytes| u64::try_from(bytes).unwrap_or(0))
    }
}

impl Counted {
    /// Starts a count in the background if the last one was some time ago.
    fn keep_count(&self) {
        let mut used = self.used.lock();
        let is_due = used.walked.is_none_or(|walked| walked.elapsed() >= WALK_AGAIN);
        if used.is_walking || !is_due {
            return;
        }
        used.is_walking = true;
        drop(used);
        let counted = self.clone();
        // A separate thread: the walk takes time in proportion to the number of files, and must not occupy a thread of the
        // store.
        let walk = StoreThread::spawn("count", move |thread| counted.count_all(thread.may_wait(View::FRESH)));
        if let Err(e) = walk {
            tracing::warn!(share = &*self.name, "cannot count what it holds: {e}");
            self.used.lock().is_walking = false;
        }
    }

    /// Counts what the share holds. Repeats the count if the share changed meanwhile.
    fn count_all(&self, may: MayWait<'_>) {
        for walk in 1..=WALKS_MAX {
            match self.recount(walk == WALKS_MAX, || count(&self.root, may)) {
                Ok(false) => continue,
                Ok(true) => {}
                Err(e) => tracing::warn!(share = &*self.name, "cannot count what it holds: {e}"),
            }
            break;
        }
        let mut used = self.used.lock();
        (used.is_walking, used.walked) = (false, Some(Instant::now()));
    }

    /// Counts with `walk`, and adopts the result if nothing changed meanwhile, or if this is the last walk: then a change
    /// may be counted twice, which errs on the safe side. Returns whether the result was adopted.
    fn recount(
        &self,
        is_last: bool,
        walk: impl FnOnce() -> storage::Result<Content>,
    ) -> storage::Result<bool> {
        let before = {
            let mut used = self.used.lock();
            used.since_walk = 0;
            (used.changes, used.growing.is_empty())
        };
        let content = walk()?;
        let mut used = self.used.lock();
        let is_exact = before == (used.changes, true) && used.growing.is_empty();
        if !is_exact && !is_last {
            return Ok(false);
        }
        used.bytes = Some(i128::from(content.bytes) + used.since_walk.max(0));
        used.files = Some(content.objects);
        Ok(true)
    }
}

/// Walks a directory and everything below it. Objects that vanish meanwhile are left out.
fn count(root: &NodeRef, may: MayWait<'_>) -> storage::Result<Content> {
    let (mut content, mut several) = (Content::default(), HashSet::new());
    let mut dirs = vec![Arc::clone(root)];
    while let Some(dir) = dirs.pop() {
        let mut names = Vec::new();
        let listed = dir.survey(may, &mut |entry| {
            names.push(entry.name.to_vec());
            ControlFlow::Continue(())
        });
        match listed {
            Err(storage::Error::NotFound | storage::Error::Stale) => continue,
            listed => listed?,
        };
        for name in names {
            let Ok((node, attributes)) =
                Name::new(&name).and_then(|name| dir.lookup_attributes(name, Want::empty(), Wait::May(may)))
            else {
                continue;
            };
            content.objects += 1;
            let is_new = attributes.links <= 1 || several.insert(node.id());
            match attributes.kind {
                FileKind::Directory => dirs.push(node),
                FileKind::Regular if is_new => content.bytes += attributes.size,
                _ => {}
            }
        }
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use storage::conformance::MAY;
    use storage::memory::MemoryStore;
    use storage::{NewKind, NewNode, SetAttributes, Storage};

    use super::*;

    /// A share that may hold so many bytes, with a file of no length in it.
    fn share(limit: u64) -> (Capacity, NodeRef) {
        let root = MemoryStore::new().root();
        let new = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 0, gid: 0 };
        let file = root.create(Name::new(b"file").unwrap(), &new, MAY).unwrap();
        let capacity = Capacity::new(&"unlimited".parse::<limits::Plan>().unwrap().limits(), "data", &root);
        capacity.limit.store(limit, Ordering::Relaxed);
        // The tests count by themselves.
        capacity.counted.used.lock().is_walking = true;
        (capacity, file)
    }

    fn walk(capacity: &Capacity) -> bool {
        capacity.counted.recount(false, || count(&capacity.counted.root, MAY)).unwrap()
    }

    fn set_size(file: &NodeRef, size: u64) {
        file.set_attributes(&SetAttributes { size: Some(size), ..SetAttributes::default() }, MAY).unwrap();
    }

    #[test]
    fn a_share_without_a_size_asks_nothing() {
        let (capacity, file) = share(NONE);
        assert!(capacity.lets_grow(1 << 60));
        assert_eq!(capacity.grow(&file, 1 << 60, MAY), Ok(false));
        capacity.freed(7);
        assert_eq!(capacity.counted.used.lock().changes, 0);
    }

    #[test]
    fn nothing_is_refused_before_the_first_walk_and_the_last_byte_fits_after_it() {
        let (capacity, file) = share(100);
        assert!(!capacity.lets_grow(1));
        assert_eq!(capacity.grow(&file, 1000, MAY), Ok(true));
        capacity.grown(&file, MAY);
        assert!(walk(&capacity));
        assert_eq!((capacity.used(), capacity.files()), (Some(0), Some(1)));
        assert_eq!(capacity.grow(&file, 101, MAY), Err(Error::PlanFull));
        assert_eq!(capacity.grow(&file, 100, MAY), Ok(true));
        assert_eq!(capacity.used(), Some(100), "from the beginning of the write");
        set_size(&file, 30);
        capacity.grown(&file, MAY);
        assert_eq!(capacity.used(), Some(30), "what was written in the end");
        assert_eq!(capacity.grow(&file, 30, MAY), Ok(false), "it does not grow");
    }

    #[test]
    fn writers_of_one_file_are_counted_once_and_the_last_settles() {
        let (capacity, file) = share(100);
        walk(&capacity);
        for end in [10, 60, 40] {
            assert_eq!(capacity.grow(&file, end, MAY), Ok(true));
        }
        assert_eq!(capacity.used(), Some(60));
        capacity.grown(&file, MAY);
        capacity.grown(&file, MAY);
        assert_eq!(capacity.used(), Some(60));
        assert!(!walk(&capacity), "a file was growing");
        set_size(&file, 60);
        capacity.grown(&file, MAY);
        assert!(capacity.counted.used.lock().growing.is_empty() && walk(&capacity));
        assert_eq!(capacity.used(), Some(60));
        capacity.removed(&file.attributes(Want::empty(), Wait::May(MAY)).unwrap());
        assert_eq!(capacity.used(), Some(0));
    }

    #[test]
    fn a_change_during_a_walk_is_not_lost() {
        let (capacity, file) = share(100);
        let mut ends = [40, 50].into_iter();
        let mut walk_beside_a_write = |is_last| {
            capacity.counted.recount(is_last, || {
                let content = count(&capacity.counted.root, MAY)?;
                assert_eq!(capacity.grow(&file, ends.next().unwrap(), MAY), Ok(true));
                Ok(content)
            })
        };
        assert_eq!((walk_beside_a_write(false), capacity.used()), (Ok(false), None), "it is repeated");
        assert_eq!((walk_beside_a_write(true), capacity.used()), (Ok(true), Some(10)));
    }

    #[test]
    fn a_file_may_be_too_large_but_not_grow() {
        let (capacity, file) = share(NONE);
        capacity.file.store(10, Ordering::Relaxed);
        assert!(capacity.lets_grow(10) && !capacity.lets_grow(11));
        assert_eq!(capacity.grow(&file, 11, MAY), Err(storage::Error::TooLarge.into()));
        set_size(&file, 20);
        assert_eq!(capacity.grow(&file, 20, MAY), Ok(false));
        assert_eq!(capacity.grow(&file, 21, MAY), Err(storage::Error::TooLarge.into()));
    }

    #[test]
    fn clients_see_the_smaller_of_what_is_provisioned_and_what_is_there() {
        let (capacity, _) = share(100);
        let store = Space { total: 1000, free: 70, available: 60, ..Space::default() };
        capacity.counted.used.lock().bytes = Some(20);
        let space = capacity.provisioned_space(store);
        assert_eq!((space.total, space.free, space.available), (100, 70, 60));
        capacity.counted.used.lock().bytes = Some(90);
        let space = capacity.provisioned_space(store);
        assert_eq!((space.free, space.available), (10, 10));
        assert_eq!(share(NONE).0.provisioned_space(store), store);
    }
}
