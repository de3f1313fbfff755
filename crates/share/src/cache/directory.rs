//! What is kept of one directory.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use acl::SecurityDescriptor;
use storage::{Attributes, FileId, FileKind, Handle, NodeRef, ObservedId, Protection, Timestamp, Want};

use super::worth::Worth;

/// What a directory costs beside its names: the entry, the node and its descriptor, the kernel's watch.
pub(super) const OWN_BYTES: usize = 2048;
/// What a name costs beside its bytes.
const NAME_BYTES: usize = 96;
/// Entries of the longest listing that is kept.
pub(super) const LISTING_MAX: usize = 4096;
/// What a directory was needed for it is needed for until it was judged so often.
const NEEDED_FOR: u8 = 2;
/// Of a directory that is kept no more: nothing that depended on it is believed.
const ENDED: u64 = u64::MAX;

/// What a name is known to stand for.
#[derive(Debug)]
pub(crate) enum Known {
    Absent,
    Directory(NodeRef),
}

/// One entry of a listing.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) name: Vec<u8>,
    pub(super) id: FileId,
    pub(super) kind: Option<FileKind>,
    pub(super) cookie: u64,
}

/// The directory above another one: each time that a directory goes from it, its number changes. Attributes that were read
/// while it had a number are those of a directory that is there as long as the number is the same.
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

/// A name that somebody reads or changes.
#[derive(Debug, Default)]
struct Pending {
    users: u32,
    /// What was given of it meanwhile.
    events: u64,
}

/// Mode, owner and group: other than the attributes in all, they stay what they are when a name changes.
type Guard = (u32, u32, u32);

fn guard_of(attributes: &Attributes) -> Guard {
    (attributes.mode, attributes.uid, attributes.gid)
}

/// What comes of judging a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It is not time, or all stays as it is.
    None,
    /// It is worth keeping.
    Worth,
    /// It is not, but must be followed all the same.
    Rest,
    /// It need not be followed.
    Unneeded,
}

/// What is kept of a directory that is followed.
#[derive(Debug)]
pub(super) struct Directory {
    /// Pins it: its number stays its own.
    pub(super) node: NodeRef,
    pub(super) observed: ObservedId,
    /// How often something was given of it: what is read is kept only if that stays the same.
    pub(super) serial: u64,
    /// Changes that were given of it: one event may stand for several.
    pub(super) changes: u64,
    /// Callers that are changing its names at present, and how many have begun to.
    pub(super) changing: u32,
    pub(super) begun: u64,
    /// How often something was given of the directory itself, and not of a name.
    pub(super) own_serial: u64,
    /// Answers are kept, not only counted or told to the index of its names.
    pub(super) is_kept: bool,
    /// So many judgements are left until it counts no more that somebody has asked for a name whatever its case, or wanted
    /// to know whether others change it.
    indexed: u8,
    watched: u8,
    pub(super) above: Option<Above>,
    pub(super) handle: Option<Handle>,
    /// Its listing is longer than what is kept.
    pub(super) is_long: bool,
    /// Asked for since the last look for those that are not.
    pub(super) used: bool,
    /// What it costs.
    pub(super) bytes: usize,
    is_root: bool,
    worth: Worth,
    /// Whether keeping it has been worth it, when that is to be judged.
    judged: Option<bool>,
    /// See [`Above`].
    number: Arc<AtomicU64>,
    /// A time of change, and the serial when it was read first.
    first_read: Option<(Timestamp, u64)>,
    attributes: Option<(Attributes, Want)>,
    guard: Option<Guard>,
    security: Option<Option<Arc<SecurityDescriptor>>>,
    names: HashMap<Vec<u8>, Known>,
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

    /// So many changes of a name were given: what was known of it.
    pub(super) fn name_changed(&mut self, name: &[u8], changes: u32) -> Option<Known> {
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

    /// Something was given of the directory itself.
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

    /// Somebody wants to know whether others change it.
    pub(super) fn watch(&mut self) {
        self.watched = NEEDED_FOR;
    }

    /// Somebody asks for a name whatever its case.
    pub(super) fn index(&mut self) {
        self.used = true;
        self.indexed = NEEDED_FOR;
    }

    fn is_watched(&self) -> bool {
        self.watched > 0
    }

    /// Whether somebody needs to know how often it has changed.
    pub(super) fn is_counted(&self) -> bool {
        self.is_kept || self.is_watched()
    }

    /// After a change: what comes of the judgement, if there is one. `has_index` says whether there is one of its names.
    pub(super) fn judge(&mut self, is_quick: bool, has_index: impl FnOnce() -> bool) -> Judgement {
        let Some(is_worth_it) = self.judged.take() else { return Judgement::None };
        let (is_watched, is_indexed) = (self.is_watched(), self.indexed > 0);
        self.watched = self.watched.saturating_sub(1);
        self.indexed = self.indexed.saturating_sub(1);
        if self.is_kept && (is_worth_it || !is_quick) {
            Judgement::Worth
        } else if is_indexed {
            // It is told of each name that changes anyway, and what is kept saves more than that.
            Judgement::None
        } else if !(is_watched || has_index()) {
            Judgement::Unneeded
        } else if self.is_kept {
            Judgement::Rest
        } else {
            Judgement::None
        }
    }

    /// Nothing is kept of it any more; its handle, by which it is found no more either.
    pub(super) fn rest(&mut self) -> Option<Handle> {
        self.is_kept = false;
        (self.attributes, self.guard, self.security) = (None, None, None);
        self.drop_listing();
        self.names.clear();
        self.bytes = OWN_BYTES;
        self.handle.take()
    }

    /// A directory has gone from this one.
    pub(super) fn leave(&self) {
        self.number.fetch_add(1, Ordering::AcqRel);
    }

    /// It is kept no more.
    pub(super) fn end(&self) {
        self.number.store(ENDED, Ordering::Release);
    }

    pub(super) fn as_above(&mut self) -> Above {
        self.used = true;
        Above { number: Arc::clone(&self.number), at: self.number.load(Ordering::Acquire) }
    }

    /// What is read from now on is that of a directory that is there now, as far as the one above is followed. False when
    /// it is not.
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

    /// Its attributes, if what is wanted of them is known.
    pub(super) fn attributes(&mut self, want: Want) -> Option<Attributes> {
        self.used = true;
        let (attributes, read) = self.attributes.filter(|_| self.is_placed())?;
        let known = read.contains(want).then_some(attributes)?;
        self.worth.answered();
        Some(known)
    }

    /// What was given of it after a time of change was read for the first time, up to `serial`: attributes that were read when
    /// that was its serial are as new as this.
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

    /// Keeps of attributes what does not change with the names.
    pub(super) fn keep_guard(&mut self, attributes: &Attributes) {
        if self.is_placed() {
            self.guard = Some(guard_of(attributes));
        }
    }

    /// Whether the directory is surely there.
    pub(super) fn is_there(&mut self) -> bool {
        self.used = true;
        self.is_placed() && self.guard.is_some()
    }

    /// What decides about access to it, if that is known.
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

    /// What is in force with an object of these attributes, if that is known.
    pub(super) fn security(&self, now: &Attributes) -> Option<Option<Arc<SecurityDescriptor>>> {
        if self.guard? == guard_of(now) { self.security.clone() } else { None }
    }

    pub(super) fn keep_security(&mut self, security: Option<Arc<SecurityDescriptor>>) {
        self.security = Some(security);
    }

    /// What is known of a name: for `look`.
    pub(super) fn name<T>(&mut self, name: &[u8], look: impl FnOnce(&Known) -> T) -> Option<T> {
        self.used = true;
        let known = self.names.get(name)?;
        self.worth.answered();
        Some(look(known))
    }

    /// Keeps what a name stands for; gives what was known before.
    pub(super) fn know(&mut self, name: &[u8], known: Known) -> Option<Known> {
        let old = self.names.insert(name.to_vec(), known);
        if old.is_none() {
            self.bytes += NAME_BYTES + name.len();
        }
        old
    }

    /// Somebody reads or changes a name: what had been given of it.
    pub(super) fn begin(&mut self, name: &[u8]) -> u64 {
        if let Some(pending) = self.pending.get_mut(name) {
            pending.users += 1;
            return pending.events;
        }
        self.pending.insert(name.to_vec(), Pending { users: 1, events: 0 });
        0
    }

    /// It is done: what has been given of it.
    pub(super) fn finish(&mut self, name: &[u8]) -> u64 {
        let Some(pending) = self.pending.get_mut(name) else { return ENDED };
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
