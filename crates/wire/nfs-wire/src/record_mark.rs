//! Record marking on a stream transport, RFC 5531 section 11.
//!
//! A record is one RPC message. It is sent as one or more fragments, each after a four-byte mark: the highest bit says
//! "this is the last fragment", the other 31 bits are the fragment's length.

use std::ops::Range;

use thiserror::Error;

/// The length of a fragment's mark in bytes.
pub const MARK_BYTES: usize = 4;

/// The most fragments of a record. Old clients send fragments of 4 KiB, pynfs of 2 KiB; a megabyte of these, and what precedes
/// the data, is allowed.
pub const FRAGMENTS_MAX: usize = 1024;

const LAST_FRAGMENT: u32 = 0x8000_0000;

/// A fragment's header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Whether the record ends with this fragment.
    pub last: bool,
    /// Bytes of the fragment, without the mark: 31 bits.
    pub length: u32,
}

impl Mark {
    /// The mark of a record that is sent in one fragment.
    ///
    /// `length` must fit in 31 bits; a larger value is written as the largest possible length.
    #[must_use]
    pub fn whole_record(length: usize) -> Self {
        let length = u32::try_from(length).unwrap_or(u32::MAX).min(!LAST_FRAGMENT);
        Self { last: true, length }
    }

    /// The bytes of the mark.
    #[must_use]
    pub fn to_bytes(self) -> [u8; MARK_BYTES] {
        let last = if self.last { LAST_FRAGMENT } else { 0 };
        (last | (self.length & !LAST_FRAGMENT)).to_be_bytes()
    }

    /// Decodes a mark.
    #[must_use]
    pub fn from_bytes(bytes: [u8; MARK_BYTES]) -> Self {
        let word = u32::from_be_bytes(bytes);
        Self { last: word & LAST_FRAGMENT != 0, length: word & !LAST_FRAGMENT }
    }
}

/// Why a stream of records cannot continue. The next record cannot be found, so the connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RecordError {
    /// The record is longer than the receiver accepts.
    #[error("a record of at least {length} bytes, where at most {limit} are accepted")]
    TooLong {
        /// Bytes announced by the marks so far.
        length: usize,
        /// The receiver's limit.
        limit: usize,
    },
    /// The record has more than [`FRAGMENTS_MAX`] fragments.
    #[error("a record of more than {FRAGMENTS_MAX} fragments")]
    TooManyFragments,
}

/// What the bytes received so far contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scan {
    /// Less than one record.
    Incomplete {
        /// The record cannot be complete before the buffer has this many bytes. Always more than there are.
        needed: usize,
    },
    /// A record in one fragment, as every current client sends it: it can be used in place.
    Whole {
        /// The place of the message.
        message: Range<usize>,
    },
    /// A record in several fragments, which [`reassemble`] joins.
    Fragmented {
        /// Bytes from the first mark to the end of the last fragment.
        consumed: usize,
        /// Bytes of the message without the marks.
        length: usize,
    },
}

/// Looks for one record at the start of `received`.
///
/// `limit` is the largest accepted message, in bytes and without marks. A longer one is refused as soon as its marks
/// announce the length, before it arrives.
///
/// # Errors
/// [`RecordError`] when the record exceeds a limit.
pub fn scan(received: &[u8], limit: usize) -> Result<Scan, RecordError> {
    let mut position = 0_usize;
    let mut length = 0_usize;
    for fragments in 1..=FRAGMENTS_MAX {
        let start = position.saturating_add(MARK_BYTES);
        let Some(mark) = received.get(position..).and_then(<[u8]>::first_chunk) else {
            return Ok(Scan::Incomplete { needed: start });
        };
        let mark = Mark::from_bytes(*mark);
        let fragment = usize::try_from(mark.length).unwrap_or(usize::MAX);
        let end = start.saturating_add(fragment);
        length = length.saturating_add(fragment);
        if length > limit {
            return Err(RecordError::TooLong { length, limit });
        }
        if end > received.len() {
            return Ok(Scan::Incomplete { needed: end });
        }
        if mark.last {
            let whole = fragments == 1;
            return Ok(if whole {
                Scan::Whole { message: start..end }
            } else {
                Scan::Fragmented { consumed: end, length }
            });
        }
        position = end;
    }
    Err(RecordError::TooManyFragments)
}

/// Joins the fragments of a record, as found by [`scan`], into one message.
#[must_use]
pub fn reassemble(mut record: &[u8]) -> Vec<u8> {
    let mut message = Vec::with_capacity(record.len());
    while let Some((mark, rest)) = record.split_first_chunk() {
        let mark = Mark::from_bytes(*mark);
        let length = usize::try_from(mark.length).unwrap_or(usize::MAX).min(rest.len());
        let (fragment, rest) = rest.split_at_checked(length).unwrap_or((rest, &[]));
        message.extend_from_slice(fragment);
        record = if mark.last { &[] } else { rest };
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(last: bool, bytes: &[u8]) -> Vec<u8> {
        let mark = Mark { last, length: u32::try_from(bytes.len()).unwrap() };
        [&mark.to_bytes(), bytes].concat()
    }

    #[test]
    fn a_mark_is_a_bit_and_a_length() {
        assert_eq!(Mark::whole_record(0x28).to_bytes(), [0x80, 0, 0, 0x28]);
        assert_eq!(Mark::from_bytes([0, 0, 1, 0]), Mark { last: false, length: 256 });
        assert_eq!(Mark::from_bytes([0xff; 4]), Mark { last: true, length: 0x7fff_ffff });
    }

    #[test]
    fn one_fragment_is_found_where_it_lies() {
        let mut stream = fragment(true, b"message");
        stream.extend_from_slice(b"next record");
        assert_eq!(scan(&stream, 100), Ok(Scan::Whole { message: 4..11 }));
    }

    #[test]
    fn every_cut_of_a_record_is_incomplete_and_asks_for_more() {
        let stream = [fragment(false, b"first"), fragment(false, b""), fragment(true, b"second")].concat();
        for cut in 0..stream.len() {
            match scan(&stream[..cut], 100) {
                Ok(Scan::Incomplete { needed }) => {
                    assert!(cut < needed && needed <= stream.len(), "cut {cut}")
                }
                other => panic!("cut {cut}: {other:?}"),
            }
        }
    }

    #[test]
    fn fragments_are_joined_in_order() {
        let record = [fragment(false, b"first "), fragment(false, b""), fragment(true, b"second")].concat();
        let stream = [&record[..], b"next"].concat();
        assert_eq!(scan(&stream, 100), Ok(Scan::Fragmented { consumed: record.len(), length: 12 }));
        assert_eq!(reassemble(&record), b"first second");
    }

    #[test]
    fn the_limit_is_inclusive_and_counts_all_fragments() {
        let stream = [fragment(false, b"12345"), fragment(true, b"67890")].concat();
        assert!(matches!(scan(&stream, 10), Ok(Scan::Fragmented { .. })));
        assert_eq!(scan(&stream, 9), Err(RecordError::TooLong { length: 10, limit: 9 }));
    }

    #[test]
    fn a_lying_length_is_refused_before_its_bytes_arrive() {
        let limit = 1 << 20;
        assert_eq!(scan(&[0xff; 4], limit), Err(RecordError::TooLong { length: 0x7fff_ffff, limit }));
    }

    #[test]
    fn fragments_are_limited() {
        let mut stream = fragment(false, b"").repeat(FRAGMENTS_MAX - 1);
        let most = [&stream[..], &fragment(true, b"x")].concat();
        assert!(matches!(scan(&most, 100), Ok(Scan::Fragmented { length: 1, .. })));
        stream.extend(fragment(false, b""));
        assert_eq!(scan(&stream, 100), Err(RecordError::TooManyFragments));
    }
}
