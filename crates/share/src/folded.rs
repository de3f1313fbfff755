//! The folded-name index: finding a name whatever its case.
//!
//! A directory that is asked for a name without regard to case gets an index from folded names to the
//! names that it holds. The index is good as long as the directory has not changed since it was made; our
//! own changes are carried into it, so opening one name in a directory of a million entries costs the same
//! as in a directory of ten. A name that has no match is looked for as an 8.3 name (see [`crate::short_name()`]).

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::Duration;

use parking_lot::Mutex;
use storage::{Attributes, FileId, Name, Node, Timestamp};

use crate::Result;
use crate::short_name::{is_made, short_name};

/// Names kept in all indexes of a share together; beyond that the least recently used indexes go.
const NAMES_MAX: usize = 4_000_000;
/// A directory that changed so short a time before it was read may change again within the same tick of
/// the store's clock: the index is used, but not believed when it says that there is no such name.
const CLOCK_TICK: Duration = Duration::from_millis(10);

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
}

#[derive(Debug, Default)]
struct Indexes {
    by_dir: HashMap<FileId, Index>,
    count: usize,
    clock: u64,
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
        match self.ask(dir.id(), attributes.ctime, &wanted) {
            Known::Name(name) => Ok(Some(name)),
            Known::Absent => Ok(None),
            Known::Unknown => {
                let index = read_index(dir, attributes, wanted.is_short)?;
                let found = index.find(&wanted).cloned();
                self.keep(dir.id(), index);
                Ok(found)
            }
        }
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

    fn keep(&self, dir: FileId, mut index: Index) {
        let mut indexes = self.0.lock();
        indexes.clock += 1;
        index.used = indexes.clock;
        indexes.count += index.count;
        if let Some(old) = indexes.by_dir.insert(dir, index) {
            indexes.count -= old.count;
        }
        while indexes.count > NAMES_MAX && indexes.by_dir.len() > 1 {
            let oldest = indexes.by_dir.iter().min_by_key(|(_, index)| index.used).map(|(dir, _)| *dir);
            let Some(gone) = oldest.and_then(|dir| indexes.by_dir.remove(&dir)) else { break };
            indexes.count -= gone.count;
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
        if index.as_of != before {
            if let Some(gone) = indexes.by_dir.remove(&dir) {
                indexes.count -= gone.count;
            }
            return;
        }
        indexes.count -= index.count;
        if let Some(name) = removed {
            index.remove(name.as_bytes());
        }
        if let Some(name) = added {
            index.add(name.as_bytes());
        }
        index.as_of = after;
        indexes.count += index.count;
    }
}

impl Index {
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
    };
    dir.read_dir(0, &mut |entry| {
        index.add(entry.name);
        ControlFlow::Continue(())
    })?;
    Ok(index)
}

fn is_settled(attributes: &Attributes) -> bool {
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
