//! What to change, and why.

use std::fmt::Write as _;

use super::super::Report;
use super::super::units;
use super::text::Text;
use super::{Form, families, number};
use advise::{Action, Recommendation, Source};

/// All advice on the server that is judged, best first.
pub(super) fn list(report: &Report, form: Form) -> String {
    let all = report.advice();
    if all.is_empty() {
        return "<p>No rule has all the facts that it needs, or all is as it should be.</p>\n".to_owned();
    }
    let mut text = String::from(
        "<p class=\"quiet\">Each setting once, over all rows that say something of it. A measurement decides where there is one, else the documents do.</p>\n<ol class=\"advice\">\n",
    );
    all.iter().for_each(|one| text.push_str(&item(report, form, one)));
    text.push_str("</ol>\n");
    text
}

fn chip(of: Action) -> &'static str {
    match of {
        Action::Change => "<span class=\"chip ok\">change</span>",
        Action::Undecided => "<span class=\"chip open\">undecided</span>",
        Action::Keep => "<span class=\"chip open\">keep</span>",
    }
}

/// One of the first changes, in short.
pub(super) fn card(report: &Report, form: Form, of: &Recommendation) -> String {
    format!("<li class=\"card\">{}{}{}</li>\n", head(of), commands(of), evidence(report, form, of))
}

fn item(report: &Report, form: Form, of: &Recommendation) -> String {
    let mut text = format!(
        "<li class=\"card\">{} {}{}{}",
        chip(of.action),
        head(of),
        commands(of),
        evidence(report, form, of)
    );
    let figures = of.figures.join("; ");
    let source = match &of.source {
        Source::Document(statement) => {
            format!("<a href=\"{}\">{}</a>", Text(&statement.link()), Text(&statement.to_string()))
        }
        other => Text(&other.to_string()).to_string(),
    };
    let _ = write!(
        text,
        "<p><small>{}{}{source}</small></p>",
        Text(&figures),
        if figures.is_empty() { "" } else { "; " }
    );
    if of.tried.len() > 1 {
        let tried = of.tried.iter().map(|tried| format!("{} {}", tried.value, tried.ratio));
        let _ = write!(text, "<p><small>Tried: {}</small></p>", Text(&tried.collect::<Vec<_>>().join("; ")));
    }
    text.push_str("</li>\n");
    text
}

/// What to do, and what it brings.
fn head(of: &Recommendation) -> String {
    let gain = of.gain.and_then(|gain| gain.ratio.interval).map_or_else(String::new, |[low, _]| {
        format!(" <span class=\"gain\">{} or more</span>", units::ratio(low))
    });
    format!("<p><b>{}</b>{gain}</p>", Text(&of.text))
}

fn commands(of: &Recommendation) -> String {
    let mut text = String::new();
    for command in &of.commands {
        let _ = write!(
            text,
            "<p class=\"command\"><small>{}</small> <code>{}</code></p>",
            command.on,
            Text(&command.line)
        );
    }
    text
}

/// The measurement behind it, with the pages where it is, and what speaks against it.
fn evidence(report: &Report, form: Form, of: &Recommendation) -> String {
    let mut text = String::new();
    if let Some(conflict) = &of.conflict {
        let _ = write!(text, "<p class=\"but\"><small>But {}</small></p>", Text(conflict));
    }
    let pages = families(report);
    let mut links: Vec<String> = Vec::new();
    for run in report.runs.iter().filter(|run| of.results.contains(&run.name)) {
        if let Some((page, family)) = pages.iter().find(|(_, family)| *family == run.family) {
            let link = format!("<a href=\"{}\">{}</a>", form.link(page, ""), Text(family));
            if !links.contains(&link) {
                links.push(link);
            }
        }
    }
    let counts = of.tally.map_or_else(String::new, |tally| {
        format!(
            "{}: {} faster, {} slower, {} the same, {} too noisy. ",
            number(tally.rows, "row"),
            tally.higher,
            tally.lower,
            tally.no_effect,
            tally.too_noisy
        )
    });
    if !links.is_empty() || !counts.is_empty() {
        let _ = write!(text, "<p><small>{counts}{}</small></p>", links.join(", "));
    }
    text
}
