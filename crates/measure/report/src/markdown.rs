//! A report as Markdown.

use std::fmt::Write as _;

use super::claim::Figure;
use super::summary::FIRST;
use super::units;
use super::units::figure;
use super::{Beside, Chart, Judgement, Report, Run, Statement, Table};
use advise::{Action, Recommendation};

/// Text of anybody's: no markup, one line.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '~' | '&' => {
                plain.push('\\');
                plain.push(c);
            }
            c if c.is_control() => plain.push(' '),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => plain.push(' '),
            c => plain.push(c),
        }
    }
    plain
}

/// Our own text, in which code stands between backticks, in a cell.
fn coded(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts
        .map(|(n, part)| if n % 2 == 0 { plain(part) } else { format!("`{}`", part.replace('|', "\\|")) });
    parts.collect()
}

/// A table.
fn table<const N: usize>(heads: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut text = format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(N));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text.push('\n');
    text
}

/// The report as Markdown.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut text = first(report);
    text.push_str(&measured(report));
    text.push_str("## Documents\n\n");
    report.documents.iter().for_each(|table| text.push_str(&document(report, table)));
    text.push_str("## Charts, as figures\n\n");
    report.runs.iter().for_each(|run| text.push_str(&charts(run)));
    text.push_str(&beside(report));
    text.push_str(&counters(report));
    text.push_str(&problems(report));
    text.push_str(&advice(report));
    text.push_str(&rows(report));
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// Whether the server is good, how it stands against each peer, and what to change.
fn first(report: &Report) -> String {
    let mut text = format!("# {}\n\n", plain(&report.summary.headline));
    for sentence in &report.summary.sentences {
        let _ = writeln!(text, "* {}", plain(sentence));
    }
    text.push('\n');
    for card in &report.scorecards {
        let _ = write!(text, "## Against {}\n\n", plain(&card.peer));
        let rows = card.rows.iter().map(|row| {
            let interval = row.ratio.ratio.interval.map_or_else(
                || "-".to_owned(),
                |[low, high]| format!("{} to {}", units::ratio(low), units::ratio(high)),
            );
            [row.work.words().to_owned(), row.words(), interval, row.rows.to_string()]
        });
        text.push_str(&table(["Work", "Ratio", "95 %", "Rows"], rows));
    }
    let advice = report.advice();
    let changes: Vec<_> = advice.iter().filter(|one| one.action == Action::Change).take(FIRST).collect();
    text.push_str("## What to change\n\n");
    changes.iter().for_each(|one| text.push_str(&recommendation(one)));
    text.push_str(if changes.is_empty() { "Nothing that pays beyond the noise.\n\n" } else { "\n" });
    let counts = Judgement::ALL
        .map(|judgement| format!("**{}** {}", report.count_judged(judgement), judgement.words()));
    let _ = write!(
        text,
        "## The documents' statements, in short\n\n{} (too noisy, or cannot be tested: {})\n\n",
        counts.join(", "),
        report.obstacles()
    );
    text
}

/// One piece of advice: a list item with its commands.
fn recommendation(of: &Recommendation) -> String {
    let gain = of.gain.and_then(|gain| gain.ratio.interval);
    let gain = gain.map_or_else(String::new, |[low, _]| format!(" ({} or more)", units::ratio(low)));
    let mut text = format!("* **{}** {}{gain}", action(of.action), plain(&of.text));
    if let Some(conflict) = &of.conflict {
        let _ = write!(text, " But {}.", plain(conflict));
    }
    let figures = if of.figures.is_empty() { String::new() } else { format!("{}; ", of.figures.join("; ")) };
    let _ = writeln!(text, " ({}{})", plain(&figures), plain(&of.source.to_string()));
    for command in &of.commands {
        let _ = writeln!(text, "  * {}: `{}`", command.on, command.line.replace('`', "'"));
    }
    text
}

fn action(action: Action) -> &'static str {
    match action {
        Action::Change => "change:",
        Action::Undecided => "undecided:",
        Action::Keep => "keep:",
    }
}

/// A result's name among several.
fn name(run: &Run) -> String {
    format!("{}: {} ({})", plain(&run.family), plain(&run.label), plain(&run.name))
}

fn measured(report: &Report) -> String {
    let mut text = String::from("## What was measured\n\n");
    report.warnings().iter().for_each(|(_, line)| {
        let _ = write!(text, "> {}\n\n", plain(line));
    });
    text.push_str(&table(
        ["Family", "Target", "File", "Agreed on", "Round trip", "Loopback", "Measured"],
        report.runs.iter().map(|run| {
            [
                plain(&run.family),
                plain(&run.environment.target),
                plain(&run.name),
                plain(&run.agreed_on()),
                run.round_trip(),
                if run.environment.loopback { "yes" } else { "no" }.to_owned(),
                plain(&run.extent()),
            ]
        }),
    ));
    for (client, facts) in report.clients() {
        let _ = write!(text, "### {client}\n\n");
        text.push_str(&table(
            ["", ""],
            facts.into_iter().map(|(fact, value)| [fact.to_owned(), plain(&value)]),
        ));
    }
    text
}

fn document(report: &Report, of: &Table) -> String {
    let mut text = format!("### {}\n\n", plain(&of.document));
    if !of.also.is_empty() {
        let _ = write!(text, "{}\n\n", plain(of.also));
    }
    let rows = of.statements.iter().flat_map(|statement| statement_rows(report, statement));
    text.push_str(&table(["Statement", "Document", "Measured", "Verdict", "Why"], rows));
    text
}

fn statement_rows(report: &Report, of: &Statement) -> Vec<[String; 5]> {
    let note = if of.note.is_empty() { String::new() } else { format!(" ({})", plain(of.note)) };
    let row = |finding: &super::Finding| {
        let run = finding.run.and_then(|n| report.runs.get(n));
        let measured = run
            .map_or_else(|| "-".to_owned(), |run| format!("{} ({})", finding.measured(), plain(&run.name)));
        [
            format!("{} {} ([{}]({})){note}", of.id, plain(of.statement), plain(of.section), of.link),
            plain(of.figure),
            measured,
            format!("**{}**", finding.judgement.words()),
            coded(&finding.reason),
        ]
    };
    of.findings.iter().map(row).collect()
}

fn charts(run: &Run) -> String {
    let mut text = String::new();
    for chart in &run.charts {
        let _ = write!(text, "### {}, {}\n\n{}\n\n", plain(&chart.title), name(run), plain(&chart.about));
        text.push_str(&chart_table(chart));
    }
    text
}

fn chart_table(chart: &Chart) -> String {
    let heads: Vec<String> = chart.series.iter().map(|series| plain(&series.name)).collect();
    let mut text = format!("| {} | {} |\n|---|{}\n", chart.x, heads.join(" | "), "---|".repeat(heads.len()));
    for (n, tick) in chart.ticks.iter().enumerate() {
        let cells = chart.series.iter().map(|series| {
            let point = series.points.get(n).copied().flatten();
            point.map_or_else(|| "-".to_owned(), |point| figure(chart.y, point.value))
        });
        let _ = writeln!(text, "| {} | {} |", plain(tick), cells.collect::<Vec<_>>().join(" | "));
    }
    text.push('\n');
    text
}

fn beside(report: &Report) -> String {
    if report.beside.is_empty() {
        return String::new();
    }
    let mut text = String::from("## Side by side\n\n");
    for beside in &report.beside {
        text.push_str(&one_beside(report, beside));
    }
    text
}

fn one_beside(report: &Report, beside: &Beside) -> String {
    let (Some(base), Some(other)) = (report.runs.get(beside.base), report.runs.get(beside.other)) else {
        return String::new();
    };
    let mut text = format!("### {} against {}\n\n{}\n\n", name(other), name(base), beside.how());
    if let Some(note) = super::show::plans(base, other) {
        let _ = write!(text, "{}\n\n", plain(&note));
    }
    let heads = [plain(&base.name), plain(&other.name)];
    let rows = beside.rows.iter().map(|row| {
        let rate = |value: f64| figure(Figure::Rate, value);
        [
            plain(&row.row),
            rate(row.base.median),
            rate(row.other.median),
            row.ratio_in_words(),
            row.cpu_in_words(),
        ]
    });
    text.push_str(&table(["Row", &heads[0], &heads[1], "Ratio", "Server CPU/op"], rows));
    text
}

fn counters(report: &Report) -> String {
    let rows: Vec<_> =
        report.runs.iter().flat_map(|run| run.counters.iter().map(move |c| (run, c))).collect();
    if rows.is_empty() {
        return String::new();
    }
    let rows = rows.into_iter().map(|(run, c)| {
        [
            plain(&run.name),
            plain(&c.row),
            c.what.to_owned(),
            c.in_words(c.client),
            c.in_words(c.server),
            c.meaning.clone(),
        ]
    });
    format!(
        "## Server counters\n\n{}",
        table(["File", "Row", "Counted", "Clients", "Server", "Meaning"], rows)
    )
}

fn problems(report: &Report) -> String {
    let mut text = String::from("## What went wrong\n\n");
    for run in &report.runs {
        let told = run.told();
        if !told.is_empty() {
            let _ = write!(text, "### {}\n\n", name(run));
            told.iter().for_each(|line| {
                let _ = writeln!(text, "* {}", plain(line));
            });
            text.push('\n');
        }
    }
    if report.runs.iter().all(|run| run.told().is_empty()) {
        text.push_str("Nothing.\n\n");
    }
    text
}

fn advice(report: &Report) -> String {
    let mut text = String::from("## Advice\n\n");
    report.advice().iter().for_each(|one| text.push_str(&recommendation(one)));
    text.push('\n');
    text
}

fn rows(report: &Report) -> String {
    let mut text = String::from("## All rows\n\n");
    for run in &report.runs {
        let _ = write!(text, "### {}\n\n", name(run));
        let heads = [
            "Row",
            "Op/s",
            "95 %",
            "Data/s",
            "p50",
            "p99",
            "p99.9",
            "Client CPU/op",
            "Server CPU/op",
            "Against its base",
        ];
        let rows = run.rows.iter().map(|row| {
            let [rate, interval, data, p50, p99, p999, client, server, against] = row.cells();
            [plain(&row.row), rate, interval, data, p50, p99, p999, client, server, against]
        });
        text.push_str(&table(heads, rows));
    }
    text
}
