//! The transfers that go on, and what became of the last.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use replica::{Converged, Progress};
use share::folded_name;

use super::walks::Walks;

/// Before a transfer that has failed is begun again: at first, and each time it fails again twice as long.
const RETRY: Duration = Duration::from_secs(2);
/// How long a transfer may take to stop: one call to a storage. All that stop at the same time have this time together.
const STOPS_WITHIN: Duration = Duration::from_secs(60);

/// What is known of all replicas since the server started.
#[derive(Debug, Default)]
pub(crate) struct Replications {
    /// Held while a replica is made, broken off or ended, or a transfer is begun. It guards no data.
    pub(crate) orders: Mutex<()>,
    /// What other servers are told for replicas of shares here.
    pub(crate) walks: Walks,
    /// Guards itself alone: by folded name of the share.
    known: Mutex<HashMap<String, Arc<Known>>>,
}

/// What is known of one replica.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// Guards itself alone.
    now: Mutex<Now>,
    received: AtomicU64,
}

#[derive(Debug, Default)]
struct Now {
    /// The transfer that goes on, or has just ended.
    progress: Arc<Progress>,
    thread: Option<JoinHandle<()>>,
    is_running: bool,
    /// When the next is due; None: at once.
    due: Option<Instant>,
    failures: u64,
    failed_in_a_row: u32,
    problem: Option<String>,
}

/// How a replica is.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    pub(crate) is_running: bool,
    pub(crate) failures: u64,
    pub(crate) problem: Option<String>,
    pub(crate) figures: Converged,
    pub(crate) received: u64,
}

impl Replications {
    pub(crate) fn of(&self, share: &str) -> Arc<Known> {
        Arc::clone(self.known.lock().entry(folded_name(share)).or_default())
    }

    /// Has the transfer to a replica stop, and waits for that. Whether it has.
    pub(crate) fn stop(&self, share: &str) -> bool {
        let known = self.of(share);
        known.now.lock().progress.stop();
        known.join(Instant::now() + STOPS_WITHIN)
    }

    /// Forgets what is known of a replica.
    pub(crate) fn forget(&self, share: &str) {
        self.known.lock().remove(&folded_name(share));
    }

    /// Has all transfers stop, and waits for that.
    pub(crate) fn stop_all(&self) {
        let all: Vec<_> = self.known.lock().values().cloned().collect();
        all.iter().for_each(|known| known.now.lock().progress.stop());
        let until = Instant::now() + STOPS_WITHIN;
        for known in all {
            known.join(until);
        }
    }
}

impl Known {
    pub(crate) fn seen(&self) -> Seen {
        let now = self.now.lock();
        let figures = now.progress.figures();
        Seen {
            is_running: now.is_running,
            failures: now.failures,
            problem: now.problem.clone(),
            figures,
            received: self.received.load(Ordering::Relaxed) + if now.is_running { figures.bytes } else { 0 },
        }
    }

    /// Whether a transfer is to be begun.
    pub(crate) fn is_due(&self, at: Instant) -> bool {
        let now = self.now.lock();
        !now.is_running && now.due.is_none_or(|due| due <= at)
    }

    /// Has a transfer begun as soon as can be.
    pub(crate) fn hurry(&self) {
        let mut now = self.now.lock();
        (now.due, now.failed_in_a_row) = (None, 0);
    }

    /// Forgets what has failed before, because the replica has another state now.
    pub(crate) fn starts_anew(&self) {
        self.hurry();
        self.now.lock().problem = None;
    }

    /// Notes that a transfer begins.
    pub(crate) fn begins(&self) -> Arc<Progress> {
        let mut now = self.now.lock();
        (now.is_running, now.progress) = (true, Arc::default());
        Arc::clone(&now.progress)
    }

    pub(crate) fn runs_on(&self, thread: JoinHandle<()>) {
        self.now.lock().thread = Some(thread);
    }

    /// Notes how a transfer has ended: why it has failed, or None. `every`: from one to the next.
    pub(crate) fn ended(&self, problem: Option<String>, begun: Instant, every: Duration) {
        let mut now = self.now.lock();
        now.is_running = false;
        self.received.fetch_add(now.progress.figures().bytes, Ordering::Relaxed);
        match &problem {
            None => (now.failed_in_a_row, now.due) = (0, Some(begun + every)),
            Some(_) => {
                let pause = RETRY.saturating_mul(1 << now.failed_in_a_row.min(16)).min(every);
                now.failed_in_a_row = now.failed_in_a_row.saturating_add(1);
                now.failures += 1;
                now.due = Some(Instant::now() + pause);
            }
        }
        now.problem = problem;
    }

    /// Notes that a transfer was stopped.
    pub(crate) fn stopped(&self) {
        self.now.lock().is_running = false;
    }

    fn join(&self, until: Instant) -> bool {
        let thread = self.now.lock().thread.take();
        let Some(thread) = thread else { return true };
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        if !thread.is_finished() {
            self.now.lock().thread = Some(thread);
            return false;
        }
        if thread.join().is_err() {
            tracing::error!("a thread that replicates has failed");
            self.now.lock().is_running = false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_is_tried_again_later_and_later() {
        let (all, every, at) = (Replications::default(), Duration::from_secs(600), Instant::now());
        let known = all.of("Data");
        assert!(known.is_due(at) && all.of("dATA").is_due(at));
        let _progress = known.begins();
        assert!(!known.is_due(at) && known.seen().is_running);
        known.ended(Some("no way".to_owned()), at, every);
        assert!(!known.is_due(at), "not at once");
        assert_eq!((known.seen().failures, known.seen().problem.as_deref()), (1, Some("no way")));
        known.hurry();
        assert!(known.is_due(at) && known.seen().problem.is_some());
        known.starts_anew();
        assert!(known.is_due(at) && known.seen().problem.is_none());
        let _progress = known.begins();
        known.ended(None, at, every);
        assert!(!known.is_due(at) && known.seen().problem.is_none());
        assert!(all.stop("data"));
    }
}
