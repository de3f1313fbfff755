//! Days of the Gregorian calendar.

/// A day, as the number of days since 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day(pub(crate) i64);

impl Day {
    /// The day of this date; None for a date that does not exist.
    pub(crate) fn of(year: i64, month: i64, day: i64) -> Option<Self> {
        Some(numbered(year, month, day)).filter(|found| found.date() == (year, month, day))
    }

    /// Year, month and day.
    pub(crate) fn date(self) -> (i64, i64, i64) {
        let about = 1970 + (self.0 * 400).div_euclid(146_097);
        let year = (about - 1..=about + 1).rev().find(|year| numbered(*year, 1, 1) <= self).unwrap_or(about);
        let month = (1..=12).rev().find(|month| numbered(year, *month, 1) <= self).unwrap_or(1);
        (year, month, self.0 - numbered(year, month, 1).0 + 1)
    }

    /// The day of the week: 0 for Sunday. 1970-01-01 was a Thursday.
    pub(crate) fn of_week(self) -> i64 {
        (self.0 + 4).rem_euclid(7)
    }
}

/// The number of a date.
fn numbered(year: i64, month: i64, day: i64) -> Day {
    // Years that begin in March have the leap day at their end, and months of 31, 30, 31, 30, 31 days, again and again.
    let year = if month > 2 { year } else { year - 1 };
    let months = (month + 9) % 12;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Day(365 * year + leap_days + (153 * months + 2) / 5 + day - 719_469)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_has_a_date_of_its_own() {
        // The calendar repeats after 146,097 days, which are whole weeks.
        let mut before = Day(-73_049);
        for day in (-73_048..73_049).map(Day) {
            let (year, month, of_month) = day.date();
            assert_eq!(Day::of(year, month, of_month), Some(day));
            assert!(day.date() > before.date() && (1..=12).contains(&month) && (1..=31).contains(&of_month));
            assert_eq!(day.of_week(), (before.of_week() + 1) % 7);
            before = day;
        }
        assert_eq!(before.date(), (2169, 12, 31));
        // The Unix epoch, and a Monday.
        assert_eq!((Day(0).date(), Day(0).of_week()), ((1970, 1, 1), 4));
        assert_eq!(Day::of(2026, 11, 23).map(Day::of_week), Some(1));
    }

    #[test]
    fn dates_that_do_not_exist_are_no_days() {
        for (year, month, day) in
            [(2026, 2, 29), (1900, 2, 29), (2026, 13, 1), (2026, 0, 1), (2026, 4, 31), (2026, 1, 0)]
        {
            assert_eq!(Day::of(year, month, day), None, "{year} {month} {day}");
        }
        assert!(Day::of(2000, 2, 29).is_some() && Day::of(2028, 2, 29).is_some());
    }
}
