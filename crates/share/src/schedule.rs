//! Inline while it is fast, on the blocking pool when it may wait.
//!
//! A call that changes a directory or writes data usually returns from memory in microseconds, and handing
//! it to another thread would cost several times that. Sometimes it waits for a journal or for dirty pages
//! to drain, and then it must not hold up the other clients of its shard. So each kind of work runs inline
//! as long as it is quick. After a slow call it is watched: a slow call that gave up the processor of its own
//! accord has waited for something; one that was only pushed off the processor, as on a busy machine, has not.
//! A kind of work that has waited for a tenth of the time goes to the pool for a while. Less than that costs less
//! than the pool: two shards that change one directory wait for each other's turn in the kernel now and then.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};

use crate::cache::Moment;
use crate::{Error, Result, Share, timings};

/// A call that takes longer may have waited for something.
const SLOW: Duration = Duration::from_millis(1);
/// For so long a kind of work is watched after a slow call.
const WATCH: Duration = Duration::from_secs(2);
/// For so long the pool does the work after calls that waited.
const REST: Duration = Duration::from_millis(100);
/// So long calls may wait within [`REST`] before the pool gets them.
const PATIENCE: Duration = Duration::from_millis(10);

/// What kind of work a call is; each kind has a gate of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// Names and attributes.
    Metadata,
    /// Data into the page cache.
    Write,
    /// Surely waits: reads that were not at hand, and everything that goes to stable storage.
    Blocking,
}

/// Whether a kind of work runs inline at present.
#[derive(Debug)]
pub struct Gate {
    started: Instant,
    metadata: Door,
    write: Door,
}

/// Moments in microseconds after [`Gate::started`].
#[derive(Debug, Default)]
struct Door {
    /// Until then the pool does the work.
    pool_until: AtomicU64,
    /// Until then calls are watched.
    watch_until: AtomicU64,
    /// When the first of the waits that are added up began to count.
    waits_since: AtomicU64,
    /// Their length, in microseconds.
    waited: AtomicU64,
}

impl Door {
    /// Calls have waited for `length` more at `now`, in microseconds: whether that is too much by now. A race of two
    /// shards may lose one of the waits; the next one counts.
    fn is_waiting_too_much(&self, now: u64, length: u64) -> bool {
        if now.saturating_sub(self.waits_since.load(Ordering::Relaxed)) > micros(REST) {
            self.waits_since.store(now, Ordering::Relaxed);
            self.waited.store(0, Ordering::Relaxed);
        }
        self.waited.fetch_add(length, Ordering::Relaxed).saturating_add(length) >= micros(PATIENCE)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A call under way.
#[derive(Debug, Clone, Copy)]
struct Begun {
    at: Instant,
    /// How often the thread had waited before, when the call is watched.
    waits: Option<i64>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { started: Instant::now(), metadata: Door::default(), write: Door::default() }
    }
}

impl Gate {
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

    /// Whether this kind of work runs inline now.
    #[must_use]
    pub fn is_inline(&self, work: Work, now: Instant) -> bool {
        self.door(work).is_some_and(|door| door.pool_until.load(Ordering::Relaxed) <= self.since_start(now))
    }

    fn is_watched(&self, work: Work, now: Instant) -> bool {
        self.door(work).is_some_and(|door| door.watch_until.load(Ordering::Relaxed) > self.since_start(now))
    }

    /// A call begins on this thread.
    fn begin(&self, work: Work, at: Instant) -> Begun {
        Begun { at, waits: self.is_watched(work, at).then(voluntary_waits) }
    }

    /// The call has ended, on the same thread.
    fn end(&self, work: Work, begun: Begun) {
        let now = Instant::now();
        let length = now.saturating_duration_since(begun.at);
        if length > SLOW {
            let waited = begun.waits.is_some_and(|before| voluntary_waits() > before);
            self.was_slow(work, now, if waited { length } else { Duration::ZERO });
        }
    }

    /// A slow call has ended, which waited so long for something as far as is known: only of a watched one it is.
    fn was_slow(&self, work: Work, now: Instant, waited: Duration) {
        let Some(door) = self.door(work) else { return };
        door.watch_until.store(self.since_start(now + WATCH), Ordering::Relaxed);
        if !waited.is_zero() && door.is_waiting_too_much(self.since_start(now), micros(waited)) {
            door.pool_until.store(self.since_start(now + REST), Ordering::Relaxed);
        }
    }
}

/// How often this thread has given up the processor of its own accord (ru_nvcsw of getrusage(2)).
fn voluntary_waits() -> i64 {
    getrusage(UsageWho::RUSAGE_THREAD).map_or(0, |usage| usage.voluntary_context_switches())
}

impl Share {
    /// Runs `call` inline or on the blocking pool, as its kind of work goes at present.
    pub(crate) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        work: Work,
        call: impl FnOnce(&Arc<Self>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let now = Instant::now();
        if self.gate.is_inline(work, now) {
            let begun = self.gate.begin(work, now);
            let _moment = Moment::join();
            let _under_way = self.changes.observation().own.begin();
            let result = call(self);
            self.gate.end(work, begun);
            return result;
        }
        let share = Arc::clone(self);
        let job = move || {
            let begun = share.gate.begin(work, Instant::now());
            let queued = begun.at.saturating_duration_since(now);
            let _moment = Moment::join();
            let _under_way = share.changes.observation().own.begin();
            let result = call(&share);
            share.gate.end(work, begun);
            (result, queued)
        };
        match tokio::task::spawn_blocking(job).await {
            Ok((result, queued)) => {
                timings::queued(queued);
                result
            }
            Err(fault) => {
                tracing::error!("a storage call did not return: {fault}");
                Err(Error::Storage(storage::Error::Io(0)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_waited_long_closes_its_own_gate_for_a_while() {
        let gate = Gate::default();
        let t = gate.started + Duration::from_secs(1);
        let tick = Duration::from_micros(1);
        gate.was_slow(Work::Metadata, t, Duration::ZERO);
        assert!(gate.is_inline(Work::Metadata, t), "it may have been pushed aside");
        assert!(gate.is_watched(Work::Metadata, t + WATCH - tick));
        assert!(!gate.is_watched(Work::Metadata, t + WATCH));
        gate.was_slow(Work::Metadata, t, PATIENCE - tick);
        assert!(gate.is_inline(Work::Metadata, t));
        gate.was_slow(Work::Metadata, t, tick);
        assert!(!gate.is_inline(Work::Metadata, t + REST - tick));
        assert!(gate.is_inline(Work::Metadata, t + REST));
        assert!(gate.is_inline(Work::Write, t), "another kind of work");
        assert!(!gate.is_inline(Work::Blocking, t), "what surely waits is never inline");
    }

    #[test]
    fn waits_far_apart_are_not_added_up() {
        let gate = Gate::default();
        for i in 0..100 {
            let t = gate.started + Duration::from_secs(1) + (REST + SLOW) * i;
            gate.was_slow(Work::Write, t, PATIENCE - SLOW);
            assert!(gate.is_inline(Work::Write, t));
        }
    }

    #[test]
    fn sleeping_is_told_from_working() {
        let gate = Gate::default();
        let slow_call = |work: &dyn Fn()| {
            let begun = gate.begin(Work::Write, Instant::now());
            work();
            gate.end(Work::Write, begun);
        };
        let busy = || {
            let begun = Instant::now();
            while begun.elapsed() <= SLOW * 2 {
                std::hint::spin_loop();
            }
        };
        slow_call(&busy);
        assert!(gate.is_watched(Work::Write, Instant::now()));
        slow_call(&busy);
        assert!(gate.is_inline(Work::Write, Instant::now()));
        slow_call(&|| std::thread::sleep(PATIENCE));
        assert!(!gate.is_inline(Work::Write, Instant::now()));
    }
}
