//! Records which call to which store each thread is in, so that stores that hold up threads are found.
//!
//! A local store is called on the threads that serve connections while it is quick. It may still stop answering (a disk that
//! stalls, a file system that is frozen), and a call that has begun cannot be moved. So each call is recorded where other
//! threads can see it. That costs three stores to memory and reads no clock: an observer that looks twice sees that a call
//! takes long. A store that holds up a thread is held: only its own threads call it until it answers again.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::Store;

/// A store that keeps a thread waiting for this long is held.
const STORE_PATIENCE: Duration = Duration::from_millis(200);

/// All threads that have called a store. The lock guards the list.
static THREADS: Mutex<Vec<Weak<Slot>>> = Mutex::new(Vec::new());

thread_local! {
    /// The thread's own entry in the list, for others to read. No call reads what it is in.
    static OWN: OnceCell<Arc<Slot>> = const { OnceCell::new() };
}

/// What a thread is doing.
#[derive(Debug)]
struct Slot {
    thread: i32,
    /// Odd while the thread is in a call; a different number for each call.
    turn: AtomicU64,
    /// The place of the store that is called.
    store: AtomicUsize,
}

/// The address of a store in memory, which identifies it while it is called. The number of its share does not: each table of
/// shares in a process counts from one.
fn place(store: &Store) -> usize {
    std::ptr::from_ref(store).addr()
}

impl Slot {
    fn of_this_thread() -> Arc<Self> {
        let thread = nix::unistd::gettid().as_raw();
        let slot = Arc::new(Self { thread, turn: AtomicU64::new(0), store: AtomicUsize::new(0) });
        let mut threads = THREADS.lock();
        threads.retain(|slot| slot.strong_count() > 0);
        threads.push(Arc::downgrade(&slot));
        slot
    }

    /// The call that the thread is in, and the place of the store that it calls.
    fn call(&self) -> Option<(u64, usize)> {
        let turn = self.turn.load(Ordering::Acquire);
        let store = self.store.load(Ordering::Relaxed);
        (turn % 2 == 1).then_some((turn, store))
    }
}

/// While this exists, the thread is in a call to a store.
#[derive(Debug)]
pub(crate) struct Inside {
    /// Whether it is nested in another one.
    is_within: bool,
}

impl Inside {
    /// Begins a call to this store.
    pub(super) fn begin(store: &Store) -> Self {
        OWN.with(|own| {
            let slot = own.get_or_init(Slot::of_this_thread);
            let turn = slot.turn.load(Ordering::Relaxed);
            let is_within = turn % 2 == 1;
            if !is_within {
                slot.store.store(place(store), Ordering::Relaxed);
                slot.turn.store(turn.wrapping_add(1), Ordering::Release);
            }
            Self { is_within }
        })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if self.is_within {
            return;
        }
        // The thread may be ending: then nothing looks at it any more.
        let _ = OWN.try_with(|own| {
            if let Some(slot) = own.get() {
                slot.turn.store(slot.turn.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
            }
        });
    }
}

/// The threads that a store holds up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Held {
    pub(super) since: Instant,
    pub(super) threads: usize,
}

/// Watches over the threads that call stores. Call `look` ten times a second.
#[derive(Debug, Default)]
pub struct StoreWatch {
    /// For each thread: its call at the last look, the start of that call, and how often the thread had waited before.
    seen: HashMap<i32, Seen>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    turn: u64,
    waits: Option<u64>,
    since: Instant,
}

impl StoreWatch {
    /// Finds the stores that hold up threads, and those that no longer do. `waits` returns how often a sleeping thread has
    /// gone to sleep so far. That tells a thread that is still asleep from one that is busy or waits for the processor.
    pub(crate) fn look_at<'a>(
        &mut self,
        stores: impl Iterator<Item = &'a Store>,
        now: Instant,
        waits: impl Fn(i32) -> Option<u64>,
    ) {
        let slots: Vec<Arc<Slot>> = THREADS.lock().iter().filter_map(Weak::upgrade).collect();
        let mut held: HashMap<usize, Held> = HashMap::new();
        let mut seen = HashMap::new();
        for (slot, (turn, store)) in slots.iter().filter_map(|slot| Some((slot, slot.call()?))) {
            let now_seen = Seen { turn, waits: waits(slot.thread), since: now };
            let before = self.seen.get(&slot.thread).filter(|before| before.sleeps_on(&now_seen));
            let since = before.map_or(now, |before| before.since);
            seen.insert(slot.thread, Seen { since, ..now_seen });
            if now.saturating_duration_since(since) >= STORE_PATIENCE {
                let of_store = held.entry(store).or_insert(Held { since, threads: 0 });
                of_store.since = of_store.since.min(since);
                of_store.threads += 1;
            }
        }
        self.seen = seen;
        for store in stores {
            store.hold(held.get(&place(store)).copied());
        }
    }
}

impl Seen {
    fn sleeps_on(&self, now: &Self) -> bool {
        self.turn == now.turn && self.waits.is_some() && self.waits == now.waits
    }
}

impl Store {
    /// Sets whether the store holds up threads.
    fn hold(&self, held: Option<Held>) {
        let before = std::mem::replace(&mut *self.held.lock(), held);
        // The store's own threads may still wait for it after the held-up threads have returned.
        let answers = || self.pool.health().longest.is_none_or(|longest| longest < STORE_PATIENCE);
        if held.is_some() && !self.gate.set_held(true) {
            tracing::error!(share = self.name, "the storage does not answer: a thread waits for it");
        } else if held.is_none() && before.is_none() && self.gate.is_held() && answers() {
            self.gate.set_held(false);
            tracing::info!(share = self.name, "the storage answers again");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use storage::memory::MemoryStore;

    use super::*;
    use crate::Settings;
    use crate::store::Work;

    fn store(name: &str) -> Arc<Store> {
        Arc::new(Store::new(&Settings::new(name), Arc::new(MemoryStore::new()), None).0)
    }

    fn is_inline(store: &Store) -> bool {
        store.inline(Work::Metadata, Instant::now()).is_some()
    }

    #[test]
    fn a_store_that_holds_up_a_thread_is_called_by_its_own_threads() {
        let [stalled, sound, of_another_table] = ["stalled", "sound", "other"].map(store);
        let (entered, begun) = mpsc::channel();
        let (release, over) = mpsc::channel::<()>();
        let called = Arc::clone(&stalled);
        let thread = std::thread::spawn(move || {
            let inside = Inside::begin(&called);
            entered.send(nix::unistd::gettid().as_raw()).unwrap();
            over.recv().unwrap_err();
            drop(inside);
        });
        let waiting = begun.recv().unwrap();
        let (mut watch, mut watch_others) = (StoreWatch::default(), StoreWatch::default());
        let start = Instant::now();
        let mut look = |milliseconds, waits: Option<u64>| {
            let at = start + Duration::from_millis(milliseconds);
            let table = [&*stalled, &*sound].into_iter();
            watch.look_at(table, at, |thread| waits.filter(|_| thread == waiting));
            let others = [&*of_another_table].into_iter();
            watch_others.look_at(others, at, |thread| waits.filter(|_| thread == waiting));
            (is_inline(&stalled), stalled.health().under_way)
        };
        assert_eq!(look(0, Some(7)), (true, 0));
        assert_eq!(look(150, Some(7)), (true, 0));
        assert_eq!(look(199, Some(8)), (true, 0), "it was awake in between");
        assert_eq!(look(300, None), (true, 0), "it is awake");
        assert_eq!(look(400, Some(8)), (true, 0));
        assert_eq!(look(600, Some(8)), (false, 1));
        for not_held in [&sound, &of_another_table] {
            assert!(is_inline(not_held));
        }
        drop(release);
        thread.join().unwrap();
        assert_eq!(look(700, Some(8)), (false, 0));
        assert_eq!(look(800, Some(8)), (true, 0), "it answers again");
    }

    #[test]
    fn calls_within_a_call_are_one() {
        let turn = || OWN.with(|own| own.get().unwrap().turn.load(Ordering::Relaxed));
        let [one, two] = ["one", "two"].map(store);
        let outer = Inside::begin(&one);
        let during = turn();
        drop(Inside::begin(&two));
        assert_eq!(turn(), during);
        drop(outer);
        assert_eq!(turn(), during + 1);
    }
}
