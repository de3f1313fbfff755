//! What several repetitions say together: a median, an interval, and whether two of them differ.

use serde::{Deserialize, Serialize};

/// A figure of several repetitions: their median, and where the true median lies with 95 % confidence.
///
/// The interval needs no assumption from six repetitions on: it is a pair of order statistics. Fewer than six have no such
/// pair (five of them lie all on one side of the median in one of 16 cases); there it is Student's interval of the
/// logarithms, which is wide and says so. One repetition has no interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The median of the repetitions.
    pub median: f64,
    /// The lower and the upper end of the 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub interval: Option<[f64; 2]>,
    /// Repetitions behind it.
    pub repetitions: usize,
}

/// What a change did to a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// The figure is higher than that of the base, beyond the noise.
    Higher,
    /// The figure is lower.
    Lower,
    /// The interval of the ratio holds 1, or there are too few repetitions to say: [`Conclusion`] tells the one from the other.
    NotMeasurable,
}

/// The largest change that counts as none: a ratio between 1 / 1.1 and 1.1.
pub const EQUIVALENCE_MARGIN: f64 = 1.1;

/// What may be concluded from a ratio and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conclusion {
    /// All of the interval lies above 1.
    Higher,
    /// All of it lies below 1.
    Lower,
    /// It holds 1, and all of it lies within [`EQUIVALENCE_MARGIN`]: an equivalence test says that there is no effect.
    NoEffect,
    /// It holds 1 and reaches beyond the margin, or there is none: neither an effect nor its absence is shown.
    TooNoisy,
}

impl Conclusion {
    /// What follows from the 95 % interval of a ratio.
    ///
    /// That there is no effect is the outcome of two one-sided tests (D. J. Schuirmann, "A comparison of the two one-sided tests
    /// procedure and the power approach", J. Pharmacokinetics and Biopharmaceutics 15 (1987) 657-680): both "at most 1 / margin" and
    /// "at least the margin" are rejected at level a exactly if the interval of confidence 1 - 2a lies between them. The intervals
    /// here have 95 %, so a is 2.5 %: more is asked for than the usual 5 %, and whoever sees the interval can check it.
    #[must_use]
    pub fn of(interval: Option<[f64; 2]>) -> Self {
        match interval {
            Some([low, _]) if low > 1.0 => Self::Higher,
            Some([_, high]) if high < 1.0 => Self::Lower,
            Some([low, high]) if low > 1.0 / EQUIVALENCE_MARGIN && high < EQUIVALENCE_MARGIN => {
                Self::NoEffect
            }
            _ => Self::TooNoisy,
        }
    }
}

/// A figure divided by that of the base.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The median of the ratios of the repetitions, and its interval.
    pub ratio: Estimate,
    /// What that means.
    pub effect: Effect,
}

impl std::fmt::Display for Ratio {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.conclusion(), self.ratio.interval) {
            (Conclusion::NoEffect, _) => f.write_str("no measurable effect"),
            (Conclusion::TooNoisy, _) | (_, None) => f.write_str("too noisy to tell"),
            (_, Some([low, high])) => write!(f, "{:.2}x (95 %: {low:.2} to {high:.2})", self.ratio.median),
        }
    }
}

/// The median and its 95 % interval. `None` when there is no value, or one that is not a positive number.
#[must_use]
pub fn estimate(values: &[f64]) -> Option<Estimate> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = median_of_sorted(&sorted)?;
    let interval = match order_statistic(sorted.len()) {
        Some(k) => Some([sorted[k], sorted[sorted.len() - 1 - k]]),
        None => student(&sorted).map(|[low, high]| [low.min(median), high.max(median)]),
    };
    Some(Estimate { median, interval, repetitions: sorted.len() })
}

/// The median: the middle value, or the mean of the two in the middle. `None` when there is no value.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

/// How `other` compares with `base`, repetition by repetition: the n-th of one ran beside the n-th of the other, so that
/// what slowed the machine down meanwhile slowed both. `None` when there is no pair.
#[must_use]
pub fn compare(base: &[f64], other: &[f64]) -> Option<Ratio> {
    let ratios: Vec<f64> =
        base.iter().zip(other).filter(|(b, o)| **b > 0.0 && **o > 0.0).map(|(b, o)| o / b).collect();
    estimate(&ratios).map(Ratio::of)
}

/// How `other` compares with `base` when they were measured one after the other: the medians divided, and an interval as wide
/// as the ends of both intervals make it. `None` when a figure is not a positive number.
#[must_use]
pub fn compare_apart(base: &Estimate, other: &Estimate) -> Option<Ratio> {
    let interval = base.interval.zip(other.interval).map(|(b, o)| [o[0] / b[1], o[1] / b[0]]);
    let sound = |value: f64| value.is_finite() && value > 0.0;
    if !sound(base.median) || !sound(other.median) {
        return None;
    }
    Some(Ratio::of(Estimate {
        median: other.median / base.median,
        // A repetition in which nothing was done makes an end infinite.
        interval: interval.filter(|ends| ends.iter().all(|end| end.is_finite())),
        repetitions: base.repetitions.min(other.repetitions),
    }))
}

/// How several rows together compare with their bases: for each repetition the geometric mean of the rows' ratios, and of these
/// means the median and its interval. It is the effect on these rows, each of which counts the same, and of no others.
///
/// Each item holds the figures of a row's base and of the row, repetition by repetition. Rows that have fewer than two pairs, or in
/// which a figure is no positive number, say nothing and are left out; from the others come as many repetitions as all of them
/// have. `None` when no row is left.
#[must_use]
pub fn compare_all(rows: &[(Vec<f64>, Vec<f64>)]) -> Option<Ratio> {
    let sound = |value: &f64| value.is_finite() && *value > 0.0;
    let logs = |(base, other): &(Vec<f64>, Vec<f64>)| -> Option<Vec<f64>> {
        let pairs: Vec<(f64, f64)> = base.iter().copied().zip(other.iter().copied()).collect();
        let all_sound = pairs.len() > 1 && pairs.iter().all(|(b, o)| sound(b) && sound(o));
        all_sound.then(|| pairs.iter().map(|(b, o)| (o / b).ln()).collect())
    };
    let rows: Vec<Vec<f64>> = rows.iter().filter_map(logs).collect();
    let repetitions = rows.iter().map(Vec::len).min()?;
    #[expect(clippy::cast_precision_loss, reason = "a number of rows")]
    let mean = |n: usize| (rows.iter().map(|row| row[n]).sum::<f64>() / rows.len() as f64).exp();
    estimate(&(0..repetitions).map(mean).collect::<Vec<_>>()).map(Ratio::of)
}

/// The same of rows that were measured one after the other: the geometric means of the medians' ratios and of both ends of their
/// intervals, which is as wide as [`compare_apart`] makes each of them. Rows without an interval are left out.
#[must_use]
pub fn compare_all_apart(rows: &[(Estimate, Estimate)]) -> Option<Ratio> {
    let ratios = rows.iter().filter_map(|(base, other)| compare_apart(base, other)).map(|ratio| ratio.ratio);
    let ratios: Vec<Estimate> =
        ratios.filter(|ratio| ratio.interval.is_some_and(|[low, _]| low > 0.0)).collect();
    let repetitions = ratios.iter().map(|ratio| ratio.repetitions).min()?;
    #[expect(clippy::cast_precision_loss, reason = "a number of rows")]
    let mean = |of: fn(&Estimate) -> f64| {
        (ratios.iter().map(|ratio| of(ratio).ln()).sum::<f64>() / ratios.len() as f64).exp()
    };
    let low = mean(|ratio| ratio.interval.map_or(ratio.median, |[low, _]| low));
    let high = mean(|ratio| ratio.interval.map_or(ratio.median, |[_, high]| high));
    let median = mean(|ratio| ratio.median);
    Some(Ratio::of(Estimate { median, interval: Some([low, high]), repetitions }))
}

impl Ratio {
    /// What may be concluded from it.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        Conclusion::of(self.ratio.interval)
    }

    /// What a ratio means.
    #[must_use]
    pub fn of(ratio: Estimate) -> Self {
        let effect = match ratio.interval {
            Some([low, _]) if low > 1.0 => Effect::Higher,
            Some([_, high]) if high < 1.0 => Effect::Lower,
            _ => Effect::NotMeasurable,
        };
        Self { ratio, effect }
    }
}

fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[half]),
        _ => Some(f64::midpoint(sorted[half - 1], sorted[half])),
    }
}

/// How many values to leave out at each end so that the rest spans the median in at least 95 % of all cases. `None` below
/// six values: all of them do so in fewer cases.
fn order_statistic(n: usize) -> Option<usize> {
    // P(at most k of n lie below the median) by the binomial distribution, on both sides.
    let mut term = 0.5f64.powi(i32::try_from(n).ok()?);
    let (mut tail, mut leave) = (0.0, None);
    for k in 0..n / 2 {
        tail += term;
        if 2.0 * tail > 0.05 {
            break;
        }
        leave = Some(k);
        #[expect(clippy::cast_precision_loss, reason = "numbers of repetitions")]
        let step = (n - k) as f64 / (k + 1) as f64;
        term *= step;
    }
    leave
}

/// Student's 95 % interval of the mean of the logarithms, for two to five values.
fn student(values: &[f64]) -> Option<[f64; 2]> {
    // The 97.5 % quantiles for 1 to 4 degrees of freedom.
    const QUANTILES: [f64; 4] = [12.706, 4.303, 3.182, 2.776];
    let quantile = QUANTILES.get(values.len().checked_sub(2)?)?;
    if values.iter().any(|v| v.is_nan() || *v <= 0.0) {
        return None;
    }
    let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    #[expect(clippy::cast_precision_loss, reason = "two to five")]
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|l| (l - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = quantile * (variance / n).sqrt();
    Some([(mean - half).exp(), (mean + half).exp()])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of distribution-free intervals of the median that textbooks have (Conover; Hahn and Meeker): the rank of
    /// the lower end for 95 %.
    #[test]
    fn order_statistics_as_tabled() {
        let lower = [
            (5, None),
            (6, Some(1)),
            (8, Some(1)),
            (9, Some(2)),
            (11, Some(2)),
            (12, Some(3)),
            (20, Some(6)),
            (25, Some(8)),
        ];
        for (n, rank) in lower {
            assert_eq!(order_statistic(n).map(|k| k + 1), rank, "{n} values");
        }
    }

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn six_repetitions_have_their_span_as_interval() {
        let e = estimate(&[10.0, 12.0, 11.0, 9.0, 13.0, 10.5]).unwrap();
        assert_eq!((e.interval, e.repetitions), (Some([9.0, 13.0]), 6));
        assert!((e.median - 10.75).abs() < 1e-9);
    }

    #[test]
    fn few_repetitions_have_a_wide_interval_and_one_has_none() {
        let [low, high] = estimate(&[100.0, 101.0, 102.0]).unwrap().interval.unwrap();
        // mean of logs +- 4.303 * s / sqrt(3)
        assert!((low - 98.54).abs() < 0.05 && (high - 103.52).abs() < 0.05, "{low} {high}");
        assert_eq!(estimate(&[5.0]).unwrap().interval, None);
    }

    #[test]
    fn a_difference_inside_the_noise_is_none() {
        let base = [100.0, 110.0, 90.0, 105.0, 95.0, 100.0];
        let same = [101.0, 108.0, 92.0, 104.0, 94.0, 101.0];
        let ratio = compare(&base, &same).unwrap();
        assert_eq!(ratio.effect, Effect::NotMeasurable);
        assert_eq!(ratio.to_string(), "no measurable effect");
    }

    /// Three servers of which it is known what they are to the first: the same, a fifth faster, and the same with noise that
    /// hides a fifth.
    #[test]
    fn equal_different_and_noisy_are_told_apart() {
        let base = [100.0, 103.0, 98.0, 101.0, 99.0, 102.0];
        let scaled =
            |factors: [f64; 6]| -> Vec<f64> { base.iter().zip(factors).map(|(b, f)| b * f).collect() };
        let conclusion = |other: &[f64]| compare(&base, other).unwrap().conclusion();
        assert_eq!(conclusion(&scaled([1.01, 0.99, 1.02, 0.98, 1.0, 1.01])), Conclusion::NoEffect);
        assert_eq!(conclusion(&scaled([1.21, 1.19, 1.22, 1.18, 1.2, 1.2])), Conclusion::Higher);
        assert_eq!(conclusion(&scaled([0.81, 0.79, 0.82, 0.78, 0.8, 0.8])), Conclusion::Lower);
        let noisy = scaled([1.3, 0.75, 1.2, 0.8, 1.0, 1.1]);
        assert_eq!(conclusion(&noisy), Conclusion::TooNoisy);
        assert_eq!(compare(&base, &noisy).unwrap().to_string(), "too noisy to tell");
        assert_eq!(conclusion(&[100.0]), Conclusion::TooNoisy, "one pair shows neither");
    }

    /// Both one-sided tests must reject: an interval that only touches the margin is not within it.
    #[test]
    fn no_effect_takes_an_interval_within_the_margin() {
        let of = |low: f64, high: f64| Conclusion::of(Some([low, high]));
        assert_eq!(of(0.92, 1.08), Conclusion::NoEffect);
        assert_eq!(of(0.92, 1.1), Conclusion::TooNoisy);
        assert_eq!(of(1.0 / 1.1, 1.0), Conclusion::TooNoisy);
        assert_eq!(of(1.0, 1.05), Conclusion::NoEffect);
        assert_eq!(of(1.001, 1.05), Conclusion::Higher, "small, and beyond the noise");
        assert_eq!(Conclusion::of(None), Conclusion::TooNoisy);
        assert_eq!(of(f64::NAN, f64::NAN), Conclusion::TooNoisy);
    }

    /// Six pairs within the margin on both sides: each one-sided sign test has p = 1/64, and both stay below 2.5 %. Five pairs
    /// would have 1/32: their interval is Student's.
    #[test]
    fn the_interval_of_six_pairs_is_that_of_two_sign_tests() {
        assert!(0.5f64.powi(6) < 0.025 && 0.5f64.powi(5) > 0.025);
        let ratios = [0.95, 0.97, 1.0, 1.02, 1.04, 1.06];
        let ratio = Ratio::of(estimate(&ratios).unwrap());
        assert_eq!((ratio.ratio.interval, ratio.conclusion()), (Some([0.95, 1.06]), Conclusion::NoEffect));
    }

    #[test]
    fn rows_together_have_the_geometric_mean_of_their_ratios() {
        let base = vec![100.0; 6];
        let times = |factor: f64| base.iter().map(|b| b * factor).collect::<Vec<f64>>();
        let together = |rows: &[(Vec<f64>, Vec<f64>)]| compare_all(rows);
        let ratio = together(&[(base.clone(), times(2.0)), (base.clone(), times(0.5))]).unwrap();
        assert!((ratio.ratio.median - 1.0).abs() < 1e-9 && ratio.conclusion() == Conclusion::NoEffect);
        let ratio = together(&[(base.clone(), times(4.0)), (base.clone(), times(1.0))]).unwrap();
        assert!((ratio.ratio.median - 2.0).abs() < 1e-9 && ratio.conclusion() == Conclusion::Higher);
        // A row without figures, and one with a single pair, take nothing from the others.
        let silent = (vec![0.0; 6], times(1.0));
        let once = (vec![100.0], vec![900.0]);
        let ratio = together(&[silent.clone(), once, (base.clone(), times(2.0))]).unwrap();
        assert!((ratio.ratio.median - 2.0).abs() < 1e-9 && ratio.ratio.repetitions == 6);
        assert_eq!(together(&[silent]), None);
        assert_eq!(together(&[]), None);
    }

    #[test]
    fn what_slows_both_down_does_not_hide_a_difference() {
        // The machine gets slower and slower, and the second is always a fifth faster.
        let base = [200.0, 170.0, 150.0, 120.0, 100.0, 80.0];
        let other: Vec<f64> = base.iter().map(|b| b * 1.2).collect();
        let ratio = compare(&base, &other).unwrap();
        assert_eq!(ratio.effect, Effect::Higher);
        assert_eq!(ratio.to_string(), "1.20x (95 %: 1.20 to 1.20)");
        assert_eq!(compare(&other, &base).unwrap().effect, Effect::Lower);
    }

    #[test]
    fn what_was_measured_apart_has_an_interval_of_both() {
        let estimate = |low, median, high| Estimate { median, interval: Some([low, high]), repetitions: 6 };
        let ratio = compare_apart(&estimate(90.0, 100.0, 110.0), &estimate(180.0, 200.0, 220.0)).unwrap();
        assert_eq!((ratio.effect, ratio.ratio.median), (Effect::Higher, 2.0));
        let [low, high] = ratio.ratio.interval.unwrap();
        assert!((low - 180.0 / 110.0).abs() < 1e-9 && (high - 220.0 / 90.0).abs() < 1e-9);
        let near = compare_apart(&estimate(90.0, 100.0, 110.0), &estimate(105.0, 115.0, 125.0)).unwrap();
        assert_eq!(near.effect, Effect::NotMeasurable);
        let idle = compare_apart(&estimate(0.0, 100.0, 110.0), &estimate(180.0, 200.0, 220.0)).unwrap();
        assert_eq!((idle.ratio.interval, idle.effect), (None, Effect::NotMeasurable));
        assert_eq!(compare_apart(&estimate(0.0, 0.0, 0.0), &estimate(1.0, 1.0, 1.0)), None);
    }

    #[test]
    fn rows_that_were_measured_apart_keep_their_wide_intervals() {
        let estimate = |low, median, high| Estimate { median, interval: Some([low, high]), repetitions: 6 };
        let (base, twice) = (estimate(90.0, 100.0, 110.0), estimate(180.0, 200.0, 220.0));
        let ratio = compare_all_apart(&[(base, twice), (base, base)]).unwrap();
        assert!((ratio.ratio.median - 2f64.sqrt()).abs() < 1e-9);
        let [low, high] = ratio.ratio.interval.unwrap();
        assert!(low < 1.2 && high > 1.7 && ratio.conclusion() == Conclusion::Higher, "{low} {high}");
        let once = Estimate { median: 5.0, interval: None, repetitions: 1 };
        assert_eq!(compare_all_apart(&[(once, once)]), None);
    }

    #[test]
    fn one_pair_proves_nothing() {
        assert_eq!(compare(&[100.0], &[300.0]).unwrap().effect, Effect::NotMeasurable);
        assert_eq!(compare(&[100.0], &[]), None);
    }
}
