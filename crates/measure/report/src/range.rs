//! A measured figure against a documented one.

use load::statistics::Estimate;

/// From where to where a figure is as documented, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range {
    pub low: f64,
    pub high: f64,
}

/// What the measurement says of the range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// The figure is as documented.
    Inside,
    /// All of the interval is below.
    Below,
    /// All of the interval is above.
    Above,
    /// The interval holds documented figures and others, or there is none: nothing follows.
    Open,
}

impl Range {
    pub(super) const fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    /// This or more.
    pub(super) const fn at_least(low: f64) -> Self {
        Self { low, high: f64::INFINITY }
    }

    /// This or less.
    pub(super) const fn at_most(high: f64) -> Self {
        Self { low: 0.0, high }
    }

    /// Where a documented figure is "about" this: a tenth up or down.
    pub(super) const fn about(figure: f64) -> Self {
        Self { low: figure * 0.9, high: figure * 1.1 }
    }

    fn holds(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Where a ratio lies. It is inside when all of its interval is, or when its median is and the interval shows an
    /// effect at all: a range that holds 1 ("no effect") takes nothing less than the whole interval.
    pub(super) fn position_of_ratio(&self, ratio: &Estimate) -> Position {
        let shows_an_effect = |[low, high]: [f64; 2]| !self.holds(1.0) && (low > 1.0 || high < 1.0);
        self.position(ratio, shows_an_effect)
    }

    /// Where a figure lies. It is inside when its median is.
    pub(super) fn position_of_figure(&self, figure: &Estimate) -> Position {
        self.position(figure, |_| true)
    }

    /// An estimate without an interval (one repetition) leaves all open.
    fn position(&self, estimate: &Estimate, median_decides: impl Fn([f64; 2]) -> bool) -> Position {
        let Some(interval @ [low, high]) = estimate.interval else { return Position::Open };
        if high < self.low {
            Position::Below
        } else if low > self.high {
            Position::Above
        } else if (self.holds(low) && self.holds(high))
            || (self.holds(estimate.median) && median_decides(interval))
        {
            Position::Inside
        } else {
            Position::Open
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(low: f64, median: f64, high: f64) -> Estimate {
        Estimate { median, interval: Some([low, high]), repetitions: 6 }
    }

    #[test]
    fn ratios_at_the_edges_of_2_to_4() {
        let range = Range::new(2.0, 4.0);
        for (low, median, high, position) in [
            (2.0, 3.0, 4.0, Position::Inside),
            // The median is inside and 1 is not in the interval.
            (1.5, 2.0, 2.5, Position::Inside),
            (3.5, 4.0, 9.0, Position::Inside),
            // It could also be no effect at all.
            (0.9, 2.5, 7.0, Position::Open),
            (1.0, 2.5, 7.0, Position::Open),
            // The interval reaches into the range, the median does not.
            (1.6, 1.99, 2.4, Position::Open),
            (3.9, 4.01, 4.2, Position::Open),
            // Touching is reaching.
            (1.5, 1.8, 2.0, Position::Open),
            (4.0, 4.1, 4.2, Position::Open),
            (1.5, 1.8, 1.99, Position::Below),
            (4.01, 5.0, 6.0, Position::Above),
            (0.9, 1.0, 1.1, Position::Below),
        ] {
            assert_eq!(
                range.position_of_ratio(&estimate(low, median, high)),
                position,
                "{low} {median} {high}"
            );
        }
    }

    #[test]
    fn no_effect_is_shown_by_a_narrow_interval_only() {
        let range = Range::new(0.9, 1.1);
        assert_eq!(range.position_of_ratio(&estimate(0.97, 1.0, 1.03)), Position::Inside);
        assert_eq!(range.position_of_ratio(&estimate(0.9, 1.0, 1.1)), Position::Inside);
        assert_eq!(range.position_of_ratio(&estimate(0.89, 1.0, 1.1)), Position::Open);
        assert_eq!(range.position_of_ratio(&estimate(1.02, 1.05, 1.2)), Position::Open);
        assert_eq!(range.position_of_ratio(&estimate(1.11, 1.2, 1.3)), Position::Above);
    }

    #[test]
    fn a_loss_is_below_1() {
        let range = Range::new(0.85, 0.95);
        assert_eq!(range.position_of_ratio(&estimate(0.8, 0.9, 0.99)), Position::Inside);
        assert_eq!(range.position_of_ratio(&estimate(0.8, 0.9, 1.0)), Position::Open);
        assert_eq!(range.position_of_ratio(&estimate(0.96, 1.0, 1.04)), Position::Above);
    }

    #[test]
    fn open_ends() {
        assert_eq!(Range::at_least(1.6).position_of_ratio(&estimate(5.0, 50.0, 500.0)), Position::Inside);
        assert_eq!(Range::at_most(0.7).position_of_ratio(&estimate(0.1, 0.2, 0.7)), Position::Inside);
        assert_eq!(Range::at_most(0.7).position_of_ratio(&estimate(0.71, 0.8, 0.9)), Position::Above);
    }

    #[test]
    fn one_repetition_leaves_all_open() {
        let one = Estimate { median: 3.0, interval: None, repetitions: 1 };
        assert_eq!(Range::new(2.0, 4.0).position_of_ratio(&one), Position::Open);
        assert_eq!(Range::about(3.0).position_of_figure(&one), Position::Open);
    }

    #[test]
    fn a_figure_is_about_another_within_a_tenth() {
        let range = Range::about(100.0);
        assert_eq!(range.position_of_figure(&estimate(80.0, 109.0, 130.0)), Position::Inside);
        assert_eq!(range.position_of_figure(&estimate(80.0, 111.0, 130.0)), Position::Open);
        assert_eq!(range.position_of_figure(&estimate(111.0, 120.0, 130.0)), Position::Above);
    }
}
