//! The documents' statements beside what was measured.

use std::fmt::Write as _;

use super::super::evidence::Verdict;
use super::super::judge::{Finding, Statement};
use super::super::{Case, Report};
use super::heading;
use super::text::Text;

/// The style of a verdict.
pub(super) fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Reproduced => "ok",
        Verdict::NotReproduced => "no",
        Verdict::CannotBeTested => "open",
    }
}

fn chip(verdict: Verdict) -> String {
    let sign = match verdict {
        Verdict::Reproduced => "&#10003;",
        Verdict::NotReproduced => "&#10007;",
        Verdict::CannotBeTested => "&#8211;",
    };
    format!("<span class=\"chip {}\">{sign} {}</span>", class(verdict), verdict.words())
}

pub(super) fn section(report: &Report) -> String {
    let mut text = heading("documents");
    text.push_str("<p class=\"quiet\">What the documents state, and what was measured. Their charts are images: only figures that stand in their text are here.</p>\n");
    for table in &report.documents {
        let _ = writeln!(text, "<h3>{}</h3>", Text(&table.document));
        if !table.also.is_empty() {
            let _ = writeln!(text, "<p class=\"quiet\"><small>{}</small></p>", Text(table.also));
        }
        text.push_str("<div class=\"card\"><table class=\"statements cards\"><thead><tr><th scope=\"col\">Statement</th><th scope=\"col\">Document</th><th scope=\"col\">Measured</th><th scope=\"col\">Verdict</th></tr></thead>\n");
        for of in &table.statements {
            text.push_str(&statement(report, of));
        }
        text.push_str("</table></div>\n");
    }
    text
}

fn statement(report: &Report, of: &Statement) -> String {
    // A finding has its line, and one more for its rows where it has some.
    let lines: usize = of.findings.iter().map(|finding| 1 + usize::from(!finding.cases.is_empty())).sum();
    let mut text = format!(
        "<tbody><tr><td rowspan=\"{lines}\"><span class=\"id\">{}</span>{}<small>line {}</small>",
        of.id,
        Text(of.statement),
        of.line
    );
    if !of.note.is_empty() {
        let _ = write!(text, "<small>{}</small>", Text(of.note));
    }
    let _ = write!(text, "</td><td rowspan=\"{lines}\" data-of=\"Document\">{}</td>", Text(of.figure));
    for (n, finding) in of.findings.iter().enumerate() {
        text.push_str(if n > 0 { "<tr>" } else { "" });
        let _ = write!(text, "<td data-of=\"Measured\">{}</td>", measured(report, finding));
        let _ = write!(
            text,
            "<td>{}<small>{}</small></td></tr>{}",
            chip(finding.verdict),
            reason(&finding.reason),
            rows(finding)
        );
    }
    text.push_str("</tbody>\n");
    text
}

/// What stands between backticks is code.
fn reason(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(n, part)| match n % 2 {
        0 => Text(part).to_string(),
        _ => format!("<code>{}</code>", Text(part)),
    });
    parts.collect()
}

fn measured(report: &Report, finding: &Finding) -> String {
    let Some(run) = finding.run.and_then(|n| report.runs.get(n)) else { return "&#8211;".to_owned() };
    format!("{}<small>{}<br>{}</small>", Text(&finding.measured()), Text(&run.label), Text(&run.name))
}

/// The rows behind a finding, in a line of their own.
fn rows(finding: &Finding) -> String {
    if finding.cases.is_empty() {
        return String::new();
    }
    let mut text = String::from(
        "<tr class=\"behind\"><td colspan=\"2\"><details><summary>Rows</summary><ul class=\"rows\">",
    );
    finding.cases.iter().for_each(|case| text.push_str(&row(case)));
    text.push_str("</ul></details></td></tr>");
    text
}

fn row(case: &Case) -> String {
    let figure = case.figure_measured();
    let (first, second) = match &case.ratio {
        Some(_) => (case.ratio_in_words(), format!("{figure}, against {}; ", case.base_in_words())),
        None => (figure, String::new()),
    };
    format!(
        "<li><b>{}</b> {}<small>{}{}: {}</small></li>",
        Text(&first),
        Text(&case.row),
        Text(&second),
        case.verdict.words(),
        Text(&case.reason)
    )
}
