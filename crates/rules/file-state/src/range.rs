//! Ranges of bytes in a file, from 0 to 2^64.

/// A range of bytes; it may be empty, and it may reach 2^64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteRange {
    start: u64,
    /// One past the last byte, at most 2^64.
    end: u128,
}

/// The range has bytes past 2^64 - 1 (STATUS_INVALID_LOCK_RANGE, NFS4ERR_INVAL).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the range ends past 2^64")]
pub struct InvalidRange;

/// One past the last byte that a file can have.
const END: u128 = 1 << 64;

impl ByteRange {
    /// `length` bytes from `offset`; `length` may be 0.
    ///
    /// # Errors
    /// [`InvalidRange`] when a byte of the range lies past 2^64 - 1 ([MS-FSA] 2.1.5.8).
    pub fn new(offset: u64, length: u64) -> Result<Self, InvalidRange> {
        let end = u128::from(offset).saturating_add(length.into());
        if end <= END { Ok(Self { start: offset, end }) } else { Err(InvalidRange) }
    }

    /// All bytes from `offset` on (NFSv4: a length of all ones, RFC 8881 18.10.3; NLM: a length of 0).
    #[must_use]
    pub fn to_end(offset: u64) -> Self {
        Self { start: offset, end: END }
    }

    /// The first byte.
    #[must_use]
    pub fn offset(self) -> u64 {
        self.start
    }

    /// The number of bytes; 2^64 - 1 also stands for 2^64.
    #[must_use]
    pub fn length(self) -> u64 {
        u64::try_from(self.end.saturating_sub(self.start.into())).unwrap_or(u64::MAX)
    }

    /// Whether the range reaches 2^64, as [`ByteRange::to_end`] does.
    #[must_use]
    pub fn reaches_end(self) -> bool {
        self.end == END
    }

    /// Whether the range has no bytes.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.end == u128::from(self.start)
    }

    /// Whether the two ranges overlap in the sense of [MS-FSA] 2.1.4.10. An empty range overlaps the ranges that it
    /// lies strictly inside of, so an empty range at 0 overlaps nothing.
    #[must_use]
    pub fn overlaps(self, other: Self) -> bool {
        u128::from(self.start) < other.end && u128::from(other.start) < self.end
    }

    /// One past the last byte.
    pub(crate) fn end(self) -> u128 {
        self.end
    }

    /// Whether the two ranges overlap or adjoin.
    pub(crate) fn touches(self, other: Self) -> bool {
        u128::from(self.start) <= other.end && u128::from(other.start) <= self.end
    }

    /// The smallest range that contains both.
    pub(crate) fn hull(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The part of this range before the other.
    pub(crate) fn before(self, other: Self) -> Option<Self> {
        (self.start < other.start).then(|| Self { start: self.start, end: self.end.min(other.start.into()) })
    }

    /// The part of this range after the other.
    pub(crate) fn after(self, other: Self) -> Option<Self> {
        let start = u64::try_from(other.end).ok()?;
        (self.end > other.end).then(|| Self { start: self.start.max(start), end: self.end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: u64 = u64::MAX;

    fn range(offset: u64, length: u64) -> ByteRange {
        ByteRange::new(offset, length).unwrap()
    }

    #[test]
    fn new_accepts_up_to_the_last_byte_and_no_further() {
        // (offset, length, whether it is a valid range): [MS-FSA] 2.1.5.8 by hand, at the edges.
        let cases = [
            (0, 0, true),
            (0, MAX, true),
            (1, MAX, true),
            (2, MAX, false),
            (MAX, 0, true),
            (MAX, 1, true),
            (MAX, 2, false),
            (MAX, MAX, false),
            (MAX - 1, 2, true),
            (1 << 63, 1 << 63, true),
            (1 << 63, (1 << 63) + 1, false),
        ];
        for (offset, length, valid) in cases {
            assert_eq!(ByteRange::new(offset, length).is_ok(), valid, "{offset} {length}");
            // The condition as written in [MS-FSA], in wrapping arithmetic.
            let refused = offset.wrapping_add(length).wrapping_sub(1) < offset && length != 0;
            assert_eq!(valid, !refused, "{offset} {length}");
        }
    }

    #[test]
    fn to_end_holds_the_last_byte() {
        assert!(ByteRange::to_end(0).overlaps(range(MAX, 1)));
        assert!(!range(0, MAX).overlaps(range(MAX, 1)));
        assert_eq!(ByteRange::to_end(0).length(), MAX);
        assert_eq!(ByteRange::to_end(5), range(5, MAX - 4));
        assert!(range(1, MAX).reaches_end());
        assert!(!range(0, MAX).reaches_end());
        assert_eq!(ByteRange::to_end(7).after(range(3, 10)), Some(ByteRange::to_end(13)));
        assert_eq!(ByteRange::to_end(7).after(ByteRange::to_end(9)), None);
    }

    /// [MS-FSA] 2.1.4.10 as written: wrapping arithmetic, with {0, 0} as a special case.
    fn overlaps_as_written(offset_1: u64, length_1: u64, offset_2: u64, length_2: u64) -> bool {
        if (offset_1 == 0 && length_1 == 0) || (offset_2 == 0 && length_2 == 0) {
            return false;
        }
        let last_1 = offset_1.wrapping_add(length_1).wrapping_sub(1);
        let last_2 = offset_2.wrapping_add(length_2).wrapping_sub(1);
        offset_1 <= last_2 && last_1 >= offset_2
    }

    #[test]
    fn overlaps_is_what_the_document_says() {
        let offsets = [0, 1, 2, 3, 4, 5, 6, MAX - 4, MAX - 3, MAX - 2, MAX - 1, MAX];
        let lengths = [0, 1, 2, 3, 4, MAX - 3, MAX - 2, MAX - 1, MAX];
        let mut compared = 0;
        for a in offsets {
            for m in lengths {
                for b in offsets {
                    for n in lengths {
                        let (Ok(x), Ok(y)) = (ByteRange::new(a, m), ByteRange::new(b, n)) else { continue };
                        assert_eq!(x.overlaps(y), overlaps_as_written(a, m, b, n), "{a}+{m} {b}+{n}");
                        compared += 1;
                    }
                }
            }
        }
        assert!(compared > 3_000, "{compared}");
    }
}
