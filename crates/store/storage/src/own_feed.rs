//! Feeds of a store that nobody else changes: what the store itself changes in directories is reported.

use std::collections::HashMap;
use std::mem::take;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::{Error, Feed, FileKind, Node, NodeRef, ObjectId, ObservedId, Result, Uncertain};

/// How much one feed keeps in memory.
#[derive(Debug, Clone, Copy)]
pub struct FeedLimits {
    /// How many directories it follows.
    pub directories: usize,
    /// How many changes wait for a caller. When more come, they are lost, as from the queue of a kernel.
    pub changes: usize,
}

/// What has become uncertain about a directory.
#[derive(Debug)]
enum Change {
    Name { dir: ObservedId, name: Vec<u8>, is_dir_gone: bool },
    Itself(ObservedId),
    Moved(ObservedId),
}

/// The directories that one feed follows, and the changes that it has not passed on.
#[derive(Debug, Default)]
struct Followed {
    /// The number of the next directory. Numbers are never reused.
    next: u64,
    by_id: HashMap<ObjectId, ObservedId>,
    by_number: HashMap<ObservedId, ObjectId>,
    changes: Vec<Change>,
    /// Whether changes were lost since the last drain.
    is_overrun: bool,
}

impl Followed {
    fn tell(&mut self, dir: ObjectId, changes_max: usize, change: impl FnOnce(ObservedId) -> Change) {
        let Some(number) = self.by_id.get(&dir).copied().filter(|_| !self.is_overrun) else { return };
        if self.changes.len() < changes_max {
            return self.changes.push(change(number));
        }
        self.lose();
    }

    fn lose(&mut self) {
        self.changes.clear();
        self.is_overrun = true;
    }
}

/// Where a store tells what it changes. A change is told when it is complete and before its caller knows, so that a feed
/// that is drained after a call has reported what the call has changed.
#[derive(Debug)]
pub struct OwnChanges {
    limits: FeedLimits,
    /// The feeds. Of each, the lock guards what it follows. It is taken under this one, and no other lock under it.
    followers: Mutex<Vec<Weak<Mutex<Followed>>>>,
}

impl OwnChanges {
    /// Without a feed so far.
    #[must_use]
    pub fn new(limits: FeedLimits) -> Self {
        Self { limits, followers: Mutex::default() }
    }

    /// Another feed. `is_own` tells the nodes of the store from those of others.
    pub fn feed(&self, is_own: impl Fn(&dyn Node) -> bool + Send + Sync + 'static) -> OwnFeed {
        let followed = Arc::default();
        let mut followers = self.followers.lock();
        followers.retain(|follower| follower.strong_count() > 0);
        followers.push(Arc::downgrade(&followed));
        OwnFeed { is_own: Box::new(is_own), limits: self.limits, followed, passing_on: Mutex::default() }
    }

    fn tell(&self, dir: ObjectId, change: impl Fn(ObservedId) -> Change) {
        for follower in self.followers.lock().iter().filter_map(Weak::upgrade) {
            follower.lock().tell(dir, self.limits.changes, &change);
        }
    }

    /// A name of the directory stands for another object from now on, or for none. `is_dir_gone`: a directory was moved
    /// away from that name, or removed.
    pub fn tell_name(&self, dir: ObjectId, name: &[u8], is_dir_gone: bool) {
        self.tell(dir, |dir| Change::Name { dir, name: name.to_vec(), is_dir_gone });
    }

    /// Attributes or the descriptor of an object have changed.
    pub fn tell_itself(&self, id: ObjectId) {
        self.tell(id, Change::Itself);
    }

    /// An object has been moved.
    pub fn tell_moved(&self, id: ObjectId) {
        self.tell(id, Change::Moved);
    }

    /// Others may have changed anything: nothing is followed any more.
    pub fn tell_all(&self) {
        for follower in self.followers.lock().iter().filter_map(Weak::upgrade) {
            follower.lock().lose();
        }
    }
}

/// Tells the nodes of a store from those of others.
type IsOwn = Box<dyn Fn(&dyn Node) -> bool + Send + Sync>;

/// A feed of [`OwnChanges`].
pub struct OwnFeed {
    is_own: IsOwn,
    limits: FeedLimits,
    followed: Arc<Mutex<Followed>>,
    /// Held while changes are passed on, so that a caller who finds none knows that all of them have been passed on. It
    /// guards no data.
    passing_on: Mutex<()>,
}

impl std::fmt::Debug for OwnFeed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OwnFeed").field("followed", &self.followed).finish_non_exhaustive()
    }
}

impl Feed for OwnFeed {
    fn follow(&self, dir: &NodeRef) -> Result<ObservedId> {
        if !(self.is_own)(&**dir) {
            return Err(Error::CrossDevice);
        }
        if dir.kind() != FileKind::Directory {
            return Err(Error::NotDirectory);
        }
        let mut followed = self.followed.lock();
        if followed.by_id.len() >= self.limits.directories && !followed.by_id.contains_key(&dir.id()) {
            return Err(Error::OutOfResources);
        }
        let number = ObservedId(followed.next);
        followed.next += 1;
        if let Some(before) = followed.by_id.insert(dir.id(), number) {
            followed.by_number.remove(&before);
        }
        followed.by_number.insert(number, dir.id());
        Ok(number)
    }

    fn unfollow(&self, dir: ObservedId) {
        let mut followed = self.followed.lock();
        if let Some(id) = followed.by_number.remove(&dir) {
            followed.by_id.remove(&id);
        }
    }

    fn is_followed(&self, dir: ObservedId) -> bool {
        self.followed.lock().by_number.contains_key(&dir)
    }

    fn directories_max(&self) -> usize {
        self.limits.directories
    }

    fn drain(&self, each: &mut dyn FnMut(Uncertain<'_>)) {
        let _passing_on = self.passing_on.lock();
        let changes = {
            let mut followed = self.followed.lock();
            if followed.is_overrun {
                // Nothing is followed from now on, whenever it was.
                *followed = Followed { next: followed.next, ..Followed::default() };
                drop(followed);
                return each(Uncertain::All);
            }
            take(&mut followed.changes)
        };
        for change in &changes {
            each(match *change {
                Change::Name { dir, ref name, is_dir_gone } => {
                    Uncertain::Name { dir, name, is_dir_gone, changes: 1 }
                }
                Change::Itself(dir) => Uncertain::Itself(dir),
                Change::Moved(dir) => Uncertain::Moved(dir),
            });
        }
    }
}
