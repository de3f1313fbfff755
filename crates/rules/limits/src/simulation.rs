//! What a plan would have done to operations that arrived at known times.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Budget, BudgetAnswer, Limit, Limits, Operation, Released, Time, Waits};

/// A budget to which operations arrive at given times, whether or not earlier ones still wait. (A client that waits for
/// its answers would have sent later.)
#[derive(Debug)]
pub struct Simulation {
    budget: Budget,
    released: Vec<Released>,
    waits: Vec<Duration>,
    operations: u64,
    last: Time,
    ended: Time,
    by_limit: BTreeMap<Limit, Waits>,
    credits: Option<Credits>,
}

/// Burst credits over the course of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credits {
    /// Credits at the start.
    pub first: u64,
    /// The lowest number of credits.
    pub least: u64,
    /// Credits at the end.
    pub last: u64,
    /// When no credits were left for the first time.
    pub gone: Option<Time>,
}

/// The result of a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulationOutcome {
    /// Operations that arrived.
    pub operations: u64,
    /// How long those operations waited that had to wait, in ascending order.
    pub waits: Vec<Duration>,
    /// For each limit, the operations that waited longest for this limit. Limits without any are left out.
    pub by_limit: Vec<(Limit, Waits)>,
    /// When the last operation arrived.
    pub came: Time,
    /// When the last operation went on.
    pub went: Time,
    /// None if the plan has no bursts.
    pub credits: Option<Credits>,
}

impl SimulationOutcome {
    /// The wait that this fraction of all operations does not exceed, including the operations that did not wait.
    #[must_use]
    pub fn percentile(&self, per_mille: u64) -> Duration {
        let rank = self.operations.saturating_mul(per_mille).div_ceil(1000).max(1);
        let at_once = self.operations - self.waits.len() as u64;
        let index = rank.checked_sub(at_once + 1).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| self.waits.get(index)).copied().unwrap_or_default()
    }
}

impl Simulation {
    /// Starts with everything full, or with this many burst credits.
    #[must_use]
    pub fn new(limits: Limits, credits: Option<u64>) -> Self {
        let mut budget = Budget::new(limits, Time::ZERO);
        if let Some(credits) = credits {
            budget.set_credits(credits);
        }
        let first = budget.credits(Time::ZERO);
        let credits = first.map(|first| Credits { first, least: first, last: first, gone: None });
        Self {
            budget,
            released: Vec::new(),
            waits: Vec::new(),
            operations: 0,
            last: Time::ZERO,
            ended: Time::ZERO,
            by_limit: BTreeMap::new(),
            credits,
        }
    }

    /// An operation arrives at this time, which is no earlier than the time of the previous one. `waits`: whether the
    /// operation may be held back; if not, it only counts.
    pub fn come(&mut self, now: Time, client: u64, operation: Operation, waits: bool) {
        self.go_on_until(Some(now));
        (self.last, self.ended) = (now, self.ended.max(now));
        self.operations += 1;
        if waits {
            // An operation that has to wait is counted when it is released.
            let (BudgetAnswer::Go | BudgetAnswer::Wait(_)) = self.budget.ask(now, client, operation);
        } else {
            self.budget.charge(now, client, operation);
        }
        self.look_at_credits(now);
    }

    /// Lets all operations that still wait go on, and returns the result.
    #[must_use]
    pub fn finish(mut self) -> SimulationOutcome {
        self.go_on_until(None);
        self.waits.sort_unstable();
        SimulationOutcome {
            operations: self.operations,
            waits: self.waits,
            by_limit: self.by_limit.into_iter().collect(),
            came: self.last,
            went: self.ended,
            credits: self.credits,
        }
    }

    fn go_on_until(&mut self, end: Option<Time>) {
        while let Some(due) = self.budget.due().filter(|due| end.is_none_or(|end| *due <= end)) {
            self.budget.advance(due, &mut self.released);
            for released in self.released.drain(..) {
                self.ended = due;
                self.waits.push(released.waited);
                let waits = self.by_limit.entry(released.limit).or_default();
                waits.operations += 1;
                waits.time += released.waited;
            }
            self.look_at_credits(due);
        }
    }

    fn look_at_credits(&mut self, now: Time) {
        if let Some(credits) = &mut self.credits
            && let Some(left) = self.budget.credits(now)
        {
            credits.last = left;
            credits.least = credits.least.min(left);
            if left == 0 && credits.gone.is_none() {
                credits.gone = Some(now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;

    fn limits(plan: &str) -> Limits {
        plan.parse::<Plan>().unwrap().limits()
    }

    const READ: Operation = Operation::Read { file: 1, bytes: 4096 };

    /// The same number of operations in each second, evenly spaced.
    fn steady(plan: &str, per_second: u32, seconds: u32) -> SimulationOutcome {
        let mut simulation = Simulation::new(limits(plan), None);
        for number in 0..per_second * seconds {
            simulation.come(Duration::from_secs(1) * number / per_second, 1, READ, true);
        }
        simulation.finish()
    }

    #[test]
    fn what_is_within_the_plan_does_not_wait() {
        let outcome = steady("custom iops=100", 99, 60);
        assert_eq!((outcome.operations, outcome.waits.len()), (99 * 60, 0));
        assert_eq!((outcome.came, outcome.percentile(1000)), (outcome.went, Duration::ZERO));
        assert_eq!(outcome.credits, None);
    }

    #[test]
    fn what_is_beyond_it_waits_longer_and_longer() {
        // 200 per second for a minute, of which 100 go on: this takes a minute more.
        let outcome = steady("custom iops=100", 200, 60);
        let seconds = outcome.went.as_secs();
        assert!((119..=120).contains(&seconds), "{seconds}");
        let [(limit, waits)] = outcome.by_limit[..] else { panic!("{:?}", outcome.by_limit) };
        assert_eq!((limit, waits.operations), (Limit::Iops, outcome.waits.len() as u64));
        assert!(outcome.waits.len() > 11_900, "{}", outcome.waits.len());
        // The wait grows evenly, up to a minute.
        for (per_mille, expected) in [(500, 30), (990, 59), (1000, 60)] {
            let found = outcome.percentile(per_mille).as_millis();
            assert!(found.abs_diff(expected * 1000) < 700, "{per_mille}: {found}");
        }
    }

    #[test]
    fn credits_run_out_when_they_are_used_up() {
        // 200 above the baseline in each second: 6,000 credits last for half a minute.
        let outcome = steady("custom iops=100 burst-iops=400 burst-credits=6000", 300, 40);
        let credits = outcome.credits.unwrap();
        let gone = credits.gone.unwrap().as_millis();
        assert!(gone.abs_diff(30_000) < 300, "{gone}");
        assert_eq!((credits.first, credits.least), (6_000, 0));
        assert!(outcome.waits.len() > 1_900, "{}", outcome.waits.len());
        let half = Simulation::new(limits("custom iops=100 burst-iops=400 burst-credits=6000"), Some(3_000));
        assert_eq!(half.finish().credits.unwrap().first, 3_000);
    }

    #[test]
    fn what_only_counts_never_waits() {
        let mut simulation = Simulation::new(limits("custom metadata-iops=10"), None);
        for _ in 0..50 {
            simulation.come(Time::ZERO, 1, Operation::Metadata, false);
        }
        simulation.come(Time::ZERO, 1, Operation::Metadata, true);
        let outcome = simulation.finish();
        assert_eq!((outcome.operations, outcome.waits.len()), (51, 1));
        assert!(outcome.percentile(1000) > Duration::from_secs(4), "{outcome:?}");
    }
}
