//! The metadata cache: data read from directories, kept while it is certainly still valid.
//!
//! The cache stands between a share and its store. It acts as a store whose nodes answer from memory where they can: the
//! names that a directory has (and has not), the directories among them, the attributes, security descriptors and listings
//! of directories, and their filehandles. [`crate::folded`] keeps its indexes by the same rules.
//!
//! **Why the cache is correct, no matter who changes the directories.** Everything in the cache belongs to a directory
//! that a [`storage::Feed`] follows. Before a cached answer is used, the feed is drained ([`Cache::settle`]). It has
//! then reported every change that was complete when the request arrived, and the cache has forgotten what changed. An
//! answer of the store is cached only if it was read after the directory was followed, and if the feed has reported no
//! change to it meanwhile. Change times are not used: two changes within one tick of the store's clock have the same time.
//!
//! **What is not kept**: the attributes of files. A file can change without an event: through a mapping, through an
//! asynchronous write, and through a name in another directory. One call reads them and pins nothing. (`storage-local` keeps
//! the descriptors of recently closed files while they are useful.) A store without a feed is not cached at all.
//!
//! **A directory's own attributes** need a second watch: while a directory is held open, its removal is reported only to its
//! parent. So its attributes are used only while the parent is followed too, and nothing has been removed from the parent
//! (see [`directory::Above`]).
//!
//! **When caching does not pay.** While the store is quick ([`pace`]), a directory that changes nearly as often as it
//! is read is not cached ([`worth`]). A directory may also be followed without being cached (the cache may be switched
//! off), for two reasons: for its index of names ([`crate::folded`]), and while NFSv4 clients change it, because the
//! replies to them say whether others changed it too ([`Watch`]). When nothing needs a directory any more, it is no
//! longer followed.
//!
//! **The server's own changes** return as events like all others. A call that changes a name waits for its own event
//! and counts events. If its own event was the only one for the name, the outcome is cached ([`Cache::begin`],
//! [`Cache::end`]).

mod budget;
mod counts;
mod directory;
mod node;
mod now_and_then;
mod pace;
mod store;
mod unsecured;
mod watch;
mod worth;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use planted::Fault;
use storage::{
    Attributes, Feed, Handle, MayWait, NodeRef, ObjectId, ObservedId, Protection, QuickMap, Storage,
    Uncertain, View, Wait, Want,
};

use crate::folded::FoldedNames;
pub(crate) use budget::Budget;
use counts::Counts;
pub use counts::{CacheCount, CacheCounts};
use directory::{Directory, Judgement, KnownName, OWN_BYTES};
pub(crate) use node::{is_followed, make_room};
use pace::Pace;
pub use pace::QUICK;
pub(crate) use store::CachedStore;
use unsecured::Unsecured;
pub use watch::Watch;
use worth::Rests;

/// Tables, each with its own lock.
const STRIPES: usize = 16;
/// Directories of a stripe that were read once. They are followed from the second read on.
const SEEN_MAX: usize = 1024;

/// The number of the cache that is made next.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A directory that may be cached.
#[derive(Debug)]
enum Slot {
    /// A call is about to follow the directory.
    Following,
    Ready(Box<Directory>),
}

/// Why a directory is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// To cache the directory: from the second read on.
    Keep,
    /// To cache a directory in it.
    Place,
    /// To report each changed name to its index.
    Index,
    /// To tell whether others change the directory: from the second time on.
    Watch,
}

#[derive(Debug, Default)]
struct Stripe {
    slots: QuickMap<ObjectId, Slot>,
    seen: HashSet<ObjectId>,
    rests: Rests,
}

impl Stripe {
    fn ready(&mut self, id: ObjectId) -> Option<&mut Directory> {
        match self.slots.get_mut(&id)? {
            Slot::Ready(directory) => Some(directory),
            Slot::Following => None,
        }
    }
}

/// A name that is being read or changed; see [`Cache::begin`].
#[derive(Debug)]
pub(crate) struct Ticket {
    dir: ObjectId,
    observed: ObservedId,
    name: Vec<u8>,
    /// The number of events for the name before the read or change.
    events: u64,
}

/// The state of a directory when a read of it began.
#[derive(Debug, Clone, Copy)]
struct AsOf {
    observed: ObservedId,
    serial: u64,
    own_serial: u64,
}

/// How much of the data that was read of a directory is certainly still valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Still {
    /// All data.
    All,
    /// Only the data that does not change with the names.
    Own,
}

/// The cache of one share.
pub struct Cache {
    store: Arc<dyn Storage>,
    feed: Arc<dyn Feed>,
    folded: Arc<FoldedNames>,
    root: ObjectId,
    budget: Arc<Budget>,
    directories_max: usize,
    directories: AtomicUsize,
    counts: Counts,
    pace: Pace,
    unsecured: Unsecured,
    /// Identifies the cache.
    number: u64,
    /// Whether any directory waits to be unfollowed.
    has_leaving: AtomicBool,
    is_on: AtomicBool,
    /// Guards the directories by their numbers in the feed.
    observed: Mutex<QuickMap<ObservedId, ObjectId>>,
    /// Guards the filehandles of cached directories.
    handles: Mutex<QuickMap<Handle, ObjectId>>,
    /// Guards the list of directories that wait to be unfollowed.
    leaving: Mutex<Vec<ObservedId>>,
    /// Each lock guards its whole stripe. While it is held, no storage call is made and no node is dropped.
    stripes: [Mutex<Stripe>; STRIPES],
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("counts", &self.counts).finish_non_exhaustive()
    }
}

impl Cache {
    pub(crate) fn new(
        store: Arc<dyn Storage>,
        feed: Arc<dyn Feed>,
        folded: Arc<FoldedNames>,
        budget: Arc<Budget>,
        quick: Duration,
    ) -> Self {
        Self {
            root: store.root().id(),
            directories_max: feed.directories_max(),
            store,
            feed,
            folded,
            budget,
            directories: AtomicUsize::new(0),
            counts: Counts::default(),
            pace: Pace::new(quick),
            unsecured: Unsecured::default(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            has_leaving: AtomicBool::new(false),
            is_on: AtomicBool::new(true),
            observed: Mutex::default(),
            handles: Mutex::default(),
            leaving: Mutex::default(),
            stripes: std::array::from_fn(|_| Mutex::default()),
        }
    }

    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Acquire)
    }

    /// Switches the cache on or off. While it is off, only indexes are kept.
    pub fn switch(&self, on: bool) {
        if self.is_on.swap(on, Ordering::SeqCst) != on {
            let all: Vec<ObjectId> = self.observed.lock().values().copied().collect();
            all.into_iter().for_each(|id| self.forget(id));
            self.settle_anew(View::FRESH);
        }
    }

    /// The counters of the cache, and its contents in numbers.
    pub fn counts(&self) -> CacheCounts {
        CacheCounts {
            names: self.counts.names.read(),
            absent: self.counts.absent.load(Ordering::Relaxed),
            attributes: self.counts.attributes.read(),
            listings: self.counts.listings.read(),
            handles: self.counts.handles.read(),
            invalidations: self.counts.invalidations.load(Ordering::Relaxed),
            directories: self.directories.load(Ordering::Relaxed),
            bytes: self.budget.taken(),
        }
    }

    fn stripe(&self, id: ObjectId) -> &Mutex<Stripe> {
        &self.stripes[usize::try_from(id.number % STRIPES as u64).unwrap_or(0)]
    }

    fn with<T>(&self, id: ObjectId, look: impl FnOnce(&mut Directory) -> T) -> Option<T> {
        self.stripe(id).lock().ready(id).map(look)
    }

    /// Runs `look` on a directory in the cache.
    fn kept<T>(&self, id: ObjectId, look: impl FnOnce(&mut Directory) -> T) -> Option<T> {
        self.with(id, |directory| directory.is_kept.then(|| look(directory))).flatten()
    }

    /// Calls [`Cache::settle`] if a directory is cached. Returns whether it is.
    fn settle_kept(&self, id: ObjectId, view: View<'_>) -> bool {
        let is_kept = self.kept(id, |_| ()).is_some();
        if is_kept {
            self.settle(view);
        }
        is_kept
    }

    /// Calls [`Cache::settle`] if the changes of a directory are counted.
    fn settle_counted(&self, id: ObjectId, view: View<'_>) {
        if self.with(id, |directory| directory.is_counted()) == Some(true) {
            self.settle(view);
        }
    }

    /// Forgets answers that are stale by now, because others or the server changed a directory. Within one
    /// [`storage::Moment`], only the first call does so.
    fn settle(&self, view: View<'_>) {
        if !view.is_settled(self.number) {
            self.settle_anew(view);
        }
    }

    /// Forgets answers that are stale by now, because others or the server changed a directory.
    fn settle_anew(&self, view: View<'_>) {
        // Before draining the feed: a change during the drain belongs to the next moment.
        view.settle(self.number);
        if self.directories.load(Ordering::Acquire) > 0 {
            self.feed.drain(&mut |uncertain| {
                if !planted::strikes(Fault::ChangeMissed) {
                    self.apply(uncertain);
                }
            });
        }
        if self.has_leaving.swap(false, Ordering::AcqRel) {
            let leaving = std::mem::take(&mut *self.leaving.lock());
            for observed in leaving {
                self.feed.unfollow(observed);
            }
        }
    }

    fn apply(&self, uncertain: Uncertain<'_>) {
        self.counts.invalidations.fetch_add(1, Ordering::Relaxed);
        let id_of = |observed| self.observed.lock().get(&observed).copied();
        match uncertain {
            Uncertain::Name { dir, name, is_dir_gone, changes } => {
                let Some(id) = id_of(dir) else { return };
                let gone = self.with(id, |directory| {
                    if is_dir_gone {
                        directory.leave();
                    }
                    self.account(directory, |directory| directory.name_changed(name, changes))
                });
                self.folded.touch(id, name);
                self.judge(id);
                if let (Some(Some(KnownName::Directory(child))), true) = (gone, is_dir_gone) {
                    self.forget(child.id());
                }
            }
            Uncertain::Itself(dir) | Uncertain::Moved(dir) => {
                let Some(id) = id_of(dir) else { return };
                let moved = matches!(uncertain, Uncertain::Moved(_));
                self.with(id, |directory| directory.itself_changed(moved));
            }
            Uncertain::All => {
                let all: Vec<ObjectId> = self.observed.lock().values().copied().collect();
                for id in all {
                    self.forget(id);
                }
                self.folded.forget_followed();
            }
        }
    }

    /// Handles a change of a directory. Stops caching the directory for a while if caching was not worth it, and stops
    /// following it if nothing needs that.
    fn judge(&self, id: ObjectId) {
        let mut stripe = self.stripe(id).lock();
        let Stripe { slots, rests, .. } = &mut *stripe;
        let Some(Slot::Ready(directory)) = slots.get_mut(&id) else { return };
        let was_kept = directory.is_kept;
        match directory.judge(self.pace.is_quick(), || self.folded.is_told(id)) {
            Judgement::None => {}
            Judgement::Worth => rests.end(id),
            Judgement::Rest => {
                rests.begin(id, Instant::now());
                let handle = self.account(directory, Directory::rest);
                drop(stripe);
                if let Some(handle) = handle {
                    self.handles.lock().remove(&handle);
                }
            }
            Judgement::Unneeded => {
                if was_kept {
                    rests.begin(id, Instant::now());
                }
                drop(stripe);
                self.forget(id);
            }
        }
    }

    /// Runs a change of a cached directory, and updates the memory in use.
    fn account<T>(&self, directory: &mut Directory, change: impl FnOnce(&mut Directory) -> T) -> T {
        let before = directory.bytes;
        let result = change(directory);
        self.budget.change(before, directory.bytes);
        result
    }

    /// Drops a directory from the cache.
    fn forget(&self, id: ObjectId) {
        let directory = {
            let mut stripe = self.stripe(id).lock();
            if stripe.ready(id).is_none() {
                return;
            }
            match stripe.slots.remove(&id) {
                Some(Slot::Ready(directory)) => directory,
                Some(Slot::Following) | None => return,
            }
        };
        directory.end();
        self.budget.change(directory.bytes, 0);
        let before = self.directories.fetch_sub(1, Ordering::AcqRel);
        debug_assert!(before > 0, "a directory that is kept was counted");
        self.observed.lock().remove(&directory.observed);
        self.leaving.lock().push(directory.observed);
        self.has_leaving.store(true, Ordering::Release);
        if let Some(handle) = directory.handle {
            self.handles.lock().remove(&handle);
        }
        self.folded.forget(id);
    }

    /// Makes room: drops directories of one stripe that were not used for some time.
    fn shrink(&self, stripe: &Mutex<Stripe>) {
        for _ in 0..2 {
            let unused: Vec<ObjectId> = {
                let mut stripe = stripe.lock();
                let ready = stripe.slots.iter_mut().filter_map(|(id, slot)| match slot {
                    Slot::Ready(directory) => Some((id, directory)),
                    Slot::Following => None,
                });
                ready
                    .filter_map(|(id, directory)| (!std::mem::take(&mut directory.used)).then_some(*id))
                    .collect()
            };
            for id in &unused {
                self.forget(*id);
            }
            if !unused.is_empty() {
                return;
            }
        }
    }

    /// Makes room for the index of a directory: drops other directories, and at last the listing of this one, which is worth
    /// less than its index. Returns whether there is enough room then.
    fn make_room(&self, bytes: usize, indexed: ObjectId) -> bool {
        for stripe in &self.stripes {
            if self.budget.has_room(bytes) {
                return true;
            }
            let others: Vec<_> = stripe.lock().slots.keys().copied().filter(|id| *id != indexed).collect();
            others.into_iter().for_each(|id| self.forget(id));
        }
        if !self.budget.has_room(bytes) {
            self.with(indexed, |directory| self.account(directory, Directory::drop_listing));
        }
        self.budget.has_room(bytes)
    }

    fn is_full(&self) -> bool {
        !self.budget.has_room(1) || self.directories.load(Ordering::Relaxed) >= self.directories_max
    }

    /// Follows a directory for this purpose, unless it is followed already. Returns whether it is followed.
    fn follow(&self, node: &NodeRef, purpose: Purpose) -> bool {
        let id = node.id();
        let to_keep = matches!(purpose, Purpose::Keep | Purpose::Place);
        if to_keep && !self.is_on() {
            return false;
        }
        let is_kept = {
            let mut stripe = self.stripe(id).lock();
            let Stripe { slots, seen, rests } = &mut *stripe;
            let may_keep = || self.is_on() && !(self.pace.is_quick() && rests.is_resting(id, Instant::now()));
            match slots.get_mut(&id) {
                Some(Slot::Ready(directory)) => {
                    directory.is_kept |= purpose == Purpose::Keep && !directory.is_kept && may_keep();
                    return true;
                }
                Some(Slot::Following) => return false,
                None => {}
            }
            let is_kept = may_keep();
            if to_keep && !is_kept {
                return false;
            }
            if seen.len() >= SEEN_MAX {
                seen.clear();
            }
            if seen.insert(id) && matches!(purpose, Purpose::Keep | Purpose::Watch) {
                return false;
            }
            slots.insert(id, Slot::Following);
            is_kept
        };
        if self.is_full() {
            self.shrink(self.stripe(id));
        }
        let observed = if self.is_full() { None } else { self.feed.follow(node).ok() };
        let Some(observed) = observed else {
            self.stripe(id).lock().slots.remove(&id);
            return false;
        };
        self.observed.lock().insert(observed, id);
        self.directories.fetch_add(1, Ordering::AcqRel);
        self.budget.change(0, OWN_BYTES);
        let mut directory = Box::new(Directory::new(Arc::clone(node), observed, id == self.root));
        directory.is_kept = is_kept;
        self.stripe(id).lock().slots.insert(id, Slot::Ready(directory));
        // An end of following before the directory was entered was not reported.
        let is_followed = self.feed.is_followed(observed) && (!is_kept || self.is_on());
        if !is_followed {
            self.forget(id);
        }
        is_followed
    }

    /// Makes sure that the parent of a followed directory is followed too.
    fn place(&self, node: &NodeRef, may: MayWait<'_>) {
        let id = node.id();
        let placed = self.with(id, |directory| directory.renew_place().then_some(directory.serial));
        let Some(None) = placed else { return };
        let Some(serial) = self.with(id, |directory| directory.serial) else { return };
        let Ok(parent) = node.parent(may) else { return };
        if !self.follow(&parent, Purpose::Place) {
            return;
        }
        let Some(above) = self.with(parent.id(), |parent| parent.as_above()) else { return };
        self.with(id, |directory| {
            // Otherwise the directory may have been moved meanwhile.
            if directory.serial == serial {
                directory.above = Some(above);
            }
        });
    }

    /// The state to pass to [`Cache::keep`] after a read of a directory; None when the directory can be neither cached nor
    /// counted.
    fn as_of(&self, node: &NodeRef) -> Option<AsOf> {
        let as_of = |directory: &mut Directory| AsOf {
            observed: directory.observed,
            serial: directory.serial,
            own_serial: directory.own_serial,
        };
        self.with(node.id(), |directory| directory.is_counted().then(|| as_of(directory))).flatten()
    }

    /// Caches data that was read of a directory, as far as it is certainly still valid.
    fn keep(&self, id: ObjectId, as_of: AsOf, keep: impl FnOnce(&mut Directory, Still)) {
        self.kept(id, |directory| {
            if (directory.observed, directory.own_serial) == (as_of.observed, as_of.own_serial) {
                let still = if directory.serial == as_of.serial { Still::All } else { Still::Own };
                self.account(directory, |directory| keep(directory, still));
            }
        });
        if self.is_full() {
            self.shrink(self.stripe(id));
        }
    }

    /// Begins a read or a change of a name. A name in a directory that is not cached is not tracked: the index then doubts
    /// the name.
    pub(crate) fn begin(&self, dir: ObjectId, name: &[u8]) -> Option<Ticket> {
        let begin = |directory: &mut Directory| Ticket {
            dir,
            observed: directory.observed,
            name: name.to_vec(),
            events: directory.begin(name),
        };
        self.kept(dir, begin)
    }

    /// Ends a read, or a change of `events` events. Caches what the name stands for now, if there was no other event for the
    /// name.
    pub(crate) fn end(&self, ticket: Option<Ticket>, events: u64, now: Option<NameMeaning>, view: View<'_>) {
        if events > 0 {
            view.end();
        }
        let Some(ticket) = ticket else { return };
        if events > 0 {
            self.settle(view);
        }
        let dropped = self.with(ticket.dir, |directory| {
            if directory.observed != ticket.observed {
                return None;
            }
            let given = directory.finish(&ticket.name);
            let now = now.filter(|_| given == ticket.events.wrapping_add(events))?;
            if events > 0 {
                // Under the lock, so that later events for the name come after this.
                self.folded.know(ticket.dir, &ticket.name, !matches!(now, NameMeaning::Absent));
            }
            let known = match now {
                NameMeaning::Absent => KnownName::Absent,
                NameMeaning::Directory(node) => KnownName::Directory(node),
                NameMeaning::Other => return None,
            };
            if !directory.is_kept {
                return None; // the directory was dropped a moment ago
            }
            self.account(directory, |directory| directory.know(&ticket.name, known))
        });
        drop(dropped);
        if self.is_full() {
            self.shrink(self.stripe(ticket.dir));
        }
    }

    /// The directory with this handle, if it certainly still exists.
    fn by_handle(&self, handle: &Handle, view: View<'_>) -> Option<NodeRef> {
        // The table has only directories, so finding a file does not drain the feed.
        let id = self.handles.lock().get(handle).copied()?;
        self.settle(view);
        let found = self.kept(id, |directory| {
            let is_it = directory.handle == Some(*handle) && directory.is_there();
            is_it.then(|| Arc::clone(&directory.node))
        });
        let found = found.flatten();
        if found.is_some() {
            self.counts.handles.hit()
        } else {
            self.counts.handles.miss()
        }
        found
    }

    /// Caches the handle of a followed directory.
    fn keep_handle(&self, id: ObjectId, handle: Handle) {
        let is_new = self.kept(id, |directory| directory.handle.replace(handle).is_none());
        if is_new == Some(true) {
            self.handles.lock().insert(handle, id);
            // The directory may have been dropped in between.
            if self.kept(id, |_| ()).is_none() {
                self.handles.lock().remove(&handle);
            }
        }
    }

    /// Prepares a read of a directory, so that the result can be cached.
    fn begin_reading(&self, node: &NodeRef, wait: Wait<'_>) -> Option<AsOf> {
        if let Wait::May(may) = wait
            && self.follow(node, Purpose::Keep)
        {
            self.place(node, may);
        } else {
            self.with(node.id(), Directory::renew_place);
        }
        self.as_of(node)
    }

    /// Reads the attributes of a directory from the store, and caches them if possible.
    fn read_attributes(&self, node: &NodeRef, want: Want, wait: Wait<'_>) -> storage::Result<Attributes> {
        let as_of = self.begin_reading(node, wait);
        let mut attributes = self.pace.of(wait, || node.attributes(want, wait))?;
        self.keep_attributes(node.id(), as_of, &mut attributes, want);
        Ok(attributes)
    }

    /// Caches attributes that were just read, after counting the changes that share their change time.
    fn keep_attributes(&self, id: ObjectId, as_of: Option<AsOf>, attributes: &mut Attributes, read: Want) {
        if attributes.links == 0 {
            self.forget(id);
        } else if let Some(as_of) = as_of {
            let given = self.with(id, |directory| {
                let is_it = directory.observed == as_of.observed;
                is_it.then(|| directory.given_within(attributes.ctime, as_of.serial))
            });
            attributes.changes_within_ctime = given.flatten().unwrap_or(0);
            self.keep(id, as_of, |directory, still| match still {
                Still::All => directory.keep_attributes(*attributes, read),
                Still::Own => directory.keep_guard(attributes),
            });
        }
    }

    /// Reads from the store what decides access to a directory, and caches it if possible.
    fn read_protection(&self, node: &NodeRef, wait: Wait<'_>) -> storage::Result<Protection> {
        let as_of = self.begin_reading(node, wait);
        let mut attributes = self.pace.of(wait, || node.attributes(Want::empty(), wait))?;
        let security = node.security(&attributes, wait)?;
        self.keep_attributes(node.id(), as_of, &mut attributes, Want::empty());
        if let Some(as_of) = as_of {
            self.keep(node.id(), as_of, |directory, _| directory.keep_security(security.clone()));
        }
        Ok(Protection { security, ..Protection::of(&attributes) })
    }
}

/// What a name stands for, as far as it can be cached.
#[derive(Debug)]
pub(crate) enum NameMeaning {
    Absent,
    Directory(NodeRef),
    /// Something other than a directory.
    Other,
}
