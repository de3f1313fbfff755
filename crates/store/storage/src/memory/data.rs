//! The data of a file: pages, and holes between them.

use std::collections::BTreeMap;
use std::io::IoSlice;

use crate::{Error, Result, SeekTo};

/// The unit in which data is stored, in bytes.
pub(super) const PAGE_BYTES: u64 = 4096;
const PAGE: usize = 4096;
/// The largest file, as on Linux.
pub(super) const SIZE_MAX: u64 = i64::MAX.unsigned_abs();

/// Data with holes. A page that is absent reads as zeroes. In the last page, the bytes after `size` are zero.
#[derive(Debug, Clone, Default)]
pub(super) struct Data {
    pages: BTreeMap<u64, Box<[u8; PAGE]>>,
    size: u64,
}

/// A piece of a page.
struct Piece {
    page: u64,
    from: usize,
    length: usize,
}

/// Splits `length` bytes from `offset` at page boundaries.
fn pieces(mut offset: u64, mut length: u64) -> impl Iterator<Item = Piece> {
    std::iter::from_fn(move || {
        let from = offset % PAGE_BYTES;
        let here = length.min(PAGE_BYTES - from);
        let page = offset / PAGE_BYTES;
        (offset, length) = (offset.saturating_add(here), length - here);
        // Both are at most one page.
        let piece = Piece { page, from: usize::try_from(from).ok()?, length: usize::try_from(here).ok()? };
        (here > 0).then_some(piece)
    })
}

/// The end of a range.
pub(super) fn end_of(offset: u64, length: u64) -> Result<u64> {
    offset.checked_add(length).filter(|end| *end <= SIZE_MAX).ok_or(Error::TooLarge)
}

impl Data {
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// How many pages of a range are not stored.
    pub(super) fn absent(&self, offset: u64, length: u64) -> u64 {
        let Some(last) = length.checked_sub(1).map(|l| offset.saturating_add(l)) else { return 0 };
        let pages = offset / PAGE_BYTES..=last / PAGE_BYTES;
        let touched = (pages.end() - pages.start()).saturating_add(1);
        touched.saturating_sub(self.pages.range(pages).count() as u64)
    }

    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = left.min(into.len());
        let mut rest = into.get_mut(..count).unwrap_or_default();
        for piece in pieces(offset, count as u64) {
            let (here, behind) = rest.split_at_mut(piece.length);
            let stored = self.pages.get(&piece.page);
            match stored.and_then(|p| p.get(piece.from..piece.from + piece.length)) {
                Some(bytes) => here.copy_from_slice(bytes),
                None => here.fill(0),
            }
            rest = behind;
        }
        count
    }

    pub(super) fn write(&mut self, offset: u64, data: &[IoSlice<'_>]) {
        let mut at = offset;
        for slice in data {
            self.write_one(at, slice);
            at = at.saturating_add(slice.len() as u64);
        }
    }

    fn write_one(&mut self, offset: u64, mut data: &[u8]) {
        for piece in pieces(offset, data.len() as u64) {
            let (here, behind) = data.split_at(piece.length);
            let page = self.pages.entry(piece.page).or_insert_with(|| Box::new([0; PAGE]));
            if let Some(room) = page.get_mut(piece.from..piece.from + piece.length) {
                room.copy_from_slice(here);
            }
            data = behind;
            self.size = self.size.max(piece.page * PAGE_BYTES + (piece.from + piece.length) as u64);
        }
    }

    pub(super) fn set_size(&mut self, size: u64) {
        if size < self.size {
            self.zero(size, self.size - size);
            self.pages.split_off(&size.div_ceil(PAGE_BYTES));
        }
        self.size = size;
    }

    /// Makes a range read as zeroes. Pages that lie entirely in it are freed.
    pub(super) fn punch(&mut self, offset: u64, length: u64) {
        self.zero(offset, length);
        let end = offset.saturating_add(length);
        let (first, behind) = (offset.div_ceil(PAGE_BYTES), end / PAGE_BYTES);
        if first < behind {
            let mut rest = self.pages.split_off(&first);
            self.pages.append(&mut rest.split_off(&behind));
        }
    }

    fn zero(&mut self, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        for (number, page) in self.pages.range_mut(offset / PAGE_BYTES..=end / PAGE_BYTES) {
            let start = number * PAGE_BYTES;
            let within = |at: u64| usize::try_from(at.saturating_sub(start).min(PAGE_BYTES)).unwrap_or(PAGE);
            if let Some(bytes) = page.get_mut(within(offset)..within(end)) {
                bytes.fill(0);
            }
        }
    }

    /// Stores the pages of a range.
    pub(super) fn reserve(&mut self, offset: u64, length: u64, grow: bool) {
        for piece in pieces(offset, length) {
            self.pages.entry(piece.page).or_insert_with(|| Box::new([0; PAGE]));
        }
        if grow {
            self.size = self.size.max(offset.saturating_add(length));
        }
    }

    /// Where data or a hole begins; the end of the data counts as a hole.
    pub(super) fn seek(&self, offset: u64, to: SeekTo) -> Option<u64> {
        if offset >= self.size {
            return None;
        }
        let mut page = offset / PAGE_BYTES;
        match to {
            SeekTo::Data => {
                let (found, _) = self.pages.range(page..).next()?;
                Some(offset.max(found * PAGE_BYTES)).filter(|at| *at < self.size)
            }
            SeekTo::Hole => {
                while self.pages.contains_key(&page) {
                    page += 1;
                }
                Some(offset.max(page * PAGE_BYTES).min(self.size))
            }
        }
    }
}
