//! `anabranch share simulate`: what a plan would have done to a recorded trace.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::time::Duration;

use control::trace::Line;
use limits::simulation::{Simulation, SimulationOutcome};
use limits::{Operation, Plan};
use serde::Serialize;
use share::Turn;

use crate::cli::ShareSimulate;
use crate::print::{bytes, counted, json, latency, print};
use crate::problem::{Cause, Problem, Result};
use crate::{table, trace_file};

/// What is told of a simulation. Times are in seconds.
#[derive(Debug, Serialize)]
struct Report {
    plan: String,
    operations: u64,
    bytes: u64,
    clients: usize,
    /// From the first operation to the last.
    seconds: f64,
    /// How much longer it would have taken until the last one had gone on.
    late_seconds: f64,
    /// Operations that would have waited.
    waited: u64,
    /// Of these.
    wait_seconds: Percentiles,
    /// Of all operations.
    all_wait_seconds: Percentiles,
    limits: Vec<OfLimit>,
    credits: Option<Credits>,
}

#[derive(Debug, Serialize)]
struct Percentiles {
    p50: f64,
    p99: f64,
    max: f64,
}

#[derive(Debug, Serialize)]
struct OfLimit {
    limit: &'static str,
    operations: u64,
    mean_seconds: f64,
}

#[derive(Debug, Serialize)]
struct Credits {
    first: u64,
    least: u64,
    last: u64,
    /// When the last one was spent, since the first operation; none: there were some at all times.
    gone_after_seconds: Option<f64>,
}

/// Replays a trace.
///
/// # Errors
/// The plan or the trace is not one, or the file cannot be read.
pub(super) fn run(simulate: &ShareSimulate) -> Result<()> {
    let plan: Plan = simulate
        .plan
        .parse()
        .map_err(|e| Problem::new(Cause::Settings, format!("--plan: {e}"), "docs/plans.md has all plans."))?;
    let report = replay(&plan, simulate.credits, trace_file::read(&simulate.trace)?);
    print(&if simulate.json { json(&report)? } else { render(&report) })
}

fn replay(plan: &Plan, credits: Option<u64>, lines: Vec<Line>) -> Report {
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
        simulation.come(at - begun, client, operation, asked.turn != Turn::Charged);
    }
    report(plan, simulation.finish(), clients.len(), moved)
}

fn report(plan: &Plan, outcome: SimulationOutcome, clients: usize, bytes: u64) -> Report {
    let of_waits = |per_mille: usize| {
        let rank = (outcome.waits.len() * per_mille).div_ceil(1000).max(1);
        outcome.waits.get(rank - 1).copied().unwrap_or_default().as_secs_f64()
    };
    let of_all = |per_mille| outcome.percentile(per_mille).as_secs_f64();
    let of_limit = |(limit, waits): &(limits::Limit, limits::Waits)| OfLimit {
        limit: limit.name(),
        operations: waits.operations,
        mean_seconds: super::show::mean(waits.time.as_secs_f64(), waits.operations),
    };
    Report {
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
        credits: outcome.credits.map(|credits| Credits {
            first: credits.first,
            least: credits.least,
            last: credits.last,
            gone_after_seconds: credits.gone.map(|gone| gone.as_secs_f64()),
        }),
    }
}

fn render(report: &Report) -> String {
    let Report { operations, waited, clients, seconds, .. } = report;
    let mut text = format!(
        "plan       {}\ntrace      {} and {} of {} in {seconds:.1} s\n",
        report.plan,
        counted(*operations, "operation"),
        bytes(report.bytes),
        counted(*clients, "client")
    );
    if *waited == 0 {
        text.push_str("waited     none\n");
    } else {
        let part = super::show::mean(*waited as f64 * 100.0, *operations);
        let _ = writeln!(text, "waited     {}, {part:.1} %", counted(*waited, "operation"));
        let percentiles = |of: &Percentiles| {
            format!("p50 {}, p99 {}, at most {}", latency(of.p50), latency(of.p99), latency(of.max))
        };
        let _ = writeln!(text, "they       {}", percentiles(&report.wait_seconds));
        let _ = writeln!(text, "all        {}", percentiles(&report.all_wait_seconds));
        let _ = writeln!(text, "ended      {} after the last operation came", latency(report.late_seconds));
    }
    if let Some(credits) = &report.credits {
        let gone = match credits.gone_after_seconds {
            Some(seconds) => format!("gone after {seconds:.1} s"),
            None => format!("{} at least", credits.least),
        };
        let _ = writeln!(text, "credits    {} at first, {gone}, {} at the end", credits.first, credits.last);
    }
    if !report.limits.is_empty() {
        let row = |of: &OfLimit| [of.limit.to_owned(), of.operations.to_string(), latency(of.mean_seconds)];
        let rows: Vec<_> = report.limits.iter().map(row).collect();
        let _ = write!(text, "\n{}", table::render(["WAITED LONGEST FOR", "OPERATIONS", "MEAN"], &rows));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use control::trace::HEAD;

    use super::*;

    fn trace(lines: &str) -> Result<Vec<Line>> {
        trace_file::read_from(Path::new("t"), format!("{HEAD}\n{lines}").as_bytes())
    }

    #[test]
    fn operations_are_replayed_in_the_order_in_which_they_came() {
        // Three clients at once, later ones first in the file: two of the plan's operations go on in each second.
        let mut lines = String::new();
        for second in (0..20).rev() {
            for client in ["a", "b", "c", "d"] {
                let _ =
                    writeln!(lines, "{}\tRead\tsmb\t{client}\t1\t0\t4096", 7_000_000 + second * 1_000_000);
            }
        }
        let plan: Plan = "custom iops=2".parse().unwrap();
        let report = replay(&plan, None, trace(&lines).unwrap());
        assert_eq!((report.operations, report.clients, report.bytes), (80, 4, 80 * 4096));
        assert!(
            (report.seconds - 19.0).abs() < 1e-6 && (19.0..22.0).contains(&report.late_seconds),
            "{report:?}"
        );
        assert_eq!((report.limits.len(), report.limits[0].limit), (1, "iops"));
        assert_eq!(report.limits[0].operations, report.waited);
        assert!(report.wait_seconds.p50 > 8.0 && report.wait_seconds.max < 22.0, "{report:?}");
        let text = render(&report);
        assert!(text.contains("trace      80 operations and 320 KiB of 4 clients in 19.0 s\n"), "{text}");
        assert!(text.contains("\nWAITED LONGEST FOR") && !text.contains("credits"), "{text}");
        let plan: Plan = "azure-files-v1 capacity=1TiB".parse().unwrap();
        let text = render(&replay(&plan, None, trace(&lines).unwrap()));
        assert!(text.contains("waited     none\ncredits    21513600 at first, 21513600 at least"), "{text}");
    }
}
