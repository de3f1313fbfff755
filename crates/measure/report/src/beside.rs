//! Results of one family laid side by side.

use serde::Serialize;

use super::claim::Figure;
use super::evidence::{figure, values};
use super::words;
use load::result::{ResultFile, Row};
use load::statistics::{Estimate, Ratio, compare, compare_apart};

/// One result held against another of its family.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Beside {
    /// The family.
    pub family: String,
    /// The result that is held against: its place in the report's runs.
    pub base: usize,
    /// The result that is judged.
    pub other: usize,
    /// Rows that both have.
    pub rows: Vec<BesideRow>,
}

/// A row of both.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BesideRow {
    /// The row, in words.
    pub row: String,
    /// Operations a second of the one that is held against.
    pub base: Estimate,
    /// Those of the other.
    pub other: Estimate,
    /// The other's by the base's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Ratio>,
    /// CPU time of the base's server for each operation, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_cpu_us: Option<f64>,
    /// That of the other's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_cpu_us: Option<f64>,
    /// They took turns, and were compared repetition by repetition.
    pub in_turns: bool,
}

/// Each result beside the first one of its family over the same protocol, else beside the first one that may be of the same
/// server over another. Results of Anabranch come last: they are held against the others.
pub(super) fn lay_out(results: &[&ResultFile]) -> Vec<Beside> {
    let mut order: Vec<usize> = (0..results.len()).collect();
    order.sort_by_key(|n| is_anabranch(results[*n]));
    let mut beside = Vec::new();
    for (at, other) in order.iter().enumerate() {
        let (earlier, result) = (&order[..at], results[*other]);
        let first = |fits: &dyn Fn(&ResultFile) -> bool| {
            earlier.iter().find(|n| results[**n].family == result.family && fits(results[**n])).copied()
        };
        let base = first(&|r| r.environment.protocol == result.environment.protocol)
            .or_else(|| first(&|r| may_be_one_server(r, result)));
        let Some(base) = base else { continue };
        let rows: Vec<_> = result.rows.iter().filter_map(|row| of_row(results[base], result, row)).collect();
        if !rows.is_empty() {
            beside.push(Beside { family: result.family.clone(), base, other: *other, rows });
        }
    }
    beside
}

fn may_be_one_server(a: &ResultFile, b: &ResultFile) -> bool {
    let (a, b) = (&a.environment.server, &b.environment.server);
    a.is_none() || b.is_none() || a == b
}

fn is_anabranch(result: &ResultFile) -> bool {
    result.environment.server.as_ref().is_some_and(|server| server.to_lowercase().starts_with("anabranch"))
}

fn of_row(base: &ResultFile, other: &ResultFile, row: &Row) -> Option<BesideRow> {
    let against = base.row(&row.key)?;
    let (ratio, in_turns) = compare_rows(Figure::Rate, (base, against), (other, row));
    Some(BesideRow {
        row: words::row(other.environment.protocol, &row.key),
        base: figure(Figure::Rate, against)?,
        other: figure(Figure::Rate, row)?,
        ratio,
        base_cpu_us: server_cpu(against),
        other_cpu_us: server_cpu(row),
        in_turns,
    })
}

fn server_cpu(row: &Row) -> Option<f64> {
    row.measure.as_ref()?.server_cpu_us.map(|e| e.median)
}

/// A row of one result by a row of another, and whether they took turns.
pub(super) fn compare_rows(
    of: Figure,
    (base, base_row): (&ResultFile, &Row),
    (other, row): (&ResultFile, &Row),
) -> (Option<Ratio>, bool) {
    if took_turns_in((base, base_row), (other, row)) {
        return (compare(&values(of, base_row), &values(of, row)), true);
    }
    let apart = figure(of, base_row).zip(figure(of, row)).and_then(|(b, o)| compare_apart(&b, &o));
    (apart, false)
}

/// The repetitions of a row of one result took turns with those of a row of another.
pub(super) fn took_turns_in(
    (base, base_row): (&ResultFile, &Row),
    (other, row): (&ResultFile, &Row),
) -> bool {
    took_turns(&moments(base, base_row), &moments(other, row))
}

/// When each repetition began, in seconds since 1970.
#[expect(clippy::cast_precision_loss, reason = "microseconds are left for some thousand years")]
fn moments(result: &ResultFile, row: &Row) -> Vec<f64> {
    row.repetitions.iter().map(|r| result.began as f64 + r.began_seconds).collect()
}

/// The n-th of one ran nearer to the n-th of the other than to any other one of it.
fn took_turns(a: &[f64], b: &[f64]) -> bool {
    let nearest = |moment: f64| {
        let distances = b.iter().map(|other| (other - moment).abs()).enumerate();
        distances.min_by(|(_, x), (_, y)| x.total_cmp(y)).map(|(n, _)| n)
    };
    a.len() == b.len() && a.len() > 1 && a.iter().enumerate().all(|(n, moment)| nearest(*moment) == Some(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_seen_from_the_times() {
        assert!(took_turns(&[0.0, 10.0, 20.0], &[2.0, 12.0, 22.0]));
        assert!(took_turns(&[0.0, 12.0, 20.0], &[2.0, 10.0, 22.0]), "every other time in reverse order");
        assert!(!took_turns(&[0.0, 10.0, 20.0], &[30.0, 40.0, 50.0]), "one after the other");
        assert!(!took_turns(&[0.0, 10.0, 20.0], &[2.0, 12.0]), "one ended early");
        assert!(!took_turns(&[0.0], &[0.0]) && !took_turns(&[], &[]));
    }
}
