//! A set of numbers, small where many of them are near each other, as those of files are.

use std::collections::HashMap;

/// Numbers with the same bits above these share a piece.
const PIECE_BITS: u32 = 9;
const WORDS: usize = 1 << (PIECE_BITS - 6);

/// The set. A piece of 512 numbers takes 64 bytes.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    pieces: HashMap<u64, [u64; WORDS]>,
}

/// Which word of its piece a number is in, and which bit of the word it is.
fn place(number: u64) -> (usize, u64) {
    let low = number & ((1 << PIECE_BITS) - 1);
    (usize::try_from(low >> 6).unwrap_or(0), 1 << (low & 63))
}

impl Numbers {
    /// Adds a number. Returns whether it is new.
    pub(crate) fn insert(&mut self, number: u64) -> bool {
        let (word, bit) = place(number);
        let piece = self.pieces.entry(number >> PIECE_BITS).or_default();
        let Some(word) = piece.get_mut(word) else { return false };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        let piece = self.pieces.get(&(number >> PIECE_BITS));
        piece.and_then(|piece| piece.get(word)).is_some_and(|word| word & bit != 0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_a_set(given in proptest::collection::vec(prop_oneof![0..2000_u64, any::<u64>()], 0..200)) {
            let (mut numbers, mut model) = (Numbers::default(), HashSet::new());
            for number in &given {
                prop_assert_eq!(numbers.insert(*number), model.insert(*number));
            }
            for number in given.iter().flat_map(|number| [*number, number.wrapping_add(1), number ^ 64]) {
                prop_assert_eq!(numbers.contains(number), model.contains(&number));
            }
        }
    }
}
