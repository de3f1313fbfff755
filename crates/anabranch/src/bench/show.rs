//! A result for people.

use std::fmt::Write as _;

use load::result::{Comparison, Latency, Operation, Outcome, Problem, ResultFile, Row};
use load::statistics::Estimate;

use crate::table;

/// The result as text.
pub(crate) fn render(result: &ResultFile) -> String {
    let mut text = head(result);
    let rows: Vec<_> = result.rows.iter().map(row).collect();
    if !rows.is_empty() {
        text.push_str(&table::render(
            ["ROW", "OP/S", "95 %", "MIB/S", "P50 US", "P99 US", "CLIENT US", "SERVER US"],
            &rows,
        ));
    }
    if !result.comparisons.is_empty() {
        text.push('\n');
        let rows: Vec<_> = result.comparisons.iter().map(comparison).collect();
        text.push_str(&table::render(["ROW", "AGAINST", "OP/S"], &rows));
    }
    for row in &result.rows {
        text.push_str(&from_cache(row).unwrap_or_default());
    }
    for line in &result.not_honoured {
        let _ = writeln!(text, "not honoured: {line}");
    }
    if result.outcome == Outcome::Stopped {
        text.push_str("stopped: these are the measurements until then\n");
    }
    text
}

/// The server's own count is less than what was read: something in between has the rest.
fn from_cache(row: &Row) -> Option<String> {
    /// What was under way when the server was asked is in one count and not in the other.
    const NOISE: f64 = 0.02;
    let part = row.measure.as_ref()?.from_cache?.median;
    (part > NOISE).then(|| {
        format!("{}: {:.0} % of what was read came from a cache in between\n", row.key, 100.0 * part)
    })
}

fn head(result: &ResultFile) -> String {
    let environment = &result.environment;
    let negotiated = &environment.negotiated;
    let mut text = format!("{} on {}", result.family, environment.target);
    for part in [
        environment.server.as_ref(),
        Some(&negotiated.dialect),
        negotiated.signing.as_ref(),
        negotiated.cipher.as_ref(),
    ]
    .into_iter()
    .flatten()
    {
        if !part.is_empty() {
            let _ = write!(text, ", {part}");
        }
    }
    if let Some(us) = environment.round_trip_us {
        let _ = write!(text, ", round trip {us:.0} us");
    }
    if environment.loopback {
        text.push_str(", on this machine: no NIC, no link");
    }
    let method = &result.method;
    let _ = writeln!(
        text,
        "\n{} repetitions of {} s after {} s of load{}; the first pass is discarded\n",
        method.repetitions,
        method.seconds,
        method.ramp_seconds,
        if method.quick { " (quick: a rough idea only)" } else { "" }
    );
    text
}

fn row(row: &Row) -> [String; 8] {
    let Some(measure) = &row.measure else {
        return [
            row.key.to_string(),
            "-".to_owned(),
            "".into(),
            "".into(),
            "".into(),
            "".into(),
            "".into(),
            "".into(),
        ];
    };
    let latency = [Operation::Cycle, Operation::Read, Operation::Write]
        .iter()
        .find_map(|kind| measure.latency.get(kind));
    let us = |figure: fn(&Latency) -> f64| latency.map_or(String::new(), |l| format!("{:.0}", figure(l)));
    let cpu = |figure: Option<Estimate>| figure.map_or(String::new(), |e| format!("{:.2}", e.median));
    [
        row.key.to_string(),
        format!("{:.0}", measure.rate.median),
        measure.rate.interval.map_or(String::new(), |[low, high]| format!("{low:.0}-{high:.0}")),
        measure.throughput.map_or(String::new(), |e| format!("{:.1}", e.median / f64::from(1 << 20))),
        us(|l| l.p50_us),
        us(|l| l.p99_us),
        cpu(measure.client_cpu_us),
        cpu(measure.server_cpu_us),
    ]
}

fn comparison(comparison: &Comparison) -> [String; 3] {
    let rate = comparison.rate.map_or_else(|| "not measured".to_owned(), |ratio| ratio.to_string());
    [comparison.other.to_string(), comparison.base.to_string(), rate]
}

/// What went wrong, in a line.
pub(crate) fn problem(problem: &Problem) -> String {
    match problem.count {
        0 | 1 => problem.text.clone(),
        times => format!("{} ({times} times)", problem.text),
    }
}
