//! Maps by numbers that a store or this server has given: the same as [`HashMap`], with a cheaper hash.
//!
//! The standard hash costs about a hundred instructions more for each search, and a read of 4 KiB makes several. Clients
//! do not choose the keys of these maps. They may choose among numbers that a file system gives, so each map has a secret
//! of its own.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A map by numbers that a store or this server has given.
pub type QuickMap<K, V> = HashMap<K, V, QuickHash>;

/// An odd number without a pattern in its bits: the fractional part of the golden ratio.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;

/// The hash of one map.
#[derive(Clone)]
pub struct QuickHash {
    secret: u64,
}

impl Default for QuickHash {
    fn default() -> Self {
        Self { secret: RandomState::new().hash_one(0_u64) }
    }
}

impl std::fmt::Debug for QuickHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("QuickHash { secret }")
    }
}

impl BuildHasher for QuickHash {
    type Hasher = QuickHasher;

    fn build_hasher(&self) -> QuickHasher {
        QuickHasher { state: self.secret }
    }
}

/// The hash of one key, as far as the key has been read.
#[derive(Debug)]
pub struct QuickHasher {
    state: u64,
}

impl QuickHasher {
    /// Both halves of a product: each bit of the factors changes about half of the bits of their sum.
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.state ^ word).wrapping_mul(u128::from(MIX)).to_le_bytes();
        let half =
            |at: usize| product.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u64::from_le_bytes(*b));
        self.state = (half(0) ^ half(8)).rotate_left(23);
    }
}

impl Hasher for QuickHasher {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut last = [0; 8];
            last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            self.mix(u64::from_le_bytes(last));
        }
        self.mix(bytes.len() as u64);
    }

    fn write_u32(&mut self, number: u32) {
        self.mix(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.mix(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.mix(number as u64);
    }

    fn finish(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::ObjectId;

    #[test]
    fn neighbours_spread_over_all_bits() {
        let hash = QuickHash::default();
        for step in [1, 16, 64, 4096, 1 << 32] {
            let hashes: Vec<u64> = (0..4096).map(|n| hash.hash_one(ObjectId::live(n * step))).collect();
            for shift in [0, 20, 52] {
                let buckets: HashSet<u64> = hashes.iter().map(|hash| hash >> shift & 0xfff).collect();
                // At random 63 % of the buckets would have one.
                assert!(
                    buckets.len() > 2300,
                    "{} buckets for steps of {step}, bits from {shift}",
                    buckets.len()
                );
            }
        }
    }

    #[test]
    fn bytes_differ_by_each_byte_and_by_their_length() {
        let hash = QuickHash::default();
        let of = |bytes: &[u8]| hash.hash_one(bytes);
        let long: Vec<u8> = (0..44).collect();
        for at in 0..long.len() {
            let mut other = long.clone();
            other[at] ^= 1;
            assert_ne!(of(&other), of(&long), "byte {at}");
        }
        assert_ne!(of(&[0; 7]), of(&[0; 8]));
        assert_ne!(of(&[]), of(&[0]));
    }

    #[test]
    fn each_map_has_a_secret_of_its_own() {
        assert_ne!(QuickHash::default().hash_one(1_u64), QuickHash::default().hash_one(1_u64));
    }
}
