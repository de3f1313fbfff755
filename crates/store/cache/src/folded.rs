//! The folded-name index: which names a directory has, regardless of case.
//!
//! A directory that is searched for a name without regard to case gets an index from folded names to its names. So opening
//! one name costs the same in a directory of a million entries as in a directory of ten. A name without a match is tried as
//! an 8.3 name (see [`crate::short_name()`]).
//!
//! The index of a directory that the metadata cache follows (see [`crate::cache`]) hears of each changed name, no
//! matter who changed it. That name is then doubtful, and is looked up by itself the next time a similar name is
//! searched. The index of any other directory is valid while the directory's change time stays the same; the server
//! enters its own changes into the index.
//!
//! Indexes take their memory from the budget of the cache, and the cache drops directories for them. A directory whose
//! names still do not fit has no index. It is read for each name that is not found exactly as given.

mod names;
mod reading;
mod wanted;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use storage::{Name, ObjectId, Timestamp};

use crate::cache::Budget;
use crate::fold::fold;
use names::Names;
pub(crate) use reading::Reading;
pub(crate) use wanted::WantedName;

/// Doubtful names of an index that are kept one by one, as a fraction of its names but at least this many. With more, the
/// directory is read again.
const DOUBTFUL_MIN: usize = 1024;
const DOUBTFUL_PART: usize = 16;
/// Doubtful names that each search checks when half of the limit is reached.
const LOOKED_AT: usize = 4;
/// Memory for a doubtful name besides twice its bytes.
const DOUBTFUL_BYTES: usize = 160;
/// The most that one index may take of the budget.
const PART_OF_BUDGET: (usize, usize) = (3, 4);
/// How long no index is attempted for a directory that had too many names.
const TOO_LONG_FOR: Duration = Duration::from_secs(60);
/// How many such directories are remembered.
const TOO_LONG_MAX: usize = 1024;

/// Bytes taken from the budget, freed when no longer needed.
#[derive(Debug)]
struct Taken {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Taken {
    /// Changes the number of bytes taken. False when there is no room for more.
    fn becomes(&mut self, bytes: usize) -> bool {
        let has_room = bytes <= self.bytes || self.budget.has_room(bytes - self.bytes);
        if has_room {
            self.budget.change(self.bytes, bytes);
            self.bytes = bytes;
        }
        has_room
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.budget.change(self.bytes, 0);
    }
}

/// Why an index is valid.
#[derive(Debug)]
enum Basis {
    /// The change time of the directory when it was read, and whether any later change has another one. Otherwise the index
    /// is used, but not trusted when it does not have a name.
    Time { as_of: Timestamp, is_settled: bool },
    /// The directory is followed: these are all names that have changed since they were entered.
    Told(Doubtful),
}

/// Folded names and the names with this form that have changed, each with the number of the change.
#[derive(Debug, Default)]
struct Doubtful {
    names: HashMap<Vec<u8>, Vec<(Vec<u8>, u64)>>,
    count: usize,
    bytes: usize,
}

impl Doubtful {
    fn enter(&mut self, name: &[u8], change: u64) {
        let alike = self.names.entry(fold(name)).or_default();
        match alike.iter_mut().find(|(other, _)| other == name) {
            Some((_, last)) => *last = change,
            None => {
                alike.push((name.to_vec(), change));
                self.count += 1;
                self.bytes += DOUBTFUL_BYTES + 2 * name.len();
            }
        }
    }

    /// Removes a name from the doubtful ones if `change` is its last change. Returns whether it was removed.
    fn remove(&mut self, name: &[u8], change: Option<u64>) -> bool {
        if self.count == 0 {
            return false;
        }
        let folded = fold(name);
        let Some(alike) = self.names.get_mut(&folded) else { return false };
        let is_it =
            |(other, last): &(Vec<u8>, u64)| other == name && change.is_none_or(|change| *last == change);
        let Some(at) = alike.iter().position(is_it) else { return false };
        alike.swap_remove(at);
        if alike.is_empty() {
            self.names.remove(&folded);
        }
        self.count -= 1;
        self.bytes -= DOUBTFUL_BYTES + 2 * name.len();
        true
    }
}

#[derive(Debug)]
struct Index {
    basis: Basis,
    names: Names,
    taken: Taken,
    used: u64,
}

/// A followed directory that is being read.
#[derive(Debug)]
struct Building {
    dir: ObjectId,
    /// The names that have changed since the reading began; None: too many.
    changed: Option<Vec<Vec<u8>>>,
}

#[derive(Debug, Default)]
struct Indexes {
    by_dir: HashMap<ObjectId, Index>,
    clock: u64,
    /// The readings in progress, by number.
    building: HashMap<u64, Building>,
    /// Directories that had too many names, and when each was found too long.
    too_long: HashMap<ObjectId, Instant>,
}

impl Indexes {
    fn keep(&mut self, dir: ObjectId, mut index: Index) {
        self.clock += 1;
        index.used = self.clock;
        self.by_dir.insert(dir, index);
    }

    /// Changes an index. The index is dropped if it no longer fits, or if sorting it would take long.
    fn change(&mut self, dir: ObjectId, change: impl FnOnce(&mut Index)) {
        if let Some(index) = self.by_dir.get_mut(&dir) {
            if index.names.is_to_be_moved() {
                self.by_dir.remove(&dir);
                return;
            }
            change(index);
            if !index.fits() {
                self.by_dir.remove(&dir);
            }
        }
    }

    /// Drops the index that has been unused for longest. False when there is none.
    fn let_go(&mut self) -> bool {
        let oldest = self.by_dir.iter().min_by_key(|(_, index)| index.used).map(|(dir, _)| *dir);
        oldest.is_some_and(|oldest| self.by_dir.remove(&oldest).is_some())
    }
}

/// The indexes of a share.
#[derive(Debug)]
pub struct FoldedNames {
    budget: Arc<Budget>,
    /// Guards the indexes. No storage call is made while it is held.
    indexes: Mutex<Indexes>,
}

/// The answer of the index.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum IndexAnswer {
    Name(Vec<u8>),
    Absent,
    /// There is no index, or it is out of date.
    Unknown,
    /// These names must be looked up first.
    Doubtful(Vec<(Vec<u8>, u64)>),
}

impl FoldedNames {
    pub(crate) fn new(budget: Arc<Budget>) -> Self {
        Self { budget, indexes: Mutex::default() }
    }

    /// Some doubtful names to check, if there are many, to limit their number.
    pub(crate) fn old_doubts(&self, dir: ObjectId) -> Vec<(Vec<u8>, u64)> {
        let indexes = self.indexes.lock();
        match indexes.by_dir.get(&dir).map(|index| &index.basis) {
            Some(Basis::Told(doubtful)) if doubtful.count > DOUBTFUL_MIN / 2 => {
                doubtful.names.values().flatten().take(LOOKED_AT).cloned().collect()
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn ask_followed(&self, dir: ObjectId, wanted: &WantedName) -> IndexAnswer {
        let mut indexes = self.indexes.lock();
        indexes.clock += 1;
        let now = indexes.clock;
        let Some(index) = indexes.by_dir.get_mut(&dir) else { return IndexAnswer::Unknown };
        index.used = now;
        let Basis::Told(doubtful) = &index.basis else { return IndexAnswer::Unknown };
        if wanted.is_short && !index.names.has_short() {
            return IndexAnswer::Unknown;
        }
        let names: Vec<_> = if doubtful.count == 0 {
            Vec::new()
        } else if wanted.is_short {
            doubtful.names.values().flatten().cloned().collect()
        } else {
            let alike = [Some(&wanted.folded), wanted.short.as_ref()].into_iter().flatten();
            alike.filter_map(|folded| doubtful.names.get(folded)).flatten().cloned().collect()
        };
        if !names.is_empty() {
            return IndexAnswer::Doubtful(names);
        }
        index.find(wanted).map_or(IndexAnswer::Absent, IndexAnswer::Name)
    }

    /// Enters a doubtful name that was looked up.
    pub(crate) fn looked_again(&self, dir: ObjectId, name: &[u8], change: u64, is_there: bool) {
        self.indexes.lock().change(dir, |index| {
            // Otherwise it has changed once more.
            if index.trust(name, Some(change)) {
                index.enter(name, is_there);
            }
        });
    }

    /// Begins to read a followed directory: names that change from now on are noted. Returns the number of the reading.
    fn begin_reading(&self, dir: ObjectId) -> u64 {
        let mut indexes = self.indexes.lock();
        indexes.clock += 1;
        let number = indexes.clock;
        indexes.building.insert(number, Building { dir, changed: Some(Vec::new()) });
        number
    }

    /// Ends the reading of a followed directory.
    fn end_reading(&self, number: u64) {
        self.indexes.lock().building.remove(&number);
    }

    /// Ends the reading of a followed directory, and keeps its index.
    fn keep_read(&self, dir: ObjectId, mut index: Index, number: u64) {
        let mut indexes = self.indexes.lock();
        // None: the directory is no longer followed.
        if let Some(Building { changed: Some(changed), .. }) = indexes.building.remove(&number) {
            changed.iter().for_each(|name| _ = index.doubt(name, number));
            if index.fits() {
                indexes.keep(dir, index);
            }
        }
    }

    /// Notes that a name in a followed directory has changed.
    pub(crate) fn touch(&self, dir: ObjectId, name: &[u8]) {
        let mut indexes = self.indexes.lock();
        for building in indexes.building.values_mut().filter(|building| building.dir == dir) {
            match &mut building.changed {
                Some(changed) if changed.len() < DOUBTFUL_MIN => changed.push(name.to_vec()),
                changed => *changed = None,
            }
        }
        indexes.clock += 1;
        let now = indexes.clock;
        let Some(index) = indexes.by_dir.get_mut(&dir) else { return };
        if !index.doubt(name, now) {
            indexes.by_dir.remove(&dir);
        }
    }

    /// Notes whether a name in a followed directory certainly exists now.
    pub(crate) fn know(&self, dir: ObjectId, name: &[u8], is_there: bool) {
        self.indexes.lock().change(dir, |index| {
            if matches!(index.basis, Basis::Told(_)) {
                index.trust(name, None);
                index.enter(name, is_there);
            }
        });
    }

    /// Drops the index of a directory that is no longer followed.
    pub(crate) fn forget(&self, dir: ObjectId) {
        let mut indexes = self.indexes.lock();
        indexes.building.retain(|_, building| building.dir != dir);
        indexes.by_dir.remove(&dir);
    }

    /// Drops the indexes of all followed directories.
    pub(crate) fn forget_followed(&self) {
        let mut indexes = self.indexes.lock();
        indexes.building.clear();
        indexes.by_dir.retain(|_, index| matches!(index.basis, Basis::Time { .. }));
    }

    pub(crate) fn ask(&self, dir: ObjectId, changed: Timestamp, wanted: &WantedName) -> IndexAnswer {
        let mut indexes = self.indexes.lock();
        indexes.clock += 1;
        let now = indexes.clock;
        let Some(index) = indexes.by_dir.get_mut(&dir) else { return IndexAnswer::Unknown };
        let Basis::Time { as_of, is_settled } = index.basis else { return IndexAnswer::Unknown };
        if as_of != changed {
            return IndexAnswer::Unknown;
        }
        index.used = now;
        match index.find(wanted) {
            Some(name) => IndexAnswer::Name(name),
            None if is_settled && (index.names.has_short() || !wanted.is_short) => IndexAnswer::Absent,
            None => IndexAnswer::Unknown,
        }
    }

    fn keep(&self, dir: ObjectId, index: Index) {
        let mut indexes = self.indexes.lock();
        // Otherwise the directory has been followed meanwhile.
        if indexes.by_dir.get(&dir).is_none_or(|index| matches!(index.basis, Basis::Time { .. })) {
            indexes.keep(dir, index);
        }
    }

    /// Whether a directory has an index that is valid while the change time stays the same.
    pub fn goes_by_time(&self, dir: ObjectId) -> bool {
        let indexes = self.indexes.lock();
        indexes.by_dir.get(&dir).is_some_and(|index| matches!(index.basis, Basis::Time { .. }))
    }

    /// Whether a directory has an index that must hear of each changed name.
    pub(crate) fn is_told(&self, dir: ObjectId) -> bool {
        let indexes = self.indexes.lock();
        indexes.by_dir.get(&dir).is_some_and(|index| matches!(index.basis, Basis::Told(_)))
    }

    /// Records a change of a directory by this server from `before` to `after`: `removed` is gone, `added` is new. An index
    /// that was valid at `before` is then valid at `after`; any other is dropped.
    pub fn changed(
        &self,
        dir: ObjectId,
        before: Option<Timestamp>,
        after: Option<Timestamp>,
        removed: Option<Name<'_>>,
        added: Option<Name<'_>>,
    ) {
        let mut indexes = self.indexes.lock();
        let Some(index) = indexes.by_dir.get_mut(&dir) else { return };
        let Basis::Time { as_of, .. } = &mut index.basis else { return }; // such an index was told of the change
        match after {
            Some(after) if Some(*as_of) == before => *as_of = after,
            _ => {
                indexes.by_dir.remove(&dir);
                return;
            }
        }
        indexes.change(dir, |index| {
            removed.iter().for_each(|name| index.names.remove(name.as_bytes()));
            added.iter().for_each(|name| index.names.add(name.as_bytes()));
        });
    }

    fn is_too_long(&self, dir: ObjectId) -> bool {
        let mut indexes = self.indexes.lock();
        match indexes.too_long.get(&dir) {
            Some(since) if since.elapsed() < TOO_LONG_FOR => true,
            Some(_) => {
                indexes.too_long.remove(&dir);
                false
            }
            None => false,
        }
    }

    /// Makes room for an index that is being read, if possible: drops other indexes, and asks `make_room` for more.
    fn makes_room(&self, dir: ObjectId, index: &mut Index, make_room: impl FnOnce(usize) -> bool) -> bool {
        if index.fits() {
            return true;
        }
        let (part, of) = PART_OF_BUDGET;
        let bytes = index.bytes();
        if bytes <= self.budget.bytes_max() / of * part {
            let more = bytes - index.taken.bytes;
            let mut indexes = self.indexes.lock();
            while !self.budget.has_room(more) && indexes.let_go() {}
            drop(indexes);
            // Not under the lock: the cache reports the directories that it drops.
            if self.budget.has_room(more) || make_room(more) {
                return index.fits();
            }
        }
        let mut indexes = self.indexes.lock();
        if indexes.too_long.len() >= TOO_LONG_MAX {
            indexes.too_long.clear();
        }
        indexes.too_long.insert(dir, Instant::now());
        false
    }
}

impl Index {
    /// The memory that the index takes, in bytes.
    fn bytes(&self) -> usize {
        let doubtful = match &self.basis {
            Basis::Time { .. } => 0,
            Basis::Told(doubtful) => doubtful.bytes,
        };
        size_of::<Self>() + self.names.bytes() + doubtful
    }

    /// Takes the memory that the index needs from the budget. False when there is not enough.
    fn fits(&mut self) -> bool {
        let bytes = self.bytes();
        let (part, of) = PART_OF_BUDGET;
        bytes <= self.taken.budget.bytes_max() / of * part && self.taken.becomes(bytes)
    }

    /// Marks a name as doubtful. False when there are too many.
    fn doubt(&mut self, name: &[u8], change: u64) -> bool {
        let enough = DOUBTFUL_MIN.max(self.names.len() / DOUBTFUL_PART);
        let Basis::Told(doubtful) = &mut self.basis else { return true };
        doubtful.enter(name, change);
        doubtful.count <= enough && self.fits()
    }

    /// Removes a name from the doubtful ones if `change` is its last change. Returns whether it was removed.
    fn trust(&mut self, name: &[u8], change: Option<u64>) -> bool {
        match &mut self.basis {
            Basis::Told(doubtful) => doubtful.remove(name, change),
            Basis::Time { .. } => false,
        }
    }

    fn enter(&mut self, name: &[u8], is_there: bool) {
        if is_there { self.names.add(name) } else { self.names.remove(name) }
    }

    fn find(&self, wanted: &WantedName) -> Option<Vec<u8>> {
        let names = &self.names;
        let by_short = || if wanted.is_short { names.of_short(&wanted.folded) } else { None };
        let found = names.like(&wanted.folded).or_else(|| names.like(wanted.short.as_ref()?));
        found.or_else(by_short).map(<[u8]>::to_vec)
    }
}
