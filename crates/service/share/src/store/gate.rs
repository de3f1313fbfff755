//! Where calls to a store run: inline while they are fast, on the store's own threads when they may block.
//!
//! All calls to a store that is not known to be local ([`storage::Capabilities::LOCAL`]) run on its threads
//! ([`crate::store::pool`]): the store may stop answering, and a call that has begun cannot be moved. The same holds for a local
//! store while it holds up a thread ([`crate::store::inside`]). The rest of this text is about local stores that answer.
//!
//! A call that changes a directory or writes data usually returns from memory in microseconds. Handing it to another thread
//! would cost several times that. Sometimes such a call waits for a journal or for dirty pages to drain, and must not hold
//! up the other clients of its shard. So each kind of work runs inline while it is quick. After a slow call it is watched: a
//! slow call that gave up the processor voluntarily has waited; one that was preempted, as on a busy machine, has not. A
//! kind of work that has waited for a tenth of the time goes to the threads for a while. Waiting less than that costs less
//! than the threads: two shards that change one directory sometimes wait for each other in the kernel.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use storage::{KnownLocal, Moment, View};

/// A call that takes longer may have waited.
const SLOW: Duration = Duration::from_millis(1);
/// How long a kind of work is watched after a slow call.
const WATCH: Duration = Duration::from_secs(2);
/// How long the threads do the work after calls that waited.
const REST: Duration = Duration::from_millis(100);
/// How long calls may wait within [`REST`] before the threads do the work.
const WAIT_PATIENCE: Duration = Duration::from_millis(10);

/// The kind of work that a call does. Each kind is scheduled separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Names and attributes.
    Metadata,
    /// Data into the page cache.
    Write,
    /// Work that certainly blocks: reads of data that was not in memory, and all writes to stable storage.
    Blocking,
}

/// Decides whether a kind of work runs inline at present.
#[derive(Debug)]
pub(super) struct Gate {
    local: Option<KnownLocal>,
    /// Whether the store has held up a thread and does not answer yet ([`crate::store::inside`]).
    is_held: AtomicBool,
    started: Instant,
    metadata: Door,
    write: Door,
}

/// Times are in microseconds after [`Gate::started`].
#[derive(Debug, Default)]
struct Door {
    /// Until then the store's threads do the work.
    pool_until: AtomicU64,
    /// Until then calls are watched.
    watch_until: AtomicU64,
    /// Start of the period in which waits are added up.
    waits_since: AtomicU64,
    /// Sum of the waits, in microseconds.
    waited: AtomicU64,
}

impl Door {
    /// Adds a wait of `length` that ended at `now`, in microseconds. Returns whether calls wait too much. If two shards
    /// race, one wait may be lost; the next one counts.
    fn is_waiting_too_much(&self, now: u64, length: u64) -> bool {
        if now.saturating_sub(self.waits_since.load(Ordering::Relaxed)) > micros(REST) {
            self.waits_since.store(now, Ordering::Relaxed);
            self.waited.store(0, Ordering::Relaxed);
        }
        self.waited.fetch_add(length, Ordering::Relaxed).saturating_add(length) >= micros(WAIT_PATIENCE)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A call in progress.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    pub(super) at: Instant,
    /// How often the thread had waited before, if the call is watched.
    waits: Option<i64>,
}

impl Gate {
    /// Creates the gate of a store.
    pub(super) fn new(local: Option<KnownLocal>) -> Self {
        Self {
            local,
            is_held: AtomicBool::new(false),
            started: Instant::now(),
            metadata: Door::default(),
            write: Door::default(),
        }
    }

    /// The store, if any work may run inline: it is local, and answers.
    pub(super) fn near(&self) -> Option<KnownLocal> {
        self.local.filter(|_| !self.is_held())
    }

    /// Whether any work may run inline.
    pub(super) fn is_near(&self) -> bool {
        self.near().is_some()
    }

    pub(super) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Relaxed)
    }

    /// Sets whether the store has stopped answering. Returns the previous value.
    pub(super) fn set_held(&self, held: bool) -> bool {
        self.is_held.swap(held, Ordering::Relaxed)
    }

    fn door(&self, work: Work) -> Option<&Door> {
        match work {
            Work::Metadata => Some(&self.metadata),
            Work::Write => Some(&self.write),
            Work::Blocking => None,
        }
    }

    fn since_start(&self, now: Instant) -> u64 {
        micros(now.saturating_duration_since(self.started))
    }

    /// The store, if this kind of work runs inline now.
    pub(super) fn inline(&self, work: Work, now: Instant) -> Option<KnownLocal> {
        let is_open = |door: &Door| door.pool_until.load(Ordering::Relaxed) <= self.since_start(now);
        self.near().filter(|_| self.door(work).is_some_and(is_open))
    }

    /// Has the threads do this kind of work from now on.
    #[cfg(test)]
    pub(super) fn rest_for_ever(&self, work: Work) {
        if let Some(door) = self.door(work) {
            door.pool_until.store(u64::MAX, Ordering::Relaxed);
        }
    }

    fn is_watched(&self, work: Work, now: Instant) -> bool {
        self.door(work).is_some_and(|door| door.watch_until.load(Ordering::Relaxed) > self.since_start(now))
    }

    /// Begins a call on this thread.
    pub(super) fn begin(&self, work: Work, at: Instant) -> Begun {
        Begun { at, waits: self.is_watched(work, at).then(voluntary_waits) }
    }

    /// Ends the call, on the same thread.
    pub(super) fn end(&self, work: Work, begun: Begun) {
        let now = Instant::now();
        let length = now.saturating_duration_since(begun.at);
        if length > SLOW {
            let waited = begun.waits.is_some_and(|before| voluntary_waits() > before);
            self.was_slow(work, now, if waited { length } else { Duration::ZERO });
        }
    }

    /// Follows the end of a slow call that waited this long. The wait is known only for a watched call.
    fn was_slow(&self, work: Work, now: Instant, waited: Duration) {
        let Some(door) = self.door(work) else { return };
        door.watch_until.store(self.since_start(now + WATCH), Ordering::Relaxed);
        if !waited.is_zero() && door.is_waiting_too_much(self.since_start(now), micros(waited)) {
            door.pool_until.store(self.since_start(now + REST), Ordering::Relaxed);
        }
    }
}

/// How often this thread has given up the processor voluntarily (ru_nvcsw of getrusage(2)).
fn voluntary_waits() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.voluntary_context_switches())
}

/// Runs work of which all answers are as of one moment: that of `view`, or one of its own.
pub(super) fn in_one_moment<T>(view: View<'_>, work: impl FnOnce(View<'_>) -> T) -> T {
    if view.is_one_moment() {
        return work(view);
    }
    let moment = Moment::default();
    moment.during(|| work(View::of(&moment)))
}

#[cfg(test)]
mod tests {
    use storage::memory::MemoryStore;

    use super::*;

    fn is_inline(gate: &Gate, work: Work, now: Instant) -> bool {
        gate.inline(work, now).is_some()
    }

    #[test]
    fn work_has_a_moment_of_its_own_or_shares_that_of_its_request() {
        let moment = Moment::default();
        let settled_by = |view: View<'_>| {
            in_one_moment(view, |view| {
                let was_settled = view.is_settled(7);
                view.settle(7);
                was_settled
            })
        };
        assert!(!settled_by(View::of(&moment)) && !settled_by(View::of(&moment)), "no request is polled");
        moment.during(|| {
            assert!(!settled_by(View::of(&moment)));
            assert!(settled_by(View::of(&moment)));
            assert!(!settled_by(View::FRESH));
        });
    }

    #[test]
    fn what_lets_a_store_wait_on_a_shard_is_there_while_a_local_store_answers() {
        let gate = Gate::new(KnownLocal::of(&MemoryStore::new()));
        let now = gate.started + Duration::from_secs(1);
        assert!(gate.near().is_some() && gate.inline(Work::Metadata, now).is_some());
        gate.set_held(true);
        assert!(gate.near().is_none() && gate.inline(Work::Metadata, now).is_none());
        assert!(Gate::new(None).near().is_none());
    }

    #[test]
    fn a_call_that_waited_long_closes_its_own_gate_for_a_while() {
        let gate = Gate::new(KnownLocal::of(&MemoryStore::new()));
        let t = gate.started + Duration::from_secs(1);
        let tick = Duration::from_micros(1);
        gate.was_slow(Work::Metadata, t, Duration::ZERO);
        assert!(is_inline(&gate, Work::Metadata, t), "it may have been pushed aside");
        assert!(gate.is_watched(Work::Metadata, t + WATCH - tick));
        assert!(!gate.is_watched(Work::Metadata, t + WATCH));
        gate.was_slow(Work::Metadata, t, WAIT_PATIENCE - tick);
        assert!(is_inline(&gate, Work::Metadata, t));
        gate.was_slow(Work::Metadata, t, tick);
        assert!(!is_inline(&gate, Work::Metadata, t + REST - tick));
        assert!(is_inline(&gate, Work::Metadata, t + REST));
        assert!(is_inline(&gate, Work::Write, t), "another kind of work");
        assert!(!is_inline(&gate, Work::Blocking, t), "what surely waits is never inline");
    }

    #[test]
    fn waits_far_apart_are_not_added_up() {
        let gate = Gate::new(KnownLocal::of(&MemoryStore::new()));
        for i in 0..100 {
            let t = gate.started + Duration::from_secs(1) + (REST + SLOW) * i;
            gate.was_slow(Work::Write, t, WAIT_PATIENCE - SLOW);
            assert!(is_inline(&gate, Work::Write, t));
        }
    }

    #[test]
    fn a_store_that_may_stop_answering_is_never_called_inline() {
        let gate = Gate::new(None);
        for work in [Work::Metadata, Work::Write, Work::Blocking] {
            assert!(!is_inline(&gate, work, gate.started + Duration::from_secs(1)));
        }
    }

    #[test]
    fn sleeping_is_told_from_working() {
        let before = voluntary_waits();
        let spun = (0..1_000_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
        assert_eq!(voluntary_waits(), before, "{spun}");
        std::thread::sleep(SLOW);
        assert!(voluntary_waits() > before);
    }

    #[test]
    fn only_a_watched_call_counts_as_one_that_has_waited() {
        let gate = Gate::new(KnownLocal::of(&MemoryStore::new()));
        let begun = gate.begin(Work::Write, Instant::now());
        assert_eq!(begun.waits, None);
        // It is watched for as long as this test runs.
        gate.write.watch_until.store(u64::MAX, Ordering::Relaxed);
        let begun = gate.begin(Work::Write, Instant::now());
        std::thread::sleep(WAIT_PATIENCE);
        gate.end(Work::Write, begun);
        assert!(gate.write.pool_until.load(Ordering::Relaxed) > 0, "it has waited too much");
    }
}
