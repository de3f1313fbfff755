//! The rows of a family: all results of one protocol in one table, beside each other, with their charts.

use std::fmt::Write as _;

use super::super::claim::Figure;
use super::super::show::plans;
use super::super::{BesideRow, Report, Run, RunRow, units};
use super::charts;
use super::interval::Axis;
use super::text::Text;
use load::result::{Outcome, Protocol};

/// A result that is held against another one of its table.
struct Held<'a> {
    /// Its place among the results of the table.
    at: usize,
    base: usize,
    rows: &'a [BesideRow],
    how: &'static str,
    /// Why neither is called better.
    plans: Option<String>,
}

pub(super) fn section(report: &Report, family: &str) -> String {
    let mut text = String::new();
    if let Some(run) = report.runs.iter().find(|run| run.family == family) {
        let _ = writeln!(text, "<p class=\"quiet\">{}.</p>", Text(run.about));
    }
    let mut protocols: Vec<Protocol> = Vec::new();
    for run in report.runs.iter().filter(|run| run.family == family) {
        if !protocols.contains(&run.environment.protocol) {
            protocols.push(run.environment.protocol);
        }
    }
    for protocol in protocols {
        let of = |run: &&(usize, &Run)| run.1.family == family && run.1.environment.protocol == protocol;
        let runs: Vec<(usize, &Run)> = report.runs.iter().enumerate().filter(|run| of(&run)).collect();
        text.push_str(&table(report, &runs));
        for (place, run) in &runs {
            text.push_str(&charts::of_run(report, *place, run));
        }
    }
    text
}

fn table(report: &Report, runs: &[(usize, &Run)]) -> String {
    let held = held(report, runs);
    let mut text = String::new();
    for (_, run) in runs {
        let partial = if run.outcome == Outcome::Complete { "" } else { ", partial" };
        let _ = writeln!(text, "<h3>{} <small>{}{partial}</small></h3>", Text(&run.label), Text(&run.name));
    }
    for of in &held {
        let _ = writeln!(
            text,
            "<p class=\"quiet\"><small>{} The bars are 95 % intervals on a logarithmic scale, the dashed line is 1x.</small></p>",
            of.how
        );
        if let Some(note) = &of.plans {
            let _ = writeln!(text, "<p class=\"note\">{}</p>", Text(note));
        }
    }
    text.push_str("<div class=\"card wide\"><table class=\"all\"><thead><tr><th scope=\"col\">Row</th>");
    for (_, run) in runs {
        let name = run.environment.server.as_deref().filter(|_| runs.len() > 1).unwrap_or_default();
        let _ = write!(
            text,
            "<th scope=\"col\">{} op/s</th><th scope=\"col\">data/s</th><th scope=\"col\">p50, p99</th><th scope=\"col\">server CPU</th>",
            Text(name)
        );
    }
    text.push_str("<th scope=\"col\">against its base</th>");
    for of in &held {
        let server = |at: usize| {
            runs.get(at).map_or("", |(_, run)| run.environment.server.as_deref().unwrap_or(&run.label))
        };
        let _ = write!(text, "<th scope=\"col\">{} by {}</th>", Text(server(of.at)), Text(server(of.base)));
    }
    text.push_str("</tr></thead><tbody>\n");
    for label in labels(runs) {
        text.push_str(&line(runs, &held, label));
    }
    text.push_str("</tbody></table></div>\n");
    text
}

/// The rows of all results, each once.
fn labels<'a>(runs: &[(usize, &'a Run)]) -> Vec<&'a str> {
    let mut all: Vec<&str> = Vec::new();
    for row in runs.iter().flat_map(|(_, run)| &run.rows) {
        if !all.contains(&row.row.as_str()) {
            all.push(&row.row);
        }
    }
    all
}

fn held<'a>(report: &'a Report, runs: &[(usize, &Run)]) -> Vec<Held<'a>> {
    let place = |run: usize| runs.iter().position(|(known, _)| *known == run);
    let of = |beside: &'a super::super::Beside| {
        let (at, base) = (place(beside.other)?, place(beside.base)?);
        let plans = plans(runs.get(base)?.1, runs.get(at)?.1);
        Some(Held { at, base, rows: &beside.rows, how: beside.how(), plans })
    };
    report.beside.iter().filter_map(of).collect()
}

fn line(runs: &[(usize, &Run)], held: &[Held<'_>], label: &str) -> String {
    let mut text = format!("<tr><th scope=\"row\">{}</th>", Text(label));
    let mut against = Vec::new();
    for (_, run) in runs {
        match run.rows.iter().find(|row| row.row == label) {
            Some(row) => {
                text.push_str(&cells(row));
                against.extend(row.against.map(|ratio| ratio.to_string()));
            }
            None => text.push_str("<td></td><td></td><td></td><td></td>"),
        }
    }
    let _ = write!(text, "<td>{}</td>", Text(&against.join("; ")));
    for of in held {
        let axis = Axis::of(of.rows, of.plans.is_none());
        match of.rows.iter().find(|row| row.row == label) {
            Some(row) => {
                let mark = row.ratio.map_or_else(String::new, |ratio| axis.mark(&ratio));
                let _ = write!(text, "<td>{mark}{}</td>", Text(&row.ratio_in_words()));
            }
            None => text.push_str("<td></td>"),
        }
    }
    text.push_str("</tr>\n");
    text
}

fn cells(row: &RunRow) -> String {
    let none = || "-".to_owned();
    let time = |us: Option<f64>| us.map_or_else(none, units::time);
    let measure = &row.measure;
    let interval = measure.rate.interval.map_or_else(String::new, |[low, high]| {
        format!("<small>{}-{}</small>", units::significant(low), units::significant(high))
    });
    format!(
        "<td>{}{interval}</td><td>{}</td><td>{}, {}</td><td>{}</td>",
        units::significant(measure.rate.median),
        measure.throughput.map_or_else(none, |t| units::figure(Figure::Throughput, t.median)),
        time(row.latency.map(|l| l.p50_us)),
        time(row.latency.map(|l| l.p99_us)),
        time(measure.server_cpu_us.map(|e| e.median))
    )
}
