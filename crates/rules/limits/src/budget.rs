//! What is left of a share's budget, and which operation may go on when.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use crate::burst::Meter;
use crate::gate::Gate;
use crate::{Counted, Limit, Limits, Scope, Time};

/// Gates of single files and clients are swept for those that no longer matter when there are more of them than this,
/// and more than twice as many as after the last sweep.
const SWEEP_AT: usize = 256;

/// What a client wants to do. The caller numbers the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Read data.
    Read {
        /// The number of the file.
        file: u64,
        /// Bytes to read.
        bytes: u64,
    },
    /// Write data.
    Write {
        /// The number of the file.
        file: u64,
        /// Bytes to write.
        bytes: u64,
    },
    /// Anything that concerns names and attributes.
    Metadata,
}

/// Identifies an operation that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// Whether an operation may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum BudgetAnswer {
    /// The operation may go on.
    Go,
    /// The operation has to wait until its ticket is released.
    Wait(Ticket),
}

/// An operation that has waited and may go on now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Released {
    /// The ticket of the operation.
    pub ticket: Ticket,
    /// How long the operation has waited.
    pub waited: Duration,
    /// The limit for which the operation has waited longest.
    pub limit: Limit,
}

/// How many operations have waited for a limit, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Waits {
    /// Operations that waited.
    pub operations: u64,
    /// How long they waited, all together.
    pub time: Duration,
}

/// Identifies a gate: the limit, and the number of the client or file; 0 for the whole share.
type Key = (Limit, u64);

#[derive(Debug)]
struct Waiting {
    client: u64,
    operation: Operation,
    /// Index in [`Limit::ALL`] of the limit that the operation waits for. It has passed all earlier limits.
    stage: usize,
    begun: Time,
    since: Time,
    longest: (Duration, Limit),
}

/// What is left of a share's budget. The caller keeps it behind one lock; `now` must never decrease.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    share: HashMap<Limit, Gate>,
    others: HashMap<Key, Gate>,
    sweep_at: usize,
    waiting: HashMap<Ticket, Waiting>,
    /// When each gate that has operations waiting lets the next one through.
    schedule: BTreeSet<(Time, Key)>,
    next: u64,
    waits: HashMap<Limit, Waits>,
}

/// The number of the gate, and how much of the limit an operation takes; None when the limit does not apply to the
/// operation.
fn cost(limits: &Limits, limit: Limit, client: u64, operation: Operation) -> Option<(Key, u64)> {
    limits.rate(limit)?;
    let (file, bytes) = match operation {
        Operation::Read { file, bytes } | Operation::Write { file, bytes } => (Some(file), bytes),
        Operation::Metadata => (None, 0),
    };
    let operations = limits.operations(bytes);
    let of = match limit.scope() {
        Scope::Share => 0,
        Scope::Client => client,
        Scope::File => file?,
    };
    let cost = match limit.counted() {
        Counted::Operations => operations,
        Counted::MetadataOperations => u64::from(file.is_none()),
        Counted::BytesRead if !matches!(operation, Operation::Read { .. }) => 0,
        Counted::BytesWritten if !matches!(operation, Operation::Write { .. }) => 0,
        Counted::Bytes | Counted::BytesRead | Counted::BytesWritten => bytes,
    };
    (cost > 0).then_some(((limit, of), cost))
}

impl Budget {
    /// A budget in which everything is full.
    #[must_use]
    pub fn new(limits: Limits, now: Time) -> Self {
        let mut budget = Self {
            limits: Limits::NONE,
            share: HashMap::new(),
            others: HashMap::new(),
            sweep_at: SWEEP_AT,
            waiting: HashMap::new(),
            schedule: BTreeSet::new(),
            next: 0,
            waits: HashMap::new(),
        };
        budget.change(now, limits, &mut Vec::new());
        budget
    }

    /// The limits to which operations are held.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether an operation of a client may go on now. An operation that has to wait must be withdrawn
    /// ([`Budget::withdraw`]) when its caller no longer waits for it.
    pub fn ask(&mut self, now: Time, client: u64, operation: Operation) -> BudgetAnswer {
        self.settle(now);
        let ticket = Ticket(self.next);
        self.next += 1;
        let Some(stage) = self.pass(now, ticket, client, operation, 0) else { return BudgetAnswer::Go };
        let longest = (Duration::ZERO, Limit::ALL[stage]);
        let waiting = Waiting { client, operation, stage, begun: now, since: now, longest };
        self.waiting.insert(ticket, waiting);
        BudgetAnswer::Wait(ticket)
    }

    /// Counts an operation that is not held back. Later operations, of this client and of others, wait for what it
    /// takes.
    pub fn charge(&mut self, now: Time, client: u64, operation: Operation) {
        self.settle(now);
        for (key, cost) in self.costs(client, operation) {
            self.gate(now, key).charge(client, cost);
        }
    }

    /// An operation that went on has moved `unused` bytes fewer than it asked for.
    pub fn put_back(&mut self, now: Time, client: u64, operation: Operation, unused: u64) {
        self.settle(now);
        let used = match operation {
            Operation::Read { file, bytes } => Operation::Read { file, bytes: bytes.saturating_sub(unused) },
            Operation::Write { file, bytes } => {
                Operation::Write { file, bytes: bytes.saturating_sub(unused) }
            }
            Operation::Metadata => return,
        };
        let used: HashMap<Key, u64> = self.costs(client, used).into_iter().collect();
        for (key, cost) in self.costs(client, operation) {
            let cost = cost - used.get(&key).copied().unwrap_or(0).min(cost);
            self.gate(now, key).meter.put_back(cost);
        }
    }

    /// An operation is not carried out: it frees its place and gives back what it has taken. This also holds after its
    /// release.
    pub fn withdraw(&mut self, now: Time, ticket: Ticket, client: u64, operation: Operation) {
        self.settle(now);
        let stage = match self.waiting.remove(&ticket) {
            Some(waiting) => waiting.stage,
            None => Limit::ALL.len(),
        };
        for (index, limit) in Limit::ALL.iter().enumerate().take(stage + 1) {
            let Some((key, tokens)) = cost(&self.limits, *limit, client, operation) else { continue };
            if index < stage {
                self.gate(now, key).meter.put_back(tokens);
            } else {
                self.gate(now, key).remove(client, ticket);
                self.plan_gate(key);
            }
        }
    }

    /// Releases the operations that may go on by now. Returns when to call this again, if any operation still waits.
    pub fn advance(&mut self, now: Time, released: &mut Vec<Released>) -> Option<Time> {
        self.settle(now);
        while let Some((due, key)) = self.schedule.first().copied() {
            if due > now {
                return Some(due);
            }
            let gate = self.gate(now, key);
            match gate.release() {
                Some(ticket) => self.go_on(now, ticket, released),
                None => self.plan_gate(key),
            }
            if self.gate_of(key).is_some_and(Gate::is_empty) {
                self.plan_gate(key);
            }
        }
        None
    }

    /// When to call [`Budget::advance`] next, if any operation waits.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        self.schedule.first().map(|(due, _)| *due)
    }

    /// Changes the limits. Operations that wait go on waiting under the new limits. Savings and debts remain as far as
    /// they fit.
    pub fn change(&mut self, now: Time, limits: Limits, released: &mut Vec<Released>) {
        self.settle(now);
        let gates = self.share.values_mut().chain(self.others.values_mut());
        let mut tickets: Vec<Ticket> = gates.flat_map(Gate::drain).collect();
        tickets.sort_unstable();
        self.schedule.clear();
        self.limits = limits;
        let limits = &self.limits;
        self.share.retain(|limit, _| limits.rate(*limit).is_some());
        self.others.retain(|(limit, _), _| limits.rate(*limit).is_some());
        for (limit, gate) in &mut self.share {
            let burst = limits.burst.filter(|_| *limit == Limit::Iops);
            gate.change(limits.rate(*limit).unwrap_or(1), burst, now);
        }
        for ((limit, _), gate) in &mut self.others {
            gate.change(limits.rate(*limit).unwrap_or(1), None, now);
        }
        if self.limits.iops.is_some() {
            self.gate(now, (Limit::Iops, 0)); // its credits count from the first moment on
        }
        for ticket in tickets {
            self.try_again(now, ticket, released);
        }
    }

    /// Burst credits that are left, for display and to be kept over a restart.
    pub fn credits(&mut self, now: Time) -> Option<u64> {
        self.settle(now);
        self.share.get(&Limit::Iops)?.meter.credits()
    }

    /// Sets the credits that were left before a restart. None accrue while the server does not run.
    pub fn set_credits(&mut self, left: u64) {
        if let Some(gate) = self.share.get_mut(&Limit::Iops) {
            gate.meter.set_credits(left);
        }
    }

    /// How many operations wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// What operations are waiting for.
    #[must_use]
    pub fn throttled(&self) -> Vec<Limit> {
        let stages: BTreeSet<usize> = self.waiting.values().map(|waiting| waiting.stage).collect();
        stages.into_iter().map(|stage| Limit::ALL[stage]).collect()
    }

    /// How many operations have waited for a limit so far, and how long.
    #[must_use]
    pub fn waits(&self, limit: Limit) -> Waits {
        self.waits.get(&limit).copied().unwrap_or_default()
    }

    /// Adds the credits for the time that has passed, if no operation was held back in it. Must be called before
    /// anything changes that.
    fn settle(&mut self, now: Time) {
        let accrues = self.waiting.is_empty();
        if let Some(gate) = self.share.get_mut(&Limit::Iops) {
            gate.meter.refill(now, accrues);
        }
    }

    fn costs(&self, client: u64, operation: Operation) -> Vec<(Key, u64)> {
        Limit::ALL.iter().filter_map(|limit| cost(&self.limits, *limit, client, operation)).collect()
    }

    fn gate_of(&self, key: Key) -> Option<&Gate> {
        if key.0.scope() == Scope::Share { self.share.get(&key.0) } else { self.others.get(&key) }
    }

    /// The gate, refilled up to now.
    fn gate(&mut self, now: Time, key: Key) -> &mut Gate {
        let (limit, _) = key;
        let rate = self.limits.rate(limit).unwrap_or(1);
        let burst = self.limits.burst.filter(|_| limit == Limit::Iops);
        let new = || Gate::new(Meter::new(rate, burst, now));
        let accrues = self.waiting.is_empty();
        let gate = if limit.scope() == Scope::Share {
            self.share.entry(limit).or_insert_with(new)
        } else {
            if self.others.len() >= self.sweep_at && !self.others.contains_key(&key) {
                self.others.retain(|_, gate| {
                    gate.meter.refill(now, false);
                    !gate.is_empty() || !gate.meter.is_full()
                });
                self.sweep_at = (2 * self.others.len()).max(SWEEP_AT);
            }
            self.others.entry(key).or_insert_with(new)
        };
        gate.meter.refill(now, accrues);
        gate
    }

    /// Passes the gates from this stage on. Returns the stage where the operation waits, if any.
    fn pass(
        &mut self,
        now: Time,
        ticket: Ticket,
        client: u64,
        operation: Operation,
        from: usize,
    ) -> Option<usize> {
        for (stage, limit) in Limit::ALL.iter().enumerate().skip(from) {
            let Some((key, tokens)) = cost(&self.limits, *limit, client, operation) else { continue };
            if !self.gate(now, key).ask(client, ticket, tokens) {
                self.plan_gate(key);
                return Some(stage);
            }
        }
        None
    }

    /// An operation has passed the gate at which it waited.
    fn go_on(&mut self, now: Time, ticket: Ticket, released: &mut Vec<Released>) {
        let Some(waiting) = self.waiting.get_mut(&ticket) else { return };
        let (limit, waited) = (Limit::ALL[waiting.stage], now.saturating_sub(waiting.since));
        waiting.since = now;
        if waited >= waiting.longest.0 {
            waiting.longest = (waited, limit);
        }
        let waits = self.waits.entry(limit).or_default();
        waits.operations += 1;
        waits.time += waited;
        waiting.stage += 1;
        self.try_again(now, ticket, released);
    }

    fn try_again(&mut self, now: Time, ticket: Ticket, released: &mut Vec<Released>) {
        let Some(waiting) = self.waiting.get(&ticket) else { return };
        let (client, operation, stage) = (waiting.client, waiting.operation, waiting.stage);
        match self.pass(now, ticket, client, operation, stage) {
            Some(stage) => {
                if let Some(waiting) = self.waiting.get_mut(&ticket) {
                    waiting.stage = stage;
                }
            }
            None => {
                if let Some(waiting) = self.waiting.remove(&ticket) {
                    let waited = now.saturating_sub(waiting.begun);
                    released.push(Released { ticket, waited, limit: waiting.longest.1 });
                }
            }
        }
    }

    /// Puts a gate on the schedule, or removes it.
    fn plan_gate(&mut self, key: Key) {
        let gate = if key.0.scope() == Scope::Share {
            self.share.get_mut(&key.0)
        } else {
            self.others.get_mut(&key)
        };
        let Some(gate) = gate else { return };
        let due = (!gate.is_empty()).then(|| gate.meter.opens());
        if gate.due == due {
            return;
        }
        if let Some(before) = gate.due {
            self.schedule.remove(&(before, key));
        }
        gate.due = due;
        if let Some(due) = due {
            self.schedule.insert((due, key));
        }
    }
}

#[cfg(test)]
mod tests;
