//! Ranges with owners, searchable by overlap.

use crate::{ByteRange, LockOwner};

/// Ranges with owners, in the order of their offsets.
///
/// Finding the ranges that overlap a given one costs the logarithm of the length, plus the entries between the first
/// and the last overlap. That is little where ranges are disjoint. A long range before many short ones makes the search
/// a walk over the short ones, which [`FileLimits::locks_max`](crate::FileLimits::locks_max) bounds.
#[derive(Debug, Clone, Default)]
pub(super) struct RangeList {
    list: Vec<OwnedRange>,
}

#[derive(Debug, Clone, Copy)]
struct OwnedRange {
    owner: LockOwner,
    range: ByteRange,
    /// The greatest end of this range and of all before it. It never decreases along the list.
    reach: u128,
}

/// What [`RangeList::touching`] found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touching {
    /// How many of the owner's ranges overlap or adjoin the given range.
    pub(super) count: usize,
    /// The smallest range that covers the given range and those counted.
    pub(super) hull: ByteRange,
}

/// What [`RangeList::cut`] found.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cut {
    /// How many of the owner's ranges have bytes in the given range.
    pub(super) count: usize,
    before: Option<ByteRange>,
    after: Option<ByteRange>,
}

impl Cut {
    /// What remains of the owner's ranges outside the given range.
    pub(super) fn left(&self) -> impl Iterator<Item = ByteRange> {
        self.before.into_iter().chain(self.after)
    }
}

impl RangeList {
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (LockOwner, ByteRange)> {
        self.list.iter().map(|e| (e.owner, e.range))
    }

    /// The entries from the first that ends at `start` or later to the last that begins at `end` or before.
    fn between(&self, start: u64, end: u128) -> impl Iterator<Item = (LockOwner, ByteRange)> {
        let first = self.list.partition_point(|e| e.reach < u128::from(start));
        let rest = self.list.get(first..).unwrap_or_default();
        rest.iter().take_while(move |e| u128::from(e.range.offset()) <= end).map(|e| (e.owner, e.range))
    }

    /// Every range that overlaps this one.
    pub(super) fn overlapping(&self, range: ByteRange) -> impl Iterator<Item = (LockOwner, ByteRange)> {
        self.between(range.offset(), range.end()).filter(move |(_, r)| r.overlaps(range))
    }

    /// The owner's ranges that overlap this one or adjoin it.
    pub(super) fn touching(&self, owner: LockOwner, range: ByteRange) -> Touching {
        let near = self.between(range.offset(), range.end());
        near.filter(|(o, r)| *o == owner && r.touches(range)).fold(
            Touching { count: 0, hull: range },
            |found, (_, r)| Touching { count: found.count.saturating_add(1), hull: found.hull.hull(r) },
        )
    }

    /// What cutting this range out of the owner's ranges, which are disjoint, would touch and what it would leave.
    pub(super) fn cut(&self, owner: LockOwner, range: ByteRange) -> Cut {
        self.overlapping(range).filter(|(o, _)| *o == owner).fold(Cut::default(), |cut, (_, r)| Cut {
            count: cut.count.saturating_add(1),
            before: cut.before.or_else(|| r.before(range)),
            after: cut.after.or_else(|| r.after(range)),
        })
    }

    /// Applies a cut that [`RangeList::cut`] computed.
    pub(super) fn carve(&mut self, owner: LockOwner, range: ByteRange, cut: &Cut) {
        if cut.count > 0 {
            self.remove_all(|o, r| o == owner && r.overlaps(range));
            for left in cut.left() {
                self.insert(owner, left);
            }
        }
    }

    pub(super) fn insert(&mut self, owner: LockOwner, range: ByteRange) {
        let at = self.list.partition_point(|e| e.range <= range);
        self.list.insert(at, OwnedRange { owner, range, reach: 0 });
        self.reach_from(at, 1);
    }

    /// Removes one entry with this owner and exactly this range. Returns whether there was one.
    pub(super) fn remove(&mut self, owner: LockOwner, range: ByteRange) -> bool {
        let first = self.list.partition_point(|e| e.range < range);
        let same = self.list.iter().skip(first).take_while(|e| e.range == range);
        let Some(at) = same.enumerate().find(|(_, e)| e.owner == owner).map(|(n, _)| first.saturating_add(n))
        else {
            return false;
        };
        self.list.remove(at);
        self.reach_from(at, 0);
        true
    }

    pub(super) fn remove_all(&mut self, unwanted: impl Fn(LockOwner, ByteRange) -> bool) {
        let before = self.list.len();
        self.list.retain(|e| !unwanted(e.owner, e.range));
        if self.list.len() < before {
            self.reach_from(0, self.list.len());
        }
    }

    /// Recomputes `reach` from index `at`: for `stale` entries, and then until it no longer changes.
    fn reach_from(&mut self, at: usize, stale: usize) {
        let mut reach = at.checked_sub(1).and_then(|n| self.list.get(n)).map_or(0, |e| e.reach);
        for (n, entry) in self.list.iter_mut().skip(at).enumerate() {
            reach = reach.max(entry.range.end());
            if n >= stale && entry.reach == reach {
                break;
            }
            entry.reach = reach;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpenKey;
    use proptest::prelude::*;

    fn range(offset: u64, length: u64) -> ByteRange {
        ByteRange::new(offset, length).unwrap()
    }

    proptest! {
        /// A search by overlap finds the same as a walk over everything, whatever was inserted and removed before.
        #[test]
        fn overlapping_misses_nothing(
            ops in prop::collection::vec((any::<bool>(), 0u64..3, 0u64..40, 0u64..12), 1..80),
            (offset, length) in (0u64..45, 0u64..20),
        ) {
            let mut list = RangeList::default();
            let mut naive: Vec<(LockOwner, ByteRange)> = Vec::new();
            for (insert, owner, at, len) in ops {
                let entry = (LockOwner::Open(OpenKey(owner)), range(at, len));
                if insert || naive.is_empty() {
                    list.insert(entry.0, entry.1);
                    naive.push(entry);
                } else {
                    let (owner, range) = naive.swap_remove(usize::try_from(at).unwrap() % naive.len());
                    prop_assert!(list.remove(owner, range));
                }
                let mut reach = 0;
                for e in &list.list {
                    reach = reach.max(e.range.end());
                    prop_assert_eq!(e.reach, reach);
                }
            }
            let probe = range(offset, length);
            let sorted = |mut v: Vec<(LockOwner, ByteRange)>| {
                v.sort_by_key(|(o, r)| (*r, format!("{o:?}")));
                v
            };
            let found = sorted(list.overlapping(probe).collect());
            let expected = sorted(naive.into_iter().filter(|(_, r)| r.overlaps(probe)).collect());
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn remove_takes_one_of_equal_ranges() {
        let (a, b) = (LockOwner::Open(OpenKey(1)), LockOwner::Open(OpenKey(2)));
        let mut list = RangeList::default();
        list.insert(a, range(5, 5));
        list.insert(b, range(5, 5));
        assert!(list.remove(a, range(5, 5)));
        assert!(!list.remove(a, range(5, 5)));
        assert!(!list.remove(b, range(5, 4)));
        assert_eq!(list.iter().collect::<Vec<_>>(), [(b, range(5, 5))]);
    }
}
