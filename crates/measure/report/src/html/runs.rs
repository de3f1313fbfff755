//! The results themselves: where they were made, side by side, and row by row.

use std::fmt::Write as _;

use super::super::beside::Beside;
use super::super::claim::Figure;
use super::super::show::plans;
use super::super::units;
use super::super::{Report, Run};
use super::interval::Axis;
use super::text::Text;
use super::{LISTED, heading, name, number};

use load::result::Outcome;

pub(super) fn measured(report: &Report) -> String {
    let mut text = heading("measured");
    for note in report.warnings() {
        let _ = writeln!(text, "<p class=\"note\">{}</p>", Text(&note));
    }
    // So many that one would scroll for long before the first verdict.
    let open = if report.runs.len() > LISTED { "" } else { " open" };
    let _ = write!(text, "<details{open}><summary>{}</summary>", number(report.runs.len(), "result"));
    text.push_str("<div class=\"card\"><table class=\"cards\"><thead><tr><th>Family</th><th>Target</th><th>Agreed on</th><th>Round trip</th><th>Measured</th></tr></thead>\n");
    for run in &report.runs {
        let cells = [
            ("", format!("<b>{}</b><br><small>{}</small>", Text(&run.family), Text(run.about))),
            (
                "Target",
                format!(
                    "{}<br><small>{}</small>{}",
                    Text(&run.environment.target),
                    Text(&run.name),
                    loopback(run)
                ),
            ),
            ("Agreed on", Text(&run.agreed_on()).to_string()),
            ("Round trip", Text(&run.round_trip()).to_string()),
            ("Measured", Text(&run.extent()).to_string()),
        ];
        text.push_str("<tbody><tr>");
        for (of, cell) in cells {
            let of = if of.is_empty() { String::new() } else { format!(" data-of=\"{of}\"") };
            let _ = write!(text, "<td{of}>{cell}</td>");
        }
        text.push_str("</tr></tbody>\n");
    }
    text.push_str("</table></div></details>\n");
    for (client, facts) in report.clients() {
        let _ =
            write!(text, "<h3>{}</h3>\n<div class=\"card\"><table class=\"facts\"><tbody>", Text(&client));
        for (fact, value) in facts {
            let _ = write!(text, "<tr><th scope=\"row\">{fact}</th><td>{}</td></tr>", Text(&value));
        }
        text.push_str("</tbody></table></div>\n");
    }
    text
}

fn loopback(run: &Run) -> &'static str {
    if run.environment.loopback { " <span class=\"chip warn\">loopback</span>" } else { "" }
}

pub(super) fn beside(report: &Report) -> String {
    let mut text = heading("beside");
    if report.beside.is_empty() {
        text.push_str("<p>No two results are of one family and have rows in common.</p>\n");
    }
    report.beside.iter().for_each(|beside| text.push_str(&one_beside(report, beside)));
    text
}

fn one_beside(report: &Report, beside: &Beside) -> String {
    let (Some(base), Some(other)) = (report.runs.get(beside.base), report.runs.get(beside.other)) else {
        return String::new();
    };
    let mut text = format!(
        "<h3>{}: {} against {}</h3>\n<p class=\"quiet\"><small>{} {INTERVALS}</small></p>\n<div class=\"card\"><table class=\"cards beside\"><thead><tr><th scope=\"col\">Row</th><th scope=\"col\" class=\"n\">{}</th><th scope=\"col\" class=\"n\">{}</th><th scope=\"col\">{} by {}</th></tr></thead>\n",
        Text(&beside.family),
        name(other),
        name(base),
        beside.how(),
        Text(&base.label),
        Text(&other.label),
        Text(&server(other)),
        Text(&server(base))
    );
    if let Some(note) = plans(base, other) {
        text = text.replacen("<div class", &format!("<p class=\"note\">{}</p>\n<div class", Text(&note)), 1);
    }
    let axis = Axis::of(&beside.rows, plans(base, other).is_none());
    for row in &beside.rows {
        let _ = writeln!(
            text,
            "<tbody><tr><td>{}</td><td class=\"n\" data-of=\"{}\">{}</td><td class=\"n\" data-of=\"{}\">{}</td><td>{}{}</td></tr></tbody>",
            Text(&row.row),
            Text(&base.label),
            rate(row.base.median, row.base_cpu_us),
            Text(&other.label),
            rate(row.other.median, row.other_cpu_us),
            row.ratio.map_or_else(String::new, |ratio| axis.mark(&ratio)),
            Text(&row.ratio_in_words())
        );
    }
    text.push_str("</table></div>\n");
    text
}

const INTERVALS: &str = "Rates are operations per second. The bars are 95 % intervals on a logarithmic scale, the dashed line is 1x.";

/// A result's server in short, else how it was spoken to.
fn server(run: &Run) -> String {
    run.environment.server.clone().unwrap_or_else(|| run.label.clone())
}

/// A rate, and the server's CPU time for an operation.
fn rate(operations: f64, cpu_us: Option<f64>) -> String {
    let rate = units::figure(Figure::Rate, operations);
    cpu_us.map_or_else(
        || rate.clone(),
        |us| format!("{rate}<br><small>{} of its CPU each</small>", units::time(us)),
    )
}

pub(super) fn counters(report: &Report) -> String {
    let mut text = heading("counters");
    text.push_str(
        "<p class=\"quiet\">What the clients did, held against what the server counted meanwhile.</p>\n",
    );
    if report.runs.iter().all(|run| run.counters.is_empty()) {
        text.push_str("<p>No result has counters of its server.</p>\n");
    }
    for run in report.runs.iter().filter(|run| !run.counters.is_empty()) {
        let _ = write!(
            text,
            "<h3>{}: {}</h3>\n<div class=\"card\"><table class=\"cards\"><thead><tr><th scope=\"col\">Row</th><th scope=\"col\">Counted</th><th scope=\"col\" class=\"n\">Clients</th><th scope=\"col\" class=\"n\">Server</th><th scope=\"col\">Meaning</th></tr></thead>\n",
            Text(&run.family),
            name(run)
        );
        for counted in &run.counters {
            let _ = writeln!(
                text,
                "<tbody><tr><td>{}</td><td data-of=\"Counted\">{}</td><td class=\"n\" data-of=\"Clients\">{}</td><td class=\"n\" data-of=\"Server\">{}</td><td data-of=\"Meaning\">{}</td></tr></tbody>",
                Text(&counted.row),
                counted.what,
                counted.in_words(counted.client),
                counted.in_words(counted.server),
                Text(&counted.meaning)
            );
        }
        text.push_str("</table></div>\n");
    }
    text
}

pub(super) fn problems(report: &Report) -> String {
    let mut text = heading("problems");
    let of_runs: Vec<String> = report.runs.iter().filter_map(problems_of).collect();
    if of_runs.is_empty() {
        text.push_str("<p>Nothing: all results are complete, no operation failed, no byte was wrong, and all that was asked for was honoured.</p>\n");
    } else {
        text.push_str(&of_runs.concat());
    }
    text
}

fn problems_of(run: &Run) -> Option<String> {
    let told = run.told();
    let mut text = format!("<h3>{}: {}</h3>\n<ul class=\"problems\">", Text(&run.family), name(run));
    for line in &told {
        let _ = write!(text, "<li>{}</li>", Text(line));
    }
    text.push_str("</ul>\n");
    (!told.is_empty()).then_some(text)
}

pub(super) fn rows(report: &Report) -> String {
    let mut text = heading("rows");
    for run in &report.runs {
        let open = if report.runs.len() == 1 { " open" } else { "" };
        let _ = write!(
            text,
            "<details{open}><summary>{}: {}{}</summary>\n<div class=\"card wide\"><table><thead><tr><th>Row</th><th class=\"n\">Op/s</th><th class=\"n\">95 %</th><th class=\"n\">Data/s</th><th class=\"n\">p50</th><th class=\"n\">p99</th><th class=\"n\">p99.9</th><th class=\"n\">Client CPU/op</th><th class=\"n\">Server CPU/op</th><th>Against its base</th></tr></thead><tbody>\n",
            Text(&run.family),
            name(run),
            if run.outcome == Outcome::Complete { "" } else { ", partial" }
        );
        for row in &run.rows {
            let cells = row.cells();
            let _ = write!(text, "<tr><td>{}</td>", Text(&row.row));
            cells[..8].iter().for_each(|cell| {
                let _ = write!(text, "<td class=\"n\">{}</td>", Text(cell));
            });
            let _ = writeln!(text, "<td>{}</td></tr>", Text(&cells[8]));
        }
        text.push_str("</tbody></table></div></details>\n");
    }
    text
}
