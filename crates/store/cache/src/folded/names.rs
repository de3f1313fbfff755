//! The names of a directory, found regardless of case, with as little memory per name as possible.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use crate::fold::fold;
use crate::short_name::short_name;

/// Names are stored in chunks, so that a growing directory does not take twice its bytes.
const CHUNK_BITS: u32 = 16;
const CHUNK: usize = 1 << CHUNK_BITS;
/// Most names to sort in one step while others wait.
const MOVED_MAX: usize = 65_536;
/// The longest name; its length is one byte.
const NAME_MAX: usize = 255;

/// Runs `look` with the folded form of a name.
fn with_folded<T>(name: &[u8], look: impl FnOnce(&[u8]) -> T) -> T {
    let mut room = [0; NAME_MAX];
    match room.get_mut(..name.len()) {
        Some(folded) if name.is_ascii() => {
            folded.copy_from_slice(name);
            folded.make_ascii_uppercase();
            look(folded)
        }
        _ => look(&fold(name)),
    }
}

/// Whether a name has this folded form.
pub(super) fn is_folded(name: &[u8], folded: &[u8]) -> bool {
    if name.is_ascii() { name.eq_ignore_ascii_case(folded) } else { fold(name) == folded }
}

/// Names one after the other, each with its length in front. No name crosses a chunk boundary.
#[derive(Debug, Default)]
struct Text(Vec<Vec<u8>>);

impl Text {
    /// The name at a place.
    fn at(&self, place: u32) -> &[u8] {
        let chunk = self.0.get((place >> CHUNK_BITS) as usize);
        let rest = chunk.and_then(|chunk| chunk.get(place as usize % CHUNK..));
        let name = rest
            .and_then(|rest| rest.split_first())
            .and_then(|(length, rest)| rest.get(..usize::from(*length)));
        name.unwrap_or_default()
    }

    /// Appends a name. Returns its place, or None if the name is too long or there are too many.
    fn push(&mut self, name: &[u8]) -> Option<u32> {
        let length = u8::try_from(name.len()).ok()?;
        if self.0.last().is_none_or(|chunk| chunk.len() + 1 + name.len() > CHUNK) {
            // A small directory allocates only what it needs.
            let room = if self.0.is_empty() { 0 } else { CHUNK };
            self.0.push(Vec::with_capacity(room));
        }
        let number = u16::try_from(self.0.len() - 1).ok()?;
        let chunk = self.0.last_mut()?;
        let place = u32::from(number) << CHUNK_BITS | u32::try_from(chunk.len()).ok()?;
        chunk.push(length);
        chunk.extend_from_slice(name);
        Some(place)
    }

    fn bytes(&self) -> usize {
        let first = self.0.first().map_or(0, Vec::capacity);
        first + self.0.len().saturating_sub(1) * CHUNK + self.0.capacity() * size_of::<Vec<u8>>()
    }
}

/// The names of one directory.
#[derive(Debug)]
pub(super) struct Names {
    hasher: RandomState,
    text: Text,
    /// Places by the hash of the folded form.
    by_folded: HashTable<u32>,
    /// Places of names that have a short name, by the hash of the short name, once one was asked for.
    by_short: Option<HashTable<u32>>,
    /// Bytes of removed names.
    gone: usize,
}

impl Names {
    pub(super) fn new(with_short: bool) -> Self {
        Self {
            hasher: RandomState::new(),
            text: Text::default(),
            by_folded: HashTable::new(),
            by_short: with_short.then(HashTable::new),
            gone: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_folded.len()
    }

    /// Whether names are found by their short names.
    pub(super) fn has_short(&self) -> bool {
        self.by_short.is_some()
    }

    /// The memory that the names take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let short = self.by_short.as_ref().map_or(0, HashTable::allocation_size);
        self.text.bytes() + self.by_folded.allocation_size() + short
    }

    /// Whether the next change may have to move all names, and there are many.
    pub(super) fn is_to_be_moved(&self) -> bool {
        let is_full = self.by_folded.len() >= self.by_folded.capacity();
        self.len() > MOVED_MAX && (is_full || self.is_untidy())
    }

    fn is_untidy(&self) -> bool {
        self.gone > CHUNK && self.gone > self.text.bytes() / 2
    }

    fn place_of(&self, name: &[u8]) -> Option<u32> {
        let hash = with_folded(name, |folded| self.hasher.hash_one(folded));
        self.by_folded.find(hash, |place| self.text.at(*place) == name).copied()
    }

    /// A name with this folded form. If NFS clients or local programs have created several, the one that was entered first.
    pub(super) fn like(&self, folded: &[u8]) -> Option<&[u8]> {
        let places = self.by_folded.iter_hash(self.hasher.hash_one(folded)).copied();
        let place = places.filter(|place| is_folded(self.text.at(*place), folded)).min()?;
        Some(self.text.at(place))
    }

    /// A name with this short name.
    pub(super) fn of_short(&self, short: &[u8]) -> Option<&[u8]> {
        let places = self.by_short.as_ref()?.iter_hash(self.hasher.hash_one(short)).copied();
        let has_it = |place: &u32| short_name(self.text.at(*place)).is_some_and(|name| name == short);
        Some(self.text.at(places.filter(has_it).min()?))
    }

    pub(super) fn add(&mut self, name: &[u8]) {
        if self.place_of(name).is_some() {
            return;
        }
        let Some(place) = self.text.push(name) else { return };
        let Self { hasher, text, by_folded, by_short, .. } = self;
        let hash_folded = |name: &[u8]| with_folded(name, |folded| hasher.hash_one(folded));
        by_folded.insert_unique(hash_folded(name), place, |place| hash_folded(text.at(*place)));
        if let (Some(by_short), Some(short)) = (by_short, short_name(name)) {
            let hash_short =
                |place: &u32| hasher.hash_one(short_name(text.at(*place)).unwrap_or_default().as_slice());
            by_short.insert_unique(hasher.hash_one(short.as_slice()), place, hash_short);
        }
    }

    pub(super) fn remove(&mut self, name: &[u8]) {
        let Some(place) = self.place_of(name) else { return };
        let hash = with_folded(name, |folded| self.hasher.hash_one(folded));
        if let Ok(entry) = self.by_folded.find_entry(hash, |other| *other == place) {
            entry.remove();
        }
        if let (Some(by_short), Some(short)) = (&mut self.by_short, short_name(name))
            && let Ok(entry) =
                by_short.find_entry(self.hasher.hash_one(short.as_slice()), |other| *other == place)
        {
            entry.remove();
        }
        self.gone += 1 + name.len();
        if self.is_untidy() && self.len() <= MOVED_MAX {
            self.tidy();
        }
    }

    /// Closes the gaps left by removed names.
    fn tidy(&mut self) {
        let mut places: Vec<u32> = self.by_folded.iter().copied().collect();
        places.sort_unstable();
        let mut tidy = Self::new(self.has_short());
        places.iter().for_each(|place| tidy.add(self.text.at(*place)));
        *self = tidy;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn like(names: &Names, name: &str) -> Option<String> {
        names.like(&fold(name.as_bytes())).map(|name| String::from_utf8(name.to_vec()).unwrap())
    }

    #[test]
    fn names_are_found_whatever_their_case() {
        let mut names = Names::new(true);
        for name in ["ReadMe", "readme", "caf\u{e9} au lait", "b"] {
            names.add(name.as_bytes());
            names.add(name.as_bytes());
        }
        assert_eq!(names.len(), 4);
        assert_eq!(like(&names, "README").unwrap(), "ReadMe", "the first of two");
        assert_eq!(like(&names, "CAF\u{c9} AU LAIT").unwrap(), "caf\u{e9} au lait");
        assert_eq!(like(&names, "c"), None);
        let short = short_name("caf\u{e9} au lait".as_bytes()).unwrap();
        assert_eq!(names.of_short(&short).unwrap(), "caf\u{e9} au lait".as_bytes());
        names.remove(b"ReadMe");
        names.remove(b"README");
        assert_eq!(like(&names, "README").unwrap(), "readme");
        names.remove("caf\u{e9} au lait".as_bytes());
        assert_eq!(names.of_short(&short), None);
        assert_eq!(names.len(), 2);
        names.add(&[b'n'; 255]);
        assert_eq!(names.like(&[b'N'; 255]), Some(&[b'n'; 255][..]));
    }

    #[test]
    fn a_hundred_thousand_names_take_little_and_leave_nothing() {
        const COUNT: usize = 100_000;
        let name = |n: usize| format!("File {n:06}.txt");
        let mut names = Names::new(false);
        (0..COUNT).for_each(|n| names.add(name(n).as_bytes()));
        assert!(names.bytes() < COUNT * 30, "{} bytes", names.bytes());
        assert_eq!(like(&names, "FILE 077777.TXT").unwrap(), name(77_777));
        let full = names.bytes();
        // Names that come and go take no more memory than before.
        for n in COUNT..3 * COUNT {
            names.remove(name(n - COUNT).as_bytes());
            names.add(name(n).as_bytes());
            assert!(names.bytes() <= 4 * full, "{} of {full} bytes", names.bytes());
        }
        assert_eq!((names.len(), like(&names, "FILE 000001.TXT")), (COUNT, None));
        assert_eq!(like(&names, "FILE 299999.TXT").unwrap(), name(299_999));
        (2 * COUNT..3 * COUNT).for_each(|n| names.remove(name(n).as_bytes()));
        assert!(names.len() == 0 && names.bytes() < full / 2, "{} of {full} bytes", names.bytes());
    }
}
