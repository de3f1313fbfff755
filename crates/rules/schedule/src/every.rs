//! The times at which a rule is due.

use std::fmt;

use crate::day::Day;
use crate::{Period, PolicyError, Utc};

const HOUR: i64 = 3600;
/// No two days on which a rule is due are farther apart: those of a rule for day 31 are at most 62 days apart, for day 30, 59.
const DAYS_APART_MAX: i64 = 62;
/// As in [`Every::days`], Sunday first.
const WEEK_DAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// The times (UTC) at which a rule is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Every {
    period: Period,
    /// Of the week, Sunday first, or of the month, from bit 1 on. All for the other rules.
    days: u32,
    /// Seconds after the beginning of the day; for an hourly rule, of the hour.
    second: i64,
}

impl Every {
    /// The times in this text: `:MINUTE` of a rule that is hourly, `HOUR:MINUTE` of one that is daily, `DAYS[@HOUR:MINUTE]` of the others.
    /// Days are `sun,wed` of a week, `1,15` of a month.
    ///
    /// # Errors
    /// The text has not the form of this period.
    pub fn parse(period: Period, text: &str) -> Result<Self, PolicyError> {
        let wrong = || PolicyError::Times { period, text: text.to_owned() };
        let (days, time) = match period {
            Period::Hourly | Period::Daily => (None, text),
            Period::Weekly | Period::Monthly => {
                let (days, time) = text.split_once('@').unwrap_or((text, "00:00"));
                (Some(days), time)
            }
        };
        let (hour, minute) = time.split_once(':').ok_or_else(wrong)?;
        let hour = match period {
            Period::Hourly => hour.is_empty().then_some(0),
            _ => two_digits(hour, 23),
        };
        let (hour, minute) = (hour.ok_or_else(wrong)?, two_digits(minute, 59).ok_or_else(wrong)?);
        let mut bits = 0;
        for day in days.iter().flat_map(|days| days.split(',')) {
            let bit = match period {
                Period::Weekly => WEEK_DAYS.iter().position(|name| day.eq_ignore_ascii_case(name)),
                _ => day.parse().ok().filter(|number| (1..=31).contains(number) && !day.starts_with('+')),
            };
            bits |= 1 << bit.ok_or_else(wrong)?;
        }
        Ok(Self {
            period,
            days: if days.is_some() { bits } else { u32::MAX },
            second: i64::from(hour) * HOUR + i64::from(minute) * 60,
        })
    }

    /// The last of these times that is not after `now`. None before the first one of the year 0.
    #[must_use]
    pub fn last(&self, now: Utc) -> Option<Utc> {
        if self.period == Period::Hourly {
            return Utc::exactly(now.secs() - (now.secs() - self.second).rem_euclid(HOUR));
        }
        let is_past = self.second <= now.second_of_day();
        let first = now.day().0 - i64::from(!is_past);
        self.first_day((first - DAYS_APART_MAX..=first).rev())
    }

    /// The first of these times after `now`. None after the last one of the year 9999.
    #[must_use]
    pub fn next(&self, now: Utc) -> Option<Utc> {
        if self.period == Period::Hourly {
            return Utc::exactly(now.secs() + HOUR - (now.secs() - self.second).rem_euclid(HOUR));
        }
        let is_past = self.second <= now.second_of_day();
        let first = now.day().0 + i64::from(is_past);
        self.first_day(first..=first + DAYS_APART_MAX)
    }

    /// The time on the first of these days on which the rule is due.
    fn first_day(&self, days: impl Iterator<Item = i64>) -> Option<Utc> {
        days.map(Day).find(|day| self.is_on(*day)).and_then(|day| Utc::on(day, self.second))
    }

    fn is_on(&self, day: Day) -> bool {
        let number = match self.period {
            Period::Hourly | Period::Daily => return true,
            Period::Weekly => day.of_week(),
            Period::Monthly => day.date().2,
        };
        self.days & (1 << number) != 0
    }
}

/// A number of two digits, up to this one.
fn two_digits(text: &str, max: u8) -> Option<u8> {
    let is_number = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| is_number && *number <= max)
}

/// As it is read, with the time always there.
impl fmt::Display for Every {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = (0..32_usize).filter(|bit| self.days & (1 << bit) != 0);
        let days: Vec<String> = match self.period {
            Period::Hourly | Period::Daily => Vec::new(),
            Period::Weekly => days.filter_map(|day| WEEK_DAYS.get(day).map(|&day| day.to_owned())).collect(),
            Period::Monthly => days.map(|day| day.to_string()).collect(),
        };
        let (hour, minute) = (self.second / HOUR, self.second / 60 % 60);
        match self.period {
            Period::Hourly => write!(f, ":{minute:02}"),
            Period::Daily => write!(f, "{hour:02}:{minute:02}"),
            Period::Weekly | Period::Monthly => write!(f, "{}@{hour:02}:{minute:02}", days.join(",")),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn every(period: Period, text: &str) -> Every {
        Every::parse(period, text).unwrap()
    }

    fn utc(text: &str) -> Utc {
        text.parse().unwrap()
    }

    #[test]
    fn the_times_around_a_moment() {
        use Period::{Daily, Hourly, Monthly, Weekly};
        for (period, text, now, last, next) in [
            (Hourly, ":05", "2026-11-23T05:05:00Z", "2026-11-23T05:05:00Z", "2026-11-23T06:05:00Z"),
            (Hourly, ":05", "2026-11-23T05:04:59Z", "2026-11-23T04:05:00Z", "2026-11-23T05:05:00Z"),
            (Hourly, ":59", "2027-01-01T00:00:00Z", "2026-12-31T23:59:00Z", "2027-01-01T00:59:00Z"),
            (Daily, "01:10", "2026-11-23T01:10:00Z", "2026-11-23T01:10:00Z", "2026-11-24T01:10:00Z"),
            (Daily, "01:10", "2026-11-23T01:09:59Z", "2026-11-22T01:10:00Z", "2026-11-23T01:10:00Z"),
            // A Monday.
            (Weekly, "sun", "2026-11-23T05:45:18Z", "2026-11-22T00:00:00Z", "2026-11-29T00:00:00Z"),
            (Weekly, "sun,mon@06:00", "2026-11-23T05:45:18Z", "2026-11-22T06:00:00Z", "2026-11-23T06:00:00Z"),
            (Weekly, "MON@05:45", "2026-11-23T05:45:18Z", "2026-11-23T05:45:00Z", "2026-11-30T05:45:00Z"),
            (Monthly, "1", "2026-11-23T05:45:18Z", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"),
            (Monthly, "15,23@06:00", "2026-11-23T05:45:18Z", "2026-11-15T06:00:00Z", "2026-11-23T06:00:00Z"),
            (Monthly, "31", "2026-11-23T05:45:18Z", "2026-10-31T00:00:00Z", "2026-12-31T00:00:00Z"),
            (Monthly, "31", "2026-02-01T00:00:00Z", "2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z"),
            (Monthly, "30", "2026-02-01T00:00:00Z", "2026-01-30T00:00:00Z", "2026-03-30T00:00:00Z"),
            (Monthly, "29", "2028-02-28T12:00:00Z", "2028-01-29T00:00:00Z", "2028-02-29T00:00:00Z"),
            (Monthly, "29", "2026-02-28T12:00:00Z", "2026-01-29T00:00:00Z", "2026-03-29T00:00:00Z"),
        ] {
            let every = every(period, text);
            assert_eq!(
                (every.last(utc(now)), every.next(utc(now))),
                (Some(utc(last)), Some(utc(next))),
                "{text} {now}"
            );
        }
    }

    #[test]
    fn at_the_ends_of_time_there_is_none() {
        let (first, last) = (Utc::from_secs(i64::MIN), Utc::from_secs(i64::MAX));
        for (period, text) in [(Period::Hourly, ":05"), (Period::Daily, "01:10"), (Period::Monthly, "31")] {
            let every = every(period, text);
            assert_eq!((every.last(first), every.next(last)), (None, None), "{text}");
            assert!(every.next(first).is_some() && every.last(last).is_some(), "{text}");
        }
    }

    #[test]
    fn texts_of_another_form_are_refused() {
        for (period, text) in [
            (Period::Hourly, "5"),
            (Period::Hourly, ":5"),
            (Period::Hourly, ":60"),
            (Period::Hourly, "01:05"),
            (Period::Hourly, ":+5"),
            (Period::Daily, ":05"),
            (Period::Daily, "24:00"),
            (Period::Daily, "1:10"),
            (Period::Daily, "01:10:00"),
            (Period::Weekly, ""),
            (Period::Weekly, "sunday"),
            (Period::Weekly, "sun,"),
            (Period::Weekly, "sun@"),
            (Period::Weekly, "sun@5:00"),
            (Period::Weekly, "1"),
            (Period::Monthly, "0"),
            (Period::Monthly, "32"),
            (Period::Monthly, "+1"),
            (Period::Monthly, "sun"),
            (Period::Monthly, "1@01:10@02:10"),
        ] {
            assert!(Every::parse(period, text).is_err(), "{period:?} {text:?}");
        }
    }

    fn any_every() -> impl Strategy<Value = Every> {
        let period = prop::sample::select(Period::ALL.to_vec());
        (period, 1..1_u32 << 7, 1..1_u32 << 31, 0..24_i64, 0..60_i64).prop_map(
            |(period, week, month, hour, minute)| {
                let (days, hour) = match period {
                    Period::Hourly => (u32::MAX, 0),
                    Period::Daily => (u32::MAX, hour),
                    Period::Weekly => (week, hour),
                    Period::Monthly => (month << 1, hour),
                };
                Every { period, days, second: hour * HOUR + minute * 60 }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(every in any_every()) {
            prop_assert_eq!(Every::parse(every.period, &every.to_string()), Ok(every));
        }

        #[test]
        fn the_last_and_the_next_time_enclose_a_moment(every in any_every(), secs in 0..4_000_000_000_i64) {
            let now = Utc::from_secs(secs);
            let (last, next) = (every.last(now).unwrap(), every.next(now).unwrap());
            prop_assert!(last <= now && now < next);
            // There is none between them.
            prop_assert_eq!(every.next(last), Some(next));
            prop_assert_eq!(every.last(next), Some(next));
            prop_assert_eq!(every.last(Utc::from_secs(next.secs() - 1)), Some(last));
        }
    }
}
