//! Which tokens were used before. RFC 4120 3.2.3: "the server MUST utilize a replay cache to remember any
//! authenticator presented within the allowable clock skew".
//!
//! The caller keeps the cache behind a lock of its own, shared by all that accept tokens for the same service.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use aws_lc_rs::digest;

use crate::time::Time;

const ID_LEN: usize = 16;
/// A cache is divided, so that a table which grows or is emptied holds its lock for a small part of the time.
const PARTS: usize = 64;

/// What a token is remembered by: the beginning of the SHA-256 of its encrypted authenticator.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReplayId([u8; ID_LEN]);

impl ReplayId {
    pub(crate) fn of(authenticator: &[u8]) -> Self {
        let hash = digest::digest(&digest::SHA256, authenticator);
        Self(hash.as_ref().first_chunk().copied().unwrap_or_default())
    }

    fn part(self) -> usize {
        let [first, ..] = self.0;
        usize::from(first).checked_rem(PARTS).unwrap_or(0)
    }
}

impl fmt::Debug for ReplayId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// What a cache says of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// The token is new, and remembered from now on
    First,
    /// The token was used before
    Replayed,
    /// The token is new, but there is no room to remember it
    Full,
}

/// Where tokens are remembered: a lock around a [`ReplayCache`].
pub trait Replays {
    /// Notes a token.
    fn note(&self, id: ReplayId, now: Time) -> Noted;
}

/// Remembers tokens for as long as their time would be accepted.
pub struct ReplayCache {
    parts: [Part; PARTS],
    part_max: usize,
    /// Seconds of a generation
    period: i64,
}

/// Two generations. An entry lives for one whole generation at least.
#[derive(Default)]
struct Part {
    generation: i64,
    current: HashSet<ReplayId>,
    previous: HashSet<ReplayId>,
}

impl ReplayCache {
    /// The most entries that a server should give a cache: for 1,700 logons a second, and less than 100 MB.
    pub const CAPACITY: usize = 1 << 21;

    /// A cache for about `capacity` tokens (at least 64), for an acceptor with this
    /// [clock skew](crate::Settings::clock_skew). It takes memory as it fills.
    ///
    /// A token whose time is ahead by the skew is accepted for two more skews, so a generation is as long as that:
    /// 600 s with the usual skew.
    #[must_use]
    pub fn new(capacity: usize, clock_skew: Duration) -> Self {
        let period = i64::try_from(clock_skew.as_secs().max(1)).unwrap_or(i64::MAX).saturating_mul(2);
        let part_max = capacity.checked_div(PARTS).unwrap_or(0).max(1);
        Self { parts: std::array::from_fn(|_| Part::default()), part_max, period }
    }

    /// Notes a token. A full cache forgets nothing, but refuses what is new.
    pub fn note(&mut self, id: ReplayId, now: Time) -> Noted {
        let generation = now.as_unix().div_euclid(self.period.max(1));
        let Some(part) = self.parts.get_mut(id.part()) else { return Noted::Full };
        part.turn(generation);
        if part.current.contains(&id) || part.previous.contains(&id) {
            return Noted::Replayed;
        }
        if part.current.len().saturating_add(part.previous.len()) >= self.part_max {
            return Noted::Full;
        }
        part.current.insert(id);
        Noted::First
    }

    /// The number of tokens that are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts
            .iter()
            .fold(0, |sum, part| sum.saturating_add(part.current.len()).saturating_add(part.previous.len()))
    }

    /// Whether no token is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Part {
    /// Forgets what is older than the generation before this one. If the clock is set back, nothing is forgotten.
    fn turn(&mut self, generation: i64) {
        match generation.saturating_sub(self.generation) {
            ..=0 => return,
            1 => std::mem::swap(&mut self.previous, &mut self.current),
            _ => self.previous = HashSet::new(),
        }
        self.current = HashSet::new();
        self.generation = generation;
    }
}

impl fmt::Debug for ReplayCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayCache").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SKEW: Duration = Duration::from_secs(300);

    fn id(number: u64) -> ReplayId {
        ReplayId::of(&number.to_le_bytes())
    }

    fn at(seconds: i64) -> Time {
        Time::from_unix(seconds)
    }

    #[test]
    fn a_token_is_remembered_for_two_skews_at_least() {
        for start in [0, 1, 599, 600, 1_795_645_953] {
            let mut cache = ReplayCache::new(1000, SKEW);
            assert_eq!(cache.note(id(1), at(start)), Noted::First);
            for later in [0, 1, 300, 599, 600] {
                assert_eq!(cache.note(id(1), at(start + later)), Noted::Replayed, "{start} {later}");
            }
            assert_eq!(cache.note(id(1), at(start + 1800)), Noted::First, "{start}");
        }
    }

    /// What comes meanwhile with a time of its own is refused for that time afterwards.
    #[test]
    fn a_clock_that_is_set_back_forgets_nothing() {
        let mut cache = ReplayCache::new(1000, SKEW);
        assert_eq!(cache.note(id(1), at(10_000)), Noted::First);
        assert_eq!(cache.note(id(1), at(5_000)), Noted::Replayed);
        assert_eq!(cache.note(id(1), at(10_000)), Noted::Replayed);
    }

    #[test]
    fn a_full_cache_refuses_and_forgets_nothing() {
        let capacity = 128;
        let mut cache = ReplayCache::new(capacity, SKEW);
        let mut seen = Vec::new();
        for number in 0..10_000 {
            match cache.note(id(number), at(0)) {
                Noted::First => seen.push(number),
                Noted::Full => {}
                Noted::Replayed => panic!("{number} is new"),
            }
        }
        assert_eq!((cache.len(), seen.len()), (capacity, capacity));
        assert!(seen.iter().all(|number| cache.note(id(*number), at(300)) == Noted::Replayed));
        assert_eq!(cache.note(id(10_001), at(599)), Noted::Full);
        // the first generation is the previous one now, and still counts
        assert_eq!(cache.note(id(10_001), at(600)), Noted::Full);
        assert_eq!(cache.note(id(10_001), at(1200)), Noted::First);
    }
}
