//! A baseline, the burst above it, and the credits that pay for it.

use crate::bucket::{Bucket, PARTS};
use crate::{Burst, Time};

/// What limits operations: a rate, or a baseline with bursts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Meter {
    Rate(Bucket),
    Burst(Box<Credits>),
}

/// Azure Files: credits accrue below the baseline; above it each operation costs one credit; without credits only the
/// baseline is left. None accrue while operations are held back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Credits {
    baseline: Bucket,
    peak: Bucket,
    /// Counted in [`PARTS`].
    saved: i128,
    most: i128,
}

impl Credits {
    fn take(&mut self, parts: i128) {
        self.peak.take(parts);
        let from_baseline = parts.min(self.baseline.level().max(0));
        let from_credits = (parts - from_baseline).min(self.saved);
        self.saved -= from_credits;
        self.baseline.take(parts - from_credits);
    }

    fn put_back(&mut self, parts: i128) {
        self.peak.put_back(parts);
        self.saved = (self.saved + self.baseline.put_back(parts)).min(self.most);
    }

    fn refill(&mut self, now: Time, accrues: bool) {
        self.peak.refill(now);
        let unused = self.baseline.refill(now);
        if accrues {
            self.saved = self.saved.saturating_add(unused).min(self.most);
        }
    }
}

impl Meter {
    /// A meter in which everything is full.
    pub(crate) fn new(rate: u64, burst: Option<Burst>, now: Time) -> Self {
        match burst {
            None => Self::Rate(Bucket::new(rate, now)),
            Some(burst) => {
                let most = i128::from(burst.credits) * PARTS;
                let (baseline, peak) = (Bucket::new(rate, now), Bucket::new(burst.iops, now));
                Self::Burst(Box::new(Credits { baseline, peak, saved: most, most }))
            }
        }
    }

    /// Refills up to now. `accrues` says whether credits are saved for the time since the last call.
    pub(crate) fn refill(&mut self, now: Time, accrues: bool) {
        match self {
            Self::Rate(bucket) => {
                bucket.refill(now);
            }
            Self::Burst(credits) => credits.refill(now, accrues),
        }
    }

    /// Whether an operation may pass.
    pub(crate) fn is_open(&self) -> bool {
        match self {
            Self::Rate(bucket) => bucket.is_open(),
            Self::Burst(c) => c.peak.is_open() && (c.saved > 0 || c.baseline.is_open()),
        }
    }

    /// Whether a client that has had less than its fair share may pass even though the meter is not open.
    pub(crate) fn may_lend(&self) -> bool {
        match self {
            Self::Rate(bucket) => bucket.may_lend(),
            Self::Burst(c) => c.peak.may_lend() && (c.saved > 0 || c.baseline.may_lend()),
        }
    }

    /// The tokens of one short moment: a client that has had less than its fair share may catch up on that many.
    pub(crate) fn moment(&self) -> u64 {
        match self {
            Self::Rate(bucket) => bucket.most(),
            Self::Burst(credits) => credits.peak.most(),
        }
    }

    /// An operation passes.
    pub(crate) fn take(&mut self, tokens: u64) {
        let parts = i128::from(tokens) * PARTS;
        match self {
            Self::Rate(bucket) => bucket.take(parts),
            Self::Burst(credits) => credits.take(parts),
        }
    }

    /// An operation has not used all that it took.
    pub(crate) fn put_back(&mut self, tokens: u64) {
        let parts = i128::from(tokens) * PARTS;
        match self {
            Self::Rate(bucket) => {
                bucket.put_back(parts);
            }
            Self::Burst(credits) => credits.put_back(parts),
        }
    }

    /// When the next operation may pass, if none passes before.
    pub(crate) fn opens(&self) -> Time {
        match self {
            Self::Rate(bucket) => bucket.opens(),
            Self::Burst(c) if c.saved > 0 => c.peak.opens(),
            Self::Burst(c) => c.peak.opens().max(c.baseline.opens()),
        }
    }

    /// Whether the meter equals a new one.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Rate(bucket) => bucket.is_full(),
            Self::Burst(_) => false,
        }
    }

    /// Credits that are left.
    pub(crate) fn credits(&self) -> Option<u64> {
        match self {
            Self::Rate(_) => None,
            Self::Burst(credits) => Some(u64::try_from(credits.saved / PARTS).unwrap_or(0)),
        }
    }

    /// Sets the credits that are left, up to the maximum.
    pub(crate) fn set_credits(&mut self, left: u64) {
        if let Self::Burst(credits) = self {
            credits.saved = (i128::from(left) * PARTS).min(credits.most);
        }
    }

    /// Changes the rates. A debt remains; savings remain as far as they fit.
    pub(crate) fn change(&mut self, rate: u64, burst: Option<Burst>, now: Time) {
        let new = Self::new(rate, burst, now);
        match (&mut *self, new) {
            (Self::Rate(bucket), Self::Rate(_)) => bucket.change(rate),
            (Self::Burst(old), Self::Burst(new)) => {
                old.most = new.most;
                old.saved = old.saved.min(old.most);
                old.baseline.change(rate);
                old.peak.change(burst.map_or(rate, |burst| burst.iops));
            }
            (_, new) => *self = new,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// 100 GiB of Azure Files v1.
    const BASELINE: u64 = 3_100;
    const BURST: Burst = Burst { iops: 10_000, credits: 24_840_000 };

    /// Lets operations of this size through until `to`, as many as pass. Returns how many.
    fn run(meter: &mut Meter, from: Time, to: Time, size: u64) -> u64 {
        let (mut now, mut passed) = (from, 0);
        while now < to {
            meter.refill(now, false);
            while meter.is_open() {
                meter.take(size);
                passed += size;
            }
            now = meter.opens().min(to);
        }
        meter.refill(to, false);
        passed
    }

    fn within(value: u64, expected: u64, per_mille: u64) -> bool {
        value.abs_diff(expected) * 1000 <= expected * per_mille
    }

    #[test]
    fn a_full_burst_lasts_for_an_hour() {
        let mut meter = Meter::new(BASELINE, Some(BURST), Time::ZERO);
        let hour = Duration::from_secs(3600);
        let passed = run(&mut meter, Time::ZERO, hour, 100);
        assert!(within(passed, 36_000_000, 1), "{passed}");
        assert!(meter.credits().unwrap() <= BURST.credits / 1000, "{:?}", meter.credits());
        let after = run(&mut meter, hour, hour * 3, 100);
        assert!(within(after, 2 * 3600 * BASELINE, 1), "{after}");
        assert_eq!(meter.credits(), Some(0));
    }

    #[test]
    fn an_operation_above_the_baseline_costs_one_credit() {
        // An hour and a half at 5,000 operations per second: 1,900 of them are above the baseline.
        let mut meter = Meter::new(BASELINE, Some(BURST), Time::ZERO);
        let step = Duration::from_millis(10);
        for tick in 0..540_000_u32 {
            meter.refill(step * tick, true);
            assert!(meter.is_open());
            meter.take(50);
        }
        let spent = BURST.credits - meter.credits().unwrap();
        assert!(within(spent, 1_900 * 5_400, 1), "{spent}");
    }

    #[test]
    fn what_the_baseline_leaves_is_saved_unless_operations_are_held_back() {
        let mut meter = Meter::new(BASELINE, Some(BURST), Time::ZERO);
        meter.set_credits(0);
        let step = Duration::from_millis(10);
        let hour = 360_000_u32;
        for tick in 1..=hour {
            meter.refill(step * tick, true);
            meter.take(10);
        }
        let saved = meter.credits().unwrap();
        assert!(within(saved, 2_100 * 3_600, 1), "{saved}");
        for tick in hour + 1..=2 * hour {
            meter.refill(step * tick, false);
            meter.take(10);
        }
        assert_eq!(meter.credits(), Some(saved), "none accrue while throttled");
        meter.refill(step * 100 * hour, true);
        assert_eq!(meter.credits(), Some(BURST.credits), "and no more than fit");
    }

    #[test]
    fn another_plan_keeps_what_was_saved_as_far_as_it_fits() {
        let mut meter = Meter::new(BASELINE, Some(BURST), Time::ZERO);
        meter.set_credits(1_000_000);
        meter.change(4_000, Some(Burst { iops: 12_000, credits: 28_800_000 }), Time::ZERO);
        assert_eq!(meter.credits(), Some(1_000_000));
        meter.change(4_000, Some(Burst { iops: 5_000, credits: 500_000 }), Time::ZERO);
        assert_eq!(meter.credits(), Some(500_000));
        meter.change(4_000, None, Time::ZERO);
        assert_eq!(meter.credits(), None);
        meter.change(4_000, Some(BURST), Time::ZERO);
        assert_eq!(meter.credits(), Some(BURST.credits), "a new one starts full");
    }
}
