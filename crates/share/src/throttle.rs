//! Holding operations to a budget: who waits, and who wakes them.
//!
//! An operation over budget waits in a future of its own; its shard, its connection and the locks of the share are free
//! meanwhile. One task for each share, while anybody waits, lets those through whose turn has come.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use limits::{Answer, Budget, Limits, Operation, Released, Ticket, Time};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

/// The budget of a share, and those who wait for it.
#[derive(Debug)]
pub(crate) struct Throttle {
    origin: Instant,
    state: Mutex<State>,
    /// Wakes the task that lets operations through, when it is needed earlier than it thinks.
    earlier: Notify,
}

/// All of it is guarded by [`Throttle::state`].
#[derive(Debug)]
struct State {
    budget: Budget,
    waiting: HashMap<Ticket, oneshot::Sender<Released>>,
    /// Whether there is a task that lets operations through, and when it looks again.
    pace: Pace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Stopped,
    Until(Time),
}

/// The place of an operation that waits: given up when nobody waits for it any more.
struct Place<'a> {
    throttle: &'a Throttle,
    ticket: Ticket,
    client: u64,
    operation: Operation,
    passed: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.passed {
            let now = self.throttle.now();
            let mut state = self.throttle.state.lock();
            state.waiting.remove(&self.ticket);
            state.budget.withdraw(now, self.ticket, self.client, self.operation);
        }
    }
}

/// The task that lets operations through. If it ends before its time, with the thread that it ran on, nobody is left
/// waiting.
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
    pub(crate) fn new(limits: Limits) -> Self {
        let state =
            State { budget: Budget::new(limits, Time::ZERO), waiting: HashMap::new(), pace: Pace::Stopped };
        Self { origin: Instant::now(), state: Mutex::new(state), earlier: Notify::new() }
    }

    fn now(&self) -> Time {
        self.origin.elapsed()
    }

    /// Waits until an operation may go on; what it waited for, if it had to. Dropped, it frees its place.
    pub(crate) async fn pass(self: &Arc<Self>, client: u64, operation: Operation) -> Option<Released> {
        let (mut place, released) = self.ask(client, operation)?;
        // Where nobody is there any more to let it through it goes on, and its place is freed.
        let released = released.await.ok();
        place.passed = released.is_some();
        released
    }

    fn ask(
        self: &Arc<Self>,
        client: u64,
        operation: Operation,
    ) -> Option<(Place<'_>, oneshot::Receiver<Released>)> {
        let mut state = self.state.lock();
        let Answer::Wait(ticket) = state.budget.ask(self.now(), client, operation) else { return None };
        let (sender, released) = oneshot::channel();
        state.waiting.insert(ticket, sender);
        self.keep_pace(&mut state);
        drop(state);
        Some((Place { throttle: self, ticket, client, operation, passed: false }, released))
    }

    /// Sees to it that somebody looks when the next operation may go on.
    fn keep_pace(self: &Arc<Self>, state: &mut State) {
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

    /// An operation that is not held back, but counts.
    pub(crate) fn charge(&self, client: u64, operation: Operation) {
        self.state.lock().budget.charge(self.now(), client, operation);
    }

    /// An operation that went on has moved so many bytes fewer than it asked for.
    pub(crate) fn put_back(&self, client: u64, operation: Operation, unused: u64) {
        self.state.lock().budget.put_back(self.now(), client, operation, unused);
    }

    /// Other limits, for those who wait too.
    pub(crate) fn change(&self, limits: Limits) {
        let mut released = Vec::new();
        let mut state = self.state.lock();
        state.budget.change(self.now(), limits, &mut released);
        self.let_go(state, released);
        self.earlier.notify_one();
    }

    /// Looks at the budget, as it is now.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&mut Budget, Time) -> T) -> T {
        look(&mut self.state.lock().budget, self.now())
    }

    /// Wakes those who may go on, without the lock.
    fn let_go(&self, mut state: parking_lot::MutexGuard<'_, State>, released: Vec<Released>) {
        let senders: Vec<_> = released
            .into_iter()
            .filter_map(|released| Some((state.waiting.remove(&released.ticket)?, released)))
            .collect();
        drop(state);
        for (sender, released) in senders {
            let _ = sender.send(released); // who has gone away meanwhile frees its place itself
        }
    }

    /// Lets through whoever may go on; when the next one may.
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
