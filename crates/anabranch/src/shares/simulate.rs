//! `anabranch share simulate`: what a plan would have done to a recorded trace.

use std::fmt::Write as _;

use control::simulation::{Percentiles, SimulatedLimit, SimulatedPlan, replay};
use limits::Plan;

use crate::cli::ShareSimulate;
use crate::print::{bytes, counted, json, latency, print};
use crate::problem::{Cause, Problem, Result};
use crate::{table, trace_file};

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

fn render(report: &SimulatedPlan) -> String {
    let SimulatedPlan { operations, waited, clients, seconds, .. } = report;
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
        let row =
            |of: &SimulatedLimit| [of.limit.clone(), of.operations.to_string(), latency(of.mean_seconds)];
        let rows: Vec<_> = report.limits.iter().map(row).collect();
        let _ = write!(text, "\n{}", table::render(["WAITED LONGEST FOR", "OPERATIONS", "MEAN"], &rows));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use control::trace::{HEAD, Line};

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
        assert_eq!((report.limits.len(), report.limits[0].limit.as_str()), (1, "iops"));
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
