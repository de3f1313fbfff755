//! Figures as people read them.

use super::claim::Figure;

/// Binary units of a number of bytes.
const BYTES: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];

/// A number of bytes: `4 KiB`, `1.5 GiB`.
pub(super) fn bytes(bytes: f64) -> String {
    let (mut scaled, mut unit) = (bytes, BYTES[0]);
    for larger in &BYTES[1..] {
        if scaled < 1024.0 {
            break;
        }
        (scaled, unit) = (scaled / 1024.0, larger);
    }
    format!("{} {unit}", significant(scaled))
}

/// A block size.
#[expect(clippy::cast_precision_loss, reason = "block sizes are far below 2^52")]
pub(super) fn block(block_bytes: u64) -> String {
    bytes(block_bytes as f64)
}

/// A number with three significant digits, in thousands where it is large: `12,300`, `0.034`.
pub(super) fn significant(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_owned();
    }
    match value.abs() {
        size if size >= 1000.0 => thousands(value),
        size if size >= 99.95 => format!("{value:.0}"),
        size if size >= 9.995 => trimmed(format!("{value:.1}")),
        size if size >= 0.0995 => trimmed(format!("{value:.2}")),
        0.0 => "0".to_owned(),
        _ => trimmed(format!("{value:.4}")),
    }
}

fn trimmed(text: String) -> String {
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// From 1,000 on: four digits count, the others are noise.
fn thousands(value: f64) -> String {
    let scale = 10f64.powf((value.abs().log10().floor() - 3.0).max(0.0));
    let digits = format!("{:.0}", (value.abs() / scale).round() * scale);
    let mut text = if value < 0.0 { String::from("-") } else { String::new() };
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A figure of a row with its unit.
pub(super) fn figure(of: Figure, value: f64) -> String {
    match of {
        Figure::Rate => format!("{}/s", significant(value)),
        Figure::Throughput => format!("{}/s", bytes(value)),
        Figure::Latency => time(value),
    }
}

/// A time given in microseconds.
pub(super) fn time(us: f64) -> String {
    match us.abs() {
        t if t >= 1e6 => format!("{} s", significant(us / 1e6)),
        t if t >= 1000.0 => format!("{} ms", significant(us / 1000.0)),
        _ => format!("{} us", significant(us)),
    }
}

/// A ratio: `1.94x`.
pub(super) fn ratio(ratio: f64) -> String {
    if ratio >= 100.0 { format!("{}x", significant(ratio)) } else { format!("{ratio:.2}x") }
}

/// A moment in seconds since 1970, in UTC: `2026-11-22 11:05 UTC`.
#[must_use]
pub fn moment(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", rest / 3600, rest % 3600 / 60)
}

/// The date of a day counted from 1970-01-01 (H. Hinnant, "chrono-compatible low-level date algorithms", `civil_from_days`).
fn civil(days: u64) -> (u64, u64, u64) {
    let z = days.saturating_add(719_468);
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_or_four_digits_that_count() {
        for (value, text) in [
            (0.0, "0"),
            (0.034, "0.034"),
            (1.5, "1.5"),
            (9.999, "10"),
            (42.34, "42.3"),
            (99.99, "100"),
            (999.4, "999"),
            (1234.4, "1,234"),
            (123_456.0, "123,500"),
            (1_234_567.0, "1,235,000"),
            (-1_234_567.0, "-1,235,000"),
            (9_999.6, "10,000"),
            (f64::INFINITY, "-"),
        ] {
            assert_eq!(significant(value), text, "{value}");
        }
    }

    #[test]
    fn units_fit_the_size() {
        assert_eq!(
            (block(512), block(4096), block(1 << 20)),
            ("512 B".into(), "4 KiB".into(), "1 MiB".into())
        );
        assert_eq!(bytes(2.7 * 1024f64.powi(3)), "2.7 GiB");
        assert_eq!(bytes(1e300), format!("{} TiB", significant(1e300 / 1024f64.powi(4))));
        assert_eq!(
            (time(53.0), time(5300.0), time(2.5e6)),
            ("53 us".into(), "5.3 ms".into(), "2.5 s".into())
        );
        assert_eq!((ratio(1.937), ratio(123.4)), ("1.94x".into(), "123x".into()));
    }

    #[test]
    fn moments_are_dates() {
        assert_eq!(moment(0), "1970-01-01 00:00 UTC");
        assert_eq!(moment(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(moment(1_795_345_511), "2026-11-22 11:05 UTC");
    }
}
