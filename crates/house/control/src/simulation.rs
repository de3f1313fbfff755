//! What a plan would have done to recorded operations: `/v1/simulations`.

use std::collections::HashMap;
use std::time::Duration;

use limits::simulation::{Simulation, SimulationOutcome};
use limits::{Operation, Plan};
use serde::{Deserialize, Serialize};
use share::Turn;

use crate::trace::{HEAD, Line};
use crate::trace_file;
use crate::{Refusal, RefusalKind};

/// The most bytes of the body of a request, with its recorded operations.
pub(crate) const BODY_BYTES_MAX: usize = 4 << 20;

/// A plan to be tried on recorded operations.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewSimulation {
    /// The plan.
    pub plan: String,
    /// The burst credits at the beginning; by default as many as there can be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credits: Option<u64>,
    /// The lines of the recording, as the calls of `/shares/{name}/trace` return them, one after the other.
    pub lines: String,
}

/// What a plan would have done. Times are in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulatedPlan {
    /// The plan.
    pub plan: String,
    /// The operations of the recording.
    pub operations: u64,
    /// Bytes that they moved.
    pub bytes: u64,
    /// Clients that sent them.
    pub clients: usize,
    /// From the first operation to the last.
    pub seconds: f64,
    /// How much longer it would have taken until the last operation had gone on.
    pub late_seconds: f64,
    /// Operations that would have waited.
    pub waited: u64,
    /// How long these would have waited.
    pub wait_seconds: Percentiles,
    /// How long all operations would have waited.
    pub all_wait_seconds: Percentiles,
    /// The limits that operations would have waited for longest.
    pub limits: Vec<SimulatedLimit>,
    /// The burst credits; none without bursts.
    pub credits: Option<SimulatedCredits>,
}

/// Percentiles of times, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// What would have waited for one limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulatedLimit {
    /// The name of the limit.
    pub limit: String,
    /// Operations that would have waited longest for this limit.
    pub operations: u64,
    /// How long each of them would have waited for it.
    pub mean_seconds: f64,
}

/// What would have become of the burst credits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulatedCredits {
    /// At the beginning.
    pub first: u64,
    /// At the lowest point.
    pub least: u64,
    /// At the end.
    pub last: u64,
    /// When the last one was spent, since the first operation; none: there were some at all times.
    pub gone_after_seconds: Option<f64>,
}

/// Tries a plan on recorded operations.
///
/// # Errors
/// The plan is not one, or a line is not one of a recording.
pub(crate) fn simulate(new: &NewSimulation) -> Result<SimulatedPlan, Refusal> {
    let invalid = |what: String, advice: &str| Refusal::new(RefusalKind::Invalid, what, advice);
    let plan: Plan =
        new.plan.parse().map_err(|e| invalid(format!("plan: {e}"), "docs/plans.md has all plans."))?;
    let text = format!("{HEAD}\n{}", new.lines);
    let lines = trace_file::read(text.as_bytes());
    let lines = lines
        .map_err(|e| invalid(format!("the recorded operations: {e}"), "Record some while clients work."))?;
    Ok(replay(&plan, new.credits, lines))
}

/// What a plan does to these operations, which are in the order in which they came.
#[must_use]
pub fn replay(plan: &Plan, credits: Option<u64>, lines: Vec<Line>) -> SimulatedPlan {
    let mut simulation = Simulation::new(plan.limits(), credits);
    let mut clients: HashMap<String, u64> = HashMap::new();
    let begun = lines.first().map_or(Duration::ZERO, |line| line.at);
    let mut moved = 0_u64;
    for Line { at, operation: asked, client, data } in lines {
        let next = clients.len() as u64;
        let client = *clients.entry(client).or_insert(next);
        let operation = match data {
            Some(data) if asked.api.is_write() => Operation::Write { file: data.file, bytes: data.bytes },
            Some(data) => Operation::Read { file: data.file, bytes: data.bytes },
            None => Operation::Metadata,
        };
        moved = moved.saturating_add(data.map_or(0, |data| data.bytes));
        simulation.come(at.saturating_sub(begun), client, operation, asked.turn != Turn::Charged);
    }
    summary(plan, simulation.finish(), clients.len(), moved)
}

fn summary(plan: &Plan, outcome: SimulationOutcome, clients: usize, bytes: u64) -> SimulatedPlan {
    let of_waits = |per_mille: usize| {
        let rank = (outcome.waits.len() * per_mille).div_ceil(1000).max(1);
        outcome.waits.get(rank - 1).copied().unwrap_or_default().as_secs_f64()
    };
    let of_all = |per_mille| outcome.percentile(per_mille).as_secs_f64();
    let of_limit = |(limit, waits): &(limits::Limit, limits::Waits)| SimulatedLimit {
        limit: limit.name().to_owned(),
        operations: waits.operations,
        mean_seconds: waits.time.as_secs_f64() / (waits.operations.max(1) as f64),
    };
    SimulatedPlan {
        plan: plan.to_string(),
        operations: outcome.operations,
        bytes,
        clients,
        seconds: outcome.came.as_secs_f64(),
        late_seconds: outcome.went.saturating_sub(outcome.came).as_secs_f64(),
        waited: outcome.waits.len() as u64,
        wait_seconds: Percentiles { p50: of_waits(500), p99: of_waits(990), max: of_waits(1000) },
        all_wait_seconds: Percentiles { p50: of_all(500), p99: of_all(990), max: of_all(1000) },
        limits: outcome.by_limit.iter().map(of_limit).collect(),
        credits: outcome.credits.map(|credits| SimulatedCredits {
            first: credits.first,
            least: credits.least,
            last: credits.last,
            gone_after_seconds: credits.gone.map(|gone| gone.as_secs_f64()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(plan: &str, lines: &str) -> NewSimulation {
        NewSimulation { plan: plan.to_owned(), credits: None, lines: lines.to_owned() }
    }

    #[test]
    fn recorded_lines_are_replayed() {
        let lines: String = (0..20).map(|n| format!("{}\tRead\tsmb\tc\t1\t0\t4096\n", n * 100_000)).collect();
        let simulated = simulate(&new("custom iops=5", &lines)).unwrap();
        assert_eq!((simulated.operations, simulated.bytes, simulated.clients), (20, 20 * 4096, 1));
        assert!(simulated.waited > 5 && simulated.limits[0].limit == "iops", "{simulated:?}");
        assert_eq!(simulate(&new("unlimited", &lines)).unwrap().waited, 0);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let what = |plan: &str, lines: &str| simulate(&new(plan, lines)).unwrap_err().what;
        assert!(what("quick", "").starts_with("plan: "));
        assert!(what("unlimited", "").contains("no operation"));
        assert!(what("unlimited", "1\tRead\n").contains("line 2: it has 2 fields"));
    }
}
