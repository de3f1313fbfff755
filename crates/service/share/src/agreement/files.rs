//! The open files of a share, and what their opens must agree on.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use file_state::{FileState, Holder, OpenKey, SmallMap};
use parking_lot::Mutex;
use storage::{FileKind, NodeRef, ObjectId, QuickMap};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use super::caching::Held;
use super::removed::Removed;
use crate::Result;
use crate::found::{Epoch, Found, Location};

/// Tables, each with its own lock, to reduce contention.
const TABLES: usize = 64;

/// A name to delete when the last open of its object is closed.
#[derive(Debug)]
pub(crate) struct Doomed {
    /// The location of the open that asked for the deletion.
    pub location: Location,
    /// The grant on the directory under which that open works.
    pub under: Option<Holder>,
}

/// The state of a file while it is open.
#[derive(Debug)]
pub(super) struct OpenFile {
    /// Pins the object, so that its file number is not reused.
    pub node: NodeRef,
    pub state: FileState,
    /// The location by which each open was made: a file may have several, in directories with different permissions.
    pub locations: SmallMap<OpenKey, Location>,
    /// The name to delete when the last open is closed.
    pub doomed: Option<Doomed>,
    /// Opens of this file.
    pub opens: usize,
    /// The last open is closed and the name is being removed: no new open is admitted.
    pub deleting: bool,
    /// The holders of caching grants, who must be told of breaks.
    pub held: Held,
    /// Wakes calls that wait for a byte range or for a caching grant.
    pub freed: Arc<Notify>,
}

impl OpenFile {
    /// The location by which this open was made.
    pub(super) fn location(&self, open: OpenKey) -> Option<&Location> {
        self.locations.get(&open)
    }

    /// Marks this open's name for deletion.
    pub(super) fn doom(&mut self, open: OpenKey, under: Option<Holder>) {
        self.doomed = self.location(open).cloned().map(|location| Doomed { location, under });
    }

    /// Follows a rename of the object.
    pub(super) fn moved(&mut self, from: &Location, to: &Location) {
        let doomed = self.doomed.iter_mut().map(|doomed| &mut doomed.location);
        let all = self.locations.values_mut().chain(doomed);
        for location in all.filter(|location| location.is(from)) {
            *location = to.clone();
        }
    }
}

/// Where open files are, as far as their opens know. All nodes are pinned.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Directories, each with the objects that were opened by a name in it.
    pub dirs: HashMap<ObjectId, (NodeRef, Vec<NodeRef>)>,
    /// Objects that were opened without a name, or are being removed.
    pub unnamed: Vec<NodeRef>,
}

/// The open files of a share. A table's lock guards its entries; no storage call is made while it is held.
#[derive(Debug)]
pub(super) struct Files {
    tables: [Mutex<Table>; TABLES],
    /// Names removed so far by the close of their last open.
    removals: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    entries: QuickMap<ObjectId, OpenFile>,
    removed: Removed,
}

/// Why a file cannot be entered for a new open.
#[derive(Debug)]
pub(super) enum Refused {
    /// Its name is being removed. Resolves when the name is removed.
    BeingRemoved(OwnedNotified),
    /// Its name may have been removed after the lookup.
    Gone,
}

impl Default for Files {
    fn default() -> Self {
        Self { tables: std::array::from_fn(|_| Mutex::default()), removals: AtomicU64::new(0) }
    }
}

impl Files {
    fn table(&self, id: ObjectId) -> &Mutex<Table> {
        // Neighbouring inode numbers spread over the tables.
        let index = usize::try_from(id.number % TABLES as u64).unwrap_or(0);
        &self.tables[index]
    }

    /// The present epoch. Take it before looking up an object to open.
    pub(super) fn now(&self) -> Epoch {
        Epoch(self.removals.load(Ordering::Acquire))
    }

    /// Runs `look` on an open file; None if the file is not open.
    pub(super) fn with<T>(&self, id: ObjectId, look: impl FnOnce(&mut OpenFile) -> T) -> Option<T> {
        self.table(id).lock().entries.get_mut(&id).map(look)
    }

    /// Enters a file for a new open, unless `admit` refuses or must wait.
    ///
    /// # Errors
    /// [`Refused`].
    pub(super) fn admit<T>(
        &self,
        found: &Found,
        open: OpenKey,
        admit: impl FnOnce(&mut OpenFile) -> (Result<()>, T),
    ) -> std::result::Result<(Result<()>, T), Refused> {
        let node = &found.node;
        let mut table = self.table(node.id()).lock();
        if table.removed.may_have(node.id(), found.epoch) {
            return Err(Refused::Gone);
        }
        let entry = table.entries.entry(node.id()).or_insert_with(|| OpenFile {
            node: Arc::clone(node),
            state: FileState::default(),
            locations: SmallMap::default(),
            doomed: None,
            opens: 0,
            deleting: false,
            held: Held::default(),
            freed: Arc::new(Notify::new()),
        });
        if entry.deleting {
            return Err(Refused::BeingRemoved(Arc::clone(&entry.freed).notified_owned()));
        }
        let (admitted, more) = admit(entry);
        if admitted.is_ok() {
            entry.opens += 1;
            if let Some(location) = found.location() {
                entry.locations.insert(open, location);
            }
        } else if entry.opens == 0 {
            table.entries.remove(&node.id());
        }
        Ok((admitted, more))
    }

    /// Drops the state of a file that is not open, and wakes calls that wait for its name to be removed.
    pub(super) fn forget_unused(&self, id: ObjectId) {
        let mut table = self.table(id).lock();
        if table.entries.get(&id).is_some_and(|entry| entry.opens == 0)
            && let Some(entry) = table.entries.remove(&id)
            && entry.deleting
        {
            let when = Epoch(self.removals.fetch_add(1, Ordering::AcqRel) + 1);
            table.removed.add(when, id);
            entry.freed.notify_waiters();
        }
    }

    /// The places of open files other than `id`, for checks that need the store.
    pub(super) fn places_of_others(&self, id: ObjectId) -> Places {
        let mut places = Places::default();
        for table in &self.tables {
            let table = table.lock();
            table.entries.values().filter(|entry| entry.node.id() != id).for_each(|entry| places.add(entry));
        }
        places
    }
}

impl Places {
    fn add(&mut self, entry: &OpenFile) {
        let node = &entry.node;
        // A stream's directory is its file, which is open too.
        for dir in entry.locations.values().map(|at| &at.parent).filter(|d| d.kind() == FileKind::Directory) {
            let (_, opened) = self.dirs.entry(dir.id()).or_insert_with(|| (Arc::clone(dir), Vec::new()));
            if opened.last().is_none_or(|last| last.id() != node.id()) {
                opened.push(Arc::clone(node));
            }
        }
        if entry.locations.is_empty() || entry.locations.len() < entry.opens {
            self.unnamed.push(Arc::clone(node));
        }
    }
}

#[cfg(test)]
mod tests {
    use storage::conformance::MAY;
    use storage::memory::MemoryStore;
    use storage::{Name, NewKind, NewNode, Storage, Wait, Want};

    use super::*;
    use crate::Error;

    fn enter(files: &Files, found: &Found, open: u64) -> std::result::Result<Result<()>, Refused> {
        files.admit(found, OpenKey(open), |_| (Ok(()), ())).map(|(admitted, ())| admitted)
    }

    /// A file of a store of its own, as a look-up at this moment finds it.
    fn file(epoch: Epoch) -> Found {
        let dir = MemoryStore::new().root();
        let new = NewNode { kind: NewKind::Regular, mode: 0o600, uid: 0, gid: 0 };
        let node = dir.create(Name::new(b"file").unwrap(), &new, MAY).unwrap();
        let attributes = node.attributes(Want::empty(), Wait::May(MAY)).unwrap();
        Found { dir: Some(dir), name: b"file".to_vec(), epoch, ..Found::alone(node, attributes) }
    }

    fn location(found: &Found, name: &[u8]) -> Location {
        Location { name: name.to_vec(), ..found.location().unwrap() }
    }

    /// If its maker were sent to look again, the maker would learn that the name already exists.
    #[test]
    fn what_was_just_made_is_opened_whatever_was_removed_meanwhile() {
        let files = Files::default();
        let (made, found) = (file(Epoch::NEVER_GONE), file(files.now()));
        let id = made.node.id();
        assert_eq!(id, found.node.id(), "the same number, in another store");
        // The removal of another that had the number before.
        let when = Epoch(files.removals.fetch_add(1, Ordering::AcqRel) + 1);
        files.table(id).lock().removed.add(when, id);
        assert!(matches!(enter(&files, &made, 1), Ok(Ok(()))));
        // It might be the removed one, and is looked up again.
        assert!(matches!(enter(&files, &found, 2), Err(Refused::Gone)));
        assert!(matches!(enter(&files, &file(files.now()), 2), Ok(Ok(()))));
    }

    #[test]
    fn nothing_is_kept_of_an_open_that_was_refused() {
        let (files, found) = (Files::default(), file(Epoch::NEVER_GONE));
        let refused = files.admit(&found, OpenKey(1), |_| (Err(Error::TooManyOpens), ()));
        assert!(matches!(refused, Ok((Err(Error::TooManyOpens), ()))));
        assert!(files.tables.iter().all(|table| table.lock().entries.is_empty()));
    }

    #[test]
    fn a_rename_is_followed_by_those_who_opened_the_name() {
        let (files, found) = (Files::default(), file(Epoch::NEVER_GONE));
        let id = found.node.id();
        enter(&files, &found, 1).unwrap().unwrap();
        enter(&files, &Found { name: b"link".to_vec(), ..found.clone() }, 2).unwrap().unwrap();
        files.with(id, |entry| {
            entry.doom(OpenKey(1), None);
            entry.moved(&location(&found, b"file"), &location(&found, b"moved"));
            let name = |open| entry.location(OpenKey(open)).map(|location| location.name.clone());
            assert_eq!((name(1), name(2)), (Some(b"moved".to_vec()), Some(b"link".to_vec())));
            assert_eq!(entry.doomed.as_ref().unwrap().location.name, b"moved");
        });
        let places = files.places_of_others(ObjectId::live(0));
        assert!(places.unnamed.is_empty() && places.dirs.len() == 1);
        assert!(files.places_of_others(id).dirs.is_empty());
    }

    #[tokio::test]
    async fn a_name_that_is_being_removed_is_waited_for() {
        let (files, found) = (Files::default(), file(Epoch::NEVER_GONE));
        let id = found.node.id();
        enter(&files, &found, 1).unwrap().unwrap();
        files.with(id, |entry| (entry.opens, entry.deleting) = (0, true));
        let Err(Refused::BeingRemoved(removed)) = enter(&files, &found, 2) else {
            panic!("it is being removed")
        };
        let before = files.now();
        files.forget_unused(id);
        removed.await;
        assert!(files.now() > before && files.with(id, |_| ()).is_none());
    }
}
