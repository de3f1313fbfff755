//! The search for a name regardless of case.

use std::ops::ControlFlow;

use storage::{Attributes, Error, MayWait, Name, Node, Wait, Want};

use crate::cache::{is_followed, make_room};
use crate::folded::{FoldedNames, IndexAnswer, Reading, WantedName};

/// How often a name that keeps changing is looked up before the directory is read again.
const TRIES: usize = 4;
/// Entries read of a directory when other calls must not be held up.
const BRIEF_ENTRIES: usize = 2048;

/// How much of a directory a search may read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// So little that no other call is held up. A search that needs more ends with [`Stopped::TooLong`].
    Brief,
    /// The whole directory.
    Whole,
}

/// Why a search has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The directory has more entries than the search may read ([`Effort::Brief`]).
    TooLong,
    /// The store has failed.
    Failed(Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The outcome of a search.
pub(crate) type Result<T> = std::result::Result<T, Stopped>;

impl FoldedNames {
    /// The name in `dir` that equals `wanted` except for case, or whose short name is `wanted`. `known` are the directory's
    /// attributes, if they were just read.
    pub fn find(
        &self,
        dir: &dyn Node,
        known: Option<&Attributes>,
        wanted: &[u8],
        effort: Effort,
        may: MayWait<'_>,
    ) -> Result<Option<Vec<u8>>> {
        let wanted = WantedName::of(wanted);
        if is_followed(dir, may.view()) {
            return self.find_followed(dir, &wanted, effort, may);
        }
        let ctime = match known {
            Some(known) => known.ctime,
            None => dir.attributes(Want::empty(), Wait::May(may))?.ctime,
        };
        match self.ask(dir.id(), ctime, &wanted) {
            IndexAnswer::Name(name) => Ok(Some(name)),
            IndexAnswer::Absent => Ok(None),
            IndexAnswer::Unknown | IndexAnswer::Doubtful(_) => {
                read(dir, Reading::by_time(self, dir.id(), ctime, &wanted), effort, may)
            }
        }
    }

    fn find_followed(
        &self,
        dir: &dyn Node,
        wanted: &WantedName,
        effort: Effort,
        may: MayWait<'_>,
    ) -> Result<Option<Vec<u8>>> {
        for (name, change) in self.old_doubts(dir.id()) {
            self.look_again(dir, &name, change, may)?;
        }
        for _ in 0..TRIES {
            match self.ask_followed(dir.id(), wanted) {
                IndexAnswer::Name(name) => return Ok(Some(name)),
                IndexAnswer::Absent => return Ok(None),
                IndexAnswer::Unknown => break,
                IndexAnswer::Doubtful(names) => {
                    for (name, change) in names {
                        self.look_again(dir, &name, change, may)?;
                    }
                }
            }
        }
        read(dir, Reading::told(self, dir.id(), wanted), effort, may)
    }

    /// Looks up a name that has changed.
    fn look_again(&self, dir: &dyn Node, name: &[u8], change: u64, may: MayWait<'_>) -> Result<()> {
        let is_there = match dir.lookup(Name::new(name)?, Wait::May(may)) {
            Ok(_) => true,
            Err(Error::NotFound) => false,
            Err(e) => return Err(e.into()),
        };
        self.looked_again(dir.id(), name, change, is_there);
        Ok(())
    }
}

/// Reads a directory, as far as the search may.
fn read(
    dir: &dyn Node,
    mut reading: Reading<'_>,
    effort: Effort,
    may: MayWait<'_>,
) -> Result<Option<Vec<u8>>> {
    let mut entries = match effort {
        Effort::Brief => BRIEF_ENTRIES,
        Effort::Whole => usize::MAX,
    };
    let whole = dir.survey(may, &mut |entry| {
        if entries == 0 {
            return ControlFlow::Break(());
        }
        entries -= 1;
        reading.see(entry.name, |bytes| make_room(dir, bytes));
        ControlFlow::Continue(())
    })?;
    if whole { Ok(reading.end()) } else { Err(Stopped::TooLong) }
}
