//! The folded-name index: finding a name whatever its case.
//!
//! A directory that is asked for a name without regard to case gets an index from folded names to the
//! names that it holds, so opening one name in a directory of a million entries costs the same as in a directory of ten. A
//! name that has no match is looked for as an 8.3 name (see [`crate::short_name()`]).
//!
//! The index of a directory that the metadata cache follows (see [`crate::cache`]) is told of each name that changes, by
//! whomever: that name is doubtful then, and looked up by itself when somebody asks for one like it. Elsewhere an index is
//! good as long as the directory's time of change stays the same; the server's own changes are carried into it.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Duration;

use parking_lot::Mutex;
use storage::{Attributes, FileId, Name, Node, Timestamp, Wait};

use crate::short_name::{is_made, short_name};
use crate::{Result, cache};

/// Names kept in all indexes of a share together; beyond that the least recently used indexes go.
const NAMES_MAX: usize = 4_000_000;
/// A directory that changed so short a time before it was read may change again within the same tick of
/// the store's clock: the index is used, but not believed when it says that there is no such name.
const CLOCK_TICK: Duration = Duration::from_millis(20);
/// Doubtful names of an index that are kept one by one, as a part of its names but at least so many; with more the
/// directory is read again.
const DOUBTFUL_MIN: usize = 4096;
const DOUBTFUL_PART: usize = 4;
/// How often a name that changes all the time is looked at before the directory is read again.
const TRIES: usize = 4;

/// The form in which names are compared: every character by its simple upper case.
/// Bytes that are not UTF-8 stand for themselves.
pub(crate) fn fold(name: &[u8]) -> Vec<u8> {
    if name.is_ascii() {
        return name.to_ascii_uppercase();
    }
    let Ok(text) = std::str::from_utf8(name) else { return name.to_vec() };
    text.chars().map(upper).collect::<String>().into_bytes()
}

/// The simple upper case: one character for one, as in NTFS' table (a sharp s stays).
fn upper(c: char) -> char {
    let mut full = c.to_uppercase();
    match (full.next(), full.next()) {
        (Some(one), None) => one,
        _ => c,
    }
}

/// Names with numbers.
type Names = HashMap<Vec<u8>, u64>;

#[derive(Debug)]
struct Index {
    /// Change time of the directory that this index agrees with.
    as_of: Timestamp,
    /// Whether the directory's change time lay safely in the past when it was read.
    settled: bool,
    /// Folded name to names; several when NFS or local users made names that differ in case only.
    names: HashMap<Vec<u8>, Vec<Vec<u8>>>,
    /// Short name to folded name, once somebody has asked for one.
    short: Option<HashMap<Vec<u8>, Vec<u8>>>,
    count: usize,
    used: u64,
    /// Of a directory that is followed: folded names to the names that have changed since they were entered, each with the
    /// number of the change.
    doubtful: Option<HashMap<Vec<u8>, Names>>,
}

#[derive(Debug, Default)]
struct Indexes {
    by_dir: HashMap<FileId, Index>,
    count: usize,
    clock: u64,
    /// Directories that are followed and being read, each reading with a number, and the names that have changed since it
    /// began.
    building: HashMap<u64, (FileId, Vec<Vec<u8>>)>,
}

impl Indexes {
    fn keep(&mut self, dir: FileId, mut index: Index) {
        self.clock += 1;
        index.used = self.clock;
        self.forget(dir);
        self.count += index.count;
        self.by_dir.insert(dir, index);
        while self.count > NAMES_MAX && self.by_dir.len() > 1 {
            let oldest = self.by_dir.iter().min_by_key(|(_, index)| index.used).map(|(dir, _)| *dir);
            let Some(oldest) = oldest else { break };
            self.forget(oldest);
        }
    }

    fn forget(&mut self, dir: FileId) {
        if let Some(gone) = self.by_dir.remove(&dir) {
            self.count -= gone.count;
        }
    }

    /// Changes an index, and keeps the sum.
    fn change(&mut self, dir: FileId, change: impl FnOnce(&mut Index)) {
        if let Some(index) = self.by_dir.get_mut(&dir) {
            self.count -= index.count;
            change(index);
            self.count += index.count;
        }
    }
}

/// The indexes of a share. The lock guards all of it; no storage call is made under it.
#[derive(Debug, Default)]
pub(crate) struct FoldedNames(Mutex<Indexes>);

/// A name that is looked for.
#[derive(Debug)]
struct Wanted {
    folded: Vec<u8>,
    /// Its short name, if it is none itself: there may be a file that was made by that.
    short: Option<Vec<u8>>,
    /// It may be the short name of another.
    is_short: bool,
}

impl Wanted {
    fn of(name: &[u8]) -> Self {
        let folded = fold(name);
        Self { short: short_name(name), is_short: is_made(&folded), folded }
    }
}

/// What the index says.
#[derive(Debug, PartialEq, Eq)]
enum Known {
    Name(Vec<u8>),
    Absent,
    /// There is no index, or it is out of date.
    Unknown,
    /// These names must be looked up first.
    Doubtful(Vec<(Vec<u8>, u64)>),
}

impl FoldedNames {
    /// The name in `dir` that equals `wanted` but for case, or of which it is the short name; `attributes` are the directory's, read just now.
    pub(crate) fn find(
        &self,
        dir: &dyn Node,
        attributes: &Attributes,
        wanted: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let wanted = Wanted::of(wanted);
        if cache::is_followed(dir) {
            return self.find_followed(dir, attributes, &wanted);
        }
        match self.ask(dir.id(), attributes.ctime, &wanted) {
            Known::Name(name) => Ok(Some(name)),
            Known::Absent => Ok(None),
            Known::Unknown | Known::Doubtful(_) => {
                let index = read_index(dir, attributes, wanted.is_short)?;
                let found = index.find(&wanted).cloned();
                self.keep(dir.id(), index);
                Ok(found)
            }
        }
    }

    fn find_followed(
        &self,
        dir: &dyn Node,
        attributes: &Attributes,
        wanted: &Wanted,
    ) -> Result<Option<Vec<u8>>> {
        for _ in 0..TRIES {
            match self.ask_followed(dir.id(), wanted) {
                Known::Name(name) => return Ok(Some(name)),
                Known::Absent => return Ok(None),
                Known::Unknown => break,
                Known::Doubtful(names) => {
                    for (name, change) in names {
                        self.look_again(dir, &name, change)?;
                    }
                }
            }
        }
        let number = {
            let mut indexes = self.0.lock();
            indexes.clock += 1;
            let number = indexes.clock;
            indexes.building.insert(number, (dir.id(), Vec::new()));
            number
        };
        let read = read_index(dir, attributes, wanted.is_short);
        let mut indexes = self.0.lock();
        let changed = indexes.building.remove(&number);
        let mut index = read?;
        let found = index.find(wanted).cloned();
        // None: it is followed no more.
        if let Some((_, changed)) = changed {
            index.doubtful = Some(HashMap::new());
            for name in &changed {
                index.doubt(name, number);
            }
            indexes.keep(dir.id(), index);
        }
        Ok(found)
    }

    fn ask_followed(&self, dir: FileId, wanted: &Wanted) -> Known {
        let mut indexes = self.0.lock();
        indexes.clock += 1;
        let now = indexes.clock;
        let Some(index) = indexes.by_dir.get_mut(&dir) else { return Known::Unknown };
        index.used = now;
        let Some(doubtful) = &index.doubtful else { return Known::Unknown };
        if wanted.is_short && index.short.is_none() {
            return Known::Unknown;
        }
        let entry = |(name, change): (&Vec<u8>, &u64)| (name.clone(), *change);
        let names: Vec<_> = if doubtful.is_empty() {
            Vec::new()
        } else if wanted.is_short {
            doubtful.values().flatten().map(entry).collect()
        } else {
            let alike = [Some(&wanted.folded), wanted.short.as_ref()].into_iter().flatten();
            alike.filter_map(|folded| doubtful.get(folded)).flatten().map(entry).collect()
        };
        if !names.is_empty() {
            return Known::Doubtful(names);
        }
        index.find(wanted).map_or(Known::Absent, |name| Known::Name(name.clone()))
    }

    /// Looks up a name that has changed.
    fn look_again(&self, dir: &dyn Node, name: &[u8], change: u64) -> Result<()> {
        let is_there = match dir.lookup(Name::new(name)?, Wait::May) {
            Ok(_) => true,
            Err(storage::Error::NotFound) => false,
            Err(e) => return Err(e.into()),
        };
        self.0.lock().change(dir.id(), |index| {
            // Else it has changed once more.
            if index.trust(name, Some(change)) {
                index.enter(name, is_there);
            }
        });
        Ok(())
    }

    /// A name in a directory that is followed has changed.
    pub(crate) fn touch(&self, dir: FileId, name: &[u8]) {
        let mut indexes = self.0.lock();
        for (reading, changed) in indexes.building.values_mut() {
            if *reading == dir {
                changed.push(name.to_vec());
            }
        }
        indexes.clock += 1;
        let now = indexes.clock;
        let Some(index) = indexes.by_dir.get_mut(&dir) else { return };
        if index.doubtful.is_some() && !index.doubt(name, now) {
            indexes.forget(dir);
        }
    }

    /// A name in a directory that is followed is surely there now, or not.
    pub(crate) fn know(&self, dir: FileId, name: &[u8], is_there: bool) {
        self.0.lock().change(dir, |index| {
            if index.doubtful.is_some() {
                index.trust(name, None);
                index.enter(name, is_there);
            }
        });
    }

    /// A directory is followed no more.
    pub(crate) fn forget(&self, dir: FileId) {
        let mut indexes = self.0.lock();
        indexes.building.retain(|_, (reading, _)| *reading != dir);
        indexes.forget(dir);
    }

    /// No directory is followed any more.
    pub(crate) fn forget_followed(&self) {
        let mut indexes = self.0.lock();
        indexes.building.clear();
        let followed = indexes.by_dir.extract_if(|_, index| index.doubtful.is_some());
        let gone: usize = followed.map(|(_, index)| index.count).sum();
        indexes.count -= gone;
    }

    fn ask(&self, dir: FileId, changed: Timestamp, wanted: &Wanted) -> Known {
        let mut indexes = self.0.lock();
        indexes.clock += 1;
        let now = indexes.clock;
        let Some(index) = indexes.by_dir.get_mut(&dir).filter(|index| index.as_of == changed) else {
            return Known::Unknown;
        };
        index.used = now;
        match index.find(wanted) {
            Some(name) => Known::Name(name.clone()),
            None if index.settled && (index.short.is_some() || !wanted.is_short) => Known::Absent,
            None => Known::Unknown,
        }
    }

    fn keep(&self, dir: FileId, index: Index) {
        let mut indexes = self.0.lock();
        // Somebody has begun to follow it meanwhile.
        if indexes.by_dir.get(&dir).is_none_or(|index| index.doubtful.is_none()) {
            indexes.keep(dir, index);
        }
    }

    /// This server has changed a directory from `before` to `after`: `removed` is gone, `added` is new.
    /// An index that agreed with `before` agrees with `after` then; any other is dropped.
    pub(crate) fn changed(
        &self,
        dir: FileId,
        before: Timestamp,
        after: Timestamp,
        removed: Option<Name<'_>>,
        added: Option<Name<'_>>,
    ) {
        let mut guard = self.0.lock();
        let indexes = &mut *guard;
        let Some(index) = indexes.by_dir.get_mut(&dir) else { return };
        if index.doubtful.is_some() {
            return; // it has been told
        }
        if index.as_of != before {
            indexes.forget(dir);
            return;
        }
        indexes.change(dir, |index| {
            if let Some(name) = removed {
                index.remove(name.as_bytes());
            }
            if let Some(name) = added {
                index.add(name.as_bytes());
            }
            index.as_of = after;
        });
    }
}

impl Index {
    /// A name may have changed; false when that is so of too many.
    fn doubt(&mut self, name: &[u8], change: u64) -> bool {
        let enough = DOUBTFUL_MIN.max(self.names.len() / DOUBTFUL_PART);
        let Some(doubtful) = &mut self.doubtful else { return true };
        doubtful.entry(fold(name)).or_default().insert(name.to_vec(), change);
        doubtful.len() <= enough
    }

    /// A name is doubtful no more, if its last change is the one given; whether it is so.
    fn trust(&mut self, name: &[u8], change: Option<u64>) -> bool {
        let Some(doubtful) = &mut self.doubtful else { return false };
        let folded = fold(name);
        let Some(names) = doubtful.get_mut(&folded) else { return false };
        if change.is_some_and(|change| names.get(name) != Some(&change)) {
            return false;
        }
        names.remove(name);
        if names.is_empty() {
            doubtful.remove(&folded);
        }
        true
    }

    fn enter(&mut self, name: &[u8], is_there: bool) {
        if is_there { self.add(name) } else { self.remove(name) }
    }

    fn find(&self, wanted: &Wanted) -> Option<&Vec<u8>> {
        let by_name = |folded: &Vec<u8>| self.names.get(folded)?.first();
        let by_short = || by_name(self.short.as_ref()?.get(&wanted.folded)?);
        by_name(&wanted.folded).or_else(|| by_name(wanted.short.as_ref()?)).or_else(by_short)
    }

    fn add(&mut self, name: &[u8]) {
        if let Some(all) = &mut self.short
            && let Some(short) = short_name(name)
            && all.insert(short, fold(name)).is_none()
        {
            self.count += 1;
        }
        let names = self.names.entry(fold(name)).or_default();
        if !names.iter().any(|n| n == name) {
            names.push(name.to_vec());
            self.count += 1;
        }
    }

    fn remove(&mut self, name: &[u8]) {
        let key = fold(name);
        let Some(names) = self.names.get_mut(&key) else { return };
        let before = names.len();
        names.retain(|n| n != name);
        self.count -= before - names.len();
        if names.is_empty() {
            self.names.remove(&key);
            let short = short_name(name);
            if let (Some(all), Some(short)) = (&mut self.short, short)
                && all.get(&short) == Some(&key)
            {
                all.remove(&short);
                self.count -= 1;
            }
        }
    }
}

/// Reads a directory into an index. Changes during the reading make the directory's change time differ
/// from `attributes`, so that the index is not used again.
fn read_index(dir: &dyn Node, attributes: &Attributes, with_short: bool) -> Result<Index> {
    let mut index = Index {
        as_of: attributes.ctime,
        settled: is_settled(attributes),
        names: HashMap::new(),
        short: with_short.then(HashMap::new),
        count: 0,
        used: 0,
        doubtful: None,
    };
    dir.read_dir(0, &mut |entry| {
        index.add(entry.name);
        ControlFlow::Continue(())
    })?;
    Ok(index)
}

pub(crate) fn is_settled(attributes: &Attributes) -> bool {
    let changed = Duration::new(u64::try_from(attributes.ctime.secs).unwrap_or(0), attributes.ctime.nanos);
    let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    now.saturating_sub(changed) > CLOCK_TICK
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fold_one_character_to_one() {
        assert_eq!(fold(b"ReadMe.TXT"), b"README.TXT");
        assert_eq!(fold("stra\u{df}e".as_bytes()), "STRA\u{df}E".as_bytes());
        assert_eq!(fold("\u{e4}\u{f6}".as_bytes()), "\u{c4}\u{d6}".as_bytes());
        assert_eq!(fold(b"\xffa"), b"\xffa", "not UTF-8");
    }
}
