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

use crate::{Call, Error, Result, Share};

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
    used: Mutex<Used>,
}

/// Guarded as a whole by [`Capacity::used`].
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
pub(crate) struct Content {
    pub(crate) bytes: u64,
    pub(crate) objects: u64,
}

/// A growing file. When the last call that makes it grow has ended, its actual length is counted.
#[derive(Debug)]
pub(crate) struct Growth {
    share: Arc<Share>,
    node: NodeRef,
}

impl Drop for Growth {
    fn drop(&mut self) {
        let node = Arc::clone(&self.node);
        self.share.afterwards(move |share, may| share.grown(&node, may));
    }
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
    pub(crate) fn new(limits: &Limits) -> Self {
        let capacity =
            Self { limit: AtomicU64::new(NONE), file: AtomicU64::new(NONE), used: Mutex::default() };
        capacity.change(limits);
        capacity
    }

    pub(crate) fn change(&self, limits: &Limits) {
        self.limit.store(limits.capacity.unwrap_or(NONE), Ordering::Relaxed);
        self.file.store(limits.file_size.unwrap_or(NONE), Ordering::Relaxed);
    }

    /// The most bytes of one file; `u64::MAX` where the plan says nothing.
    fn file(&self) -> u64 {
        self.file.load(Ordering::Relaxed)
    }

    fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|limit| *limit != NONE)
    }

    /// Counts with `walk`, and adopts the result. Returns whether nothing changed meanwhile; otherwise a change may be
    /// counted twice, which errs on the safe side.
    fn recount(&self, walk: impl FnOnce() -> storage::Result<Content>) -> storage::Result<(Content, bool)> {
        let before = {
            let mut used = self.used.lock();
            used.since_walk = 0;
            (used.changes, used.growing.is_empty())
        };
        let content = walk()?;
        let mut used = self.used.lock();
        let is_exact = before == (used.changes, used.growing.is_empty()) && used.growing.is_empty();
        used.bytes = Some(i128::from(content.bytes) + used.since_walk.max(0));
        used.files = Some(content.objects);
        Ok((content, is_exact))
    }

    /// The number of files and directories found by the last walk, once counted.
    pub(crate) fn files(&self) -> Option<u64> {
        self.used.lock().files
    }

    /// Bytes in use, once counted.
    pub(crate) fn used(&self) -> Option<u64> {
        self.used.lock().bytes.map(|bytes| u64::try_from(bytes).unwrap_or(0))
    }
}

impl Share {
    /// As [`Share::grow`], but does not block if the store may stop answering.
    ///
    /// # Errors
    /// Those of [`Share::grow`].
    pub(crate) async fn make_room(
        self: &Arc<Self>,
        call: &Call,
        node: &NodeRef,
        end: u64,
    ) -> Result<Option<Growth>> {
        let capacity = self.capacity();
        if end <= capacity.file() && capacity.limit().is_none() {
            return Ok(None);
        }
        let node = Arc::clone(node);
        self.consult(call, move |share, may| share.grow(&node, end, may)).await
    }

    /// Prepares the growth of a file up to `end`. Refuses if the file or the share would become too large. Keep the result
    /// until the write has ended.
    ///
    /// # Errors
    /// [`storage::Error::TooLarge`], [`Error::PlanFull`], the store's.
    pub(crate) fn grow(
        self: &Arc<Self>,
        node: &NodeRef,
        end: u64,
        may: MayWait<'_>,
    ) -> Result<Option<Growth>> {
        let capacity = self.capacity();
        // A file that is too large already, because of an earlier plan or local programs, may be changed but not grow.
        if end > capacity.file() && end > node.attributes(Want::empty(), Wait::May(may))?.size {
            return Err(storage::Error::TooLarge.into());
        }
        let Some(limit) = capacity.limit() else { return Ok(None) };
        self.keep_count();
        let size = node.attributes(Want::empty(), Wait::May(may))?.size;
        if end <= size {
            return Ok(None);
        }
        let mut used = capacity.used.lock();
        let counted = used.growing.get(&node.id()).map_or(size, |growing| growing.counted);
        let more = end.saturating_sub(counted);
        if more > 0 && !used.fits(more, limit) {
            return Err(Error::PlanFull);
        }
        used.add(i128::from(more));
        let growing = used.growing.entry(node.id()).or_insert(Growing { counted, writers: 0 });
        growing.counted = counted.max(end);
        growing.writers += 1;
        drop(used);
        Ok(Some(Growth { share: Arc::clone(self), node: Arc::clone(node) }))
    }

    fn grown(&self, node: &NodeRef, may: MayWait<'_>) {
        let mut used = self.capacity().used.lock();
        let Some(growing) = used.growing.get_mut(&node.id()) else { return };
        growing.writers -= 1;
        if growing.writers > 0 {
            return;
        }
        let counted = growing.counted;
        used.growing.remove(&node.id());
        drop(used);
        if let Ok(attributes) = node.attributes(Want::empty(), Wait::May(may)) {
            self.capacity().used.lock().add(i128::from(attributes.size) - i128::from(counted));
        }
    }

    /// Counts bytes that a file has lost.
    pub(crate) fn freed(&self, bytes: u64) {
        let capacity = self.capacity();
        if capacity.limit().is_some() {
            capacity.used.lock().add(-i128::from(bytes));
        }
    }

    /// Counts the removal of a name of an object with these attributes.
    pub(crate) fn removed(&self, attributes: &Attributes) {
        if attributes.kind == FileKind::Regular && attributes.links <= 1 {
            self.freed(attributes.size);
        }
    }

    /// The most bytes of one file by the plan; `u64::MAX` where the plan says nothing.
    #[must_use]
    pub fn file_bytes_max(&self) -> u64 {
        self.capacity().file()
    }

    /// The size of the share as its clients see it: the provisioned size and what is left of it, at most what the store has.
    pub(crate) fn provisioned_space(self: &Arc<Self>, store: Space) -> Space {
        let Some(limit) = self.capacity().limit() else { return store };
        self.keep_count();
        let used = self.capacity().used().unwrap_or_else(|| store.total.saturating_sub(store.free));
        let left = limit.saturating_sub(used);
        Space { total: limit, free: left.min(store.free), available: left.min(store.available), ..store }
    }

    /// Starts a count in the background if the last one was some time ago.
    fn keep_count(self: &Arc<Self>) {
        let mut used = self.capacity().used.lock();
        let is_due = used.walked.is_none_or(|walked| walked.elapsed() >= WALK_AGAIN);
        if used.is_walking || !is_due {
            return;
        }
        used.is_walking = true;
        drop(used);
        let share = Arc::clone(self);
        // A separate thread: the walk takes time in proportion to the number of files, and must not occupy a thread of the
        // store.
        let walk = StoreThread::spawn("count", move |thread| share.count_all(thread.may_wait(View::FRESH)));
        if let Err(e) = walk {
            tracing::warn!(share = self.name(), "cannot count what it holds: {e}");
            self.capacity().used.lock().is_walking = false;
        }
    }

    /// Counts what the share holds. Repeats the count if the share changed meanwhile.
    fn count_all(&self, may: MayWait<'_>) {
        for walk in 1..=WALKS_MAX {
            match self.capacity().recount(|| count(self.root(), may)) {
                Ok((_, is_exact)) if !is_exact && walk < WALKS_MAX => continue,
                Ok(_) => {}
                Err(e) => tracing::warn!(share = self.name(), "cannot count what it holds: {e}"),
            }
            break;
        }
        let mut used = self.capacity().used.lock();
        (used.is_walking, used.walked) = (false, Some(Instant::now()));
    }
}

/// Walks a directory and everything below it. Objects that vanish meanwhile are left out.
pub(crate) fn count(root: &NodeRef, may: MayWait<'_>) -> storage::Result<Content> {
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
