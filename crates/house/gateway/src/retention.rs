//! How long a removed share can be brought back.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// The days that can be set, as Azure Files has them:
/// <https://learn.microsoft.com/azure/storage/files/storage-files-prevent-file-share-deletion>.
pub const RETENTION_DAYS: RangeInclusive<u16> = 1..=365;

const DAY_SECS: u64 = 24 * 3600;

/// For how many days a removed share can be brought back; None: it cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention(Option<u16>);

/// The text is no retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotARetention;

impl fmt::Display for NotARetention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (RETENTION_DAYS.start(), RETENTION_DAYS.end());
        write!(f, "expected `off` or a number of days from {least}d to {most}d, such as 7d")
    }
}

impl std::error::Error for NotARetention {}

impl Default for Retention {
    fn default() -> Self {
        Self(Some(7))
    }
}

impl Retention {
    /// The shortest.
    pub(crate) const LEAST: Self = Self(Some(*RETENTION_DAYS.start()));

    /// When a share can no longer be brought back that is removed now; both in seconds of the Unix epoch.
    pub(crate) fn until(self, now: u64) -> Option<u64> {
        self.0.map(|days| now.saturating_add(u64::from(days) * DAY_SECS))
    }
}

impl FromStr for Retention {
    type Err = NotARetention;

    fn from_str(text: &str) -> Result<Self, NotARetention> {
        if text == "off" {
            return Ok(Self(None));
        }
        let days = text.strip_suffix('d').filter(|days| days.bytes().all(|byte| byte.is_ascii_digit()));
        let days = days.and_then(|days| days.parse().ok()).filter(|days| RETENTION_DAYS.contains(days));
        days.map(|days| Self(Some(days))).ok_or(NotARetention)
    }
}

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(days) => write!(f, "{days}d"),
            None => f.write_str("off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_the_rest_refused() {
        for text in ["off", "1d", "7d", "365d"] {
            assert_eq!(text.parse::<Retention>().unwrap().to_string(), text);
        }
        for text in ["", "d", "0d", "366d", "7", "+7d", "99999999d", "7 d", "OFF"] {
            assert_eq!(text.parse::<Retention>(), Err(NotARetention), "{text:?}");
        }
        assert_eq!(Retention::default().until(10), Some(604_810));
        assert_eq!("off".parse::<Retention>().unwrap().until(10), None);
    }
}
