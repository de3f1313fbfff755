//! How much may be held.

use std::time::Duration;

/// How long more than the soft limit may be held, unless something else was said: seven days, as on Linux (MAX_DQ_TIME).
pub const GRACE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    soft: Option<u64>,
    hard: Option<u64>,
    grace: Duration,
}

/// Why limits are no quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// Neither limit is there.
    #[error("a quota needs a soft or a hard limit")]
    None,
    /// The soft limit is above the hard limit.
    #[error("the soft limit is above the hard limit")]
    SoftAboveHard,
}

impl Limits {
    /// A quota with these limits in bytes. More than `soft` may be held for the time `grace`, more than `hard` never.
    ///
    /// # Errors
    /// [`LimitsError`].
    pub fn new(soft: Option<u64>, hard: Option<u64>, grace: Duration) -> Result<Self, LimitsError> {
        match (soft, hard) {
            (None, None) => Err(LimitsError::None),
            (Some(soft), Some(hard)) if soft > hard => Err(LimitsError::SoftAboveHard),
            _ => Ok(Self { soft, hard, grace }),
        }
    }

    /// The soft limit in bytes.
    #[must_use]
    pub fn soft(&self) -> Option<u64> {
        self.soft
    }

    /// The hard limit in bytes.
    #[must_use]
    pub fn hard(&self) -> Option<u64> {
        self.hard
    }

    /// How long more than the soft limit may be held.
    #[must_use]
    pub fn grace(&self) -> Duration {
        self.grace
    }

    /// The limit that ends all writing at last.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.hard.or(self.soft).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_limits_something_and_its_soft_limit_comes_first() {
        let limits = |soft, hard| Limits::new(soft, hard, GRACE).map(|limits| limits.last());
        assert_eq!(limits(None, None), Err(LimitsError::None));
        assert_eq!(limits(Some(2), Some(1)), Err(LimitsError::SoftAboveHard));
        assert_eq!(limits(Some(1), Some(1)), Ok(1));
        assert_eq!(limits(Some(1), None), Ok(1));
        assert_eq!(limits(None, Some(0)), Ok(0));
    }
}
