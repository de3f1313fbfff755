//! Moments in UTC.

use std::fmt;
use std::str::FromStr;

use crate::day::Day;

const SECS_OF_DAY: i64 = 86_400;
/// The seconds of the years 0 to 9999, which have four digits.
const SECS: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;

/// A moment: whole seconds since 1970, UTC, of the years 0 to 9999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Utc(i64);

/// A text that is no moment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no time: expected one in UTC, such as 2026-12-31T18:00:00Z, or a day, such as 2026-12-31")]
pub struct NotATime(String);

impl Utc {
    /// So many seconds after 1970 began. What lies outside of the years 0 to 9999 becomes their first or last second.
    #[must_use]
    pub fn from_secs(secs: i64) -> Self {
        Self(secs.clamp(*SECS.start(), *SECS.end()))
    }

    /// Seconds since 1970 began.
    #[must_use]
    pub fn secs(self) -> i64 {
        self.0
    }

    /// Seconds since 1970 began; 0 for what was before.
    #[must_use]
    pub fn secs_since_1970(self) -> u64 {
        u64::try_from(self.0).unwrap_or(0)
    }

    /// So many seconds later, or the last moment.
    #[must_use]
    pub fn plus(self, secs: u64) -> Self {
        Self::from_secs(self.0.saturating_add(i64::try_from(secs).unwrap_or(i64::MAX)))
    }

    pub(crate) fn day(self) -> Day {
        Day(self.0.div_euclid(SECS_OF_DAY))
    }

    pub(crate) fn second_of_day(self) -> i64 {
        self.0.rem_euclid(SECS_OF_DAY)
    }

    /// So many seconds after 1970 began, if that is in the years 0 to 9999.
    pub(crate) fn exactly(secs: i64) -> Option<Self> {
        SECS.contains(&secs).then_some(Self(secs))
    }

    /// The moment at which a day has lasted so long.
    pub(crate) fn on(day: Day, second_of_day: i64) -> Option<Self> {
        Self::exactly(day.0.saturating_mul(SECS_OF_DAY).saturating_add(second_of_day))
    }
}

/// `2026-11-23T05:45:18Z`
impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((year, month, day), second) = (self.day().date(), self.second_of_day());
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// `2026-11-23T05:45:18Z`, or `2026-11-23` for the beginning of that day.
impl FromStr for Utc {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        let not_a_time = || NotATime(text.to_owned());
        let (date, time) = text.split_once('T').unwrap_or((text, "00:00:00Z"));
        let time = time.strip_suffix('Z').ok_or_else(not_a_time)?;
        let [year, month, day] = numbers(date, '-', [4, 2, 2]).ok_or_else(not_a_time)?;
        let [hour, minute, second] = numbers(time, ':', [2, 2, 2]).ok_or_else(not_a_time)?;
        let is_time = hour < 24 && minute < 60 && second < 60;
        let day = Day::of(year, month, day).filter(|_| is_time).ok_or_else(not_a_time)?;
        Self::on(day, hour * 3600 + minute * 60 + second).ok_or_else(not_a_time)
    }
}

/// Three numbers of so many digits each, with a separator between them.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<[i64; 3]> {
    let parts: Vec<&str> = text.split(separator).collect();
    let is_number = |(part, digits): (&&str, usize)| {
        part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let fits = parts.len() == digits.len() && parts.iter().zip(digits).all(is_number);
    let numbers: Vec<i64> = parts.iter().filter(|_| fits).filter_map(|part| part.parse().ok()).collect();
    numbers.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_as_it_is_written() {
        for (secs, text) in [
            (1_795_412_718, "2026-11-23T05:45:18Z"),
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (*SECS.start(), "0000-01-01T00:00:00Z"),
            (*SECS.end(), "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(Utc::from_secs(secs).to_string(), text);
            assert_eq!(text.parse(), Ok(Utc::from_secs(secs)));
        }
        assert_eq!("2026-11-23".parse::<Utc>(), "2026-11-23T00:00:00Z".parse());
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "T",
            "tomorrow",
            "2026",
            "2026-02-29",
            "2026-13-01",
            "2026-11-23T05:45:18",
            "2026-11-23T24:00:00Z",
            "2026-11-23T05:60:00Z",
            "2026-11-23T05:45:60Z",
            "2026-11-23T05:45Z",
            "2026-11-23 05:45:18Z",
            "26-11-23",
            "+026-11-23",
            "2026-11-23T05:45:18Z ",
            "2026-11-23-01",
        ] {
            assert!(text.parse::<Utc>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn no_moment_is_outside_of_the_years() {
        assert_eq!(Utc::from_secs(i64::MAX), Utc::from_secs(*SECS.end()));
        assert_eq!(Utc::from_secs(i64::MIN), Utc::from_secs(*SECS.start()));
        assert_eq!(Utc::from_secs(7).plus(u64::MAX), Utc::from_secs(*SECS.end()));
        assert_eq!(Utc::from_secs(-7).secs_since_1970(), 0);
    }
}
