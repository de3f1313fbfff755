//! What a byte of a file must be: a pure function of the run, the file, the place and how often the place was written.
//!
//! A granule (4 KiB or less) of generation 0 was never written and is zero. Any other begins with a number of 64 bits that
//! its run, file, place and generation make, and goes on with a piece of a table of random bytes that the number chooses.
//! So checking is comparing memory: what another place, another file or an earlier write left is found, and each wrong byte.
//! A granule that is read while it is written may consist of bytes of both: there a wrong byte that is the other write's at its
//! place (one of 256, by chance) cannot be told from a right one.

use std::sync::LazyLock;

/// The largest granule in bytes.
pub(crate) const GRANULE_MAX: usize = 4096;
const NUMBER: usize = 8;
const TABLE: usize = 256 << 10;

/// Random bytes, the same in every run.
static RANDOM: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let words = (0..(TABLE + GRANULE_MAX) as u64 / 8).map(|n| mixed(n.wrapping_add(0x5EED)));
    words.flat_map(u64::to_le_bytes).collect()
});

/// A place that was written: which granule of which file, how often.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GranuleVersion {
    /// The run's own number.
    pub(crate) run: u64,
    pub(crate) file: u32,
    pub(crate) granule: u64,
    pub(crate) generation: u16,
}

impl GranuleVersion {
    fn number(self) -> u64 {
        let who = mixed(self.run ^ (u64::from(self.file) << 20) ^ u64::from(self.generation));
        mixed(who ^ self.granule.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    fn body(number: u64, length: usize) -> &'static [u8] {
        let at = usize::try_from(number % TABLE as u64).unwrap_or(0);
        RANDOM.get(at..at + length).unwrap_or_default()
    }

    /// Writes the whole granule.
    pub(crate) fn fill(self, granule: &mut [u8]) {
        if self.generation == 0 {
            return granule.fill(0);
        }
        let number = self.number();
        let (head, body) = granule.split_at_mut(NUMBER.min(granule.len()));
        head.copy_from_slice(&number.to_le_bytes()[..head.len()]);
        body.copy_from_slice(Self::body(number, body.len()));
    }

    /// Whether the whole granule is as it must be.
    pub(crate) fn is(self, granule: &[u8]) -> bool {
        if self.generation == 0 {
            return granule.iter().all(|byte| *byte == 0);
        }
        let number = self.number();
        let (head, body) = granule.split_at(NUMBER.min(granule.len()));
        head == &number.to_le_bytes()[..head.len()] && body == Self::body(number, body.len())
    }

    /// How many bytes are what none of these places must be, and the first of them.
    pub(crate) fn wrong(places: &[Self], granule: &[u8]) -> Option<(usize, usize)> {
        let mut wrong = vec![true; granule.len()];
        let mut right = vec![0; granule.len()];
        for place in places {
            place.fill(&mut right);
            for (wrong, pair) in wrong.iter_mut().zip(granule.iter().zip(&right)) {
                *wrong &= pair.0 != pair.1;
            }
        }
        let first = wrong.iter().position(|wrong| *wrong)?;
        Some((wrong.iter().filter(|wrong| **wrong).count(), first))
    }
}

/// Mixes the bits of a number (the finalizer of splitmix64).
pub(crate) fn mixed(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: GranuleVersion = GranuleVersion { run: 7, file: 3, granule: 1000, generation: 2 };

    #[test]
    fn every_wrong_byte_is_found() {
        let mut granule = vec![0; 4096];
        PLACE.fill(&mut granule);
        assert!(PLACE.is(&granule));
        for at in 0..granule.len() {
            granule[at] ^= 1;
            assert!(!PLACE.is(&granule), "byte {at}");
            assert_eq!(GranuleVersion::wrong(&[PLACE], &granule), Some((1, at)));
            granule[at] ^= 1;
        }
    }

    #[test]
    fn another_place_file_run_or_generation_is_wrong() {
        let mut granule = vec![0; 512];
        PLACE.fill(&mut granule);
        let others = [
            GranuleVersion { run: 8, ..PLACE },
            GranuleVersion { file: 2, ..PLACE },
            GranuleVersion { granule: 1001, ..PLACE },
            GranuleVersion { generation: 1, ..PLACE },
            GranuleVersion { generation: 0, ..PLACE },
        ];
        assert!(others.iter().all(|other| !other.is(&granule)));
    }

    #[test]
    fn what_was_never_written_is_zero() {
        let never = GranuleVersion { generation: 0, ..PLACE };
        assert!(never.is(&[0; 4096]) && !never.is(&[[0; 4095].as_slice(), &[1]].concat()));
    }
}
