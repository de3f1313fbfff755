//! How long operations took: counts in bins, so that many measurements can be merged without losing their percentiles.
//!
//! The bins are those of fio's `clat_ns.bins` (fio 3, `stat.c`, `plat_val_to_idx`): 64 of equal width for each power of two,
//! so that the middle of a bin is within 0.8 % of every value in it.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bins a power of two.
const BINS_PER_OCTAVE: usize = 64;
const OCTAVE_BITS: u32 = BINS_PER_OCTAVE.trailing_zeros();
/// Bins in all; what took longer than 2^40 ns (18 minutes) lands in the last one.
const BINS: usize = (41 - OCTAVE_BITS as usize) * BINS_PER_OCTAVE;

/// Latencies in nanoseconds. In JSON: a list of `[bin, count]`, without the empty bins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    /// Counts one operation that took `ns` nanoseconds.
    pub fn add(&mut self, ns: u64) {
        self.add_to_bin(bin_of(ns), 1);
    }

    /// Adds what another one has counted.
    pub fn merge(&mut self, other: &Self) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.total += other.total;
    }

    /// All of them in one.
    pub fn merged<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        all.into_iter().for_each(|one| sum.merge(one));
        sum
    }

    /// Operations counted.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The latency in nanoseconds that `percent` (0 to 100) of all operations did not exceed, within 0.8 %. `None` when
    /// nothing was counted.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<f64> {
        self.percentile_bin(percent).map(middle)
    }

    /// The bin that this latency lies in.
    pub(crate) fn percentile_bin(&self, percent: f64) -> Option<usize> {
        let rank = rank(percent, self.total)?;
        let mut seen = 0;
        for (bin, count) in self.bins() {
            seen += count;
            if seen >= rank {
                return Some(bin);
            }
        }
        None
    }

    /// The mean in nanoseconds, from the middles of the bins. `None` when nothing was counted.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.bins().map(|(bin, count)| middle(bin) * as_float(count)).sum();
        (self.total > 0).then(|| sum / as_float(self.total))
    }

    /// The bins that are not empty: their number and what they counted.
    pub fn bins(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.counts.iter().copied().enumerate().filter(|(_, count)| *count > 0)
    }

    fn add_to_bin(&mut self, bin: usize, count: u64) {
        if self.counts.len() <= bin {
            self.counts.resize(bin + 1, 0);
        }
        self.counts[bin] += count;
        self.total += count;
    }
}

/// The place, counted from one, of the operation that `percent` of `total` end with.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and total")]
fn rank(percent: f64, total: u64) -> Option<u64> {
    let exact = (percent.clamp(0.0, 100.0) / 100.0 * as_float(total)).ceil() as u64;
    (total > 0).then(|| exact.clamp(1, total))
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
fn as_float(count: u64) -> f64 {
    count as f64
}

/// The bin that counts `ns`.
fn bin_of(ns: u64) -> usize {
    let octave = ns.max(1).ilog2().saturating_sub(OCTAVE_BITS);
    // Within the first two octaves each nanosecond has its bin.
    let within = usize::try_from(ns >> octave).unwrap_or(usize::MAX);
    (octave as usize * BINS_PER_OCTAVE).saturating_add(within).min(BINS - 1)
}

/// The lowest value of a bin and the number of values in it, in nanoseconds.
#[must_use]
pub fn bin_range(bin: usize) -> (u64, u64) {
    let octave = (bin / BINS_PER_OCTAVE).saturating_sub(1).min(64 - 2 * OCTAVE_BITS as usize);
    let low = (bin - octave * BINS_PER_OCTAVE) as u64;
    (low << octave, 1 << octave)
}

/// The middle of a bin: as fio names it in `clat_ns.bins`.
fn middle(bin: usize) -> f64 {
    let (low, width) = bin_range(bin);
    as_float(low) + as_float(width - 1) / 2.0
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.bins())
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut histogram = Self::default();
        for (bin, count) in Vec::<(usize, u64)>::deserialize(deserializer)? {
            if bin >= BINS {
                return Err(D::Error::custom(format!("a histogram has {BINS} bins, there is none {bin}")));
            }
            histogram.add_to_bin(bin, count);
        }
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// By `plat_val_to_idx` with `FIO_IO_U_PLAT_BITS` 6.
    #[test]
    fn bins_are_those_of_fio() {
        for (ns, bin) in
            [(0, 0), (63, 63), (64, 64), (127, 127), (128, 128), (129, 128), (1000, 317), (1_000_000, 954)]
        {
            assert_eq!(bin_of(ns), bin, "{ns} ns");
        }
    }

    #[test]
    fn percentiles_come_from_the_merged_bins() {
        let (mut quick, mut slow) = (Histogram::default(), Histogram::default());
        (0..99).for_each(|_| quick.add(100_000));
        slow.add(10_000_000);
        let both = Histogram::merged([&quick, &slow]);
        let near = |percent: f64, ns: f64| (both.percentile(percent).unwrap() / ns - 1.0).abs() < 0.01;
        assert!(near(50.0, 100_000.0) && near(99.0, 100_000.0));
        assert!(near(99.9, 10_000_000.0) && near(100.0, 10_000_000.0));
        assert_eq!(Histogram::default().percentile(50.0), None);
        assert_eq!(Histogram::default().mean(), None);
    }

    #[test]
    fn what_took_an_hour_is_counted_too() {
        let mut histogram = Histogram::default();
        histogram.add(u64::MAX);
        histogram.add(3_600_000_000_000);
        assert_eq!(histogram.total(), 2);
        assert!(histogram.percentile(100.0).unwrap() > 1e12);
    }

    #[test]
    fn json_has_no_empty_bins_and_refuses_bins_that_there_are_not() {
        let mut histogram = Histogram::default();
        histogram.add(1000);
        histogram.add(1000);
        assert_eq!(serde_json::to_string(&histogram).unwrap(), "[[317,2]]");
        assert_eq!(serde_json::from_str::<Histogram>("[[317,2]]").unwrap(), histogram);
        assert!(serde_json::from_str::<Histogram>("[[99999999,1]]").is_err());
    }

    proptest! {
        #[test]
        fn a_value_lies_in_its_bin(ns in 0u64..(1 << 40)) {
            let (low, width) = bin_range(bin_of(ns));
            prop_assert!(low <= ns && ns < low + width);
            prop_assert!((middle(bin_of(ns)) - as_float(ns)).abs() <= as_float(ns) * 0.008);
        }

        #[test]
        fn merging_is_counting_together(a in prop::collection::vec(0u64..1_000_000_000, 0..50), b in prop::collection::vec(0u64..1_000_000_000, 0..50)) {
            let count = |values: &[u64]| { let mut h = Histogram::default(); values.iter().for_each(|v| h.add(*v)); h };
            let together = count(&[a.clone(), b.clone()].concat());
            let merged = Histogram::merged([&count(&a), &count(&b)]);
            prop_assert_eq!(merged.bins().collect::<Vec<_>>(), together.bins().collect::<Vec<_>>());
            prop_assert_eq!(merged.total(), together.total());
        }
    }
}
