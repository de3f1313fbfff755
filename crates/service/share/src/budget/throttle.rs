//! Holds operations to a budget.
//!
//! An operation over budget waits in its own future. Its shard, its connection and the locks of the share are free
//! meanwhile. While operations wait, one task for each share releases those whose turn has come.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use limits::{Budget, BudgetAnswer, Limits, Operation, Released, Ticket, Time};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

/// The budget of a share, and the operations that wait for it.
#[derive(Debug)]
pub(super) struct Throttle {
    origin: Instant,
    state: Mutex<ThrottleState>,
    /// Wakes the releasing task when it is needed earlier than planned.
    earlier: Notify,
}

/// Guarded as a whole by [`Throttle::state`].
#[derive(Debug)]
struct ThrottleState {
    budget: Budget,
    waiting: HashMap<Ticket, oneshot::Sender<Released>>,
    /// Whether there is a releasing task, and when it checks again.
    pace: Pace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Stopped,
    Until(Time),
}

/// The place of a waiting operation, released when the operation is dropped.
struct Waiting<'a> {
    throttle: &'a Throttle,
    ticket: Ticket,
    client: u64,
    operation: Operation,
    passed: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.passed {
            let now = self.throttle.now();
            let mut state = self.throttle.state.lock();
            state.waiting.remove(&self.ticket);
            state.budget.withdraw(now, self.ticket, self.client, self.operation);
        }
    }
}

/// The releasing task. If it ends early, with the thread that it ran on, no operation is left waiting.
struct Pacer {
    throttle: Arc<Throttle>,
    finished: bool,
}

impl Drop for Pacer {
    fn drop(&mut self) {
        if !self.finished {
            let mut state = self.throttle.state.lock();
            state.pace = Pace::Stopped;
            state.waiting.clear();
        }
    }
}

impl Throttle {
    pub(super) fn new(limits: Limits) -> Self {
        let state = ThrottleState {
            budget: Budget::new(limits, Time::ZERO),
            waiting: HashMap::new(),
            pace: Pace::Stopped,
        };
        Self { origin: Instant::now(), state: Mutex::new(state), earlier: Notify::new() }
    }

    fn now(&self) -> Time {
        self.origin.elapsed()
    }

    /// Waits until an operation may go on. Returns what it waited for, if it had to. Dropping the future frees its place.
    pub(super) async fn pass(self: &Arc<Self>, client: u64, operation: Operation) -> Option<Released> {
        let (mut place, released) = self.ask(client, operation)?;
        // If nothing is left to release the operation, it goes on and its place is freed.
        let released = released.await.ok();
        place.passed = released.is_some();
        released
    }

    fn ask(
        self: &Arc<Self>,
        client: u64,
        operation: Operation,
    ) -> Option<(Waiting<'_>, oneshot::Receiver<Released>)> {
        let mut state = self.state.lock();
        let BudgetAnswer::Wait(ticket) = state.budget.ask(self.now(), client, operation) else { return None };
        let (sender, released) = oneshot::channel();
        state.waiting.insert(ticket, sender);
        self.keep_pace(&mut state);
        drop(state);
        Some((Waiting { throttle: self, ticket, client, operation, passed: false }, released))
    }

    /// Makes sure that the budget is checked when the next operation may go on.
    fn keep_pace(self: &Arc<Self>, state: &mut ThrottleState) {
        let Some(due) = state.budget.due() else { return };
        match state.pace {
            Pace::Stopped => {
                state.pace = Pace::Until(due);
                tokio::spawn(Pacer { throttle: Arc::clone(self), finished: false }.run());
            }
            Pace::Until(planned) if due < planned => {
                state.pace = Pace::Until(due);
                self.earlier.notify_one();
            }
            Pace::Until(_) => {}
        }
    }

    /// Charges an operation without holding it back.
    pub(super) fn charge(&self, client: u64, operation: Operation) {
        self.state.lock().budget.charge(self.now(), client, operation);
    }

    /// Returns budget of an operation that moved `unused` bytes fewer than it asked for.
    pub(super) fn put_back(&self, client: u64, operation: Operation, unused: u64) {
        self.state.lock().budget.put_back(self.now(), client, operation, unused);
    }

    /// Changes the limits, also for operations that are waiting.
    pub(super) fn change(&self, limits: Limits) {
        let mut released = Vec::new();
        let mut state = self.state.lock();
        state.budget.change(self.now(), limits, &mut released);
        self.let_go(state, released);
        self.earlier.notify_one();
    }

    /// Runs `look` on the budget as it is now.
    pub(super) fn look<T>(&self, look: impl FnOnce(&mut Budget, Time) -> T) -> T {
        look(&mut self.state.lock().budget, self.now())
    }

    /// Wakes the released operations, after releasing the lock.
    fn let_go(&self, mut state: parking_lot::MutexGuard<'_, ThrottleState>, released: Vec<Released>) {
        let senders: Vec<_> = released
            .into_iter()
            .filter_map(|released| Some((state.waiting.remove(&released.ticket)?, released)))
            .collect();
        drop(state);
        for (sender, released) in senders {
            let _ = sender.send(released); // who has gone away meanwhile frees its place itself
        }
    }

    /// Releases the operations that may go on. Returns when the next one may.
    fn advance(&self) -> Option<Time> {
        let mut released = Vec::new();
        let mut state = self.state.lock();
        let next = state.budget.advance(self.now(), &mut released);
        state.pace = next.map_or(Pace::Stopped, Pace::Until);
        self.let_go(state, released);
        next
    }
}

impl Pacer {
    async fn run(mut self) {
        while let Some(next) = self.throttle.advance() {
            tokio::select! {
                () = tokio::time::sleep_until((self.throttle.origin + next).into()) => {}
                () = self.throttle.earlier.notified() => {}
            }
        }
        self.finished = true;
    }
}
