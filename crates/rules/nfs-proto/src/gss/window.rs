//! The numbers of the calls that a context has seen, RFC 2203 5.3.3.1.

/// How many numbers below the highest are told apart. A client may have as many calls of a context under way.
pub const SEQUENCE_WINDOW: u32 = u128::BITS;

/// The numbers that a context has seen.
#[derive(Debug, Clone, Copy, Default)]
pub struct Window {
    /// The highest number, after the first call.
    highest: Option<u32>,
    /// Bit n: the number n below the highest was seen.
    seen: u128,
}

/// Whether a number is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    /// It is, and from now on it is not.
    First,
    /// It was seen, or it is so low that nobody can tell.
    Repeated,
}

impl Window {
    /// A call with this number has come, and its header was found to be the client's.
    #[must_use]
    pub fn note(&mut self, sequence: u32) -> Noted {
        let above = match self.highest {
            None => Some(SEQUENCE_WINDOW),
            Some(highest) => sequence.checked_sub(highest).filter(|above| *above > 0),
        };
        if let Some(above) = above {
            self.seen = self.seen.checked_shl(above).unwrap_or(0) | 1;
            self.highest = Some(sequence);
            return Noted::First;
        }
        let below = self.highest.unwrap_or(sequence).saturating_sub(sequence);
        let Some(bit) = 1_u128.checked_shl(below) else { return Noted::Repeated };
        if self.seen & bit != 0 {
            return Noted::Repeated;
        }
        self.seen |= bit;
        Noted::First
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_window_has_128_numbers() {
        let mut window = Window::default();
        assert_eq!(window.note(1000), Noted::First);
        assert_eq!(window.note(1000), Noted::Repeated);
        assert_eq!(window.note(873), Noted::First, "127 below the highest is the last");
        assert_eq!(window.note(873), Noted::Repeated);
        assert_eq!(window.note(872), Noted::Repeated, "nobody knows");
        assert_eq!(window.note(1001), Noted::First);
        assert_eq!(window.note(874), Noted::First);
        assert_eq!(window.note(873), Noted::Repeated);
        assert_eq!(window.note(0x7fff_ffff), Noted::First, "a jump forgets all");
        assert_eq!(window.note(1001), Noted::Repeated);
        assert_eq!(window.note(0x7fff_fffe), Noted::First);
    }

    #[test]
    fn a_context_may_begin_with_any_number() {
        for first in [0, 1, 127, 128, 0x7fff_ffff, u32::MAX] {
            let mut window = Window::default();
            assert_eq!((window.note(first), window.note(first)), (Noted::First, Noted::Repeated), "{first}");
        }
    }

    proptest! {
        #[test]
        fn no_number_is_new_twice(numbers in proptest::collection::vec(0_u32..400, 1..500)) {
            let (mut window, mut seen, mut highest) = (Window::default(), HashSet::new(), 0);
            for number in numbers {
                highest = highest.max(number);
                let is_tellable = highest - number < SEQUENCE_WINDOW;
                let expected = if is_tellable && seen.insert(number) { Noted::First } else { Noted::Repeated };
                prop_assert_eq!(window.note(number), expected, "{} below {}", number, highest);
            }
        }
    }
}
