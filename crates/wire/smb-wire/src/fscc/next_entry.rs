//! Lists whose entries start with `NextEntryOffset`: directory entries, streams, changes, extended
//! attributes.

use std::iter::FusedIterator;

use crate::codec::{Put, Reader, WireError, aligned, len_u32, pad_from, patch_u32};

/// The entries of a list, each from its `NextEntryOffset` to the start of the next one. Ends after the first error.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    rest: &'a [u8],
}

impl<'a> Entries<'a> {
    /// Walks `list`; an empty one has no entries.
    #[must_use]
    pub const fn new(list: &'a [u8]) -> Self {
        Self { rest: list }
    }

    fn split(&self) -> Result<(&'a [u8], &'a [u8]), WireError> {
        match Reader::new(self.rest).len32()? {
            0 => Ok((self.rest, &[])),
            // Less than the length of the field: the walk would not advance.
            next if next < 4 => Err(WireError::OutOfBounds("NextEntryOffset")),
            next => self.rest.split_at_checked(next).ok_or(WireError::OutOfBounds("NextEntryOffset")),
        }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<&'a [u8], WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let split = self.split();
        self.rest = split.map_or(&[][..], |(_, rest)| rest);
        Some(split.map(|(entry, _)| entry))
    }
}

impl FusedIterator for Entries<'_> {}

/// The entry does not fit into the rest of the output buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the entry does not fit")]
pub struct DoesNotFit;

/// Appends entries to a list of at most `limit` bytes.
#[derive(Debug)]
pub struct EntryWriter<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    limit: usize,
    alignment: usize,
    last: Option<usize>,
}

impl<'o> EntryWriter<'o> {
    /// Starts a list at the end of `out`, of at most `limit` bytes. Entries are aligned to `alignment` (a
    /// power of two) from the start of the list.
    pub const fn new(out: &'o mut Vec<u8>, limit: usize, alignment: usize) -> Self {
        let start = out.len();
        Self { out, start, limit, alignment, last: None }
    }

    /// Bytes of the list so far.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.out.len().saturating_sub(self.start)
    }

    /// Whether there are no entries yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// Appends an entry: `NextEntryOffset`, and then what `encode` appends.
    ///
    /// # Errors
    /// [`DoesNotFit`]: the list is unchanged.
    pub(crate) fn push(&mut self, encode: impl FnOnce(&mut Vec<u8>)) -> Result<(), DoesNotFit> {
        let before = self.out.len();
        if self.start.saturating_add(aligned(self.len(), self.alignment))
            > self.start.saturating_add(self.limit)
        {
            return Err(DoesNotFit);
        }
        pad_from(self.out, self.start, self.alignment);
        let entry = self.out.len();
        self.out.put_u32(0);
        encode(self.out);
        let next = self.last.map(|last| len_u32(entry.saturating_sub(last), "NextEntryOffset"));
        match (self.last, next) {
            _ if self.len() > self.limit => return self.undo(before),
            (Some(_), Some(Err(_))) => return self.undo(before),
            (Some(last), Some(Ok(next))) => patch_u32(self.out, last, next),
            _ => {}
        }
        self.last = Some(entry);
        Ok(())
    }

    fn undo(&mut self, before: usize) -> Result<(), DoesNotFit> {
        self.out.truncate(before);
        Err(DoesNotFit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(list: &[u8]) -> Vec<Result<usize, WireError>> {
        Entries::new(list).map(|entry| entry.map(<[u8]>::len)).collect()
    }

    #[test]
    fn an_offset_leads_forward_and_stays_inside() {
        assert_eq!(entries(&[]), []);
        assert_eq!(entries(&[0, 0, 0, 0, 1]), [Ok(5)]);
        assert_eq!(entries(&[8, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0]), [Ok(8), Ok(4)]);
        assert_eq!(entries(&[8, 0, 0, 0, 1, 2, 3, 4, 5]), [Ok(8), Err(WireError::Truncated)]);
        for lie in [1, 3, 9, 255] {
            assert_eq!(
                entries(&[lie, 0, 0, 0, 1, 2, 3, 4]),
                [Err(WireError::OutOfBounds("NextEntryOffset"))]
            );
        }
    }

    #[test]
    fn entries_are_added_up_to_the_limit() {
        let mut out = vec![9];
        let mut list = EntryWriter::new(&mut out, 16, 8);
        assert!(list.is_empty());
        assert_eq!(list.push(|out| out.extend([1])), Ok(()));
        assert_eq!(list.push(|out| out.extend([2; 5])), Err(DoesNotFit));
        assert_eq!(list.push(|out| out.extend([3; 4])), Ok(()));
        assert_eq!(list.push(|_| ()), Err(DoesNotFit));
        assert_eq!(list.len(), 16);
        assert_eq!(out, [9, 8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 3]);
    }
}
