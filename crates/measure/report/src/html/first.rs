//! The first page: whether the server is good, how it stands against each peer, and what to change.

use std::fmt::Write as _;

use super::super::evidence::Judgement;
use super::super::judge::{Finding, Statement};
use super::super::score::{Scorecard, Standing};
use super::super::summary::{FIRST, Rating};
use super::super::{Report, units};
use super::interval::Axis;
use super::text::Text;
use super::{Form, MEASURED, STATEMENTS, THEME, advice, families, number, statements, when};
use advise::{Action, Recommendation};

/// The first page without what stands around it. `rest` are the other parts, where they are on the same page.
pub(super) fn first(report: &Report, form: Form, rest: &str) -> String {
    let mut text = header(report, form);
    text.push_str("<main>\n");
    text.push_str(&scorecards(report));
    text.push_str(&changes(report, form));
    text.push_str(&statements_in_short(report, form));
    text.push_str("<h2 id=\"advice\">All advice</h2>\n");
    text.push_str(&advice::list(report, form));
    text.push_str(&rows(report, form));
    text.push_str(rest);
    text.push_str("</main>\n");
    text.push_str(FOOTER);
    text
}

fn header(report: &Report, form: Form) -> String {
    let summary = &report.summary;
    let class = match summary.rating {
        Rating::Good | Rating::GoodWithExceptions => "ok",
        Rating::Behind | Rating::NotSound => "no",
        Rating::Even | Rating::TooNoisy | Rating::Alone => "open",
    };
    let mut text = format!(
        "<header>\n{THEME}<h1 class=\"verdict {class}\">{}</h1>\n<ul class=\"grounds\">",
        Text(&summary.headline)
    );
    for sentence in &summary.sentences {
        let _ = write!(text, "<li>{}</li>", Text(sentence));
    }
    let _ = write!(
        text,
        "</ul>\n<p class=\"quiet\"><small>{}{}. ",
        number(report.runs.len(), "result"),
        when(report)
    );
    for (name, warning) in report.warnings() {
        let _ = write!(
            text,
            "<a class=\"chip warn\" href=\"{}\" title=\"{}\">{name}</a> ",
            form.link(MEASURED, "notes"),
            Text(&warning)
        );
    }
    text.push_str("</small></p>\n<nav aria-label=\"Parts\">");
    for (link, name) in [
        ("#advice".to_owned(), "Advice"),
        (form.link(STATEMENTS, ""), "Statements of the documents"),
        ("#rows".to_owned(), "Row by row"),
        (form.link(MEASURED, ""), "What was measured"),
        (form.link(MEASURED, "problems"), "What went wrong"),
    ] {
        let _ = write!(text, "<a href=\"{link}\">{name}</a>");
    }
    text.push_str("</nav>\n</header>\n");
    text
}

fn scorecards(report: &Report) -> String {
    if report.scorecards.is_empty() {
        return "<p id=\"peers\">No other server was measured on the same rows: <code>anabranch bench all --out results/</code> measures this one beside Samba and NFS-Ganesha.</p>\n".to_owned();
    }
    let mut text = String::from("<div class=\"cards-of\" id=\"peers\">\n");
    report.scorecards.iter().for_each(|card| text.push_str(&scorecard(card)));
    text.push_str("</div>\n");
    text
}

fn scorecard(card: &Scorecard) -> String {
    let how = if card.in_turns { "in turns" } else { "partly one after the other" };
    let mut text = format!(
        "<table class=\"card score\"><caption>Against {} <small>({how}; more is better but for CPU)</small></caption><thead class=\"unseen\"><tr><th scope=\"col\">Work</th><th scope=\"col\">Interval</th><th scope=\"col\">Ratio</th></tr></thead><tbody>\n",
        Text(&card.peer)
    );
    let axis = Axis::of_ratios(card.rows.iter().map(|row| row.ratio));
    for row in &card.rows {
        let class = match row.standing {
            Standing::Ahead => "ok",
            Standing::Behind => "no",
            Standing::Same | Standing::TooNoisy => "open",
        };
        let interval = row.ratio.ratio.interval.map_or_else(
            || "one repetition".to_owned(),
            |[low, high]| format!("95 %: {} to {}", units::ratio(low), units::ratio(high)),
        );
        let _ = writeln!(
            text,
            "<tr><th scope=\"row\">{}</th><td title=\"{interval}, {}\">{}</td><td class=\"{class}\">{}</td></tr>",
            row.work.words(),
            number(row.rows, "row"),
            axis.mark_as(&row.ratio, class),
            row.words()
        );
    }
    text.push_str("</tbody></table>\n");
    text
}

/// The changes that pay most.
fn changes(report: &Report, form: Form) -> String {
    let advice = report.advice();
    let first: Vec<&&Recommendation> =
        advice.iter().filter(|one| one.action == Action::Change).take(FIRST).collect();
    let title = match first.len() {
        0 => "No change is advised",
        1 => "The change that pays",
        2 => "The two changes that pay most",
        _ => "The three changes that pay most",
    };
    let mut text = format!("<section id=\"changes\"><h2>{title}</h2>\n");
    if first.is_empty() {
        text.push_str("<p>No setting that was measured pays beyond the noise, and no rule finds one that costs something.</p>");
    }
    text.push_str("<ol class=\"changes\">\n");
    first.iter().for_each(|one| text.push_str(&advice::card(report, form, one)));
    text.push_str("</ol></section>\n");
    text
}

/// How often which judgement, and the statements that are not as documented.
fn statements_in_short(report: &Report, form: Form) -> String {
    let mut text = format!(
        "<h2 id=\"documents\"><a href=\"{}\">The documents' statements</a></h2>\n<div class=\"tiles\">\n",
        form.link(STATEMENTS, "")
    );
    for judgement in Judgement::ALL {
        let _ = writeln!(
            text,
            "<div class=\"tile {}\"><b>{}</b>{}</div>",
            statements::class(judgement),
            report.count_judged(judgement),
            judgement.words()
        );
    }
    let _ = write!(
        text,
        "</div>\n<p class=\"quiet\"><small>A finding is one statement for one result. Cannot be tested, or too noisy: {}.</small></p>\n",
        report.obstacles()
    );
    for judgement in [Judgement::Worse, Judgement::Mixed, Judgement::Better, Judgement::Reproduced] {
        text.push_str(&named(report, form, judgement));
    }
    text
}

/// The statements with a finding of this kind, by their names.
fn named(report: &Report, form: Form, judgement: Judgement) -> String {
    let has = |statement: &&Statement| statement.findings.iter().any(|f| f.judgement == judgement);
    let found: Vec<&Statement> =
        report.documents.iter().flat_map(|table| &table.statements).filter(has).collect();
    if found.is_empty() {
        return String::new();
    }
    let mut text = format!("<p>{}</p>\n<ul class=\"named\">", statements::chip(judgement));
    for of in found {
        let findings = of.findings.iter().filter(|f| f.judgement == judgement);
        let servers: Vec<String> = findings.filter_map(|f| server(report, f)).collect();
        let _ = write!(
            text,
            "<li><a href=\"{}\">{}</a> <small>{}; the document: {}; {}</small></li>",
            form.link(STATEMENTS, &statements::fragment(report, of)),
            Text(of.statement),
            of.id,
            Text(of.figure),
            Text(&servers.join("; "))
        );
    }
    text.push_str("</ul>\n");
    text
}

/// The server of a finding, with its figure.
fn server(report: &Report, finding: &Finding) -> Option<String> {
    let run = report.runs.get(finding.run?)?;
    Some(format!("{}: {}", run.label, finding.measured()))
}

fn rows(report: &Report, form: Form) -> String {
    let mut text = String::from("<h2 id=\"rows\">Row by row</h2>\n<ul>");
    for (name, family) in families(report) {
        let runs: Vec<_> = report.runs.iter().filter(|run| run.family == family).collect();
        let about = runs.first().map_or("", |run| run.about);
        let _ = write!(
            text,
            "<li><a href=\"{}\">{}</a> <small>{}; {}</small></li>",
            form.link(&name, ""),
            Text(&family),
            Text(about),
            number(runs.len(), "result")
        );
    }
    text.push_str("</ul>\n");
    text
}

const FOOTER: &str = "<footer>
<p><b>How to read it.</b> Figures are medians of repetitions with a 95 % interval; rows of one result took turns, so their ratios are taken repetition by repetition. Rows together are compared by the geometric mean of their ratios in each repetition.</p>
<p><b>No measurable effect</b> and <b>the same</b> are said only where the whole interval lies between 1/1.1 and 1.1: two one-sided tests (TOST, Schuirmann 1987) at 2.5 % each. Where the interval holds 1 and reaches further, it is <b>too noisy to tell</b>.</p>
<p>A statement is <b>reproduced</b> where the interval lies in the document's range, or the median does and the interval shows an effect at all; <b>better</b> or <b>worse</b> where the whole interval lies outside; <b>mixed</b> where rows disagree. On loopback there is no link, no NIC and no limit of a virtual machine: gains that come from these, and absolute figures, cannot be tested there.</p>
</footer>
";
