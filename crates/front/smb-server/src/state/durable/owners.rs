//! How many opens of a kind each user has, so that none has those of all.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Opens in number, counted for their owners.
#[derive(Debug, Default)]
pub(super) struct OwnerCounts {
    all: usize,
    /// The opens of each owner; none is zero.
    held: HashMap<String, usize>,
}

impl OwnerCounts {
    /// Counts one more.
    pub(super) fn enter(&mut self, owner: &str) {
        self.all = self.all.saturating_add(1);
        match self.held.get_mut(owner) {
            Some(held) => *held = held.saturating_add(1),
            None => _ = self.held.insert(owner.to_owned(), 1),
        }
    }

    /// Counts one less.
    pub(super) fn leave(&mut self, owner: &str) {
        self.all = self.all.saturating_sub(1);
        let Entry::Occupied(mut held) = self.held.entry(owner.to_owned()) else {
            debug_assert!(false, "an open leaves that has not been entered");
            return;
        };
        *held.get_mut() = held.get().saturating_sub(1);
        if *held.get() == 0 {
            held.remove();
        }
    }

    /// Whether the owner may have one more while there may be `most` in all.
    pub(super) fn has_room(&self, owner: &str, most: usize) -> bool {
        limits::may_take(self.all, self.held.get(owner).copied().unwrap_or(0), most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_quarter_is_for_owners_that_have_few() {
        let mut counts = OwnerCounts::default();
        while counts.has_room("ann", 16) {
            counts.enter("ann");
        }
        assert_eq!(counts.all, 12);
        (0..4).for_each(|_| {
            assert!(counts.has_room("bob", 16));
            counts.enter("bob");
        });
        assert!(!counts.has_room("carol", 16), "nothing is left");
        counts.leave("bob");
        assert!(counts.has_room("carol", 16) && !counts.has_room("ann", 16));
        (0..12).for_each(|_| counts.leave("ann"));
        assert_eq!((counts.all, counts.held.len()), (3, 1));
    }
}
