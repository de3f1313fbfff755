//! Time as Kerberos writes it: whole seconds of UTC. RFC 4120 5.2.3.

/// A moment, in seconds since 1970-01-01 00:00 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

/// The bytes of a KerberosTime: `YYYYMMDDHHMMSSZ`.
const TEXT_LEN: usize = 15;

/// Days from 1 March of the year 0 to 1970-01-01.
const EPOCH_DAY: i64 = 719_468;
/// Seconds from 1601-01-01, where Windows begins to count, to 1970-01-01.
const WINDOWS_EPOCH: i64 = 11_644_473_600;
/// 100 ns, in which Windows counts, in a second.
const TICKS: u64 = 10_000_000;

impl Time {
    /// A moment from seconds since 1970-01-01 00:00 UTC.
    #[must_use]
    pub const fn from_unix(seconds: i64) -> Self {
        Self(seconds)
    }

    /// Seconds since 1970-01-01 00:00 UTC.
    #[must_use]
    pub const fn as_unix(self) -> i64 {
        self.0
    }

    /// How many seconds this moment is after `other`; negative if it is before.
    #[must_use]
    pub const fn seconds_after(self, other: Self) -> i64 {
        self.0.saturating_sub(other.0)
    }

    /// The second of a FILETIME: units of 100 ns since 1601. [MS-DTYP] 2.3.3.
    pub(crate) fn from_filetime(ticks: u64) -> Option<Self> {
        let seconds = i64::try_from(ticks.checked_div(TICKS)?).ok()?;
        seconds.checked_sub(WINDOWS_EPOCH).map(Self)
    }

    /// The FILETIME of this moment; 0 for one before 1601. [MS-DTYP] 2.3.3.
    #[must_use]
    pub fn to_filetime(self) -> u64 {
        u64::try_from(self.0.saturating_add(WINDOWS_EPOCH)).unwrap_or(0).saturating_mul(TICKS)
    }

    /// This moment and so many seconds.
    #[must_use]
    pub const fn plus(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds))
    }

    /// No fractions of seconds, and always UTC. RFC 4120 5.2.3.
    pub(crate) fn from_text(text: &[u8]) -> Option<Self> {
        let (digits, zone) = text.split_first_chunk::<14>()?;
        if zone != b"Z" || !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let mut numbers = digits.chunks_exact(2).map(|pair| {
            pair.iter().fold(0_i64, |n, digit| n.saturating_mul(10).saturating_add(i64::from(digit & 0x0f)))
        });
        let mut next = || numbers.next();
        let year = next()?.saturating_mul(100).saturating_add(next()?);
        let (month, day, hour, minute, second) = (next()?, next()?, next()?, next()?, next()?);
        let real = (1..=12).contains(&month)
            && (1..=days_of(year, month)).contains(&day)
            && (hour < 24 && minute < 60 && second < 60);
        real.then(|| Self(seconds(day_number(year, month, day), hour, minute, second)))
    }

    /// The text of a KerberosTime. A year outside 0 to 9999 becomes the nearest that can be written.
    #[must_use]
    pub fn to_text(self) -> [u8; TEXT_LEN] {
        const LEAST: i64 = -62_167_219_200;
        const MOST: i64 = 253_402_300_799;
        let at = self.0.clamp(LEAST, MOST);
        let (year, month, day) = date(at.div_euclid(86_400));
        let second = at.rem_euclid(86_400);
        let mut text = [b'Z'; TEXT_LEN];
        let pairs = [year / 100, year % 100, month, day, second / 3600, second / 60 % 60, second % 60];
        for (place, number) in text.chunks_exact_mut(2).zip(pairs) {
            for (byte, digit) in place.iter_mut().zip([number / 10 % 10, number % 10]) {
                *byte = b"0123456789".get(usize::try_from(digit).unwrap_or(0)).copied().unwrap_or(b'0');
            }
        }
        text
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "days of 10,000 years")]
fn seconds(day: i64, hour: i64, minute: i64, second: i64) -> i64 {
    ((day * 24 + hour) * 60 + minute) * 60 + second
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days since 1970-01-01 of a date. Years are counted from March here, so that the leap day is the last of its year.
#[expect(clippy::arithmetic_side_effects, reason = "years of four digits")]
fn day_number(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - EPOCH_DAY
}

/// The date of a day since 1970-01-01: year, month, day.
#[expect(clippy::arithmetic_side_effects, reason = "years of four digits")]
fn date(day: i64) -> (i64, i64, i64) {
    const PERIOD: i64 = 146_097; // days of 400 years
    let day = day + EPOCH_DAY;
    let (period, of_period) = (day.div_euclid(PERIOD), day.rem_euclid(PERIOD));
    let year = (of_period - of_period / 1460 + of_period / 36_524 - of_period / 146_096) / 365;
    let of_year = of_period - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let year = year + period * 400;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Option<i64> {
        Time::from_text(text.as_bytes()).map(Time::as_unix)
    }

    /// The numbers are those of `date -u +%s -d ...`.
    #[test]
    fn texts_are_moments() {
        assert_eq!(parsed("19700101000000Z"), Some(0));
        assert_eq!(parsed("19691231235959Z"), Some(-1));
        assert_eq!(parsed("20000229120000Z"), Some(951_825_600));
        assert_eq!(parsed("20261125223233Z"), Some(1_795_645_953));
        assert_eq!(parsed("99991231235959Z"), Some(253_402_300_799));
        assert_eq!(parsed("00000101000000Z"), Some(-62_167_219_200));
    }

    #[test]
    fn dates_that_do_not_exist_are_refused() {
        let wrong = [
            "",
            "Z",
            "20261125223233",
            "20261125223233z",
            "20261125223233ZZ",
            "2026112522323Z",
            "20261125223233.5Z",
            "20261325000000Z",
            "20260025000000Z",
            "20260231000000Z",
            "20250229000000Z",
            "19000229000000Z",
            "20261100000000Z",
            "20261125240000Z",
            "20261125006000Z",
            "20261125000060Z",
            "2026-1250000Z ",
            "20261125 00000Z",
        ];
        for text in wrong {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_of_800_years_survives_writing_and_reading() {
        for day in (-200_000..200_000).step_by(7) {
            let time = Time(day * 86_400 + 86_399);
            assert_eq!(Time::from_text(&time.to_text()), Some(time));
        }
        assert_eq!(&Time(i64::MAX).to_text(), b"99991231235959Z");
        assert_eq!(&Time(i64::MIN).to_text(), b"00000101000000Z");
    }

    #[test]
    fn windows_counts_from_1601() {
        assert_eq!(Time::from_filetime(0), Some(Time(-WINDOWS_EPOCH)));
        assert_eq!(Time::from_filetime(116_444_736_000_000_000), Some(Time(0)));
        assert_eq!(Time::from_filetime(116_444_736_019_999_999), Some(Time(1)));
        assert!(Time::from_filetime(u64::MAX).is_some());
    }
}
