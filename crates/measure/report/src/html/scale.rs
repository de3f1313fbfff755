//! From figures to places on an axis.

use super::super::units::significant;

/// An axis of figures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
}

/// Figures whose largest is more than this many times the smallest get a logarithmic axis.
const WIDE: f64 = 12.0;

impl Scale {
    /// The axis that holds these figures, intervals included.
    pub(super) fn of(figures: impl Iterator<Item = f64> + Clone) -> Self {
        let sound = || figures.clone().filter(|f| f.is_finite() && *f > 0.0);
        let (low, high) = (sound().fold(f64::INFINITY, f64::min), sound().fold(0.0, f64::max));
        if high <= 0.0 {
            Self { low: 0.0, high: 1.0, logarithmic: false }
        } else if high / low > WIDE {
            Self { low: nice_below(low), high: nice_above(high), logarithmic: true }
        } else {
            let step = step(high);
            Self { low: 0.0, high: (high / step).ceil() * step, logarithmic: false }
        }
    }

    /// An axis from nought, whatever the figures are: for bars, whose length is the figure.
    pub(super) fn from_nought(figures: impl Iterator<Item = f64>) -> Self {
        let high = figures.filter(|f| f.is_finite()).fold(0.0, f64::max);
        if high <= 0.0 {
            return Self { low: 0.0, high: 1.0, logarithmic: false };
        }
        let step = step(high);
        Self { low: 0.0, high: (high / step).ceil() * step, logarithmic: false }
    }

    /// What is said of the axis beside its unit.
    pub(super) fn in_words(&self) -> &'static str {
        if self.logarithmic { ", logarithmic" } else { "" }
    }

    /// Where a figure lies: 0 at the low end, 1 at the high end.
    pub(super) fn place(&self, figure: f64) -> f64 {
        let place = if self.logarithmic {
            (figure.max(self.low) / self.low).log10() / (self.high / self.low).log10()
        } else {
            (figure - self.low) / (self.high - self.low)
        };
        place.clamp(0.0, 1.0)
    }

    /// The figures that are marked.
    pub(super) fn ticks(&self) -> Vec<f64> {
        if !self.logarithmic {
            let step = step(self.high);
            let count = (self.high / step).round();
            return (0..=10).map(f64::from).take_while(|n| *n <= count).map(|n| n * step).collect();
        }
        let decades = (self.high / self.low).log10();
        let within: &[f64] = if decades <= 2.2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let first = self.low.log10().floor();
        let all = (0..20).flat_map(|n| within.iter().map(move |d| d * 10f64.powf(first + f64::from(n))));
        all.filter(|tick| *tick >= self.low * 0.999 && *tick <= self.high * 1.001).collect()
    }
}

/// The distance of marks, 1, 2 or 5 times a power of ten, so that there are four to eight up to `high`.
fn step(high: f64) -> f64 {
    let power = 10f64.powf((high / 4.0).log10().floor());
    let wanted = high / 4.0 / power;
    power
        * if wanted >= 5.0 {
            5.0
        } else if wanted >= 2.0 {
            2.0
        } else {
            1.0
        }
}

fn nice_below(figure: f64) -> f64 {
    let power = 10f64.powf(figure.log10().floor());
    power * [5.0, 2.0].into_iter().find(|n| n * power <= figure).unwrap_or(1.0)
}

fn nice_above(figure: f64) -> f64 {
    let power = 10f64.powf(figure.log10().floor());
    power * [1.0, 2.0, 5.0].into_iter().find(|n| n * power >= figure).unwrap_or(10.0)
}

/// A figure at a mark: `12k`, `1.5M`.
pub(super) fn mark(figure: f64) -> String {
    match figure.abs() {
        size if size >= 1e9 => format!("{}G", significant(figure / 1e9)),
        size if size >= 1e6 => format!("{}M", significant(figure / 1e6)),
        size if size >= 1e4 => format!("{}k", significant(figure / 1e3)),
        _ => significant(figure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_figures_begin_at_nought_and_far_ones_are_logarithmic() {
        let near = Scale::of([80.0, 100.0, 240.0].into_iter());
        assert_eq!(near, Scale { low: 0.0, high: 250.0, logarithmic: false });
        assert_eq!(near.ticks(), [0.0, 50.0, 100.0, 150.0, 200.0, 250.0]);
        let far = Scale::of([30.0, 40_000.0].into_iter());
        assert_eq!(far, Scale { low: 20.0, high: 50_000.0, logarithmic: true });
        let ticks: Vec<_> = far.ticks().into_iter().map(mark).collect();
        assert_eq!(ticks, ["100", "1,000", "10k"]);
        assert!((far.place(1000.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn nothing_to_show_is_shown() {
        let empty = Scale::of([0.0, f64::NAN].into_iter());
        assert!(empty.place(0.0) >= 0.0 && empty.ticks().len() > 1);
        assert_eq!(Scale::from_nought([].into_iter()).place(5.0), 1.0);
    }

    #[test]
    fn all_ticks_are_on_the_axis() {
        for high in [0.003, 0.7, 1.0, 9.9, 99.0, 1234.0, 5e6, 7e11] {
            for low in [high, high / 3.0, high / 100.0, high / 1e6] {
                let scale = Scale::of([low, high].into_iter());
                let ticks = scale.ticks();
                assert!((2..=11).contains(&ticks.len()), "{low} to {high}: {ticks:?}");
                assert!(scale.high >= high && ticks.iter().all(|t| (0.0..=1.0).contains(&scale.place(*t))));
            }
        }
    }
}
