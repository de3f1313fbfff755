//! A thread that does what nobody waits for: it settles files some time after they were used, counts all files now and then, and
//! tells how full quotas are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread::Thread;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::Mutex;
use quota::{Account, Standing};
use storage::{MayWait, StoreThread, View};

use super::Quotas;
use super::level::Level;

/// How often the keeper passes by.
const PASS: Duration = Duration::from_secs(1);
/// A file is forgotten after so many passes without a use. It is settled once more then: some file systems free some
/// seconds after a write what they have allocated beyond the end of the file.
const IDLE_PASSES: u32 = 5;
/// Changes by local programs are found after this time at most ...
const COUNT_AGAIN: Duration = Duration::from_secs(600);
/// ... or after so many times the time that a count takes.
const COUNT_SHARE: u32 = 20;
/// After a count that failed.
const TRY_AGAIN: Duration = Duration::from_secs(60);

/// What is known of the keeper.
#[derive(Default)]
pub(super) struct Handle {
    /// Guards the thread, and all that is known of counts.
    state: Mutex<State>,
    /// How often a count was asked for.
    asked: AtomicU64,
    /// How often what is counted became something else, so that a count that had begun is worth nothing.
    overtaken: AtomicU64,
}

#[derive(Default)]
struct State {
    thread: Option<Thread>,
    /// When the last count ended.
    counted: Option<SystemTime>,
    /// When the next count is due, and for how many wishes the last one was.
    due: Option<Instant>,
    answered: u64,
}

impl Handle {
    /// Asks for a count, since other things are counted from now on.
    pub(super) fn count_anew(&self) {
        self.overtaken.fetch_add(1, Ordering::AcqRel);
        self.ask_for_count();
    }

    /// Asks for a count. One that has begun goes on, and another follows.
    pub(super) fn ask_for_count(&self) {
        self.asked.fetch_add(1, Ordering::AcqRel);
        if let Some(thread) = &self.state.lock().thread {
            thread.unpark();
        }
    }

    /// Whether a count was asked for that has not ended.
    pub(super) fn is_asked(&self) -> bool {
        self.state.lock().answered != self.asked.load(Ordering::Acquire)
    }

    /// When the last count ended.
    pub(super) fn counted(&self) -> Option<SystemTime> {
        self.state.lock().counted
    }

    /// There are no quotas any more: the thread ends.
    pub(super) fn reset(&self) {
        let mut state = self.state.lock();
        (state.counted, state.due) = (None, None);
        if let Some(thread) = &state.thread {
            thread.unpark();
        }
    }

    fn is_due(&self) -> bool {
        let state = self.state.lock();
        let is_asked = state.answered != self.asked.load(Ordering::Acquire);
        is_asked || state.due.is_none_or(|due| Instant::now() >= due)
    }
}

/// Starts the keeper unless it is there.
pub(super) fn keep(quotas: &Arc<Quotas>) {
    let mut state = quotas.keeper.state.lock();
    if state.thread.is_some() {
        return;
    }
    let weak = Arc::downgrade(quotas);
    match StoreThread::spawn("quotas", move |thread| keep_all(&weak, thread)) {
        Ok(started) => state.thread = Some(started.thread().clone()),
        Err(e) => tracing::error!(
            share = quotas.name,
            "cannot count what users hold, so quotas hold nobody back: {e}"
        ),
    }
}

fn keep_all(quotas: &Weak<Quotas>, thread: &StoreThread) {
    let mut levels = HashMap::new();
    while let Some(quotas) = quotas.upgrade() {
        {
            let mut state = quotas.keeper.state.lock();
            if !quotas.is_on() {
                state.thread = None;
                return;
            }
        }
        let may = thread.may_wait(View::FRESH);
        quotas.pass(&mut levels, may);
        if quotas.keeper.is_due() {
            quotas.count(&mut levels, may);
            quotas.tell_levels(&mut levels);
        }
        drop(quotas);
        std::thread::park_timeout(PASS);
    }
}

impl Quotas {
    /// Settles files that are not in use, and forgets those that were not used lately.
    fn pass(&self, levels: &mut HashMap<Account, Level>, may: MayWait<'_>) {
        let idle = self.books.lock().idle(IDLE_PASSES);
        for file in idle {
            self.settle(file, may);
            self.books.lock().forget_idle(file, IDLE_PASSES, SystemTime::now());
        }
        self.tell_levels(levels);
    }

    /// Tells of quotas that have become fuller, or have room again. Most have room and had it before.
    fn tell_levels(&self, levels: &mut HashMap<Account, Level>) {
        let notable: Vec<Standing> = {
            let books = self.books.lock();
            if !books.ledger.is_counted() {
                return;
            }
            let is_notable = |of: &Standing| Level::of(of) != Level::Fine || levels.contains_key(&of.account);
            books.ledger.limited().filter(is_notable).collect()
        };
        let places = self.places();
        let mut present = HashMap::new();
        for standing in notable {
            let level = Level::of(&standing);
            let before = levels.get(&standing.account).copied().unwrap_or(Level::Fine);
            if level > before || level == Level::Fine {
                level.tell(&self.name, &standing, &places);
            }
            if level != Level::Fine {
                present.insert(standing.account, level);
            }
        }
        *levels = present;
    }

    /// Counts all files.
    fn count(self: &Arc<Self>, levels: &mut HashMap<Account, Level>, may: MayWait<'_>) {
        let asked = self.keeper.asked.load(Ordering::Acquire);
        let overtaken = self.keeper.overtaken.load(Ordering::Acquire);
        let begun = Instant::now();
        if let Ok(space) = self.storage.space(may) {
            self.block.store(u64::from(space.block), Ordering::Relaxed);
        }
        self.books.lock().begin_count();
        let mut passed = Instant::now();
        let counted = self.walk(
            &mut |may| {
                if passed.elapsed() >= PASS {
                    self.pass(levels, may);
                    passed = Instant::now();
                }
                // The share is still there, and its quotas are the same.
                Arc::strong_count(self) > 1 && self.keeper.overtaken.load(Ordering::Acquire) == overtaken
            },
            may,
        );
        let due_after = match counted {
            Ok(true) => COUNT_AGAIN.max(begun.elapsed().saturating_mul(COUNT_SHARE)),
            // It begins anew, or nobody needs it.
            Ok(false) => return self.books.lock().ledger.abandon_count(),
            Err(e) => {
                tracing::warn!(share = self.name, "cannot count what users hold: {e}");
                TRY_AGAIN
            }
        };
        let now = SystemTime::now();
        if counted.is_ok() {
            self.books.lock().ledger.end_count(now);
        } else {
            self.books.lock().ledger.abandon_count();
        }
        let mut state = self.keeper.state.lock();
        if self.is_on() {
            state.counted = counted.map_or(state.counted, |_| Some(now));
            (state.answered, state.due) = (asked, Some(Instant::now() + due_after));
        }
    }
}
