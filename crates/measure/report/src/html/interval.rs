//! A ratio with its interval as a mark on a line: where it lies beside 1.

use super::super::BesideRow;
use load::statistics::{Effect, Ratio};

const WIDTH: f64 = 200.0;
const HEIGHT: f64 = 16.0;
/// Room at both ends.
const ROOM: f64 = 6.0;
/// What lies further away is shown at the end.
const FAR: f64 = 100.0;

/// A logarithmic axis of ratios that holds 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    /// More is better: the mark says so by its colour.
    judged: bool,
}

impl Axis {
    /// The axis of all rows of a table.
    pub(super) fn of(rows: &[BesideRow], judged: bool) -> Self {
        Self { judged, ..Self::of_ratios(rows.iter().filter_map(|row| row.ratio)) }
    }

    /// The axis of some ratios.
    pub(super) fn of_ratios(ratios: impl Iterator<Item = Ratio>) -> Self {
        let ends = ratios.flat_map(|r| ends(&r)).filter(|r| r.is_finite());
        let ends = ends.map(|ratio| ratio.clamp(1.0 / FAR, FAR));
        let (low, high) =
            ends.fold((0.5_f64, 2.0_f64), |(low, high), ratio| (low.min(ratio), high.max(ratio)));
        Self { low, high, judged: true }
    }

    fn x(&self, ratio: f64) -> f64 {
        let ratio = if ratio.is_finite() { ratio.clamp(self.low, self.high) } else { self.high };
        let place = (ratio / self.low).log10() / (self.high / self.low).log10();
        ROOM + place * (WIDTH - 2.0 * ROOM)
    }

    /// The mark. It says nothing that does not stand beside it in words.
    pub(super) fn mark(&self, ratio: &Ratio) -> String {
        let class = match ratio.effect {
            Effect::Higher if self.judged => "ok",
            Effect::Lower if self.judged => "no",
            _ => "open",
        };
        self.mark_as(ratio, class)
    }

    /// The mark in the colour of a standing.
    pub(super) fn mark_as(&self, ratio: &Ratio, class: &str) -> String {
        let [low, high] = ends(ratio).map(|end| self.x(end));
        let (one, middle, at) = (self.x(1.0), HEIGHT / 2.0, self.x(ratio.ratio.median));
        format!(
            "<svg class=\"ratio {class}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" aria-hidden=\"true\"><path class=\"one\" d=\"M{one:.1} 0V{HEIGHT}\"/><path class=\"span\" d=\"M{low:.1} {middle}H{high:.1}\"/><circle class=\"mark\" cx=\"{at:.1}\" cy=\"{middle}\" r=\"4\"/></svg>"
        )
    }
}

fn ends(ratio: &Ratio) -> [f64; 2] {
    ratio.ratio.interval.unwrap_or([ratio.ratio.median; 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_lie_on_their_side_of_one() {
        let axis = Axis { low: 0.25, high: 4.0, judged: true };
        assert!((axis.x(1.0) - WIDTH / 2.0).abs() < 1e-9);
        assert!(axis.x(0.5) < axis.x(1.0) && axis.x(1.0) < axis.x(2.0));
        for far in [0.0, 1e-9, 1e9, f64::INFINITY, f64::NAN] {
            assert!((ROOM..=WIDTH - ROOM).contains(&axis.x(far)), "{far}");
        }
        assert_eq!(Axis::of(&[], true), Axis { low: 0.5, high: 2.0, judged: true });
    }
}
