//! A report as one HTML file that loads nothing and runs nothing: no script, no font, no image from anywhere.

mod advice;
mod charts;
mod interval;
mod runs;
mod scale;
mod statements;
mod svg;
mod text;

use std::fmt::Write as _;

use super::units;
use super::words::counted;
use super::{Report, Run, Verdict};
use text::Text;

/// What the browser is told: nothing may be fetched, no script may run. The style stands in the page, and so does the (empty)
/// icon, which a browser would else ask the page's server for.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";
const STYLE: &str = include_str!("style.css");

/// The report as an HTML page.
#[must_use]
pub fn html(report: &Report) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n<title>Measured against the documents</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    );
    page.push_str(&header(report));
    page.push_str("<main>\n");
    page.push_str(&runs::measured(report));
    page.push_str(&statements::section(report));
    page.push_str(&charts::section(report));
    page.push_str(&runs::beside(report));
    page.push_str(&runs::counters(report));
    page.push_str(&runs::problems(report));
    page.push_str(&advice::section(report));
    page.push_str(&runs::rows(report));
    page.push_str("</main>\n");
    page.push_str(FOOTER);
    page.push_str("</body>\n</html>\n");
    page
}

const THEME: &str = "<div class=\"theme\" role=\"radiogroup\" aria-label=\"Theme\"><label><input type=\"radio\" name=\"theme\" id=\"theme-auto\" checked>Auto</label><label><input type=\"radio\" name=\"theme\" id=\"theme-light\">Light</label><label><input type=\"radio\" name=\"theme\" id=\"theme-dark\">Dark</label></div>\n";

const FOOTER: &str = "<footer>
<p><b>How to read it.</b> Figures are medians of repetitions with a 95 % interval; rows of one result took turns, so their ratios are taken repetition by repetition. Percentiles come from merged histograms. A metadata cycle creates, opens, closes, stats, lists and deletes one file.</p>
<p>A statement is <b>reproduced</b> when the whole interval of the ratio lies in the document's range, or its median does and the interval shows an effect at all; <b>not reproduced</b> when the whole interval lies outside. Everything else, and every statement whose conditions were not met, <b>cannot be tested here</b>. A statement on several rows is reproduced when all of them show it. &quot;No effect&quot; takes an interval within 10 % of 1; a trend fails when a step goes the other way beyond the noise and by more than 5 %.</p>
<p>On loopback there is no link, no NIC and no limit of a virtual machine: the documents' absolute figures, and gains that come from links, are not tested there.</p>
</footer>
";

/// The sections, in their order: the fragment and the name.
const SECTIONS: [(&str, &str); 8] = [
    ("measured", "What was measured"),
    ("documents", "Documents"),
    ("charts", "Charts"),
    ("beside", "Side by side"),
    ("counters", "Server counters"),
    ("problems", "What went wrong"),
    ("advice", "Advice"),
    ("rows", "All rows"),
];

fn header(report: &Report) -> String {
    let mut text = format!("<header>\n{THEME}<h1>Measured against the documents</h1>\n");
    let began = report.runs.iter().map(|run| run.began);
    let when = match (began.clone().min(), began.max()) {
        (Some(first), Some(last)) if units::moment(first) != units::moment(last) => {
            format!(", {} to {}", units::moment(first), units::moment(last))
        }
        (Some(first), _) => format!(", {}", units::moment(first)),
        _ => String::new(),
    };
    let _ = writeln!(text, "<p class=\"quiet\">{}{when}</p>", number(report.runs.len(), "result"));
    text.push_str("<div class=\"tiles\">\n");
    for verdict in [Verdict::Reproduced, Verdict::NotReproduced, Verdict::CannotBeTested] {
        let _ = writeln!(
            text,
            "<div class=\"tile {}\"><b>{}</b>{}</div>",
            statements::class(verdict),
            report.count(verdict),
            verdict.words()
        );
    }
    let _ = write!(
        text,
        "</div>\n<p class=\"quiet\"><small>Cannot be tested here: {}.</small></p>\n",
        report.obstacles()
    );
    text.push_str("<nav aria-label=\"Sections\">");
    for (fragment, name) in SECTIONS {
        let _ = write!(text, "<a href=\"#{fragment}\">{name}</a>");
    }
    text.push_str("</nav>\n</header>\n");
    text
}

/// The beginning of a section.
fn heading(fragment: &str) -> String {
    let name = SECTIONS.iter().find(|(known, _)| *known == fragment).map_or(fragment, |(_, name)| name);
    format!("<h2 id=\"{fragment}\">{name}</h2>\n")
}

fn number(count: usize, thing: &str) -> String {
    counted(u32::try_from(count).unwrap_or(u32::MAX), thing)
}

/// More results than this are listed, and shown when they are asked for: one would scroll for long else.
const LISTED: usize = 8;

/// What belongs to one of the results: under a heading, or, where there are many, to be opened.
fn part(report: &Report, run: &Run, more: &str, open: bool, inside: &str) -> String {
    if report.runs.len() <= LISTED {
        return format!("<h3>{}: {}</h3>\n{inside}", Text(&run.family), name(run));
    }
    let open = if open { " open" } else { "" };
    let head = format!("{}: {} <small>{more}</small>", Text(&run.family), name(run));
    format!("<details class=\"part\"{open}><summary>{head}</summary>\n{inside}</details>\n")
}

/// A result's name among several.
fn name(run: &Run) -> String {
    format!("{} <small>{}</small>", Text(&run.label), Text(&run.name))
}
