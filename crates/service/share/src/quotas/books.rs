//! What files in use are charged for.

use std::sync::Arc;
use std::time::SystemTime;

use quota::{Ledger, Owners, Refused};
use storage::{NodeRef, QuickMap};

use super::{Begun, Held, Moved, NewOwners, Transfer};
use crate::{Error, Result};

/// A file is settled when this much is reserved for writes to it that have ended.
const UNSETTLED_MAX: u64 = 1 << 20;
/// While so many files are entered, each is settled as soon as its use ends, and forgotten.
const FILES_MAX: usize = 1024;

/// Files in use, or used lately, by their numbers; and the accounts.
#[derive(Default)]
pub(super) struct Books {
    pub(super) ledger: Ledger,
    files: QuickMap<u64, Charged>,
    /// How many files were entered.
    entered: u64,
    /// How often the books were begun anew.
    epoch: u64,
    /// How often a file has left the table. What was read of a file that is not entered holds while this is the same.
    dropped: u64,
    /// How often other directories have got quotas.
    places_changes: u64,
    /// Directories that were moved while files are counted.
    moved: Vec<NodeRef>,
}

/// A file that is entered.
pub(super) struct Charged {
    /// Tells it from what had its number before.
    entry: u64,
    node: NodeRef,
    owners: Owners,
    /// What the owners are charged for it.
    bytes: u64,
    /// Uses that have not ended.
    users: usize,
    /// What is reserved for them.
    in_use: u64,
    /// What was reserved for uses that have ended, and how much of that the store was asked about since.
    ended: u128,
    settled: u128,
    /// How many uses that may have freed something have ended, and how many of them the store was asked about since.
    cuts: u64,
    settled_cuts: u64,
    /// The data has no holes up to here.
    dense: u64,
    /// The same, as was seen when space was allocated in advance.
    allocated: u64,
    /// Uses that may make holes.
    cutting: usize,
    /// It has no name any more. It is charged for as long as it is used.
    is_unlinked: bool,
    /// How often the store was asked, and which of these looks was the last that counted.
    looks: u64,
    counted_look: u64,
    /// When the keeper has passed by so often without a use, the file is forgotten.
    idle: u32,
}

/// An answer to a use.
#[derive(Debug)]
pub(super) enum Asked {
    /// It begins.
    Begun(Begun),
    /// The file was entered only now: ask again.
    Entered,
    /// It does not fit.
    Refused(Refused),
}

/// A look at a file by the store.
pub(super) struct Look {
    pub(super) node: NodeRef,
    /// Tells the file from what had its number before, or was entered anew.
    entry: u64,
    number: u64,
    /// [`Charged::ended`] and [`Charged::cuts`] by then.
    ended: u128,
    cuts: u64,
}

impl Charged {
    /// A file of which the store says this, below a directory with a quota.
    pub(super) fn new(node: &NodeRef, held: &Held, directory: Option<u64>) -> Self {
        Self {
            entry: 0,
            node: Arc::clone(node),
            owners: Owners { user: held.uid, group: held.gid, directory },
            // What has no name any more was charged to nobody until now.
            bytes: if held.links > 0 { held.bytes } else { 0 },
            users: 0,
            in_use: 0,
            ended: 0,
            settled: 0,
            cuts: 0,
            settled_cuts: 0,
            dense: if held.links > 0 { held.dense } else { 0 },
            allocated: 0,
            cutting: 0,
            is_unlinked: held.links == 0,
            looks: 0,
            counted_look: 0,
            idle: 0,
        }
    }

    /// What is reserved for uses that have ended, and was not needed or is not charged yet.
    fn unsettled(&self) -> u64 {
        u64::try_from(self.ended.saturating_sub(self.settled)).unwrap_or(u64::MAX)
    }

    /// Up to where writes need no room.
    fn has_all_to(&self) -> u64 {
        if self.cutting > 0 { 0 } else { self.dense.max(self.allocated) }
    }

    fn reserved(&self) -> u64 {
        self.in_use.saturating_add(self.unsettled())
    }

    /// Whether the store may report something else than what the owners are charged.
    fn is_unsettled(&self) -> bool {
        self.ended != self.settled || self.cuts != self.settled_cuts
    }
}

impl Books {
    /// Begins anew, with no accounts and no files. Uses and transfers that have not ended count for nothing.
    pub(super) fn reset(&mut self) {
        let (entered, places_changes) = (self.entered, self.places_changes + 1);
        *self = Self { entered, places_changes, epoch: self.epoch + 1, ..Self::default() };
    }

    /// Asks for a use of a file, for which `reserve` says how much to reserve, given up to where the file has no holes. It `cuts`
    /// if it may make holes. None if the file is not entered.
    pub(super) fn ask(
        &mut self,
        file: u64,
        cuts: bool,
        is_stream: bool,
        reserve: impl FnOnce(u64) -> u64,
    ) -> Option<Asked> {
        let charged = self.files.get_mut(&file)?;
        let bytes = reserve(charged.has_all_to());
        if bytes > 0
            && let Err(refused) = self.ledger.reserve(charged.owners, bytes, SystemTime::now())
        {
            return Some(Asked::Refused(refused));
        }
        charged.users += 1;
        charged.cutting += usize::from(cuts);
        charged.in_use += bytes;
        charged.idle = 0;
        Some(Asked::Begun(Begun { file, entry: charged.entry, reserved: bytes, cuts, is_stream }))
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Enters a file of which something was read when `dropped` was so, unless it is entered. Returns false if what was read may
    /// have changed since, unless that is to be accepted.
    pub(super) fn enter(&mut self, file: u64, charged: Charged, dropped: u64, accept: bool) -> bool {
        if self.files.contains_key(&file) {
            return true;
        }
        if self.dropped != dropped && !accept {
            return false;
        }
        self.insert(file, charged);
        true
    }

    fn insert(&mut self, file: u64, charged: Charged) {
        self.entered += 1;
        if charged.is_unlinked {
            // No walk finds it.
            self.ledger.made(file);
        }
        self.files.insert(file, Charged { entry: self.entered, ..charged });
    }

    /// Ends a use. Returns whether the file is to be settled now.
    pub(super) fn end(&mut self, Begun { file, entry, reserved, cuts, .. }: Begun) -> bool {
        let is_crowded = self.files.len() > FILES_MAX;
        let Some(charged) = self.files.get_mut(&file).filter(|charged| charged.entry == entry) else {
            return false;
        };
        charged.users = charged.users.saturating_sub(1);
        if cuts {
            charged.cutting = charged.cutting.saturating_sub(1);
            (charged.dense, charged.allocated) = (0, 0);
            charged.cuts += 1;
        }
        charged.in_use = charged.in_use.saturating_sub(reserved);
        charged.ended += u128::from(reserved);
        charged.unsettled() >= UNSETTLED_MAX || is_crowded
    }

    /// Notes that the store has allocated these bytes of a file in use: if it has all before them, writes to them need no room.
    pub(super) fn allocated(&mut self, begun: Begun, (start, end): (u64, u64)) {
        let charged = self.files.get_mut(&begun.file).filter(|charged| charged.entry == begun.entry);
        if let Some(charged) = charged.filter(|charged| !begun.is_stream && start <= charged.has_all_to()) {
            charged.allocated = charged.allocated.max(end);
        }
    }

    /// The files for which something is reserved that is not in use, or of which something may have been freed.
    pub(super) fn unsettled(&self) -> Vec<u64> {
        self.files.iter().filter(|(_, charged)| charged.is_unsettled()).map(|(file, _)| *file).collect()
    }

    /// Files that were not used lately: the keeper passes by.
    pub(super) fn idle(&mut self, passes: u32) -> Vec<u64> {
        let mut idle = Vec::new();
        for (file, charged) in &mut self.files {
            charged.idle = charged.idle.saturating_add(1);
            if charged.users == 0 && (charged.is_unsettled() || charged.idle > passes) {
                idle.push(*file);
            }
        }
        idle
    }

    /// Forgets a file that was just settled, if it was not used for so many passes, or too many are entered.
    pub(super) fn forget_idle(&mut self, file: u64, passes: u32, now: SystemTime) {
        let is_crowded = self.files.len() > FILES_MAX;
        let is_idle = |charged: &Charged| {
            charged.users == 0
                && charged.in_use == 0
                && !charged.is_unsettled()
                && (is_crowded || charged.idle > passes)
        };
        match self.files.get(&file).filter(|charged| is_idle(charged)) {
            Some(charged) if charged.is_unlinked => self.remove(file, now),
            Some(_) => drop(self.drop_file(file)),
            None => {}
        }
    }

    fn drop_file(&mut self, file: u64) -> Option<Charged> {
        self.dropped += 1;
        self.files.remove(&file)
    }

    pub(super) fn begin_look(&mut self, file: u64) -> Option<Look> {
        let charged = self.files.get_mut(&file)?;
        charged.looks += 1;
        Some(Look {
            node: Arc::clone(&charged.node),
            entry: charged.entry,
            number: charged.looks,
            ended: charged.ended,
            cuts: charged.cuts,
        })
    }

    /// Charges a file for what a look has found; None: the store does not know the file any more. What a look that began later
    /// has found is not replaced. Returns whether there is more room than before.
    pub(super) fn end_look(&mut self, file: u64, look: &Look, held: Option<&Held>, now: SystemTime) -> bool {
        let Some(charged) = self
            .files
            .get_mut(&file)
            .filter(|charged| charged.entry == look.entry && look.number > charged.counted_look)
        else {
            return false;
        };
        let Some(held) = held else {
            self.remove(file, now);
            return true;
        };
        charged.counted_look = look.number;
        charged.is_unlinked |= held.links == 0;
        let (owners, before) = (charged.owners, charged.bytes);
        // A look that began later has more of them.
        let given_back = u64::try_from(look.ended.saturating_sub(charged.settled)).unwrap_or(u64::MAX);
        (charged.settled, charged.settled_cuts) = (look.ended, look.cuts);
        (charged.bytes, charged.dense) = (held.bytes, held.dense);
        if held.bytes < charged.allocated {
            charged.allocated = 0;
        }
        let reserved = charged.reserved();
        let owned = Owners { user: held.uid, group: held.gid, ..owners };
        charged.owners = owned;
        self.ledger.settle((file, owners), given_back, (before, held.bytes), now);
        if owned != owners {
            self.ledger.transfer(file, (owners, owned), (held.bytes, reserved), now);
        }
        given_back > 0 || held.bytes < before || owned != owners
    }

    /// Reserves room with new owners of a file in use.
    ///
    /// # Errors
    /// [`Error::OverQuota`]; [`storage::Error::Stale`] for a file that is not entered: the store does not know it any more.
    pub(super) fn begin_transfer(&mut self, file: u64, to: NewOwners, now: SystemTime) -> Result<Transfer> {
        let charged = self.files.get(&file).ok_or(storage::Error::Stale)?;
        let (from, bytes) = (charged.owners, charged.bytes);
        let to = match to {
            NewOwners::People(user, group) => Owners { user, group, ..from },
            NewOwners::Directory(directory) => Owners { directory, ..from },
        };
        self.ledger.reserve_transfer(from, to, bytes, now).map_err(|_| Error::OverQuota)?;
        Ok(Transfer { file, from, to, bytes, epoch: self.epoch })
    }

    pub(super) fn end_transfer(&mut self, transfer: &Transfer, is_done: bool, now: SystemTime) {
        if transfer.epoch != self.epoch {
            return;
        }
        self.ledger.release_transfer(transfer.from, transfer.to, transfer.bytes);
        let Some(charged) = self.files.get_mut(&transfer.file).filter(|_| is_done) else { return };
        let (from, to) = (charged.owners, transfer.to);
        charged.owners = to;
        let reserved = charged.reserved();
        self.ledger.transfer(transfer.file, (from, to), (charged.bytes, reserved), now);
    }

    /// Charges nobody for a file any more.
    pub(super) fn remove(&mut self, file: u64, now: SystemTime) {
        let Some(charged) = self.drop_file(file) else { return };
        let reserved = charged.reserved();
        self.ledger.settle((file, charged.owners), reserved, (charged.bytes, 0), now);
    }

    /// Enters a file that was just made, and charges its owners for what it occupies.
    pub(super) fn made(&mut self, file: u64, charged: Charged, bytes: u64, now: SystemTime) {
        // What had the number before is gone.
        self.remove(file, now);
        self.ledger.made(file);
        self.ledger.settle((file, charged.owners), 0, (0, bytes), now);
        if self.files.len() < FILES_MAX {
            self.insert(file, Charged { bytes, ..charged });
        }
    }

    /// Counts a file that a walk has reached, of which something was read when `dropped` was so. Returns false if that may have
    /// changed since.
    pub(super) fn visit(&mut self, file: u64, held: &Held, directory: Option<u64>, dropped: u64) -> bool {
        if let Some(charged) = self.files.get(&file) {
            self.ledger.visit(file, charged.owners, charged.bytes);
            return true;
        }
        if self.dropped != dropped {
            return false;
        }
        let owners = Owners { user: held.uid, group: held.gid, directory };
        if held.links > 0 {
            self.ledger.visit(file, owners, held.bytes);
        }
        true
    }

    /// Counts what the walk may miss because it moves: a file that is entered at once, a directory later.
    pub(super) fn moved(&mut self, node: &NodeRef) {
        if !self.ledger.is_counting() {
            return;
        }
        let file = node.id().number;
        match self.files.get(&file) {
            Some(charged) => drop(self.ledger.visit(file, charged.owners, charged.bytes)),
            None => self.moved.push(Arc::clone(node)),
        }
    }

    pub(super) fn take_moved(&mut self) -> Vec<NodeRef> {
        std::mem::take(&mut self.moved)
    }

    /// Begins a count.
    pub(super) fn begin_count(&mut self) {
        self.moved.clear();
        self.ledger.begin_count();
        // No walk finds them.
        for (file, charged) in self.files.iter().filter(|(_, charged)| charged.is_unlinked) {
            self.ledger.visit(*file, charged.owners, charged.bytes);
        }
    }

    /// What is read of files that are not entered holds no longer, because other directories have quotas now. Returns the
    /// files that are entered.
    pub(super) fn places_changed(&mut self) -> Moved {
        self.dropped += 1;
        self.places_changes += 1;
        let files = self.files.iter().map(|(file, charged)| (*file, Arc::clone(&charged.node))).collect();
        Moved { files, change: self.places_changes }
    }

    /// Charges another directory for a file that is entered, unless directories have changed again since this `change`.
    pub(super) fn move_to(&mut self, (file, directory): (u64, Option<u64>), change: u64, now: SystemTime) {
        if change != self.places_changes {
            return;
        }
        let Some(charged) = self.files.get_mut(&file) else { return };
        let from = charged.owners;
        charged.owners.directory = directory;
        let reserved = charged.reserved();
        self.ledger.transfer(file, (from, charged.owners), (charged.bytes, reserved), now);
    }
}

#[cfg(test)]
mod tests {
    use storage::conformance::MAY;
    use storage::memory::MemoryStore;
    use storage::{Name, NewKind, NewNode, Storage};

    use super::*;

    const FILE: u64 = 7;

    fn held(bytes: u64) -> Held {
        Held { bytes, dense: 0, uid: 1, gid: 1, links: 1 }
    }

    fn books() -> Books {
        let new = NewNode { kind: NewKind::Regular, mode: 0o644, uid: 1, gid: 1 };
        let node = MemoryStore::new().root().create(Name::new(b"f").unwrap(), &new, MAY).unwrap();
        let mut books = Books::default();
        books.enter(FILE, Charged::new(&node, &held(0), None), 0, true);
        books
    }

    fn begin(books: &mut Books, bytes: u64) -> Begun {
        match books.ask(FILE, bytes == 0, false, |_| bytes) {
            Some(Asked::Begun(begun)) => begun,
            other => panic!("{other:?}"),
        }
    }

    fn use_once(books: &mut Books, bytes: u64) {
        let begun = begin(books, bytes);
        books.end(begun);
    }

    #[test]
    fn looks_that_overlap_all_count_and_nothing_twice() {
        let (mut books, now) = (books(), SystemTime::now());
        let unsettled = |books: &Books| books.files[&FILE].unsettled();
        use_once(&mut books, 100);
        let first = books.begin_look(FILE).unwrap();
        use_once(&mut books, 50);
        let second = books.begin_look(FILE).unwrap();
        use_once(&mut books, 20);
        let third = books.begin_look(FILE).unwrap();
        assert!(books.end_look(FILE, &first, Some(&held(100)), now), "though others are under way");
        assert_eq!(unsettled(&books), 70);
        assert!(books.end_look(FILE, &third, Some(&held(170)), now));
        assert_eq!(unsettled(&books), 0);
        assert!(!books.end_look(FILE, &second, Some(&held(150)), now), "that is older");
        assert_eq!((unsettled(&books), books.files[&FILE].bytes), (0, 170));
        assert!(books.unsettled().is_empty());
        // A use that reserves nothing may have freed something.
        use_once(&mut books, 0);
        assert_eq!(books.unsettled(), [FILE]);
        let look = books.begin_look(FILE).unwrap();
        assert!(books.end_look(FILE, &look, Some(&held(10)), now) && books.unsettled().is_empty());
    }

    #[test]
    fn the_largest_uses_do_not_overflow() {
        let (mut books, now) = (books(), SystemTime::now());
        let uses: Vec<_> = (0..1000).map(|_| begin(&mut books, super::super::RESERVED_MAX)).collect();
        for begun in uses {
            books.end(begun);
        }
        for _ in 0..100_000 {
            use_once(&mut books, super::super::RESERVED_MAX);
            let look = books.begin_look(FILE).unwrap();
            books.end_look(FILE, &look, Some(&held(0)), now);
        }
        assert_eq!(books.files[&FILE].reserved(), 0);
    }

    #[test]
    fn uses_of_before_count_for_nothing_when_the_books_begin_anew() {
        let mut books = books();
        let before = begin(&mut books, 100);
        let node = Arc::clone(&books.files[&FILE].node);
        books.reset();
        books.enter(FILE, Charged::new(&node, &held(0), None), 0, true);
        books.end(before);
        assert_eq!(books.files[&FILE].reserved(), 0);
    }

    #[test]
    fn what_was_allocated_needs_no_room_until_something_is_cut_or_the_store_has_less() {
        let (mut books, now) = (books(), SystemTime::now());
        let has_all_to = |books: &Books| books.files[&FILE].has_all_to();
        let begun = begin(&mut books, 100);
        books.allocated(begun, (10, 100));
        assert_eq!(has_all_to(&books), 0, "nothing is known of what is before");
        books.allocated(Begun { is_stream: true, ..begun }, (0, 100));
        books.allocated(Begun { entry: begun.entry + 1, ..begun }, (0, 100));
        assert_eq!(has_all_to(&books), 0);
        books.allocated(begun, (0, 60));
        books.allocated(begun, (60, 100));
        assert_eq!(has_all_to(&books), 100);
        books.end(begun);
        let look = books.begin_look(FILE).unwrap();
        books.end_look(FILE, &look, Some(&held(100)), now);
        assert_eq!(has_all_to(&books), 100, "the store has it");
        use_once(&mut books, 0);
        assert_eq!(has_all_to(&books), 0, "it was cut");
        let begun = begin(&mut books, 100);
        books.allocated(begun, (0, 100));
        books.end(begun);
        let look = books.begin_look(FILE).unwrap();
        books.end_look(FILE, &look, Some(&held(99)), now);
        assert_eq!(has_all_to(&books), 0);
    }

    #[test]
    fn a_file_that_has_vanished_is_not_over_its_quota() {
        let (mut books, now) = (books(), SystemTime::now());
        let begun = begin(&mut books, 0);
        books.remove(FILE, now);
        let refused = books.begin_transfer(begun.file, NewOwners::People(2, 2), now);
        assert_eq!(refused.err(), Some(Error::Storage(storage::Error::Stale)));
    }

    #[test]
    fn a_change_of_directories_that_is_overtaken_moves_nothing() {
        let (mut books, now) = (books(), SystemTime::now());
        let (first, second) = (books.places_changed().change, books.places_changed().change);
        books.move_to((FILE, Some(1)), first, now);
        assert_eq!(books.files[&FILE].owners.directory, None);
        books.move_to((FILE, Some(2)), second, now);
        assert_eq!(books.files[&FILE].owners.directory, Some(2));
    }
}
