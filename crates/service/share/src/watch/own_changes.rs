//! Tells the server's own changes from those of local programs.
//!
//! The observer of directories also sees what the server itself does there, and watchers have been told of that already. So
//! the server's own changes are remembered until the observer has passed them. The server reports a change a moment after
//! making it. So before the observer judges what it has seen, it waits until every call that was in progress then has
//! reported its changes.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use storage::ObjectId;

use super::ChangeAction;

/// Changes that are remembered. Beyond this number the oldest are forgotten, and watchers may be told of them twice.
const TOLD_MAX: usize = 16_384;
/// The observer passes a change within this time, unless the machine is very busy.
const TOLD_FOR: Duration = Duration::from_secs(1);
/// How long the observer waits for calls in progress, at most, and how often it checks.
const CALLS_PATIENCE: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_micros(200);

/// What a change does to a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Come,
    Gone,
    Modified,
}

impl From<ChangeAction> for Effect {
    fn from(action: ChangeAction) -> Self {
        match action {
            ChangeAction::Added | ChangeAction::RenamedTo => Self::Come,
            ChangeAction::Removed | ChangeAction::RenamedFrom => Self::Gone,
            // To the observer, a stream is an attribute of its file.
            ChangeAction::Modified
            | ChangeAction::AddedStream
            | ChangeAction::RemovedStream
            | ChangeAction::ModifiedStream => Self::Modified,
        }
    }
}

#[derive(Debug)]
struct OwnChange {
    at: Instant,
    effect: Effect,
    /// Whether the observer has seen the change. It sees each creation and each removal once.
    seen: bool,
}

#[derive(Debug, Default)]
struct Memory {
    told: HashMap<(ObjectId, Vec<u8>), Vec<OwnChange>>,
    count: usize,
}

/// The directories that are observed.
#[derive(Debug, Default)]
struct Places {
    dirs: HashSet<ObjectId>,
    /// Whether whole trees are observed. New directories there are scanned.
    has_tree: bool,
}

/// The server's own changes. They are kept only while something is observed.
#[derive(Debug, Default)]
pub(super) struct OwnChanges {
    /// Whether anything is observed.
    is_observed: AtomicBool,
    /// Guards the observed places. Changes elsewhere are not remembered.
    places: RwLock<Places>,
    /// Guards the remembered changes.
    memory: Mutex<Memory>,
    /// Index of the counter that new calls use.
    turn: AtomicUsize,
    /// Calls in progress that may change something.
    under_way: [AtomicUsize; 2],
}

/// A call in progress that may change something. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let before = self.0.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "a call that ends has begun");
    }
}

impl OwnChanges {
    /// Sets whether anything is observed from now on.
    pub(super) fn set_observed(&self, is_observed: bool) {
        self.is_observed.store(is_observed, Ordering::SeqCst);
        if !is_observed {
            *self.memory.lock() = Memory::default();
            *self.places.write() = Places::default();
        }
    }

    /// Sets whether a directory is observed from now on.
    pub(super) fn set_place(&self, dir: ObjectId, is_observed: bool) {
        let dirs = &mut self.places.write().dirs;
        if is_observed {
            dirs.insert(dir)
        } else {
            dirs.remove(&dir)
        };
    }

    /// Sets whether trees are observed from now on.
    pub(super) fn set_trees(&self, has_tree: bool) {
        self.places.write().has_tree = has_tree;
    }

    /// Begins a call that may change something. The call reports its changes before it ends.
    pub(super) fn begin(&self) -> Option<UnderWay<'_>> {
        if !self.is_observed.load(Ordering::Relaxed) {
            return None;
        }
        let counter = &self.under_way[self.turn.load(Ordering::SeqCst) & 1];
        counter.fetch_add(1, Ordering::SeqCst);
        Some(UnderWay(counter))
    }

    /// Remembers a change by the server that watchers are told of.
    pub(super) fn tell(&self, dir: ObjectId, name: &[u8], effect: Effect, at: Instant) {
        if !self.is_observed.load(Ordering::Relaxed) {
            return;
        }
        {
            let places = self.places.read();
            if !places.has_tree && !places.dirs.contains(&dir) {
                return;
            }
        }
        let mut memory = self.memory.lock();
        if memory.count >= TOLD_MAX {
            memory.forget(at.checked_sub(TOLD_FOR));
            if memory.count >= TOLD_MAX {
                *memory = Memory::default();
            }
        }
        let told = memory.told.entry((dir, name.to_vec())).or_default();
        match told.last_mut() {
            // A file that is written repeatedly.
            Some(last) if (last.effect, effect) == (Effect::Modified, Effect::Modified) => last.at = at,
            _ => {
                told.push(OwnChange { at, effect, seen: false });
                memory.count += 1;
            }
        }
    }

    /// Waits until every call in progress has ended, and so has reported its changes.
    pub(super) fn settle(&self) {
        let deadline = Instant::now() + CALLS_PATIENCE;
        // Twice, to include calls that began with the counter in use before the previous switch.
        for _ in 0..2 {
            let before = self.turn.fetch_xor(1, Ordering::SeqCst) & 1;
            while self.under_way[before].load(Ordering::SeqCst) > 0 && Instant::now() < deadline {
                std::thread::sleep(LOOK);
            }
        }
    }

    /// Whether the server made an observed change.
    pub(super) fn is_own(&self, dir: ObjectId, name: &[u8], effect: Effect) -> bool {
        let mut memory = self.memory.lock();
        let Some(told) = memory.told.get_mut(&(dir, name.to_vec())) else { return false };
        if effect == Effect::Modified {
            // A modification just after the server created the file is the server's own: it sets the owner, for example. The
            // kernel may merge several modifications into one.
            return true;
        }
        match told.iter_mut().find(|told| told.effect == effect && !told.seen) {
            Some(told) => {
                told.seen = true;
                true
            }
            None => false,
        }
    }

    /// Forgets the changes up to `until`: the observer has passed them.
    pub(super) fn forget(&self, until: Instant) {
        self.memory.lock().forget(Some(until));
    }
}

impl Memory {
    fn forget(&mut self, until: Option<Instant>) {
        let Some(until) = until else { return };
        self.told.retain(|_, told| {
            told.retain(|told| told.at > until);
            !told.is_empty()
        });
        self.count = self.told.values().map(Vec::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const DIR: ObjectId = ObjectId::live(1);

    fn observed() -> OwnChanges {
        let own = OwnChanges::default();
        own.set_observed(true);
        own.set_place(DIR, true);
        own
    }

    #[test]
    fn each_coming_and_going_is_known_once() {
        let (own, now) = (observed(), Instant::now());
        own.tell(DIR, b"a", Effect::Come, now);
        own.tell(DIR, b"a", Effect::Gone, now);
        assert!(!own.is_own(DIR, b"b", Effect::Come) && !own.is_own(ObjectId::live(2), b"a", Effect::Come));
        assert!(own.is_own(DIR, b"a", Effect::Come) && own.is_own(DIR, b"a", Effect::Gone));
        assert!(!own.is_own(DIR, b"a", Effect::Come) && !own.is_own(DIR, b"a", Effect::Gone));
    }

    #[test]
    fn what_the_server_touched_was_modified_by_the_server() {
        let (own, now) = (observed(), Instant::now());
        assert!(!own.is_own(DIR, b"a", Effect::Modified));
        own.tell(DIR, b"a", Effect::Come, now);
        assert!(own.is_own(DIR, b"a", Effect::Come));
        assert!(own.is_own(DIR, b"a", Effect::Modified) && own.is_own(DIR, b"a", Effect::Modified));
        own.forget(now);
        assert!(!own.is_own(DIR, b"a", Effect::Modified));
    }

    #[test]
    fn what_came_after_is_not_forgotten() {
        let (own, now) = (observed(), Instant::now());
        own.tell(DIR, b"a", Effect::Come, now);
        own.tell(DIR, b"b", Effect::Come, now + LOOK);
        own.forget(now);
        assert!(!own.is_own(DIR, b"a", Effect::Come) && own.is_own(DIR, b"b", Effect::Come));
    }

    #[test]
    fn nothing_is_remembered_while_nobody_observes_and_never_too_much() {
        let (own, now) = (observed(), Instant::now());
        for n in 0..TOLD_MAX + 10 {
            own.tell(DIR, &n.to_le_bytes(), Effect::Come, now);
        }
        assert!(own.memory.lock().count <= TOLD_MAX);
        own.set_observed(false);
        assert_eq!(own.memory.lock().count, 0);
        own.tell(DIR, b"a", Effect::Come, now);
        assert!(own.memory.lock().told.is_empty() && own.begin().is_none());
    }

    #[test]
    fn nothing_is_remembered_of_places_that_nobody_observes() {
        const ELSEWHERE: ObjectId = ObjectId::live(2);
        let (own, now) = (observed(), Instant::now());
        own.tell(ELSEWHERE, b"a", Effect::Come, now);
        assert!(!own.is_own(ELSEWHERE, b"a", Effect::Come));
        own.set_trees(true);
        own.tell(ELSEWHERE, b"a", Effect::Come, now);
        assert!(own.is_own(ELSEWHERE, b"a", Effect::Come));
    }

    #[test]
    fn the_observer_waits_for_calls_that_are_under_way_and_for_no_others() {
        let own = Arc::new(observed());
        own.settle();
        for _ in 0..3 {
            let call = own.begin().unwrap();
            let waiting = std::thread::spawn({
                let own = Arc::clone(&own);
                move || {
                    own.settle();
                    own.is_own(DIR, b"a", Effect::Come)
                }
            });
            while own.turn.load(Ordering::SeqCst) & 1 == 0 && !waiting.is_finished() {
                std::thread::yield_now();
            }
            let _later = own.begin();
            own.tell(DIR, b"a", Effect::Come, Instant::now());
            drop(call);
            drop(_later);
            assert!(waiting.join().unwrap());
        }
    }
}
