//! Where the results were made, what the servers counted, and what went wrong.

use std::fmt::Write as _;

use super::super::{Report, Run};
use super::text::Text;

pub(super) fn section(report: &Report) -> String {
    let mut text = String::from("<div id=\"notes\">\n");
    for (_, note) in report.warnings() {
        let _ = writeln!(text, "<p class=\"note\">{}</p>", Text(&note));
    }
    text.push_str("</div>\n");
    text.push_str(&problems(report));
    text.push_str(&results(report));
    text.push_str(&counters(report));
    text
}

fn results(report: &Report) -> String {
    let mut text = String::from(
        "<h2>Results</h2>\n<div class=\"card\"><table class=\"cards\"><thead><tr><th scope=\"col\">Family</th><th scope=\"col\">Target</th><th scope=\"col\">Agreed on</th><th scope=\"col\">Round trip</th><th scope=\"col\">Measured</th></tr></thead>\n",
    );
    for run in &report.runs {
        let cells = [
            ("", format!("<b>{}</b>", Text(&run.family))),
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
    text.push_str("</table></div>\n");
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

fn counters(report: &Report) -> String {
    let mut text = String::from("<h2 id=\"counters\">Server counters</h2>\n");
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

fn problems(report: &Report) -> String {
    let mut text = String::from("<h2 id=\"problems\">What went wrong</h2>\n");
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

/// A result's name among several.
fn name(run: &Run) -> String {
    format!("{} <small>{}</small>", Text(&run.label), Text(&run.name))
}
