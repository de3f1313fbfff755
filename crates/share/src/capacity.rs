//! The size of a share: what it holds at most, and how much of that is used.
//!
//! Used is the sum of the files' lengths, as Azure Files counts it, whatever the store needs for them; of several names of
//! a file one counts; named streams count from their writing until the next walk. It is counted once with a walk through the share, beside everything else, then
//! kept by what the server itself changes; what local programs change is found by the next walk ([`WALK_AGAIN`]). Until the
//! first walk has ended nothing is refused. A share without a plan that has a size pays one look at a number.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use limits::Limits;
use parking_lot::Mutex;
use storage::{Attributes, FileKind, Name, NodeRef, Space, Wait, Want};

use crate::{Error, Result, Share};

/// What local programs have changed is found so late at most, while the share is in use.
const WALK_AGAIN: Duration = Duration::from_secs(600);
/// So often it is walked again when something has changed meanwhile.
const WALKS_MAX: u32 = 3;
/// No limit.
const NONE: u64 = u64::MAX;

/// The size of a share.
#[derive(Debug)]
pub(crate) struct Capacity {
    limit: AtomicU64,
    /// Of the largest file.
    file: AtomicU64,
    used: Mutex<Used>,
}

/// All of it is guarded by [`Capacity::used`].
#[derive(Debug, Default)]
struct Used {
    /// Bytes, once they were counted.
    bytes: Option<i128>,
    /// What has changed since the walk that is under way began, and how often.
    since_walk: i128,
    changes: u64,
    files: Option<u64>,
    walked: Option<Instant>,
    is_walking: bool,
    /// Files that are growing at this moment, by their numbers.
    growing: HashMap<u64, Growing>,
}

#[derive(Debug)]
struct Growing {
    /// The length that is counted for it.
    counted: u64,
    writers: usize,
}

/// What a walk has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Content {
    pub(crate) bytes: u64,
    pub(crate) objects: u64,
}

/// A file is growing. When the last of those who make it grow is done, what it really has become is counted.
#[derive(Debug)]
pub(crate) struct Growth {
    share: Arc<Share>,
    node: NodeRef,
}

impl Drop for Growth {
    fn drop(&mut self) {
        let node = Arc::clone(&self.node);
        self.share.afterwards(move |share| share.grown(&node));
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

    /// Bytes that a file may have; `u64::MAX` where nothing is said of that.
    fn file(&self) -> u64 {
        self.file.load(Ordering::Relaxed)
    }

    fn limit(&self) -> Option<u64> {
        Some(self.limit.load(Ordering::Relaxed)).filter(|limit| *limit != NONE)
    }

    /// Counts, and takes over what was found. Whether nothing has changed meanwhile: else a change may be counted twice, which
    /// is the safe side.
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

    /// Files and directories, once they were counted: as the last walk has found.
    pub(crate) fn files(&self) -> Option<u64> {
        self.used.lock().files
    }

    /// Bytes in use, once they were counted.
    pub(crate) fn used(&self) -> Option<u64> {
        self.used.lock().bytes.map(|bytes| u64::try_from(bytes).unwrap_or(0))
    }
}

impl Share {
    /// [`Share::grow`], without a store being asked that may stop answering.
    ///
    /// # Errors
    /// Those of [`Share::grow`].
    pub(crate) async fn make_room(self: &Arc<Self>, node: &NodeRef, end: u64) -> Result<Option<Growth>> {
        let capacity = self.capacity();
        if end <= capacity.file() && capacity.limit().is_none() {
            return Ok(None);
        }
        let node = Arc::clone(node);
        self.consult(move |share| share.grow(&node, end)).await
    }

    /// A file is about to reach up to `end`: refused if it would be larger than a file may be then, or the share would hold
    /// more than it may. To be kept until that is done.
    ///
    /// # Errors
    /// [`storage::Error::TooLarge`], [`Error::PlanFull`], the store's.
    pub(crate) fn grow(self: &Arc<Self>, node: &NodeRef, end: u64) -> Result<Option<Growth>> {
        let capacity = self.capacity();
        // What is larger already, by an earlier plan or by local programs, may be changed and not grow.
        if end > capacity.file() && end > node.attributes(Want::empty(), Wait::May)?.size {
            return Err(storage::Error::TooLarge.into());
        }
        let Some(limit) = capacity.limit() else { return Ok(None) };
        self.keep_count();
        let size = node.attributes(Want::empty(), Wait::May)?.size;
        if end <= size {
            return Ok(None);
        }
        let mut used = capacity.used.lock();
        let counted = used.growing.get(&node.id().0).map_or(size, |growing| growing.counted);
        let more = end.saturating_sub(counted);
        if more > 0 && !used.fits(more, limit) {
            return Err(Error::PlanFull);
        }
        used.add(i128::from(more));
        let growing = used.growing.entry(node.id().0).or_insert(Growing { counted, writers: 0 });
        growing.counted = counted.max(end);
        growing.writers += 1;
        drop(used);
        Ok(Some(Growth { share: Arc::clone(self), node: Arc::clone(node) }))
    }

    fn grown(&self, node: &NodeRef) {
        let mut used = self.capacity().used.lock();
        let Some(growing) = used.growing.get_mut(&node.id().0) else { return };
        growing.writers -= 1;
        if growing.writers > 0 {
            return;
        }
        let counted = growing.counted;
        used.growing.remove(&node.id().0);
        drop(used);
        if let Ok(attributes) = node.attributes(Want::empty(), Wait::May) {
            self.capacity().used.lock().add(i128::from(attributes.size) - i128::from(counted));
        }
    }

    /// A file has lost so many bytes.
    pub(crate) fn freed(&self, bytes: u64) {
        let capacity = self.capacity();
        if capacity.limit().is_some() {
            capacity.used.lock().add(-i128::from(bytes));
        }
    }

    /// A name of an object with these attributes is gone.
    pub(crate) fn removed(&self, attributes: &Attributes) {
        if attributes.kind == FileKind::Regular && attributes.links <= 1 {
            self.freed(attributes.size);
        }
    }

    /// Bytes that a file of it may have by its plan; `u64::MAX` where that says nothing.
    #[must_use]
    pub fn file_bytes_max(&self) -> u64 {
        self.capacity().file()
    }

    /// The size of the share as its clients see it: what is provisioned, and what is left of that, if the store has as much.
    pub(crate) fn provisioned_space(self: &Arc<Self>, store: Space) -> Space {
        let Some(limit) = self.capacity().limit() else { return store };
        self.keep_count();
        let used = self.capacity().used().unwrap_or_else(|| store.total.saturating_sub(store.free));
        let left = limit.saturating_sub(used);
        Space { total: limit, free: left.min(store.free), available: left.min(store.available), ..store }
    }

    /// Counts what the share holds, beside everything else, when that was not done for a while.
    fn keep_count(self: &Arc<Self>) {
        let mut used = self.capacity().used.lock();
        let is_due = used.walked.is_none_or(|walked| walked.elapsed() >= WALK_AGAIN);
        if used.is_walking || !is_due {
            return;
        }
        used.is_walking = true;
        drop(used);
        let share = Arc::clone(self);
        // A thread of its own: it takes as long as there are files, and keeps no call from one of the store's.
        let walk = std::thread::Builder::new().name("count".to_owned()).spawn(move || share.count_all());
        if let Err(e) = walk {
            tracing::warn!(share = self.name(), "cannot count what it holds: {e}");
            self.capacity().used.lock().is_walking = false;
        }
    }

    /// Counts what the share holds, again as long as it changes meanwhile.
    fn count_all(&self) {
        for walk in 1..=WALKS_MAX {
            match self.capacity().recount(|| count(self.root())) {
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

/// Walks through a directory and all below it. What vanishes meanwhile is left out.
pub(crate) fn count(root: &NodeRef) -> storage::Result<Content> {
    let (mut content, mut several) = (Content::default(), HashSet::new());
    let mut dirs = vec![Arc::clone(root)];
    while let Some(dir) = dirs.pop() {
        let mut names = Vec::new();
        let listed = dir.survey(&mut |entry| {
            names.push(entry.name.to_vec());
            ControlFlow::Continue(())
        });
        match listed {
            Err(storage::Error::NotFound | storage::Error::Stale) => continue,
            listed => listed?,
        };
        for name in names {
            let Ok((node, attributes)) =
                Name::new(&name).and_then(|name| dir.lookup_attributes(name, Want::empty(), Wait::May))
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
