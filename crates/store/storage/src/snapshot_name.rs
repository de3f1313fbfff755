//! The names of snapshots: `anabranch.LABEL.2026-11-23T05:45:18Z`.

use std::fmt;

const PREFIX: &str = "anabranch.";
/// The longest label in bytes.
const LABEL_BYTES_MAX: usize = 64;

/// The seconds of the years 0 to 9999, which have four digits.
const SECS: std::ops::RangeInclusive<i64> = -62_167_219_200..=253_402_300_799;
const SECS_OF_DAY: i64 = 86_400;

/// The name of a snapshot that this server has taken: who wanted it, and when it was taken, in UTC.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotName {
    label: String,
    secs: i64,
}

impl SnapshotName {
    /// The name for this label and these seconds since 1970. None for a label that is empty, longer than 64 bytes, or has other
    /// characters than ASCII letters, digits, `-` and `_`; and for a time outside of the years 0 to 9999.
    #[must_use]
    pub fn new(label: &str, secs: i64) -> Option<Self> {
        let is_label = !label.is_empty()
            && label.len() <= LABEL_BYTES_MAX
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        (is_label && SECS.contains(&secs)).then(|| Self { label: label.to_owned(), secs })
    }

    /// The name in this text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (label, taken) = text.strip_prefix(PREFIX)?.split_once('.')?;
        let (date, time) = taken.strip_suffix('Z')?.split_once('T')?;
        let [year, month, day] = numbers(date, '-')?;
        let [hour, minute, second] = numbers(time, ':')?;
        let secs = days_of(year, month, day) * SECS_OF_DAY + hour * 3600 + minute * 60 + second;
        // A date that does not exist stands for another one, which is written otherwise.
        Self::new(label, secs).filter(|name| name.to_string() == text)
    }

    /// What was given as a label: a policy's name, for example.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// When the snapshot was taken, in seconds since 1970 (UTC).
    #[must_use]
    pub fn secs(&self) -> i64 {
        self.secs
    }
}

/// The three numbers between two separators, of at most four digits each.
fn numbers(text: &str, separator: char) -> Option<[i64; 3]> {
    let number = |text: &str| text.parse().ok().filter(|_| text.len() <= 4);
    let numbers: Vec<i64> = text.split(separator).map(number).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// The days from 1970-01-01 to a day of the Gregorian calendar.
fn days_of(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March have the leap day at their end, and months of 31, 30, 31, 30, 31 days, again and again.
    let year = if month > 2 { year } else { year - 1 };
    let months = (month + 9) % 12;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * months + 2) / 5 + day - 719_469
}

/// The year, month and day after so many days from 1970-01-01.
fn date_of(days: i64) -> (i64, i64, i64) {
    let about = 1970 + (days * 400).div_euclid(146_097);
    let begins = |year: &i64| days_of(*year, 1, 1) <= days;
    let year = (about - 1..=about + 1).rev().find(begins).unwrap_or(about);
    let month = (1..=12).rev().find(|month| days_of(year, *month, 1) <= days).unwrap_or(1);
    (year, month, days - days_of(year, month, 1) + 1)
}

/// The year, month, day, hour, minute and second (UTC) after so many seconds from 1970-01-01.
#[must_use]
pub fn date_and_time(secs: i64) -> [i64; 6] {
    let (year, month, day) = date_of(secs.div_euclid(SECS_OF_DAY));
    let second = secs.rem_euclid(SECS_OF_DAY);
    [year, month, day, second / 3600, second / 60 % 60, second % 60]
}

impl fmt::Display for SnapshotName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, month, day, hour, minute, second] = date_and_time(self.secs);
        write!(f, "{PREFIX}{}.{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z", self.label)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_its_label_and_its_time() {
        for (label, secs, text) in [
            ("daily", 1_795_412_718, "anabranch.daily.2026-11-23T05:45:18Z"),
            ("a-B_9", 0, "anabranch.a-B_9.1970-01-01T00:00:00Z"),
            ("leap", 951_782_400, "anabranch.leap.2000-02-29T00:00:00Z"),
            ("old", -1, "anabranch.old.1969-12-31T23:59:59Z"),
            ("first", *SECS.start(), "anabranch.first.0000-01-01T00:00:00Z"),
            ("last", *SECS.end(), "anabranch.last.9999-12-31T23:59:59Z"),
        ] {
            let name = SnapshotName::new(label, secs).unwrap();
            assert_eq!(name.to_string(), text);
            assert_eq!(SnapshotName::parse(text), Some(name.clone()));
            assert_eq!((name.label(), name.secs()), (label, secs));
        }
    }

    #[test]
    fn every_day_has_a_date_of_its_own() {
        // The calendar repeats after 146,097 days.
        let mut before = date_of(-73_049);
        for days in -73_048..73_049 {
            let (year, month, day) = date_of(days);
            assert_eq!(days_of(year, month, day), days);
            assert!((year, month, day) > before && (1..=12).contains(&month) && (1..=31).contains(&day));
            before = (year, month, day);
        }
        assert_eq!(before, (2169, 12, 31));
    }

    #[test]
    fn other_labels_and_times_make_no_name() {
        for label in ["", "a.b", "a/b", "a b", "\u{e4}", "a\0", &"x".repeat(65)] {
            assert_eq!(SnapshotName::new(label, 0), None, "{label:?}");
        }
        assert!(SnapshotName::new(&"x".repeat(64), 0).is_some());
        assert_eq!(SnapshotName::new("a", i64::MAX), None);
        assert_eq!(
            (SnapshotName::new("a", SECS.start() - 1), SnapshotName::new("a", SECS.end() + 1)),
            (None, None)
        );
    }

    #[test]
    fn what_is_no_name_is_not_read_as_one() {
        for text in [
            "",
            "anabranch.",
            "anabranch.a",
            "anabranch.a.2026-11-23T05:45:18",
            "anabranch.a.2026-11-23 05:45:18Z",
            "anabranch.a.2026-02-29T00:00:00Z",
            "anabranch.a.2026-13-01T00:00:00Z",
            "anabranch.a.2026-11-23T24:00:00Z",
            "anabranch.a.2026-11-23T05:45:60Z",
            "anabranch.a.2026-11-23T5:45:18Z",
            "anabranch.a.+026-11-23T05:45:18Z",
            "anabranch.a.2026-11-23-01T05:45:18Z",
            "anabranch..2026-11-23T05:45:18Z",
            "anabranch.a.b.2026-11-23T05:45:18Z",
            "Anabranch.a.2026-11-23T05:45:18Z",
            "anabranch.a.2026-11-23T05:45:18Z.",
            "anabranch.a.9223372036854775807-9223372036854775807-9223372036854775807T1:1:1Z",
        ] {
            assert_eq!(SnapshotName::parse(text), None, "{text:?}");
        }
    }
}
