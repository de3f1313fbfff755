//! Removes what has been in the recycle bin long enough.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use file_state::Operation;
use storage::{FileKind, MayWait, Name, NodeRef, StoreThread, Timestamp, View, Wait, Want};

use crate::namespace::Changing;
use crate::operation::DirectoryReport;
use crate::recycle::{Going, Level};
use crate::recycling::{FOLDER, Recycling};
use crate::{Location, Result, Share};

/// How many directories may lie in each other: each of them is open meanwhile. What is deeper stays.
const DEPTH_MAX: usize = 1024;
/// Names of a directory that are read at a time.
const NAMES: usize = 1024;

/// A directory that is being looked through.
struct Visit {
    /// None for the bin itself, which stays.
    place: Option<Location>,
    dir: NodeRef,
    names: Vec<Vec<u8>>,
    cookie: u64,
    is_read: bool,
}

impl Visit {
    fn new(place: Option<Location>, dir: NodeRef) -> Self {
        Self { place, dir, names: Vec::new(), cookie: 0, is_read: false }
    }

    /// The next name; None at the end.
    fn next_name(&mut self, may: MayWait<'_>) -> storage::Result<Option<Vec<u8>>> {
        if self.names.is_empty() && !self.is_read {
            let (names, cookie) = (&mut self.names, &mut self.cookie);
            self.is_read = self.dir.read_dir(*cookie, may, &mut |entry| {
                *cookie = entry.cookie;
                names.push(entry.name.to_vec());
                if names.len() < NAMES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        Ok(self.names.pop())
    }
}

/// Ends a look through a bin, whatever becomes of its thread.
struct Sweeping<'a>(&'a Recycling);

impl Drop for Sweeping<'_> {
    fn drop(&mut self) {
        self.0.ends_sweep();
    }
}

impl Share {
    /// Makes the recycle bin, and removes what has been there for longer than its settings say, if an hour has passed since this
    /// was begun last. A thread of its own does the work.
    pub fn sweep_recycle_bin(self: &Arc<Self>) {
        if self.recycle_bin().is_none() || self.is_read_only() || !self.recycling.begins_sweep(Instant::now())
        {
            return;
        }
        let share = Arc::clone(self);
        let begun = StoreThread::spawn("recycle", move |thread| {
            let may = thread.may_wait(View::FRESH);
            let _sweeping = Sweeping(&share.recycling);
            // The name is not left to whoever wants it first.
            if share.depth_of_bins() == 0 {
                let _ = share.bin_in(share.root(), may);
            }
            match share.empty_recycle_bin(SystemTime::now(), may) {
                Ok(0) => {}
                Ok(files) => {
                    tracing::info!(share = share.name(), files, "the recycle bin kept them long enough")
                }
                Err(e) => tracing::warn!(share = share.name(), "cannot look through the recycle bin: {e}"),
            }
        });
        if let Err(e) = begun {
            tracing::warn!(share = self.name(), "cannot look through the recycle bin: {e}");
            self.recycling.ends_sweep();
        }
    }

    /// Removes what has been in the recycle bin for longer than its settings say, and directories of it that are empty. A file
    /// has been there since its change time at most. What is open stays. Returns how many files were removed. Blocks.
    ///
    /// # Errors
    /// Those of the device.
    pub fn empty_recycle_bin(self: &Arc<Self>, now: SystemTime, may: MayWait<'_>) -> Result<u64> {
        let Some(keep) = self.recycle_bin().and_then(|bin| bin.keep()) else { return Ok(0) };
        let since_1970 = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let secs = since_1970.saturating_sub(keep).as_secs();
        let before = Timestamp { secs: i64::try_from(secs).unwrap_or(i64::MAX), nanos: 0 };
        let mut removed = 0;
        for home in self.directories_with_bins(may)? {
            match home.lookup(Name::new(FOLDER)?, Wait::May(may)) {
                Ok(bin) if bin.kind() == FileKind::Directory => removed += self.empty(bin, before, may)?,
                Ok(_) | Err(storage::Error::NotFound | storage::Error::Stale) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(removed)
    }

    fn directories_with_bins(&self, may: MayWait<'_>) -> Result<Vec<NodeRef>> {
        if self.depth_of_bins() == 0 {
            return Ok(vec![Arc::clone(self.root())]);
        }
        let found = |name: Vec<u8>| self.root().lookup(Name::new(&name).ok()?, Wait::May(may)).ok();
        let homes = names_in(self.root(), may)?.into_iter().filter_map(found);
        Ok(homes.filter(|home| home.kind() == FileKind::Directory).collect())
    }

    fn empty(self: &Arc<Self>, bin: NodeRef, before: Timestamp, may: MayWait<'_>) -> Result<u64> {
        let (mut removed, settings) = (0, self.recycle_bin());
        let mut visits = vec![Visit::new(None, bin)];
        while let Some(visit) = visits.last_mut() {
            if self.is_withdrawn() || self.recycle_bin() != settings {
                break;
            }
            let Ok(Some(name)) = visit.next_name(may) else {
                let done = visits.pop().and_then(|visit| visit.place);
                // A directory that is not empty stays.
                let _ = done.map(|place| self.discard(&place, None, may));
                continue;
            };
            let place = Location { parent: Arc::clone(&visit.dir), name };
            match place.parent.lookup(Name::new(&place.name)?, Wait::May(may)) {
                Ok(node) if node.kind() == FileKind::Directory => {
                    if visits.len() < DEPTH_MAX {
                        visits.push(Visit::new(Some(place), node));
                    }
                }
                Ok(_) => removed += u64::from(self.discard(&place, Some(before), may).is_ok_and(|gone| gone)),
                Err(_) => {}
            }
        }
        Ok(removed)
    }

    /// Removes an entry of the bin: a file that was not changed since a moment or, without a moment, a directory that is empty. It
    /// stays if somebody has it open, if its directory is no longer in the bin, or while entries move. Returns whether it was
    /// removed.
    fn discard(
        self: &Arc<Self>,
        place: &Location,
        before: Option<Timestamp>,
        may: MayWait<'_>,
    ) -> Result<bool> {
        let Some(_removing) = self.recycling.removing() else { return Ok(false) };
        if self.level_of(&place.parent)? != Level::InBin {
            return Ok(false);
        }
        let name = Name::new(&place.name)?;
        let changing = Changing::begin(DirectoryReport::Nothing, &place.parent, may)?;
        let (node, attributes) = place.parent.lookup_attributes(name, Want::empty(), Wait::May(may))?;
        let is_dir = attributes.kind == FileKind::Directory;
        let goes = before.map_or(is_dir, |before| !is_dir && attributes.ctime <= before);
        if !goes || self.agreement.make_removable(&node, None, Operation::Delete)?.is_some() {
            return Ok(false);
        }
        let going = Going { name, node: &node, attributes: &attributes };
        self.remove_entry(&changing, going, None).map(|_| true)
    }
}

fn names_in(dir: &NodeRef, may: MayWait<'_>) -> storage::Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    dir.survey(may, &mut |entry| {
        names.push(entry.name.to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(names)
}
