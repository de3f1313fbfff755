//! Fair division of a shared resource: the last quarter is reserved for those who hold little of it.

/// Whether a holder of `held` units may have one more, while `taken` of `most` units are taken in all. Until three
/// quarters are taken, any free unit may be taken. The last quarter is for holders of less than a quarter of `most`.
/// (With fewer than four units there is no last quarter.)
#[must_use]
pub fn may_take(taken: usize, held: usize, most: usize) -> bool {
    let quarter = most / 4;
    taken < most - quarter || (taken < most && held < quarter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_quarters_are_for_whoever_comes() {
        assert!(may_take(0, 0, 100) && may_take(74, 74, 100));
        assert!(!may_take(75, 75, 100), "all of it by one");
        assert!(!may_take(75, 25, 100), "a quarter of the limit is not little");
    }

    #[test]
    fn the_last_quarter_is_for_those_that_hold_little() {
        assert!(may_take(75, 0, 100) && may_take(75, 24, 100) && may_take(99, 24, 100));
        assert!(!may_take(100, 0, 100), "nothing is left");
        assert!(!may_take(usize::MAX, 0, 100));
    }

    #[test]
    fn of_few_things_there_is_no_last_quarter() {
        assert!(may_take(2, 2, 3) && !may_take(3, 0, 3) && !may_take(0, 0, 0));
        assert!(may_take(2, 2, 4) && may_take(3, 0, 4) && !may_take(3, 1, 4));
        assert!(may_take(usize::MAX / 2, usize::MAX / 2, usize::MAX));
    }

    #[test]
    fn one_that_takes_all_it_can_leaves_a_quarter_for_each_other() {
        let most = 20_000;
        let (mut taken, mut greedy, mut other) = (0, 0, 0);
        while may_take(taken, greedy, most) {
            (taken, greedy) = (taken + 1, greedy + 1);
        }
        assert_eq!(greedy, 15_000);
        while may_take(taken, other, most) {
            (taken, other) = (taken + 1, other + 1);
        }
        assert_eq!((other, taken), (5_000, most));
    }
}
