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

/// What a measurement says of a statement.
///
/// [`Verdict`] is the same in three words, which programs know: better, worse and mixed are not reproduced, and what is too noisy
/// cannot be tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judgement {
    /// The measurement shows what the document says.
    Reproduced,
    /// It shows more than that: a higher rate or throughput, or a shorter latency.
    Better,
    /// It shows less.
    Worse,
    /// Rows disagree.
    Mixed,
    /// The interval holds what the document says and something else, or a row was measured once.
    TooNoisy,
    /// There is no sound measurement, or the conditions of the statement were not met.
    CannotBeTested,
}

impl Judgement {
    /// All, in the order in which they are told.
    pub const ALL: [Self; 6] =
        [Self::Reproduced, Self::Better, Self::Worse, Self::Mixed, Self::TooNoisy, Self::CannotBeTested];

    /// The same in three words.
    #[must_use]
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Reproduced => Verdict::Reproduced,
            Self::Better | Self::Worse | Self::Mixed => Verdict::NotReproduced,
            Self::TooNoisy | Self::CannotBeTested => Verdict::CannotBeTested,
        }
    }
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
    /// What this row says of the statement, in three words.
    pub verdict: Verdict,
    /// What it says.
    pub judgement: Judgement,
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
    case.decide(judgement_of(of, position, ratio.ratio.interval.is_some()));
    unsound(base, row, base.key.connections != row.key.connections).apply(&mut case);
    Some(case)
}

fn absolute_case(protocol: Protocol, of: Figure, row: &Row, expected: Range) -> Option<Case> {
    let mut case = case(protocol, of, row, None)?;
    let position = expected.position_of_figure(&case.measured);
    let has_interval = case.measured.interval.is_some();
    case.decide(judgement_of(of, position, has_interval));
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
    case.decide(judgement_of_trend(of, way, &steps, &overall));
    rows.iter().for_each(|row| unsound(row, row, false).apply(&mut case));
    Some(case)
}

/// What the steps of a trend and its two ends say.
fn judgement_of_trend(of: Figure, way: Way, steps: &[Ratio], overall: &Ratio) -> (Judgement, String) {
    let (with, against) = match way {
        Way::Rises | Way::RisesEachTime => (Effect::Higher, Effect::Lower),
        Way::Falls => (Effect::Lower, Effect::Higher),
    };
    let otherwise = if against == Effect::Higher { more(of) } else { less(of) };
    let turns_back = |step: &&Ratio| step.effect == against && (step.ratio.median - 1.0).abs() > STEP;
    let (count, back) = (steps.len(), steps.iter().filter(turns_back).count());
    let seen = steps.iter().filter(|step| step.effect == with).count();
    let of_steps =
        |n: usize| format!("{n} of {}", words::counted(u32::try_from(count).unwrap_or(u32::MAX), "step"));
    if overall.effect == against {
        (otherwise, "the other way".to_owned())
    } else if back > 0 && overall.effect == with {
        (Judgement::Mixed, format!("{} the other way", of_steps(back)))
    } else if back > 0 {
        (otherwise, format!("{} the other way", of_steps(back)))
    } else if overall.effect != with {
        (Judgement::TooNoisy, "the ends do not differ by more than the noise".to_owned())
    } else if way == Way::RisesEachTime && seen < count {
        (Judgement::TooNoisy, format!("beyond the noise in {} only", of_steps(seen)))
    } else {
        (Judgement::Reproduced, format!("beyond the noise in {}, none the other way", of_steps(seen)))
    }
}

/// A figure above what is documented.
fn more(of: Figure) -> Judgement {
    match of {
        Figure::Rate | Figure::Throughput => Judgement::Better,
        Figure::Latency => Judgement::Worse,
    }
}

/// A figure below it.
fn less(of: Figure) -> Judgement {
    match of {
        Figure::Rate | Figure::Throughput => Judgement::Worse,
        Figure::Latency => Judgement::Better,
    }
}

impl Case {
    pub(super) fn decide(&mut self, (judgement, reason): (Judgement, String)) {
        (self.judgement, self.verdict, self.reason) = (judgement, judgement.verdict(), reason);
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
        judgement: Judgement::CannotBeTested,
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

/// What a figure says that lies there.
pub(super) fn judgement_of(of: Figure, position: Position, has_interval: bool) -> (Judgement, String) {
    let (judgement, reason) = match position {
        Position::Inside => (Judgement::Reproduced, "as documented"),
        Position::Below => (less(of), "less than documented"),
        Position::Above => (more(of), "more than documented"),
        Position::Open if has_interval => {
            (Judgement::TooNoisy, "the interval holds documented and other figures")
        }
        Position::Open => (Judgement::TooNoisy, "one repetition proves nothing"),
    };
    (judgement, reason.to_owned())
}

/// Why rows prove nothing whatever their figures are.
struct Unsound(Option<String>);

impl Unsound {
    fn apply(self, case: &mut Case) {
        if let Some(reason) = self.0 {
            case.decide((Judgement::CannotBeTested, reason));
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
        let judged =
            |way, steps: &[Ratio], overall: &Ratio| judgement_of_trend(Figure::Rate, way, steps, overall).0;
        assert_eq!(judged(Way::Rises, &[up, flat], &up), Judgement::Reproduced);
        assert_eq!(judged(Way::Rises, &[up, up, down], &up), Judgement::Mixed);
        assert_eq!(judged(Way::Rises, &[flat, down], &flat), Judgement::Worse);
        assert_eq!(judged(Way::Rises, &[flat, flat], &flat), Judgement::TooNoisy);
        assert_eq!(judged(Way::Rises, &[flat, flat], &down), Judgement::Worse);
        assert_eq!(judged(Way::Falls, &[down, flat], &down), Judgement::Reproduced);
        assert_eq!(judged(Way::Falls, &[up, up], &up), Judgement::Better, "fewer were expected");
        assert_eq!(judged(Way::RisesEachTime, &[up, up], &up), Judgement::Reproduced);
        assert_eq!(judged(Way::RisesEachTime, &[up, flat], &up), Judgement::TooNoisy);
        let latency = judgement_of_trend(Figure::Latency, Way::Rises, &[down], &down).0;
        assert_eq!(latency, Judgement::Better, "a longer latency was expected");
    }

    #[test]
    fn a_small_step_back_is_none() {
        let up = ratio(1.2, 1.3, 1.4);
        let judged = |step| judgement_of_trend(Figure::Rate, Way::Rises, &[up, step], &up).0;
        assert_eq!(judged(ratio(0.94, 0.96, 0.99)), Judgement::Reproduced);
        assert_eq!(judged(ratio(0.9, 0.94, 0.99)), Judgement::Mixed);
    }

    #[test]
    fn more_is_better_unless_it_is_a_latency() {
        let judged = |of, position| judgement_of(of, position, true).0;
        assert_eq!(judged(Figure::Rate, Position::Above), Judgement::Better);
        assert_eq!(judged(Figure::Throughput, Position::Below), Judgement::Worse);
        assert_eq!(judged(Figure::Latency, Position::Above), Judgement::Worse);
        assert_eq!(judged(Figure::Latency, Position::Below), Judgement::Better);
        assert_eq!(judged(Figure::Latency, Position::Open), Judgement::TooNoisy);
    }

    #[test]
    fn three_words_say_the_same_as_six() {
        let verdicts = Judgement::ALL.map(Judgement::verdict);
        assert_eq!(verdicts[0], Verdict::Reproduced);
        assert_eq!(verdicts[1..4], [Verdict::NotReproduced; 3]);
        assert_eq!(verdicts[4..], [Verdict::CannotBeTested; 2]);
    }
}
