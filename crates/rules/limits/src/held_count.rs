//! Who holds how much of a shared resource.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use crate::may_take;

/// The units of a shared resource that are taken, in all and by each holder.
#[derive(Debug)]
pub struct HeldCount<K> {
    all: usize,
    /// The units of each holder; none is zero.
    held: HashMap<K, usize>,
}

impl<K> Default for HeldCount<K> {
    fn default() -> Self {
        Self { all: 0, held: HashMap::new() }
    }
}

impl<K: Hash + Eq> HeldCount<K> {
    /// The units that are taken in all.
    #[must_use]
    pub fn all(&self) -> usize {
        self.all
    }

    /// The units of one holder.
    #[must_use]
    pub fn held<Q: Hash + Eq + ?Sized>(&self, holder: &Q) -> usize
    where
        K: Borrow<Q>,
    {
        self.held.get(holder).copied().unwrap_or(0)
    }

    /// Whether a holder may have one more unit of `most` ([`may_take`]).
    #[must_use]
    pub fn may_take<Q: Hash + Eq + ?Sized>(&self, holder: &Q, most: usize) -> bool
    where
        K: Borrow<Q>,
    {
        may_take(self.all, self.held(holder), most)
    }

    /// Counts one more unit of a holder.
    pub fn enter(&mut self, holder: K) {
        self.all = self.all.saturating_add(1);
        let held = self.held.entry(holder).or_default();
        *held = held.saturating_add(1);
    }

    /// Counts one unit less of a holder.
    pub fn leave<Q: Hash + Eq + ?Sized>(&mut self, holder: &Q)
    where
        K: Borrow<Q>,
    {
        let Some(held) = self.held.get_mut(holder) else {
            debug_assert!(false, "what leaves has entered");
            return;
        };
        self.all = self.all.saturating_sub(1);
        *held = held.saturating_sub(1);
        if *held == 0 {
            self.held.remove(holder);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_quarter_is_for_holders_that_have_few() {
        let mut count = HeldCount::<String>::default();
        while count.may_take("ann", 16) {
            count.enter("ann".to_owned());
        }
        assert_eq!((count.all(), count.held("ann")), (12, 12));
        for _ in 0..4 {
            assert!(count.may_take("bob", 16));
            count.enter("bob".to_owned());
        }
        assert!(!count.may_take("carol", 16), "nothing is left");
        count.leave("bob");
        assert!(count.may_take("carol", 16) && !count.may_take("ann", 16));
    }

    #[test]
    fn nothing_is_kept_of_a_holder_that_holds_nothing() {
        let mut count = HeldCount::<u32>::default();
        (0..1000).for_each(|holder| count.enter(holder));
        (0..1000).for_each(|holder| count.leave(&holder));
        assert!(count.all() == 0 && count.held.is_empty());
    }
}
