//! One limit: what is left of it, and who waits for more.

use crate::burst::Meter;
use crate::fair_queue::{Client, FairQueue};
use crate::{Burst, Ticket, Time};

/// A meter, with those that wait in front of it.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) meter: Meter,
    queue: FairQueue<Ticket>,
    /// For when it is on the schedule: as long as somebody waits.
    pub(crate) due: Option<Time>,
}

impl Gate {
    pub(crate) fn new(meter: Meter) -> Self {
        let queue = FairQueue::new(meter.moment());
        Self { meter, queue, due: None }
    }

    /// The same limit with another rate ([`Meter::change`]).
    pub(crate) fn change(&mut self, rate: u64, burst: Option<Burst>, now: Time) {
        self.meter.change(rate, burst, now);
        self.queue.set_memory(self.meter.moment());
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether the operation passes; else it waits. Nobody overtakes those who wait, except a client that has had less
    /// than its part: it passes at once, on what the others have to wait for then.
    pub(crate) fn ask(&mut self, client: Client, ticket: Ticket, cost: u64) -> bool {
        let is_free = self.queue.is_empty() && self.meter.is_open();
        if is_free || (self.queue.is_behind(client) && self.meter.may_lend()) {
            self.queue.pass(client, cost);
            self.meter.take(cost);
            return true;
        }
        self.queue.push(client, ticket, cost);
        false
    }

    /// An operation that is not held back: what it takes, the client's next ones and the others wait for.
    pub(crate) fn charge(&mut self, client: Client, cost: u64) {
        self.queue.charge(client, cost);
        self.meter.take(cost);
    }

    /// The next that passes, if any can.
    pub(crate) fn release(&mut self) -> Option<Ticket> {
        if !self.meter.is_open() {
            return None;
        }
        let (ticket, cost) = self.queue.pop()?;
        self.meter.take(cost);
        Some(ticket)
    }

    /// Whoever waited waits no more.
    pub(crate) fn remove(&mut self, client: Client, ticket: Ticket) {
        self.queue.remove(client, &ticket);
    }

    /// All that wait.
    pub(crate) fn drain(&mut self) -> Vec<Ticket> {
        self.due = None;
        self.queue.drain()
    }
}
