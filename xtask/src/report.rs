//! One page of a report of `anabranch report`: the statements of the documents that were reproduced, those that were
//! not, and why the rest could not be tested.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;
use serde_json::Value;

use crate::command::{Chore, said};
use crate::markdown::table;

#[derive(Args)]
pub(crate) struct ReportArguments {
    /// The report.json that `anabranch report` wrote
    report: PathBuf,
    /// A sentence about this run, such as its commit
    #[arg(long)]
    note: Option<String>,
}

pub(crate) fn run(given: &ReportArguments) -> Chore {
    let name = given.report.display();
    let text = fs::read_to_string(&given.report).map_err(|e| format!("{name}: {e}"))?;
    let report: Value = serde_json::from_str(&text).map_err(|e| format!("{name}: {e}"))?;
    print!("{}", page(&report, given.note.as_deref())?);
    Ok(ExitCode::SUCCESS)
}

/// The judgements, as reports have them and as people read them; those from the fifth on decide nothing.
const JUDGEMENTS: [(&str, &str); 6] = [
    ("reproduced", "reproduced"),
    ("better", "better"),
    ("worse", "worse"),
    ("mixed", "mixed"),
    ("too-noisy", "too noisy"),
    ("cannot-be-tested", "cannot be tested here"),
];
const DECIDED: usize = 4;

fn decides(finding: &Value) -> bool {
    JUDGEMENTS[..DECIDED].iter().any(|(name, _)| *name == text(&finding["judgement"]))
}

fn page(report: &Value, note: Option<&str>) -> Result<String, String> {
    Ok(format!("{}\n{}\n{}", head(report, note)?, decided(report), undecided(report)))
}

fn head(report: &Value, note: Option<&str>) -> Result<String, String> {
    let judged: Vec<_> =
        statements(report).flat_map(|s| list(&s["findings"])).map(|f| text(&f["judgement"])).collect();
    if judged.iter().any(|judgement| judgement.is_empty()) {
        return Err("a report of an older program: make it again with `anabranch report`".to_owned());
    }
    let counts = JUDGEMENTS
        .iter()
        .map(|(name, words)| format!("**{}** {words}", judged.iter().filter(|found| *found == name).count()));
    let runs = list(&report["runs"]);
    let began = runs.iter().filter_map(|run| run["began"].as_u64()).min().ok_or("a report without runs")?;
    let day = said(Command::new("date").args(["-u", "-d", &format!("@{began}"), "+%Y-%m-%d"]))?;
    let note = note.map_or_else(String::new, |note| format!(" {note}"));
    Ok(format!(
        "# The documents' statements, measured\n\n\
         Made by `cargo xtask report` from the output of `anabranch bench all` and `anabranch report` ([how](../report.md)).\n\
         Measured on {day}: {} results, {}; client and server on one machine, over the loopback.{note}\n\n\
         {}\n\n\
         Findings: {}.\n\
         A finding is one statement for one server; [the rules of the verdicts](../report.md#verdicts).\n",
        runs.len(),
        servers(report).join(", "),
        text(&report["summary"]["headline"]),
        counts.collect::<Vec<_>>().join(", "),
    ))
}

/// The statements that a finding decides, and the finding for each server.
fn decided(report: &Value) -> String {
    let servers = servers(report);
    let heads: Vec<_> =
        ["statement", "the document says"].into_iter().chain(servers.iter().copied()).collect();
    let rows = statements(report).filter(|statement| is_decided(statement)).map(|statement| {
        let named = format!("{} {}", text(&statement["id"]), text(&statement["statement"]));
        let found = servers.iter().map(|server| cell(&findings(report, statement, server)));
        [named, text(&statement["figure"]).to_owned()].into_iter().chain(found).collect::<Vec<_>>()
    });
    format!("## What was decided\n\n{}\n", table(&heads, &rows.collect::<Vec<_>>()))
}

/// The undecided statements, grouped by reason.
fn undecided(report: &Value) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for statement in statements(report).filter(|statement| !is_decided(statement)) {
        let reason = without_rows(text(&statement["findings"][0]["reason"]));
        match reasons.iter_mut().find(|(of, _)| *of == reason) {
            Some((_, ids)) => ids.push(text(&statement["id"])),
            None => reasons.push((reason, vec![text(&statement["id"])])),
        }
    }
    reasons.sort_by_key(|(_, ids)| std::cmp::Reverse(ids.len()));
    let rows: Vec<_> =
        reasons.into_iter().map(|(why, ids)| [why.to_owned(), distinct(ids).join(", ")]).collect();
    let numbered = list(&report["documents"]).iter().filter_map(|document| {
        let first = text(&list(&document["statements"]).first()?["id"]);
        Some(format!("{} {}", first.split('.').next()?, text(&document["document"])))
    });
    format!(
        "## What could not be tested here, and why\n\n{}\n\n\
         A statement with several servers is listed under the reason of the first server. The first number of a statement is its document:\n{}.\n",
        table(&["why", "statements"], &rows),
        numbered.collect::<Vec<_>>().join("; "),
    )
}

/// The findings on a statement for a server: each verdict once, and those without a result only if there is no other.
fn findings<'a>(report: &Value, statement: &'a Value, of: &str) -> Vec<&'a Value> {
    let mut found: Vec<&Value> = Vec::new();
    for finding in list(&statement["findings"]) {
        let run = finding["run"].as_u64().and_then(|run| usize::try_from(run).ok());
        let measured = run.is_some_and(|run| server(&report["runs"][run]) == of);
        if measured && found.iter().all(|other| other["judgement"] != finding["judgement"]) {
            found.push(finding);
        }
    }
    if found.iter().any(|finding| decides(finding)) {
        found.retain(|finding| decides(finding));
    }
    found
}

fn cell(findings: &[&Value]) -> String {
    let shown = findings.iter().map(|finding| {
        let name = text(&finding["judgement"]);
        let words = JUDGEMENTS.iter().find(|(known, _)| *known == name).map_or(name, |(_, words)| words);
        let words = if name == "worse" { format!("**{words}**") } else { words.to_owned() };
        format!("{words}{}", ratios(finding))
    });
    let shown: Vec<_> = shown.collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join(", ") }
}

/// The medians of the rows' ratios, if there are any: " (0.85x to 1.52x)".
fn ratios(finding: &Value) -> String {
    let ratios: Vec<_> =
        list(&finding["cases"]).iter().filter_map(|case| case["ratio"]["ratio"]["median"].as_f64()).collect();
    let Some(least) = ratios.iter().copied().reduce(f64::min) else { return String::new() };
    let greatest = ratios.iter().copied().fold(least, f64::max);
    let ends = distinct([least, greatest].map(|ratio| format!("{ratio:.2}x")).into());
    format!(" ({})", ends.join(" to "))
}

/// A reason without the count of rows at its end: " (3 rows)", " (1 of 3 rows)".
fn without_rows(reason: &str) -> &str {
    let Some((why, count)) = reason.rsplit_once(" (") else { return reason };
    let words: Vec<_> = count.split(' ').collect();
    let (&[number, rows] | &[_, "of", number, rows]) = words.as_slice() else { return reason };
    let counts = matches!(rows, "row)" | "rows)") && number.parse::<u32>().is_ok();
    if counts && words[0].parse::<u32>().is_ok() { why } else { reason }
}

fn statements(report: &Value) -> impl Iterator<Item = &Value> {
    list(&report["documents"]).iter().flat_map(|document| list(&document["statements"]))
}

fn is_decided(statement: &Value) -> bool {
    list(&statement["findings"]).iter().any(decides)
}

/// The measured programs.
fn servers(report: &Value) -> Vec<&str> {
    let mut servers: Vec<_> = list(&report["runs"]).iter().map(server).collect();
    servers.sort_unstable();
    servers.dedup();
    servers
}

/// The measured program of a run: "NFS-Ganesha 4.3, NFSv4.1" -> "NFS-Ganesha 4.3".
fn server(run: &Value) -> &str {
    text(&run["label"]).split(',').next().unwrap_or_default()
}

/// The distinct items in their order.
fn distinct<T: PartialEq>(all: Vec<T>) -> Vec<T> {
    let mut once = Vec::new();
    for one in all {
        if !once.contains(&one) {
            once.push(one);
        }
    }
    once
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn finding(run: u32, verdict: &str, ratios: &[f64]) -> Value {
        let cases: Vec<_> =
            ratios.iter().map(|ratio| json!({"ratio": {"ratio": {"median": ratio}}})).collect();
        json!({"run": run, "judgement": verdict, "cases": cases, "reason": "the interval is wide (1 of 2 rows)"})
    }

    #[test]
    fn a_page_has_what_was_decided_and_what_was_not() {
        let report = json!({
            "summary": {"headline": "A is good"},
            "runs": [{"label": "B 1, SMB", "began": 86_400}, {"label": "A 2, NFS", "began": 172_800}],
            "documents": [{"document": "D", "statements": [
                {"id": "1.01", "statement": "s", "figure": "rises", "findings": [
                    finding(0, "reproduced", &[2.0, 1.5]), finding(0, "too-noisy", &[]), finding(1, "worse", &[1.0])]},
                {"id": "1.02", "statement": "t", "figure": "falls", "findings": [finding(0, "cannot-be-tested", &[])]},
            ]}],
        });
        let page = page(&report, Some("Note.")).unwrap();
        for line in [
            "Measured on 1970-01-02: 2 results, A 2, B 1; client and server on one machine, over the loopback. Note.",
            "A is good",
            "Findings: **1** reproduced, **0** better, **1** worse, **0** mixed, **1** too noisy, **1** cannot be tested here.",
            "| statement | the document says | A 2 | B 1 |",
            "| 1.01 s | rises | **worse** (1.00x) | reproduced (1.50x to 2.00x) |",
            "| the interval is wide | 1.02 |",
            "1 D.",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
    }

    #[test]
    fn a_reason_has_no_count_of_rows() {
        assert_eq!(without_rows("why (3 rows)"), "why");
        assert_eq!(without_rows("why (1 of 3 rows)"), "why");
        assert_eq!(without_rows("why (1 row)"), "why");
        assert_eq!(without_rows("why (in 3 rows)"), "why (in 3 rows)");
        assert_eq!(without_rows("why"), "why");
    }
}
