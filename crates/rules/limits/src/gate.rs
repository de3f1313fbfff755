//! One limit: what is left of it, and which operations wait for more.

use crate::burst::Meter;
use crate::fair_queue::{Client, FairQueue};
use crate::{Burst, Ticket, Time};

/// A meter, with the operations that wait for it.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) meter: Meter,
    queue: FairQueue<Ticket>,
    /// The time under which the gate is on the schedule; None while no operation waits.
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

    /// Whether the operation passes; if not, it waits. Operations do not overtake those that wait, with one exception:
    /// a client that has had less than its fair share passes at once, and the others then wait for what it takes.
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

    /// Counts an operation that is not held back. Later operations, of this client and of others, wait for what it
    /// takes.
    pub(crate) fn charge(&mut self, client: Client, cost: u64) {
        self.queue.charge(client, cost);
        self.meter.take(cost);
    }

    /// Takes the next operation that passes, if one can.
    pub(crate) fn release(&mut self) -> Option<Ticket> {
        if !self.meter.is_open() {
            return None;
        }
        let (ticket, cost) = self.queue.pop()?;
        self.meter.take(cost);
        Some(ticket)
    }

    /// An operation no longer waits.
    pub(crate) fn remove(&mut self, client: Client, ticket: Ticket) {
        self.queue.remove(client, &ticket);
    }

    /// Takes all operations that wait.
    pub(crate) fn drain(&mut self) -> Vec<Ticket> {
        self.due = None;
        self.queue.drain()
    }
}
