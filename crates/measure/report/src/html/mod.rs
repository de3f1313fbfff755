//! A report as HTML that loads nothing and runs nothing: no script, no font, no image from anywhere.
//!
//! [`pages`] makes a first page that answers the question, with pages of their own for the statements, for the rows of each family
//! and for what was measured. [`html`] makes all of it one file.

mod advice;
mod charts;
mod first;
mod interval;
mod measured;
mod rows;
mod scale;
mod statements;
mod svg;
mod text;

use std::fmt::Write as _;

use super::Report;
use super::units;
use super::words::counted;
use text::Text;

/// What the browser is told: nothing may be fetched, no script may run. The style stands in the page, and so does the (empty)
/// icon, which a browser would else ask the page's server for.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";
const STYLE: &str = include_str!("style.css");

/// How the parts of a report are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A page for each part.
    Pages,
    /// One page.
    One,
}

/// A part of a report: a page, or a section of the one page.
struct Part {
    /// Its name, which is that of its file without the ending, and its fragment in the one page.
    name: String,
    title: String,
    body: String,
}

const STATEMENTS: &str = "statements";
const MEASURED: &str = "measured";

impl Form {
    /// The address of a part, or of something in it.
    fn link(self, part: &str, fragment: &str) -> String {
        match (self, fragment) {
            (Self::Pages, "") => format!("{part}.html"),
            (Self::Pages, fragment) => format!("{part}.html#{fragment}"),
            (Self::One, "") => format!("#{part}"),
            (Self::One, fragment) => format!("#{fragment}"),
        }
    }
}

/// The report as pages: the name of each file and its text, `index.html` first.
#[must_use]
pub fn pages(report: &Report) -> Vec<(String, String)> {
    let first = page(&report.summary.headline, &first::first(report, Form::Pages, ""));
    let mut all = vec![("index.html".to_owned(), first)];
    for Part { name, title, body } in parts(report, Form::Pages) {
        let header = format!(
            "<header>\n{THEME}<p><a href=\"index.html\">The report</a></p>\n<h1>{}</h1>\n</header>\n",
            Text(&title)
        );
        all.push((format!("{name}.html"), page(&title, &format!("{header}<main>\n{body}</main>\n"))));
    }
    all
}

/// The report as one HTML page.
#[must_use]
pub fn html(report: &Report) -> String {
    let mut rest = String::new();
    for Part { name, title, body } in parts(report, Form::One) {
        let _ = write!(rest, "<h2 id=\"{name}\">{}</h2>\n{body}", Text(&title));
    }
    page(&report.summary.headline, &first::first(report, Form::One, &rest))
}

/// The style without what only people need who change it.
fn style() -> String {
    let lines: String = STYLE.lines().map(str::trim).collect();
    [": ", "; ", " { ", ", ", " }"].iter().fold(lines, |text, spaced| text.replace(spaced, spaced.trim()))
}

fn page(title: &str, body: &str) -> String {
    let style = style();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>{style}</style>\n</head>\n<body>\n{body}</body>\n</html>\n",
        Text(title)
    )
}

/// All parts but the first page.
fn parts(report: &Report, form: Form) -> Vec<Part> {
    let mut all = vec![Part {
        name: STATEMENTS.to_owned(),
        title: "The documents' statements".to_owned(),
        body: statements::section(report, form),
    }];
    for (name, family) in families(report) {
        let body = rows::section(report, &family);
        all.push(Part { name, title: format!("{family}: row by row"), body });
    }
    all.push(Part {
        name: MEASURED.to_owned(),
        title: "What was measured, and what went wrong".to_owned(),
        body: measured::section(report),
    });
    all
}

/// The families, each with the name of its page.
fn families(report: &Report) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for run in &report.runs {
        if all.iter().any(|(_, family)| *family == run.family) {
            continue;
        }
        // A family's name comes from a file: it may be anything.
        let fit = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let mut name = format!("rows-{}", run.family.chars().take(40).map(fit).collect::<String>());
        if all.iter().any(|(known, _)| *known == name) {
            name = format!("{name}-{}", all.len());
        }
        all.push((name, run.family.clone()));
    }
    all
}

const THEME: &str = "<div class=\"theme\" role=\"radiogroup\" aria-label=\"Theme\"><label><input type=\"radio\" name=\"theme\" id=\"theme-auto\" checked>Auto</label><label><input type=\"radio\" name=\"theme\" id=\"theme-light\">Light</label><label><input type=\"radio\" name=\"theme\" id=\"theme-dark\">Dark</label></div>\n";

/// When the results were made: `2026-11-22 11:05 UTC to 2026-11-22 12:05 UTC`.
fn when(report: &Report) -> String {
    let began = report.runs.iter().map(|run| run.began);
    match (began.clone().min(), began.max()) {
        (Some(first), Some(last)) if units::moment(first) != units::moment(last) => {
            format!(", {} to {}", units::moment(first), units::moment(last))
        }
        (Some(first), _) => format!(", {}", units::moment(first)),
        _ => String::new(),
    }
}

fn number(count: usize, thing: &str) -> String {
    counted(u32::try_from(count).unwrap_or(u32::MAX), thing)
}
