//! One result, as a report shows it.

use serde::Serialize;

use super::chart::{Chart, charts, overall};
use super::counters::{Counted, counted};
use super::words;
use advise::{Advice, Profile, of_result};
use load::plan::family;
use load::result::{Environment, Latency, Measure, Method, Outcome, Problem, ResultFile, Row};
use load::statistics::Ratio;

/// One result.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// The file that it was read from, without the folder.
    pub name: String,
    /// What to call it beside others: the server, as far as it is known, and the protocol.
    pub label: String,
    /// The family.
    pub family: String,
    /// What the family shows.
    pub about: &'static str,
    /// The program that measured.
    pub program: String,
    /// When it began, in seconds since 1970 (UTC).
    pub began: u64,
    /// How it was measured.
    pub method: Method,
    /// Where it was measured.
    pub environment: Environment,
    /// How it ended.
    pub outcome: Outcome,
    /// What went wrong.
    pub problems: Vec<Problem>,
    /// What was asked for and could not be done.
    pub not_honoured: Vec<String>,
    /// What was measured.
    pub rows: Vec<RunRow>,
    /// What the clients did and what the server counted, where it tells.
    pub counters: Vec<Counted>,
    /// Its charts.
    pub charts: Vec<Chart>,
    /// What it means.
    pub advice: Vec<RunAdvice>,
}

/// What one setting gave.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRow {
    /// What was set, in words.
    pub row: String,
    /// Repetitions behind it.
    pub repetitions: usize,
    /// Its figures.
    pub measure: Measure,
    /// The latencies of what its rate counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
    /// Its rate by that of the row that it is held against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<Ratio>,
    /// Operations that failed.
    pub errors: u64,
    /// Blocks that came back with other bytes than they had to.
    pub wrong_blocks: u64,
    /// Connections that were lost and made again.
    pub reconnects: u64,
}

/// A piece of advice, and the work that it is for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunAdvice {
    /// The advice, with the figures of the first work that it is for.
    pub advice: Advice,
    /// The rows that it is for, as their keys print.
    pub rows: Vec<String>,
}

impl Run {
    /// It was measured on Anabranch.
    pub(super) fn is_of_anabranch(&self) -> bool {
        let server = self.environment.server.as_ref();
        server.is_some_and(|server| server.to_lowercase().starts_with("anabranch"))
    }

    pub(super) fn of(name: &str, result: &ResultFile, profile: Profile) -> Self {
        let environment = &result.environment;
        let spoken = words::protocol(environment.protocol);
        let label = environment.server.as_ref().map(|server| format!("{server}, {spoken}"));
        Self {
            name: name.to_owned(),
            label: label.unwrap_or_else(|| spoken.to_owned()),
            family: result.family.clone(),
            about: family(&result.family).map_or("a load of one's own", |family| family.about),
            program: result.program.clone(),
            began: result.began,
            method: result.method.clone(),
            environment: environment.clone(),
            outcome: result.outcome,
            problems: result.problems.clone(),
            not_honoured: result.not_honoured.clone(),
            rows: result.rows.iter().filter_map(|row| RunRow::of(result, row)).collect(),
            counters: result.rows.iter().flat_map(|row| counted(environment.protocol, row)).collect(),
            charts: charts(result),
            advice: advice(result, profile),
        }
    }
}

impl RunRow {
    fn of(result: &ResultFile, row: &Row) -> Option<Self> {
        let of_repetitions =
            |count: fn(&load::result::Repetition) -> u64| row.repetitions.iter().map(count).sum();
        Some(Self {
            row: words::row(result.environment.protocol, &row.key),
            repetitions: row.repetitions.len(),
            measure: row.measure.clone()?,
            latency: overall(row),
            against: result.comparisons.iter().find(|c| c.other == row.key).and_then(|c| c.rate),
            errors: of_repetitions(|r| r.errors),
            wrong_blocks: of_repetitions(|r| r.wrong_blocks),
            reconnects: of_repetitions(|r| r.reconnects),
        })
    }
}

/// The advice on all kinds of work of a result, each piece once.
fn advice(result: &ResultFile, profile: Profile) -> Vec<RunAdvice> {
    let mut pieces: Vec<RunAdvice> = Vec::new();
    for judged in of_result(result, profile) {
        for advice in judged.advice {
            let same = |known: &&mut RunAdvice| {
                (known.advice.rule, known.advice.verdict, &known.advice.text, &known.advice.source)
                    == (advice.rule, advice.verdict, &advice.text, &advice.source)
            };
            match pieces.iter_mut().find(same) {
                Some(known) => known.rows.push(judged.row.clone()),
                None => pieces.push(RunAdvice { advice, rows: vec![judged.row.clone()] }),
            }
        }
    }
    pieces.sort_by_key(|piece| std::cmp::Reverse(super::weight(piece.advice.verdict)));
    pieces
}
