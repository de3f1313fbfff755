//! What changes in directories, reported to feeds.

use std::collections::HashMap;
use std::mem::take;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::node::MemoryNode;
use super::{Shared, State};
use crate::{Error, Feed, FileKind, NodeRef, ObjectId, ObservedId, Result, Uncertain};

/// Changes that wait for a caller. When more come, they are lost, as from the queue of a kernel.
const CHANGES_MAX: usize = 256;
/// Directories that one feed follows.
const DIRECTORIES_MAX: usize = 1024;

/// What has become uncertain about a directory.
#[derive(Debug)]
enum Change {
    Name { dir: ObservedId, name: Vec<u8>, is_dir_gone: bool },
    Itself(ObservedId),
    Moved(ObservedId),
}

/// The directories that one feed follows, and the changes that it has not passed on.
#[derive(Debug, Default)]
pub(super) struct Followed {
    /// The number of the next directory. Numbers are never reused.
    next: u64,
    by_id: HashMap<ObjectId, ObservedId>,
    by_number: HashMap<ObservedId, ObjectId>,
    changes: Vec<Change>,
    /// Whether changes were lost since the last drain.
    is_overrun: bool,
}

impl Followed {
    fn tell(&mut self, dir: ObjectId, change: impl FnOnce(ObservedId) -> Change) {
        let Some(number) = self.by_id.get(&dir).copied().filter(|_| !self.is_overrun) else { return };
        if self.changes.len() < CHANGES_MAX {
            return self.changes.push(change(number));
        }
        self.changes.clear();
        self.is_overrun = true;
    }
}

/// A feed, as the store knows it. The lock guards what it follows. It is taken under that of the store's state, and no other
/// lock is taken under it.
pub(super) type Follower = Weak<Mutex<Followed>>;

/// A feed of the store.
#[derive(Debug)]
pub(super) struct MemoryFeed {
    shared: Arc<Shared>,
    followed: Arc<Mutex<Followed>>,
    /// Held while changes are passed on, so that a caller who finds none knows that all of them have been passed on. It
    /// guards no data.
    passing_on: Mutex<()>,
}

impl MemoryFeed {
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let followed = Arc::default();
        let followers = &mut shared.state.lock().followers;
        followers.retain(|follower| follower.strong_count() > 0);
        followers.push(Arc::downgrade(&followed));
        Self { shared: Arc::clone(shared), followed, passing_on: Mutex::default() }
    }
}

impl Feed for MemoryFeed {
    fn follow(&self, dir: &NodeRef) -> Result<ObservedId> {
        let node: Option<&MemoryNode> = dir.as_any().downcast_ref();
        node.filter(|node| node.is_of(&self.shared)).ok_or(Error::CrossDevice)?;
        if dir.kind() != FileKind::Directory {
            return Err(Error::NotDirectory);
        }
        let mut followed = self.followed.lock();
        if followed.by_id.len() >= DIRECTORIES_MAX && !followed.by_id.contains_key(&dir.id()) {
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
        DIRECTORIES_MAX
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

impl State {
    fn tell(&self, dir: ObjectId, change: impl Fn(ObservedId) -> Change) {
        for follower in self.followers.iter().filter_map(Weak::upgrade) {
            follower.lock().tell(dir, &change);
        }
    }

    /// A name of the directory stands for another object from now on, or for none.
    pub(super) fn tell_name(&self, dir: ObjectId, name: &[u8], is_dir_gone: bool) {
        self.tell(dir, |dir| Change::Name { dir, name: name.to_vec(), is_dir_gone });
    }

    /// Attributes or the descriptor of an object have changed.
    pub(super) fn tell_itself(&self, id: ObjectId) {
        self.tell(id, Change::Itself);
    }

    /// An object has been moved.
    pub(super) fn tell_moved(&self, id: ObjectId) {
        self.tell(id, Change::Moved);
    }
}
