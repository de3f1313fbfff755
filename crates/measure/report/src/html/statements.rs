//! The documents' statements beside what was measured.

use std::fmt::Write as _;

use super::super::evidence::Judgement;
use super::super::judge::{Finding, Statement};
use super::super::{Case, Report};
use super::text::Text;
use super::{Form, families};

/// The style of a judgement.
pub(super) fn class(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Reproduced | Judgement::Better => "ok",
        Judgement::Worse => "no",
        Judgement::Mixed => "warn",
        Judgement::TooNoisy | Judgement::CannotBeTested => "open",
    }
}

pub(super) fn chip(judgement: Judgement) -> String {
    let sign = match judgement {
        Judgement::Reproduced => "&#10003;",
        Judgement::Better => "&#8593;",
        Judgement::Worse => "&#8595;",
        Judgement::Mixed => "&#8597;",
        Judgement::TooNoisy => "&#8776;",
        Judgement::CannotBeTested => "&#8211;",
    };
    format!("<span class=\"chip {}\">{sign} {}</span>", class(judgement), judgement.words())
}

/// The fragment of a statement: its number, and its place among those with that number.
pub(super) fn fragment(report: &Report, of: &Statement) -> String {
    let same = report.documents.iter().flat_map(|table| &table.statements).filter(|other| other.id == of.id);
    let place = same.take_while(|other| *other != of).count();
    format!("s{}-{place}", of.id)
}

pub(super) fn section(report: &Report, form: Form) -> String {
    let mut text = String::from(
        "<p class=\"quiet\">What the documents state, and what was measured. Their charts are images: only figures that stand in their text are here.</p>\n",
    );
    for table in &report.documents {
        let _ = writeln!(text, "<h3><a href=\"{}\">{}</a></h3>", Text(table.link), Text(&table.document));
        if !table.also.is_empty() {
            let _ = writeln!(text, "<p class=\"quiet\"><small>{}</small></p>", Text(table.also));
        }
        text.push_str("<div class=\"card\"><table class=\"statements cards\"><thead><tr><th scope=\"col\">Statement</th><th scope=\"col\">Document</th><th scope=\"col\">Measured</th><th scope=\"col\">Verdict</th></tr></thead>\n");
        for of in &table.statements {
            text.push_str(&statement(report, form, of));
        }
        text.push_str("</table></div>\n");
    }
    text
}

fn statement(report: &Report, form: Form, of: &Statement) -> String {
    let lines = of.findings.len();
    let mut text = format!(
        "<tbody id=\"{}\"><tr><td rowspan=\"{lines}\"><span class=\"id\">{}</span>{}<small><a href=\"{}\">{}</a></small>",
        fragment(report, of),
        of.id,
        Text(of.statement),
        Text(&of.link),
        Text(of.section)
    );
    if !of.note.is_empty() {
        let _ = write!(text, "<small>{}</small>", Text(of.note));
    }
    let _ = write!(text, "</td><td rowspan=\"{lines}\" data-of=\"Document\">{}</td>", Text(of.figure));
    for (n, finding) in of.findings.iter().enumerate() {
        text.push_str(if n > 0 { "<tr>" } else { "" });
        let _ = writeln!(
            text,
            "<td data-of=\"Measured\">{}</td><td>{}<small>{}</small>{}</td></tr>",
            measured(report, form, finding),
            chip(finding.judgement),
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

fn measured(report: &Report, form: Form, finding: &Finding) -> String {
    let Some(run) = finding.run.and_then(|n| report.runs.get(n)) else { return "&#8211;".to_owned() };
    let page = families(report).into_iter().find(|(_, family)| *family == run.family);
    let link = page.map_or_else(String::new, |(name, _)| form.link(&name, ""));
    format!(
        "{}<small><a href=\"{link}\">{}</a>, {}</small>",
        Text(&finding.measured()),
        Text(&run.label),
        Text(&run.family)
    )
}

/// The rows behind a finding that say most: those that decide it first.
fn rows(finding: &Finding) -> String {
    if finding.cases.len() < 2 {
        return String::new();
    }
    let decides = |case: &&Case| (case.judgement == Judgement::TooNoisy, case.judgement != finding.judgement);
    let mut cases: Vec<&Case> = finding.cases.iter().collect();
    cases.sort_by_key(decides);
    let mut text = String::from("<details><summary>Rows</summary><ul class=\"rows\">");
    cases.iter().take(SHOWN).for_each(|case| text.push_str(&row(case)));
    if cases.len() > SHOWN {
        let _ = write!(text, "<li><small>{} more in report.json</small></li>", cases.len() - SHOWN);
    }
    text.push_str("</ul></details>");
    text
}

/// Rows that are shown for a finding.
const SHOWN: usize = 4;

fn row(case: &Case) -> String {
    let figure = if case.ratio.is_some() { case.ratio_in_words() } else { case.figure_measured() };
    format!("<li>{} {}: <small>{}</small></li>", Text(&figure), Text(&case.row), case.judgement.words())
}
