//! What the results mean, and what to do about it.

use std::fmt::Write as _;

use super::super::{Report, Run, RunAdvice};
use super::text::Text;
use super::{heading, number, part};
use advise::Verdict;

pub(super) fn section(report: &Report) -> String {
    let mut text = heading("advice");
    text.push_str("<p class=\"quiet\">By the rules of <code>anabranch advise</code>: a measurement on this path decides where there is one, else the documents do.</p>\n");
    for run in report.runs.iter().filter(|run| !run.advice.is_empty()) {
        let pieces: String = run.advice.iter().map(of_piece).collect();
        text.push_str(&part(report, run, &verdicts(run), false, &pieces));
    }
    if report.runs.iter().all(|run| run.advice.is_empty()) {
        text.push_str("<p>No rule has all the facts that it needs, or all is as it should be.</p>\n");
    }
    text
}

/// How much of which verdict: `1 red, 2 green`.
fn verdicts(run: &Run) -> String {
    let of = |verdict| run.advice.iter().filter(|piece| piece.advice.verdict == verdict).count();
    let counts = [Verdict::Red, Verdict::Yellow, Verdict::Green].map(|verdict| (of(verdict), verdict));
    let told =
        counts.iter().filter(|(count, _)| *count > 0).map(|(count, verdict)| format!("{count} {verdict}"));
    told.collect::<Vec<_>>().join(", ")
}

fn of_piece(piece: &RunAdvice) -> String {
    let advice = &piece.advice;
    let class = match advice.verdict {
        Verdict::Green => "ok",
        Verdict::Yellow => "warn",
        Verdict::Red => "no",
    };
    let mut text = format!(
        "<div class=\"card advice\"><p><span class=\"chip {class}\">{}</span> <span class=\"id\">R{}</span>{}</p><p class=\"quiet\"><small>{}; {}</small></p>",
        advice.verdict,
        advice.rule,
        Text(&advice.text),
        Text(&advice.figures.join("; ")),
        Text(&advice.source.to_string())
    );
    for command in &advice.commands {
        let _ = write!(text, "<p><small>{}</small> <code>{}</code></p>", command.on, Text(&command.line));
    }
    let _ = write!(text, "<details><summary>{}</summary><ul>", number(piece.rows.len(), "row"));
    piece.rows.iter().for_each(|row| {
        let _ = write!(text, "<li><small>{}</small></li>", Text(row));
    });
    text.push_str("</ul></details></div>\n");
    text
}
