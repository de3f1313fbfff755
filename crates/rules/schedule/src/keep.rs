//! Which snapshots a rule no longer keeps.

/// A snapshot that a rule has taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfRule {
    /// Its number: later ones have higher numbers, whatever the clock said.
    pub id: u32,
    /// Whether nobody may remove it yet. It counts among those that are kept.
    pub is_protected: bool,
}

/// The numbers of the snapshots of one rule that are to be removed, if so many are kept: the oldest first, and none that is protected.
#[must_use]
pub fn surplus(taken: &[OfRule], keep: u32) -> Vec<u32> {
    let mut taken = taken.to_vec();
    taken.sort_by_key(|snapshot| snapshot.id);
    let keep = usize::try_from(keep).unwrap_or(usize::MAX);
    let older = taken.iter().take(taken.len().saturating_sub(keep));
    older.filter(|snapshot| !snapshot.is_protected).map(|snapshot| snapshot.id).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn taken(ids: &[u32], protected: &[u32]) -> Vec<OfRule> {
        ids.iter().map(|id| OfRule { id: *id, is_protected: protected.contains(id) }).collect()
    }

    #[test]
    fn the_oldest_go_first() {
        assert_eq!(surplus(&taken(&[5, 3, 9, 4], &[]), 2), [3, 4]);
        assert_eq!(surplus(&taken(&[5, 3, 9, 4], &[]), 4), []);
        assert_eq!(surplus(&[], 1), []);
    }

    #[test]
    fn one_that_is_protected_stays_and_no_newer_one_goes_for_it() {
        assert_eq!(surplus(&taken(&[1, 2, 3, 4], &[1]), 2), [2]);
        assert_eq!(surplus(&taken(&[1, 2, 3, 4], &[1, 2, 3]), 1), []);
    }

    proptest! {
        #[test]
        fn the_newest_always_stay(
            ids in prop::collection::btree_set(0..1000_u32, 0..40),
            protected in prop::collection::vec(0..1000_u32, 0..10),
            keep in 1..50_u32,
        ) {
            let ids: Vec<u32> = ids.into_iter().collect();
            let gone = surplus(&taken(&ids, &protected), keep);
            let newest: Vec<u32> = ids.iter().rev().take(keep as usize).copied().collect();
            prop_assert!(gone.iter().all(|id| !newest.contains(id) && !protected.contains(id)));
            let left = ids.iter().filter(|id| !gone.contains(id) && !protected.contains(id)).count();
            prop_assert!(left <= keep as usize);
        }
    }
}
