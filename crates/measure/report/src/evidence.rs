//! The rows of a result that speak to a statement, and what each says.

use std::collections::BTreeMap;

use serde::Serialize;

use super::claim::{Figure, Test, TrendPosition, Way};
use super::range::{Position, Range};
use super::units;
use super::words;
use load::result::{Key, Protocol, ResultFile, Row};
use load::statistics::{Effect, Estimate, Ratio, compare, estimate};

/// A step that goes against a trend counts when it is beyond the noise and more than this.
const STEP: f64 = 0.05;

/// What became of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The measurement shows what the document says.
    Reproduced,
    /// The measurement shows something else.
    NotReproduced,
    /// The measurement cannot tell, or there is none.
    CannotBeTested,
}

/// One row that speaks to a statement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Case {
    /// The row, in words.
    pub row: String,
    /// The row that it is held against, as far as it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<String>,
    /// What of the row is looked at.
    pub figure: Figure,
    /// The row's figure.
    pub measured: Estimate,
    /// That of the row that it is held against.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Estimate>,
    /// One by the other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Ratio>,
    /// What this row says of the statement.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
}

/// The rows of a result that speak to a statement. None where the test is not one of rows of one result.
pub(super) fn cases(test: &Test, result: &ResultFile) -> Vec<Case> {
    match *test {
        Test::Ratio { of, row, base, expected, .. } => {
            let rows = result.rows.iter().filter(|r| row(&r.key));
            rows.filter_map(|r| {
                let against = result.row(&base(&r.key)).filter(|against| against.key != r.key)?;
                ratio_case(result.environment.protocol, of, against, r, expected)
            })
            .collect()
        }
        Test::Absolute { of, row, expected, .. } => {
            let rows = result.rows.iter().filter(|r| row(&r.key));
            rows.filter_map(|r| absolute_case(result.environment.protocol, of, r, expected)).collect()
        }
        Test::Trend { of, place, way, .. } => trend_cases(result, of, place, way),
        Test::Between { .. } | Test::Untestable(_) => Vec::new(),
    }
}

fn ratio_case(protocol: Protocol, of: Figure, base: &Row, row: &Row, expected: Range) -> Option<Case> {
    let ratio = compare(&values(of, base), &values(of, row))?;
    let mut case = case(protocol, of, row, Some((base, ratio)))?;
    let position = expected.position_of_ratio(&ratio.ratio);
    (case.verdict, case.reason) = verdict_of(position, ratio.ratio.interval.is_some());
    unsound(base, row, base.key.connections != row.key.connections).apply(&mut case);
    Some(case)
}

fn absolute_case(protocol: Protocol, of: Figure, row: &Row, expected: Range) -> Option<Case> {
    let mut case = case(protocol, of, row, None)?;
    let position = expected.position_of_figure(&case.measured);
    (case.verdict, case.reason) = verdict_of(position, case.measured.interval.is_some());
    unsound(row, row, true).apply(&mut case);
    Some(case)
}

fn trend_cases(
    result: &ResultFile,
    of: Figure,
    place: fn(&Key) -> Option<TrendPosition>,
    way: Way,
) -> Vec<Case> {
    let mut trends: BTreeMap<Key, Vec<(u64, &Row)>> = BTreeMap::new();
    for row in &result.rows {
        if let Some(TrendPosition { with, at }) = place(&row.key) {
            trends.entry(with).or_default().push((at, row));
        }
    }
    let trends = trends.into_values().filter_map(|mut rows| {
        rows.sort_by_key(|(at, _)| *at);
        let rows: Vec<&Row> = rows.into_iter().map(|(_, row)| row).collect();
        trend_case(result.environment.protocol, of, &rows, way)
    });
    trends.collect()
}

fn trend_case(protocol: Protocol, of: Figure, rows: &[&Row], way: Way) -> Option<Case> {
    let (first, last) = (rows.first()?, rows.last()?);
    let steps: Option<Vec<Ratio>> =
        rows.windows(2).map(|pair| compare(&values(of, pair[0]), &values(of, pair[1]))).collect();
    let steps = steps.filter(|steps| !steps.is_empty())?;
    let overall = compare(&values(of, first), &values(of, last))?;
    let mut case = case(protocol, of, last, Some((first, overall)))?;
    (case.verdict, case.reason) = verdict_of_trend(way, &steps, &overall);
    rows.iter().for_each(|row| unsound(row, row, false).apply(&mut case));
    Some(case)
}

/// What the steps of a trend and its two ends say.
fn verdict_of_trend(way: Way, steps: &[Ratio], overall: &Ratio) -> (Verdict, String) {
    let (with, against) = match way {
        Way::Rises | Way::RisesEachTime => (Effect::Higher, Effect::Lower),
        Way::Falls => (Effect::Lower, Effect::Higher),
    };
    let turns_back = |step: &&Ratio| step.effect == against && (step.ratio.median - 1.0).abs() > STEP;
    let (count, back) = (steps.len(), steps.iter().filter(turns_back).count());
    let seen = steps.iter().filter(|step| step.effect == with).count();
    let of_steps =
        |n: usize| format!("{n} of {}", words::counted(u32::try_from(count).unwrap_or(u32::MAX), "step"));
    if back > 0 {
        (Verdict::NotReproduced, format!("{} the other way", of_steps(back)))
    } else if overall.effect == against {
        (Verdict::NotReproduced, "the other way".to_owned())
    } else if overall.effect != with {
        (Verdict::CannotBeTested, "the ends do not differ by more than the noise".to_owned())
    } else if way == Way::RisesEachTime && seen < count {
        (Verdict::CannotBeTested, format!("beyond the noise in {} only", of_steps(seen)))
    } else {
        (Verdict::Reproduced, format!("beyond the noise in {}, none the other way", of_steps(seen)))
    }
}

fn case(protocol: Protocol, of: Figure, row: &Row, base: Option<(&Row, Ratio)>) -> Option<Case> {
    Some(Case {
        row: words::row(protocol, &row.key),
        against: base.map(|(base, _)| difference(protocol, &base.key, &row.key)),
        figure: of,
        measured: figure(of, row)?,
        base: base.and_then(|(base, _)| figure(of, base)),
        ratio: base.map(|(_, ratio)| ratio),
        verdict: Verdict::CannotBeTested,
        reason: String::new(),
    })
}

/// The figure of a row, from its repetitions.
pub(super) fn figure(of: Figure, row: &Row) -> Option<Estimate> {
    let measure = row.measure.as_ref()?;
    match of {
        Figure::Rate => Some(measure.rate),
        Figure::Throughput => measure.throughput,
        Figure::Latency => estimate(&values(of, row).into_iter().filter(|us| *us > 0.0).collect::<Vec<_>>()),
    }
}

/// The figure of each repetition; 0 where nothing was done.
pub(super) fn values(of: Figure, row: &Row) -> Vec<f64> {
    let value = |r: &load::result::Repetition| match of {
        Figure::Rate => r.rate(),
        Figure::Throughput => r.throughput(),
        Figure::Latency => r.latency().percentile(50.0).map(|ns| ns / 1000.0),
    };
    row.repetitions.iter().map(|r| value(r).unwrap_or(0.0)).collect()
}

/// What makes the row that is held against another one: `1 channel`, `4 KiB`.
fn difference(protocol: Protocol, base: &Key, row: &Key) -> String {
    let mut parts = Vec::new();
    if base.connections != row.connections {
        parts.push(words::connections(protocol, base.connections));
    }
    if base.block_bytes != row.block_bytes {
        parts.push(units::block(base.block_bytes));
    }
    if base.mix != row.mix {
        parts.push(words::work(base));
    }
    if base.queue_depth != row.queue_depth {
        parts.push(format!("{} under way", base.queue_depth));
    }
    if base.clients != row.clients {
        parts.push(words::counted(base.clients, "client"));
    }
    let settings = base.settings.iter().filter(|(name, value)| row.settings.get(*name) != Some(value));
    parts.extend(settings.map(|(name, value)| format!("{name} {value}")));
    parts.join(", ")
}

pub(super) fn verdict_of(position: Position, has_interval: bool) -> (Verdict, String) {
    let (verdict, reason) = match position {
        Position::Inside => (Verdict::Reproduced, "as documented"),
        Position::Below => (Verdict::NotReproduced, "less than documented"),
        Position::Above => (Verdict::NotReproduced, "more than documented"),
        Position::Open if has_interval => {
            (Verdict::CannotBeTested, "the interval holds documented and other figures")
        }
        Position::Open => (Verdict::CannotBeTested, "one repetition proves nothing"),
    };
    (verdict, reason.to_owned())
}

/// Why rows prove nothing whatever their figures are.
struct Unsound(Option<String>);

impl Unsound {
    fn apply(self, case: &mut Case) {
        if let Some(reason) = self.0 {
            (case.verdict, case.reason) = (Verdict::CannotBeTested, reason);
        }
    }
}

fn unsound(base: &Row, row: &Row, connections_matter: bool) -> Unsound {
    let wrong: u64 = [base, row].iter().flat_map(|r| &r.repetitions).map(|r| r.wrong_blocks).sum();
    let asked = row.key.connections.saturating_mul(row.key.clients);
    let got = row.repetitions.iter().map(|r| r.connections).min().unwrap_or(asked);
    Unsound(if wrong > 0 {
        Some("wrong bytes came back".to_owned())
    } else if connections_matter && got < asked {
        Some(format!("{got} of {asked} connections were there"))
    } else {
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(low: f64, median: f64, high: f64) -> Ratio {
        Ratio::of(Estimate { median, interval: Some([low, high]), repetitions: 6 })
    }

    #[test]
    fn a_trend_may_be_flat_in_between_and_may_not_turn_back() {
        let (up, flat, down) = (ratio(1.2, 1.3, 1.4), ratio(0.9, 1.0, 1.1), ratio(0.7, 0.8, 0.9));
        let verdict = |way, steps: &[Ratio], overall: &Ratio| verdict_of_trend(way, steps, overall).0;
        assert_eq!(verdict(Way::Rises, &[up, flat], &up), Verdict::Reproduced);
        assert_eq!(verdict(Way::Rises, &[up, up, down], &up), Verdict::NotReproduced);
        assert_eq!(verdict(Way::Rises, &[flat, flat], &flat), Verdict::CannotBeTested);
        assert_eq!(verdict(Way::Rises, &[flat, flat], &down), Verdict::NotReproduced);
        assert_eq!(verdict(Way::Falls, &[down, flat], &down), Verdict::Reproduced);
        assert_eq!(verdict(Way::RisesEachTime, &[up, up], &up), Verdict::Reproduced);
        assert_eq!(verdict(Way::RisesEachTime, &[up, flat], &up), Verdict::CannotBeTested);
    }

    #[test]
    fn a_small_step_back_is_none() {
        let up = ratio(1.2, 1.3, 1.4);
        assert_eq!(verdict_of_trend(Way::Rises, &[up, ratio(0.94, 0.96, 0.99)], &up).0, Verdict::Reproduced);
        assert_eq!(
            verdict_of_trend(Way::Rises, &[up, ratio(0.9, 0.94, 0.99)], &up).0,
            Verdict::NotReproduced
        );
    }
}
