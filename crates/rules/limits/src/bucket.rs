//! A token bucket that can go into debt.

use std::time::Duration;

use crate::Time;

/// Tokens are counted in parts of this size, so that rounding loses nothing: a rate of n tokens per second adds n parts
/// per nanosecond.
pub(crate) const PARTS: i128 = 1_000_000_000;

/// A bucket holds the tokens of one second divided by this. So much passes at once after a rest; and the bucket can be
/// refilled, or busy clients can ask again, that much later without losing tokens.
pub(crate) const DEPTH: u64 = 4;
/// A light client may run up a debt of the tokens of one second divided by this.
const LENT: i128 = 20;

/// Tokens that arrive at a rate. An operation passes if any token is left, however many it takes; later operations wait
/// until the debt is paid. So an operation of any size passes, and the rate holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bucket {
    rate: u64,
    /// The time at which `level` was computed.
    at: Time,
    level: i128,
}

impl Bucket {
    /// A full bucket; `rate` is at least 1.
    pub(crate) fn new(rate: u64, now: Time) -> Self {
        let mut bucket = Self { rate: rate.max(1), at: now, level: 0 };
        bucket.level = bucket.depth();
        bucket
    }

    fn depth(&self) -> i128 {
        i128::from(self.most()) * PARTS
    }

    /// Adds what has arrived since the last call. Returns what did not fit, in parts.
    pub(crate) fn refill(&mut self, now: Time) -> i128 {
        let elapsed = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        let elapsed = i128::try_from(elapsed.as_nanos()).unwrap_or(i128::MAX);
        let level = self.level.saturating_add(elapsed.saturating_mul(i128::from(self.rate)));
        self.level = level.min(self.depth());
        level - self.level
    }

    /// Whether any token is left.
    pub(crate) fn is_open(&self) -> bool {
        self.level > 0
    }

    /// Whether the debt is no larger than light clients may run up.
    pub(crate) fn may_lend(&self) -> bool {
        self.level > -(i128::from(self.rate) * PARTS / LENT).max(PARTS / 2)
    }

    /// What a full bucket holds, in tokens.
    pub(crate) fn most(&self) -> u64 {
        (self.rate / DEPTH).max(1)
    }

    /// What is left, in parts; negative while the bucket is in debt.
    pub(crate) fn level(&self) -> i128 {
        self.level
    }

    /// Takes this many parts.
    pub(crate) fn take(&mut self, parts: i128) {
        self.level = self.level.saturating_sub(parts);
    }

    /// Puts back parts that were not used after all. Returns what does not fit.
    pub(crate) fn put_back(&mut self, parts: i128) -> i128 {
        let level = self.level.saturating_add(parts);
        self.level = level.min(self.depth());
        level - self.level
    }

    /// When the next token is left, if nothing more is taken.
    pub(crate) fn opens(&self) -> Time {
        if self.is_open() {
            return self.at;
        }
        let nanos = -self.level / i128::from(self.rate) + 1;
        self.at + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Whether the bucket equals a new one.
    pub(crate) fn is_full(&self) -> bool {
        self.level >= self.depth()
    }

    /// Changes the rate. A debt remains.
    pub(crate) fn change(&mut self, rate: u64) {
        self.rate = rate.max(1);
        self.level = self.level.min(self.depth());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Time = Time::from_secs(1);

    #[test]
    fn what_comes_is_exact_over_a_day_whatever_the_steps() {
        for step in [Duration::from_nanos(333_333), Duration::from_micros(7_001), Duration::from_millis(99)] {
            let mut bucket = Bucket::new(3_100, Time::ZERO);
            let begun = bucket.level();
            bucket.take(i128::from(3_100_u64) * PARTS * 86_400 + begun);
            let mut now = Time::ZERO;
            for _ in 0..100_000 {
                now += step;
                assert_eq!(bucket.refill(now), 0);
            }
            bucket.refill(86_400 * SECOND);
            assert_eq!(bucket.level(), 0, "{step:?}");
        }
    }

    #[test]
    fn it_opens_at_the_first_moment_with_anything_left() {
        let mut bucket = Bucket::new(1_000, Time::ZERO);
        bucket.take(bucket.level() + 5 * PARTS);
        let opens = bucket.opens();
        bucket.refill(opens - Duration::from_nanos(1));
        assert!(!bucket.is_open());
        bucket.refill(opens);
        assert!(bucket.is_open());
        assert_eq!(opens, Duration::from_millis(5) + Duration::from_nanos(1));
    }

    #[test]
    fn time_that_runs_backwards_changes_nothing() {
        let mut bucket = Bucket::new(10, SECOND);
        bucket.take(PARTS * 5);
        let before = bucket.clone();
        assert_eq!(bucket.refill(Time::ZERO), 0);
        assert_eq!(bucket, before);
    }

    proptest! {
        #[test]
        fn no_window_lets_more_through_than_its_rate_and_depth(
            rate in 1_u64..100_000,
            steps in proptest::collection::vec((0_u64..300_000_000, 1_u32..50), 1..200),
        ) {
            let mut bucket = Bucket::new(rate, Time::ZERO);
            let (mut now, mut taken, mut largest) = (Time::ZERO, 0, 0);
            for (nanos, size) in steps {
                now += Duration::from_nanos(nanos);
                bucket.refill(now);
                if bucket.is_open() {
                    taken += i128::from(size) * PARTS;
                    largest = largest.max(i128::from(size) * PARTS);
                    bucket.take(i128::from(size) * PARTS);
                }
            }
            let came = i128::try_from(now.as_nanos()).unwrap() * i128::from(rate);
            let depth = i128::from((rate / DEPTH).max(1)) * PARTS;
            prop_assert!(taken <= came + depth + largest);
        }
    }
}
