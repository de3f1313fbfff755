//! The cached state of one directory.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use acl::SecurityDescriptor;
use storage::{Attributes, FileKind, Handle, NodeRef, ObjectId, ObservedId, Protection, Timestamp, Want};

use super::worth::Worth;

/// Memory for a directory besides its names: the entry, the node and its descriptor, and the kernel's watch.
pub(super) const OWN_BYTES: usize = 2048;
/// Memory for a name besides its bytes.
const NAME_BYTES: usize = 96;
/// Entries of the longest listing that is kept.
pub(super) const LISTING_MAX: usize = 4096;
/// A need for a directory expires after this many judgements.
const NEEDED_FOR: u8 = 2;
/// The number of a directory that is no longer kept: nothing that depended on it is used.
const ENDED: u64 = u64::MAX;

/// What a name is known to stand for.
#[derive(Debug)]
pub(crate) enum KnownName {
    Absent,
    Directory(NodeRef),
}

/// One entry of a listing.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) name: Vec<u8>,
    pub(super) id: ObjectId,
    pub(super) kind: Option<FileKind>,
    pub(super) cookie: u64,
}

/// The parent of a directory. Its number changes each time a directory is removed from it. Attributes that were read under a
/// number belong to a directory that exists as long as the number is the same.
#[derive(Debug)]
pub(super) struct Above {
    number: Arc<AtomicU64>,
    at: u64,
}

impl Above {
    fn holds(&self) -> bool {
        self.at != ENDED && self.number.load(Ordering::Acquire) == self.at
    }
}

/// A name that is being read or changed.
#[derive(Debug, Default)]
struct Pending {
    users: u32,
    /// The number of events for the name meanwhile.
    events: u64,
}

/// Mode, owner and group: unlike the other attributes, they do not change when a name in the directory does.
type Guard = (u32, u32, u32);

fn guard_of(attributes: &Attributes) -> Guard {
    (attributes.mode, attributes.uid, attributes.gid)
}

/// The result of judging a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    /// No judgement is due yet, or it changes nothing.
    None,
    /// The directory is worth caching.
    Worth,
    /// The directory is not worth caching, but must still be followed.
    Rest,
    /// The directory need not be followed.
    Unneeded,
}

/// The state of a followed directory.
#[derive(Debug)]
pub(super) struct Directory {
    /// Pins the directory, so that its file number is not reused.
    pub(super) node: NodeRef,
    pub(super) observed: ObservedId,
    /// Counts the events for the directory: what is read is kept only if the count stays the same.
    pub(super) serial: u64,
    /// Changes reported for the directory: one event may stand for several.
    pub(super) changes: u64,
    /// Callers that are changing names of the directory at present, and how many have begun such changes so far.
    pub(super) changing: u32,
    pub(super) begun: u64,
    /// Counts the events for the directory itself, not for a name.
    pub(super) own_serial: u64,
    /// Answers are kept, not only counted or reported to the index of names.
    pub(super) is_kept: bool,
    /// The judgements left until a lookup regardless of case, or a question whether others change the directory, no longer
    /// counts.
    indexed: u8,
    watched: u8,
    pub(super) above: Option<Above>,
    pub(super) handle: Option<Handle>,
    /// The listing is longer than the longest that is kept.
    pub(super) is_long: bool,
    /// Used since the last search for unused directories.
    pub(super) used: bool,
    /// The memory that the directory takes, in bytes.
    pub(super) bytes: usize,
    is_root: bool,
    worth: Worth,
    /// Whether caching the directory has been worth it, when a judgement is due.
    judged: Option<bool>,
    /// See [`Above`].
    number: Arc<AtomicU64>,
    /// A change time, and the serial when it was first read.
    first_read: Option<(Timestamp, u64)>,
    attributes: Option<(Attributes, Want)>,
    guard: Option<Guard>,
    security: Option<Option<Arc<SecurityDescriptor>>>,
    names: HashMap<Vec<u8>, KnownName>,
    pending: HashMap<Vec<u8>, Pending>,
    listing: Option<Arc<Vec<Listed>>>,
}

impl Directory {
    pub(super) fn new(node: NodeRef, observed: ObservedId, is_root: bool) -> Self {
        Self {
            node,
            observed,
            serial: 0,
            changes: 0,
            changing: 0,
            begun: 0,
            own_serial: 0,
            is_kept: false,
            indexed: 0,
            watched: 0,
            above: None,
            handle: None,
            is_long: false,
            used: true,
            bytes: OWN_BYTES,
            is_root,
            worth: Worth::default(),
            judged: None,
            number: Arc::new(AtomicU64::new(0)),
            first_read: None,
            attributes: None,
            guard: None,
            security: None,
            names: HashMap::new(),
            pending: HashMap::new(),
            listing: None,
        }
    }

    /// Records changes of a name. Returns what was known of the name.
    pub(super) fn name_changed(&mut self, name: &[u8], changes: u32) -> Option<KnownName> {
        self.serial = self.serial.wrapping_add(1);
        self.changes = self.changes.wrapping_add(changes.max(1).into());
        self.judged = self.worth.changed();
        self.attributes = None;
        self.drop_listing();
        if let Some(pending) = self.pending.get_mut(name) {
            pending.events = pending.events.wrapping_add(changes.into());
        }
        let known = self.names.remove(name);
        if known.is_some() {
            self.bytes = self.bytes.saturating_sub(NAME_BYTES + name.len());
        }
        known
    }

    /// Records an event for the directory itself.
    pub(super) fn itself_changed(&mut self, moved: bool) {
        self.serial = self.serial.wrapping_add(1);
        self.changes = self.changes.wrapping_add(1);
        self.own_serial = self.own_serial.wrapping_add(1);
        self.attributes = None;
        self.guard = None;
        self.security = None;
        if moved {
            self.above = None;
        }
    }

    /// Records that a caller wants to know whether others change the directory.
    pub(super) fn watch(&mut self) {
        self.watched = NEEDED_FOR;
    }

    /// Records a lookup regardless of case.
    pub(super) fn index(&mut self) {
        self.used = true;
        self.indexed = NEEDED_FOR;
    }

    fn is_watched(&self) -> bool {
        self.watched > 0
    }

    /// Whether the changes of the directory must be counted.
    pub(super) fn is_counted(&self) -> bool {
        self.is_kept || self.is_watched()
    }

    /// Follows a change: the result of the judgement, if one is due. `has_index` says whether the directory has an index of
    /// names.
    pub(super) fn judge(&mut self, is_quick: bool, has_index: impl FnOnce() -> bool) -> Judgement {
        let Some(is_worth_it) = self.judged.take() else { return Judgement::None };
        let (is_watched, is_indexed) = (self.is_watched(), self.indexed > 0);
        self.watched = self.watched.saturating_sub(1);
        self.indexed = self.indexed.saturating_sub(1);
        if self.is_kept && (is_worth_it || !is_quick) {
            Judgement::Worth
        } else if is_indexed {
            // The index of names must hear of each changed name in any case, and saves more than that costs.
            Judgement::None
        } else if !(is_watched || has_index()) {
            Judgement::Unneeded
        } else if self.is_kept {
            Judgement::Rest
        } else {
            Judgement::None
        }
    }

    /// Stops caching the directory. Returns its handle, which must no longer lead to it.
    pub(super) fn rest(&mut self) -> Option<Handle> {
        self.is_kept = false;
        (self.attributes, self.guard, self.security) = (None, None, None);
        self.drop_listing();
        self.names.clear();
        self.bytes = OWN_BYTES;
        self.handle.take()
    }

    /// Records that a directory was removed from this one.
    pub(super) fn leave(&self) {
        self.number.fetch_add(1, Ordering::AcqRel);
    }

    /// Marks the directory as no longer kept.
    pub(super) fn end(&self) {
        self.number.store(ENDED, Ordering::Release);
    }

    pub(super) fn as_above(&mut self) -> Above {
        self.used = true;
        Above { number: Arc::clone(&self.number), at: self.number.load(Ordering::Acquire) }
    }

    /// Ties what is read from now on to the present state of the parent. False if the parent is not followed.
    pub(super) fn renew_place(&mut self) -> bool {
        let Some(above) = &mut self.above else { return self.is_root };
        if !above.holds() {
            self.attributes = None;
            self.guard = None;
            above.at = above.number.load(Ordering::Acquire);
        }
        above.at != ENDED
    }

    fn is_placed(&self) -> bool {
        self.is_root || self.above.as_ref().is_some_and(Above::holds)
    }

    /// The attributes, if those in `want` are known.
    pub(super) fn attributes(&mut self, want: Want) -> Option<Attributes> {
        self.used = true;
        let (attributes, read) = self.attributes.filter(|_| self.is_placed())?;
        let known = read.contains(want).then_some(attributes)?;
        self.worth.answered();
        Some(known)
    }

    /// The changes reported between the first read of a change time and `serial`. Attributes that were read at that serial
    /// include these changes.
    pub(super) fn given_within(&mut self, ctime: Timestamp, serial: u64) -> u32 {
        match self.first_read {
            Some((read, first)) if read == ctime || first > serial => {
                u32::try_from(serial.saturating_sub(first)).unwrap_or(u32::MAX)
            }
            _ => {
                self.first_read = Some((ctime, serial));
                0
            }
        }
    }

    /// Keeps attributes that were read with `read`.
    pub(super) fn keep_attributes(&mut self, attributes: Attributes, read: Want) {
        if self.is_placed() {
            self.attributes = Some((attributes, read));
            self.guard = Some(guard_of(&attributes));
        }
    }

    /// Keeps those attributes that do not change with the names.
    pub(super) fn keep_guard(&mut self, attributes: &Attributes) {
        if self.is_placed() {
            self.guard = Some(guard_of(attributes));
        }
    }

    /// Whether the directory certainly exists.
    pub(super) fn is_there(&mut self) -> bool {
        self.used = true;
        self.is_placed() && self.guard.is_some()
    }

    /// What decides access to the directory, if known.
    pub(super) fn protection(&mut self) -> Option<Protection> {
        self.used = true;
        if !self.is_placed() {
            return None;
        }
        let (mode, uid, gid) = self.guard?;
        let security = self.security.clone()?;
        self.worth.answered();
        let kind = FileKind::Directory;
        Some(Protection {
            kind,
            mode,
            uid,
            gid,
            security,
            attributes: self.attributes.map(|(attributes, _)| attributes),
        })
    }

    /// The security descriptor in force for these attributes, if known.
    pub(super) fn security(&self, now: &Attributes) -> Option<Option<Arc<SecurityDescriptor>>> {
        if self.guard? == guard_of(now) { self.security.clone() } else { None }
    }

    pub(super) fn keep_security(&mut self, security: Option<Arc<SecurityDescriptor>>) {
        self.security = Some(security);
    }

    /// Runs `look` on what is known of a name.
    pub(super) fn name<T>(&mut self, name: &[u8], look: impl FnOnce(&KnownName) -> T) -> Option<T> {
        self.used = true;
        let known = self.names.get(name)?;
        self.worth.answered();
        Some(look(known))
    }

    /// Keeps what a name stands for. Returns what was known before.
    pub(super) fn know(&mut self, name: &[u8], known: KnownName) -> Option<KnownName> {
        let old = self.names.insert(name.to_vec(), known);
        if old.is_none() {
            self.bytes += NAME_BYTES + name.len();
        }
        old
    }

    /// Begins a read or a change of a name. Returns the events for it so far.
    pub(super) fn begin(&mut self, name: &[u8]) -> u64 {
        if let Some(pending) = self.pending.get_mut(name) {
            pending.users += 1;
            return pending.events;
        }
        self.pending.insert(name.to_vec(), Pending { users: 1, events: 0 });
        0
    }

    /// Ends a read or a change of a name. Returns the events for it so far.
    pub(super) fn finish(&mut self, name: &[u8]) -> u64 {
        let Some(pending) = self.pending.get_mut(name) else { return ENDED };
        debug_assert!(pending.users > 0, "a name that nobody reads or changes is not pending");
        pending.users = pending.users.saturating_sub(1);
        let events = pending.events;
        if pending.users == 0 {
            self.pending.remove(name);
        }
        events
    }

    pub(super) fn listing(&mut self) -> Option<Arc<Vec<Listed>>> {
        self.used = true;
        let listing = self.listing.clone()?;
        self.worth.listed(listing.len());
        Some(listing)
    }

    pub(super) fn keep_listing(&mut self, listing: Arc<Vec<Listed>>) {
        self.drop_listing();
        self.bytes += listing_bytes(&listing);
        self.listing = Some(listing);
    }

    pub(super) fn drop_listing(&mut self) {
        if let Some(listing) = self.listing.take() {
            self.bytes = self.bytes.saturating_sub(listing_bytes(&listing));
        }
    }
}

fn listing_bytes(listing: &[Listed]) -> usize {
    listing.iter().map(|listed| NAME_BYTES + listed.name.len()).sum()
}
