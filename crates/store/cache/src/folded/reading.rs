//! A directory that is being read for a search.

use std::sync::Arc;

use storage::{ObjectId, Timestamp};

use super::names::Names;
use super::wanted::{Candidates, WantedName};
use super::{Basis, Doubtful, FoldedNames, Index, Taken};
use crate::clock;

/// Reads a directory into an index, while there is room for it, and searches for a name on the way. Changes meanwhile
/// give the directory another change time, or the feed reports them, so the index is not used unchanged.
#[derive(Debug)]
pub(crate) struct Reading<'a> {
    indexes: &'a FoldedNames,
    dir: ObjectId,
    wanted: &'a WantedName,
    /// The index; None if there is no room for it.
    index: Option<Index>,
    /// The candidates found without an index.
    candidates: Candidates,
    /// The number of the reading of a followed directory.
    number: Option<u64>,
}

impl<'a> Reading<'a> {
    /// Begins to read a directory that is not followed; `as_of` is its change time.
    pub(crate) fn by_time(
        indexes: &'a FoldedNames,
        dir: ObjectId,
        as_of: Timestamp,
        wanted: &'a WantedName,
    ) -> Self {
        let basis = Basis::Time { as_of, is_settled: as_of.is_settled_at(clock::now()) };
        Self::begin(indexes, dir, basis, wanted, None)
    }

    /// Begins to read a followed directory.
    pub(crate) fn told(indexes: &'a FoldedNames, dir: ObjectId, wanted: &'a WantedName) -> Self {
        let number = indexes.begin_reading(dir);
        Self::begin(indexes, dir, Basis::Told(Doubtful::default()), wanted, Some(number))
    }

    fn begin(
        indexes: &'a FoldedNames,
        dir: ObjectId,
        basis: Basis,
        wanted: &'a WantedName,
        number: Option<u64>,
    ) -> Self {
        let taken = Taken { budget: Arc::clone(&indexes.budget), bytes: 0 };
        let index = Index { basis, names: Names::new(wanted.is_short), taken, used: 0 };
        let index = Some(index).filter(|_| !indexes.is_too_long(dir));
        Self { indexes, dir, wanted, index, candidates: Candidates::default(), number }
    }

    /// Takes a name of the directory. `make_room` makes room for this many bytes elsewhere, and returns whether there
    /// is enough room then.
    pub(crate) fn see(&mut self, name: &[u8], make_room: impl FnOnce(usize) -> bool) {
        match &mut self.index {
            Some(index) => {
                index.names.add(name);
                if !self.indexes.makes_room(self.dir, index, make_room) {
                    self.candidates = Candidates::of(&index.names, self.wanted);
                    self.index = None;
                }
            }
            None => self.candidates.see(name, self.wanted),
        }
    }

    /// Ends the reading: all names have been seen. Returns the name that was searched for.
    pub(crate) fn end(mut self) -> Option<Vec<u8>> {
        let Some(index) = self.index.take() else { return std::mem::take(&mut self.candidates).best() };
        let found = index.find(self.wanted);
        match self.number.take() {
            Some(number) => self.indexes.keep_read(self.dir, index, number),
            None => self.indexes.keep(self.dir, index),
        }
        found
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.indexes.end_reading(number);
        }
    }
}
