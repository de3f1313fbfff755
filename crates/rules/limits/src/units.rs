//! Sizes and rates as people write them: `1TiB`, `200MiB/s`. Only powers of two, and always with a unit, since a number
//! that is wrong by a factor of 1,000 or 8 is not obviously wrong.

/// 2^10 bytes.
pub const KIB: u64 = 1 << 10;
/// 2^20 bytes.
pub const MIB: u64 = 1 << 20;
/// 2^30 bytes.
pub const GIB: u64 = 1 << 30;
/// 2^40 bytes.
pub const TIB: u64 = 1 << 40;

const SIZES: [(&str, u64); 4] = [("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)];

/// The number in front of a unit, and the unit.
pub(crate) fn split(text: &str) -> (&str, &str) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(digits)
}

/// A size in bytes, written in one of these units; None for another unit or an invalid number.
#[must_use]
pub fn size(text: &str, units: &[&str]) -> Option<u64> {
    let (number, unit) = split(text);
    let (_, bytes) = SIZES.iter().find(|(name, _)| *name == unit && units.contains(name))?;
    number.parse::<u64>().ok()?.checked_mul(*bytes)
}

/// A size in bytes, written in KiB, MiB, GiB or TiB; None for anything else.
#[must_use]
pub fn parse_size(text: &str) -> Option<u64> {
    size(text, &SIZES.map(|(unit, _)| unit))
}

/// The same size in the largest unit in which it is a whole number.
#[must_use]
pub fn show_size(bytes: u64) -> String {
    let whole = SIZES.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{bytes}B"), |(name, unit)| format!("{}{name}", bytes / unit))
}

/// `value` times `part` divided by `whole`, rounded up.
pub(crate) fn ceiling(value: u64, part: u64, whole: u64) -> u64 {
    value.saturating_mul(part).div_ceil(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_a_unit_of_those_asked_for() {
        assert_eq!(size("100GiB", &["GiB", "TiB"]), Some(100 * GIB));
        assert_eq!(size("2TiB", &["GiB", "TiB"]), Some(2 * TIB));
        for wrong in
            ["100", "100GB", "100 GiB", "GiB", "-1GiB", "1.5GiB", "100MiB", "20000000000GiB", "100gib"]
        {
            assert_eq!(size(wrong, &["GiB", "TiB"]), None, "{wrong}");
        }
    }

    #[test]
    fn sizes_are_shown_as_they_are_read() {
        for bytes in [KIB, 3 * MIB, GIB, 1536 * GIB, 100 * TIB] {
            assert_eq!(parse_size(&show_size(bytes)), Some(bytes));
        }
    }

    #[test]
    fn a_part_of_anything_is_rounded_up() {
        assert_eq!((ceiling(100, 4, 100), ceiling(101, 4, 100), ceiling(0, 4, 100)), (4, 5, 0));
    }
}
