//! Runs the calls to the store that may block, in tasks of the simulation, each after a random time.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use share::{Job, Workers};

use crate::chance::Chance;

/// Calls that wait for a task. All calls come from the thread of the simulation.
pub(crate) struct Slow {
    state: Mutex<State>,
    arrived: tokio::sync::Notify,
}

struct State {
    jobs: VecDeque<Job>,
    chance: Chance,
    /// The longest time that a call takes.
    longest: Duration,
    /// No call begins before this time: the store hangs.
    hangs_until: Duration,
}

impl Slow {
    pub(crate) fn new(chance: Chance, longest: Duration) -> Arc<Self> {
        let state = State { jobs: VecDeque::new(), chance, longest, hangs_until: Duration::ZERO };
        Arc::new(Self { state: Mutex::new(state), arrived: tokio::sync::Notify::new() })
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Makes the store hang for this time, unless it already hangs.
    pub(crate) fn hang(&self, time: Duration) {
        if self.hangs_for().is_none() {
            self.state().hangs_until = crate::machine::elapsed() + time;
        }
    }

    /// Runs the calls in tasks of the current `LocalSet`.
    pub(crate) async fn work(self: Arc<Self>) {
        loop {
            loop {
                let mut state = self.state();
                let Some(job) = state.jobs.pop_front() else { break };
                let longest = state.longest;
                let takes = state.chance.up_to(longest);
                drop(state);
                let this = Arc::clone(&self);
                tokio::task::spawn_local(async move {
                    tokio::time::sleep(takes).await;
                    while let Some(rest) = this.hangs_for() {
                        tokio::time::sleep(rest).await;
                    }
                    job();
                });
            }
            self.arrived.notified().await;
        }
    }

    fn hangs_for(&self) -> Option<Duration> {
        let rest = self.state().hangs_until.saturating_sub(crate::machine::elapsed());
        (!rest.is_zero()).then_some(rest)
    }
}

impl Workers for Slow {
    fn run(&self, job: Job) {
        self.state().jobs.push_back(job);
        self.arrived.notify_one();
    }
}
