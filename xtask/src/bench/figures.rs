//! Figures of several rounds.

/// The middle one of some figures, or the mean of the two in the middle.
pub(super) fn median(figures: &[f64]) -> f64 {
    let sorted = sorted(figures);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 0 => f64::midpoint(sorted[middle - 1], sorted[middle]),
        _ => sorted[middle],
    }
}

/// The least and the greatest.
pub(super) fn ends(figures: &[f64]) -> (f64, f64) {
    let sorted = sorted(figures);
    (sorted.first().copied().unwrap_or(f64::NAN), sorted.last().copied().unwrap_or(f64::NAN))
}

/// The 95 % confidence interval of the true median, computed by ranks, which assumes nothing about the distribution.
pub(super) fn interval(figures: &[f64]) -> (f64, f64) {
    let sorted = sorted(figures);
    // The greatest rank below n / 2 - 0.98 * sqrt(n).
    let half = (0..sorted.len()).rev().find(|rank| is_below(*rank, sorted.len())).unwrap_or(0);
    let highest = sorted.len().saturating_sub(1 + half);
    (sorted.get(half).copied().unwrap_or(f64::NAN), sorted.get(highest).copied().unwrap_or(f64::NAN))
}

fn is_below(rank: usize, count: usize) -> bool {
    let real = |n: usize| u32::try_from(n).map_or(f64::INFINITY, f64::from);
    real(rank) <= real(count) / 2.0 - 0.98 * real(count).sqrt()
}

/// The figures in ascending order.
pub(super) fn sorted(figures: &[f64]) -> Vec<f64> {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// The ratios of the second figure to the first, for each pair that was measured side by side.
pub(super) fn ratios(pairs: &[[f64; 2]]) -> Vec<f64> {
    pairs.iter().map(|[first, second]| second / first).collect()
}

/// One figure of each row.
pub(super) fn column<const N: usize>(rows: &[[f64; N]], which: usize) -> Vec<f64> {
    rows.iter().map(|row| row[which]).collect()
}

/// A figure with thousands separators: 1,234,567.
pub(super) fn thousands(figure: f64) -> String {
    let digits = format!("{figure:.0}");
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 && !shown.ends_with('-') {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-9);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-9);
        assert!(median(&[]).is_nan());
        assert_eq!(ends(&[2.0, 3.0, 1.0]), (1.0, 3.0));
    }

    #[test]
    fn an_interval_goes_by_ranks() {
        let figures: Vec<_> = (0..15).map(f64::from).collect();
        // 15 / 2 - 0.98 * sqrt(15) = 3.7
        assert_eq!(interval(&figures), (3.0, 11.0));
        assert_eq!(interval(&[2.0, 1.0]), (1.0, 2.0));
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(thousands(96_502.6), "96,503");
        assert_eq!(thousands(1_234_567.0), "1,234,567");
        assert_eq!(thousands(999.0), "999");
        assert_eq!(thousands(-123_456.0), "-123,456");
    }
}
