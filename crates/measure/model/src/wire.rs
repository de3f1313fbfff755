//! A long wire: frames in one direction, each held for a fixed time, some lost. Time and chance are arguments.

use std::collections::VecDeque;
use std::time::Duration;

/// The bytes that a wire holds at most; frames beyond that are dropped.
pub(crate) const HELD_MAX: usize = 16 << 20;

/// Frames that are under way.
#[derive(Debug)]
pub(crate) struct Wire {
    chance: Chance,
    /// When each is due, in order; and what it is.
    held: VecDeque<(Duration, Vec<u8>)>,
    held_bytes: usize,
}

/// What a wire does with frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Conditions {
    /// How long each is held.
    pub delay: Duration,
    /// Which share of them is lost: 0 to less than 1.
    pub loss: f64,
}

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is under way.
    Held,
    /// It is lost, as the conditions say.
    Lost,
    /// The wire is full.
    Dropped,
}

impl Wire {
    /// One whose losses follow from a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self { chance: Chance(seed), held: VecDeque::new(), held_bytes: 0 }
    }

    /// Takes a frame at a time. Nothing is drawn while there are no losses.
    pub(crate) fn put(&mut self, now: Duration, frame: &[u8], conditions: Conditions) -> Fate {
        if conditions.loss > 0.0 && self.chance.share() < conditions.loss {
            return Fate::Lost;
        }
        if self.held_bytes + frame.len() > HELD_MAX {
            return Fate::Dropped;
        }
        // Frames never overtake each other, also where the conditions have changed.
        let due = self.held.back().map_or(Duration::ZERO, |(last, _)| *last).max(now + conditions.delay);
        self.held_bytes += frame.len();
        self.held.push_back((due, frame.to_vec()));
        Fate::Held
    }

    /// The next frame, if it is due.
    pub(crate) fn take(&mut self, now: Duration) -> Option<Vec<u8>> {
        let (_, frame) = self.held.pop_front_if(|(due, _)| *due <= now)?;
        self.held_bytes -= frame.len();
        Some(frame)
    }

    /// When the next frame is due.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.held.front().map(|(due, _)| *due)
    }
}

/// Numbers that follow from a seed: SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
#[derive(Debug)]
struct Chance(u64);

impl Chance {
    /// From 0 to less than 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// How many of the first frames of a seed are lost.
#[cfg(test)]
pub(crate) fn lost_of_first(frames: u64, seed: u64, loss: f64) -> u64 {
    let mut chance = Chance(seed);
    (0..frames).filter(|_| chance.share() < loss).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const LONG: Conditions = Conditions { delay: Duration::from_millis(5), loss: 0.0 };

    #[test]
    fn a_frame_is_held_for_the_delay_and_in_order() {
        let mut wire = Wire::new(1);
        assert_eq!((wire.put(MS, b"one", LONG), wire.put(2 * MS, b"two", LONG)), (Fate::Held, Fate::Held));
        assert_eq!((wire.next(), wire.take(6 * MS - Duration::from_nanos(1))), (Some(6 * MS), None));
        assert_eq!(wire.take(6 * MS).as_deref(), Some(&b"one"[..]));
        assert_eq!((wire.take(6 * MS), wire.next()), (None, Some(7 * MS)));
        assert_eq!(wire.take(9 * MS).as_deref(), Some(&b"two"[..]));
        assert_eq!((wire.take(9 * MS), wire.next(), wire.held_bytes), (None, None, 0));
    }

    #[test]
    fn a_frame_does_not_overtake_when_the_delay_ends() {
        let mut wire = Wire::new(1);
        wire.put(MS, b"one", LONG);
        wire.put(2 * MS, b"two", Conditions { delay: Duration::ZERO, loss: 0.0 });
        assert_eq!(wire.take(5 * MS), None);
        assert_eq!(wire.take(6 * MS).as_deref(), Some(&b"one"[..]));
        assert_eq!(wire.take(6 * MS).as_deref(), Some(&b"two"[..]));
    }

    #[test]
    fn a_full_wire_drops_and_goes_on() {
        let mut wire = Wire::new(1);
        let frame = vec![0; HELD_MAX / 2];
        assert_eq!(wire.put(MS, &frame, LONG), Fate::Held);
        assert_eq!(wire.put(MS, &frame, LONG), Fate::Held);
        assert_eq!(wire.put(MS, &[0], LONG), Fate::Dropped);
        assert_eq!(wire.take(6 * MS).unwrap().len(), HELD_MAX / 2);
        assert_eq!(wire.put(6 * MS, &[0], LONG), Fate::Held);
    }

    #[test]
    fn losses_follow_from_the_seed_and_have_their_share() {
        let lossy = Conditions { delay: Duration::ZERO, loss: 0.1 };
        let fates = |seed| {
            let mut wire = Wire::new(seed);
            (0..10_000).map(|_| wire.put(MS, &[0], lossy)).collect::<Vec<_>>()
        };
        let lost = |seed| fates(seed).iter().filter(|fate| **fate == Fate::Lost).count() as u64;
        assert_eq!((fates(7) == fates(7), fates(7) == fates(8)), (true, false));
        // Seven standard deviations of a binomial distribution.
        assert!((790..=1210).contains(&lost(7)), "{}", lost(7));
        assert_eq!(lost(7), lost_of_first(10_000, 7, 0.1));
        assert_eq!(lost_of_first(10_000, 7, 0.0), 0);
    }

    /// The first numbers of the seed 1234567 are those of the generator's published implementation.
    #[test]
    fn the_generator_is_the_published_one() {
        let mut chance = Chance(1_234_567);
        let published = [6_457_827_717_110_365_317_u64, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        for number in published {
            assert_eq!(chance.share(), (number >> 11) as f64 / (1_u64 << 53) as f64);
        }
    }
}
