//! One restoration: a walk through the snapshot, and each object in its turn.

use std::collections::{BTreeMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;

use file_state::Operation;
use storage::{
    Attributes, Capabilities, FileKind, Handle, MayWait, Name, NodeRef, ObjectId, Replace, Storage, Wait,
    Want,
};

use super::copies::{Copies, Made, Source};
use super::known::Known;
use super::{Restoration, RestoreFailure, RestoreProgress, Restored, is_temporary, walk};
use crate::charges::Charge;
use crate::namespace::Changing;
use crate::operation::DirectoryReport;
use crate::watch::{ChangeAction, ChangeKinds};
use crate::{Answering, Error, File, Location, Result, Share};

/// Names of a directory that are read at a time.
const NAMES: usize = 1024;
/// How many directories may lie in each other: each of them is open meanwhile.
const DEPTH_MAX: usize = 1024;

/// A restoration that is being carried out.
pub(super) struct Run<'a> {
    order: &'a Restoration,
    temporary: String,
    copies: Copies<'a>,
    known: Known,
    wait: &'a dyn Fn(Answering),
    /// The snapshot is pinned.
    _store: Arc<dyn Storage>,
    source: Source,
    /// Files with several names, by their number in the snapshot, until all of their names were met.
    linked: BTreeMap<ObjectId, Linked>,
    levels: Vec<Level>,
    path: Vec<Vec<u8>>,
}

/// A file with several names.
struct Linked {
    handle: Handle,
    names_left: u32,
}

/// A directory that is being gone through.
struct Level {
    then: Source,
    now: NodeRef,
    names: VecDeque<Vec<u8>>,
    cookie: u64,
    is_read: bool,
}

/// What was done with an object.
enum Step {
    Done,
    Stopped,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        share: &'a Arc<Share>,
        order: &'a Restoration,
        progress: &'a RestoreProgress,
        wait: &'a dyn Fn(Answering),
        may: MayWait<'a>,
    ) -> std::result::Result<Self, RestoreFailure> {
        let failed = |error: Error| RestoreFailure { path: order.target.join(&b'/'), error };
        let found = || {
            let snapshots = share.store.storage().snapshots().map_err(|_| storage::Error::NotSupported)?;
            let taken =
                storage::not_before(&snapshots.list(may)?, order.from).ok_or(storage::Error::NotFound)?;
            let store = snapshots.open(order.from, may)?;
            let node = walk(store.root(), &order.source, may)?;
            let attributes = node.attributes(Want::FLAGS, Wait::May(may))?;
            Ok((taken, store, Source { node, attributes }))
        };
        let (taken, store, source) = found().map_err(failed)?;
        let capabilities = share.store.storage().capabilities();
        let sets_owners = capabilities.contains(Capabilities::OWNERS);
        let keeps_births = capabilities.contains(Capabilities::XATTRS);
        Ok(Self {
            order,
            temporary: order.temporary(),
            copies: Copies { share, progress, may },
            known: Known { taken, ordered: order.ordered, sets_owners, keeps_births },
            wait,
            _store: store,
            source,
            linked: BTreeMap::new(),
            levels: Vec::new(),
            path: order.target.clone(),
        })
    }

    fn share(&self) -> &'a Arc<Share> {
        self.copies.share
    }

    fn may(&self) -> MayWait<'a> {
        self.copies.may
    }

    fn is_stopped(&self) -> bool {
        self.copies.progress.is_stopped() || self.share().is_withdrawn()
    }

    /// Carries it out.
    pub(super) fn finish(mut self) -> std::result::Result<Restored, RestoreFailure> {
        let restored = self.top().and_then(|step| match step {
            Step::Done => self.go_through(),
            Step::Stopped => Ok(Restored::Stopped),
        });
        restored.map_err(|error| RestoreFailure { path: self.path.join(&b'/'), error })
    }

    /// Restores the object that the order names, if it is no directory; otherwise enters it.
    fn top(&mut self) -> Result<Step> {
        let (root, source) = (Arc::clone(self.share().store.root()), self.source.clone());
        let Some((name, above)) = self.order.target.split_last() else {
            self.enter(source, root, true)?;
            return Ok(Step::Done);
        };
        let above = walk(root, above, self.may())?;
        self.remove_temporary(&above);
        if source.attributes.kind == FileKind::Directory {
            self.enter_in(source, &above, name)?;
            return Ok(Step::Done);
        }
        self.restore(&source, &above, name)
    }

    /// Goes through the directories that were entered.
    fn go_through(&mut self) -> Result<Restored> {
        while !self.levels.is_empty() {
            if self.is_stopped() {
                return Ok(Restored::Stopped);
            }
            let Some(name) = self.next_name()? else {
                self.leave()?;
                continue;
            };
            self.path.push(name.clone());
            let step = self.restore_entry(&name);
            match step {
                Ok(Step::Stopped) => return Ok(Restored::Stopped),
                Ok(Step::Done) => {}
                Err(error) if is_of_one(error) => {
                    self.copies.progress.leave(self.path.join(&b'/'), error);
                    self.path.pop();
                }
                Err(error @ Error::Storage(storage::Error::Stale)) if self.has_lost_place() => {
                    self.path.pop();
                    self.copies.progress.leave(self.path.join(&b'/'), error);
                    self.path.pop();
                    self.levels.pop();
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Restored::Whole)
    }

    /// Whether somebody has removed the innermost directory meanwhile.
    fn has_lost_place(&self) -> bool {
        let Some(level) = self.levels.last() else { return false };
        let (then, now) = (&level.then.node, &level.now);
        let is_there = |node: &NodeRef| {
            node.attributes(Want::empty(), Wait::May(self.may())).is_ok_and(|known| known.links > 0)
        };
        is_there(then) && !is_there(now)
    }

    /// The next name of the innermost directory; None at its end.
    fn next_name(&mut self) -> Result<Option<Vec<u8>>> {
        let may = self.may();
        let Some(level) = self.levels.last_mut() else { return Ok(None) };
        if level.names.is_empty() && !level.is_read {
            let (names, cookie) = (&mut level.names, &mut level.cookie);
            let read = level.then.node.read_dir(*cookie, may, &mut |entry| {
                *cookie = entry.cookie;
                if !is_temporary(entry.name) {
                    names.push_back(entry.name.to_vec());
                }
                if names.len() < NAMES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            level.is_read = read.map_err(of_snapshot)?;
        }
        Ok(level.names.pop_front())
    }

    /// Restores an entry of the innermost directory. One that is a directory is entered, and then its name stays in the path.
    fn restore_entry(&mut self, name: &[u8]) -> Result<Step> {
        let Some(level) = self.levels.last() else { return Ok(Step::Done) };
        let (dir, known_name) = (Arc::clone(&level.now), Name::new(name)?);
        let found = level.then.node.lookup_attributes(known_name, Want::FLAGS, Wait::May(self.may()));
        let (node, attributes) = found.map_err(of_snapshot)?;
        let then = Source { node, attributes };
        if attributes.kind == FileKind::Directory {
            self.enter_in(then, &dir, name)?;
            return Ok(Step::Done);
        }
        let step = self.restore(&then, &dir, name)?;
        self.path.pop();
        Ok(step)
    }

    /// Enters a directory, which is made unless there is one.
    fn enter_in(&mut self, then: Source, above: &NodeRef, name: &[u8]) -> Result<()> {
        if self.levels.len() >= DEPTH_MAX {
            return Err(storage::Error::NameTooLong.into());
        }
        let name = Name::new(name)?;
        match above.lookup(name, Wait::May(self.may())) {
            Ok(there) if there.kind() == FileKind::Directory => self.enter(then, there, true),
            Ok(_) => Err(storage::Error::NotDirectory.into()),
            Err(storage::Error::NotFound) => {
                let _under_way = self.share().changes.work_begins();
                let changing = Changing::begin(DirectoryReport::Nothing, above, self.may())?;
                let made = self.copies.make_directory(above, name, &then).inspect_err(|_| {
                    // No incomplete directory stays behind.
                    let _ = above.remove_dir(name, self.may());
                })?;
                self.share().namespace.changed(&changing, None, Some(name), 0)?;
                self.tell(above, name.as_bytes(), ChangeAction::Added, true);
                self.enter(then, made, false)
            }
            Err(e) => Err(e.into()),
        }
    }

    fn enter(&mut self, then: Source, now: NodeRef, is_old: bool) -> Result<()> {
        if is_old {
            self.share().check_writable(now.id())?;
            self.remove_temporary(&now);
            let present = now.attributes(Want::FLAGS, Wait::May(self.may()))?;
            if !self.is_unchanged(&then, &now, &present)? {
                let _under_way = self.share().changes.work_begins();
                self.copies.make_alike(&then, &now)?;
                self.share().tell_modified(
                    &File::Stateless(Arc::clone(&now)),
                    ChangeKinds::ATTRIBUTES | ChangeKinds::SECURITY,
                    self.may(),
                );
            }
        }
        self.levels.push(Level { then, now, names: VecDeque::new(), cookie: 0, is_read: false });
        Ok(())
    }

    /// Leaves the innermost directory, which gets its times back.
    fn leave(&mut self) -> Result<()> {
        let Some(level) = self.levels.pop() else { return Ok(()) };
        let present = level.now.attributes(Want::FLAGS, Wait::May(self.may()));
        let times = |of: &Attributes| (of.mtime, of.btime, of.flags);
        let outcome = match present {
            Ok(present) if times(&present) == times(&level.then.attributes) => Ok(()),
            Ok(_) => {
                let _under_way = self.share().changes.work_begins();
                self.copies.set_times(&level.then, &level.now)
            }
            Err(e) => Err(e.into()),
        };
        match outcome {
            Err(error) if is_of_one(error) => self.copies.progress.leave(self.path.join(&b'/'), error),
            outcome => outcome?,
        }
        self.path.pop();
        Ok(())
    }

    /// Restores an object that is no directory.
    fn restore(&mut self, then: &Source, dir: &NodeRef, name: &[u8]) -> Result<Step> {
        let name = Name::new(name)?;
        let found = match dir.lookup_attributes(name, Want::FLAGS, Wait::May(self.may())) {
            Ok(found) => Some(found),
            Err(storage::Error::NotFound) => None,
            Err(e) => return Err(e.into()),
        };
        let other_name = self.other_name(then);
        let needs_nothing = match (&found, &other_name) {
            (None, _) => false,
            (Some((_, present)), Some(file)) => file.id() == present.id,
            (Some((now, present)), None) => {
                self.is_unchanged(then, now, present)? || self.is_restored(then, now, present)?
            }
        };
        let present = found.map(|(_, present)| present);
        if needs_nothing {
            self.copies.progress.unchanged(then.attributes.size);
            let may = self.may();
            return self.met(then, || dir.lookup(name, Wait::May(may))).map(|()| Step::Done);
        }
        match present {
            Some(present) if present.kind == FileKind::Directory => {
                return Err(storage::Error::IsDirectory.into());
            }
            Some(_) if !self.order.replace => return Err(storage::Error::Exists.into()),
            _ => {}
        }
        self.make_and_place(then, dir, name, other_name)
    }

    /// Whether the present object is that of the snapshot, with its streams: a change of a stream is none of its object.
    fn is_unchanged(&self, then: &Source, now: &NodeRef, present: &Attributes) -> Result<bool> {
        Ok(self.known.is_unchanged(&then.attributes, present)
            && self.known.are_unchanged(&self.copies.streams(&then.node)?, &self.copies.streams(now)?))
    }

    /// Whether the present object is what an earlier attempt has made of that of the snapshot, with all that belongs to it.
    fn is_restored(&self, then: &Source, now: &NodeRef, present: &Attributes) -> Result<bool> {
        Ok(self.known.may_be_restored(&then.attributes, present)
            && self.copies.is_alike(then, now, present)?)
    }

    /// The file in the share that has another name of this one already.
    fn other_name(&self, then: &Source) -> Option<NodeRef> {
        let linked = self.linked.get(&then.attributes.id)?;
        self.share().store.storage().by_handle(&linked.handle, Wait::May(self.may())).ok()
    }

    /// Notes that a name of a file with several names was met, which the share has now.
    fn met(&mut self, then: &Source, file: impl FnOnce() -> storage::Result<NodeRef>) -> Result<()> {
        let Attributes { id, links, kind, .. } = then.attributes;
        if links <= 1 || kind == FileKind::Directory {
            return Ok(());
        }
        if let Some(linked) = self.linked.get_mut(&id) {
            linked.names_left = linked.names_left.saturating_sub(1);
            if linked.names_left == 0 {
                self.linked.remove(&id);
            }
        } else {
            let linked = Linked { handle: file()?.handle()?, names_left: links - 1 };
            self.linked.insert(id, linked);
        }
        Ok(())
    }

    /// Makes what is restored under another name, and has it take its place.
    fn make_and_place(
        &mut self,
        then: &Source,
        dir: &NodeRef,
        name: Name<'_>,
        other_name: Option<NodeRef>,
    ) -> Result<Step> {
        let temporary = self.temporary.clone();
        let temporary = Name::new(temporary.as_bytes())?;
        let _under_way = self.share().changes.work_begins();
        self.share().check_writable(dir.id())?;
        let changing = Changing::begin(DirectoryReport::Nothing, dir, self.may())?;
        let is_copied = other_name.is_none() && then.attributes.kind == FileKind::Regular;
        let made = match other_name {
            Some(file) => {
                dir.link(temporary, &*file, self.may()).map(|()| (file, Made::Whole)).map_err(Error::from)
            }
            None => self.copies.make(dir, temporary, then),
        };
        let placed = made.and_then(|(node, made)| match made {
            Made::Whole if self.place(dir, &node, temporary, name)? => Ok(Some(node)),
            Made::Whole | Made::Stopped => Ok(None),
        });
        if !matches!(placed, Ok(Some(_))) {
            self.remove_temporary(dir);
        }
        let Some(node) = placed? else { return Ok(Step::Stopped) };
        self.share().namespace.changed(&changing, None, Some(name), 0)?;
        self.copies.progress.restored(if is_copied { 0 } else { then.attributes.size });
        self.met(then, || Ok(node))?;
        Ok(Step::Done)
    }

    /// Gives what was made its name. The clients that have what is there now are asked, as for a removal. Returns false if it is to
    /// stop.
    fn place(&self, dir: &NodeRef, made: &NodeRef, temporary: Name<'_>, name: Name<'_>) -> Result<bool> {
        let (share, may) = (self.share(), self.may());
        let replaced = loop {
            let (node, present) = match dir.lookup_attributes(name, Want::empty(), Wait::May(may)) {
                Err(storage::Error::NotFound) => break None,
                found => found?,
            };
            if present.kind == FileKind::Directory {
                return Err(storage::Error::IsDirectory.into());
            }
            if !self.order.replace {
                return Err(storage::Error::Exists.into());
            }
            share.check_writable(node.id())?;
            match share.agreement.make_removable(&node, None, Operation::Delete)? {
                Some(_) if self.is_stopped() => return Ok(false),
                Some(answering) => (self.wait)(answering),
                None => break Some((node, present)),
            }
        };
        let replace = if replaced.is_some() { Replace::Yes } else { Replace::Never };
        let charge = match &replaced {
            Some((node, present)) => share.charge_removal(node, present, may)?,
            None => None,
        };
        dir.rename(temporary, &**dir, name, replace, may)?;
        charge.iter().for_each(Charge::removed);
        self.charge_made(made)?;
        let location = |name: Name<'_>| Location { parent: Arc::clone(dir), name: name.as_bytes().to_vec() };
        share.agreement.moved(made.id(), &location(temporary), &location(name));
        if let Some((_, replaced)) = replaced {
            share.budget.capacity().removed(&replaced);
            self.tell(dir, name.as_bytes(), ChangeAction::Removed, false);
        }
        self.tell(dir, name.as_bytes(), ChangeAction::Added, false);
        Ok(true)
    }

    /// Charges an object to its owners. No quota keeps back what the administrator restores.
    fn charge_made(&self, made: &NodeRef) -> Result<()> {
        let (share, may) = (self.share(), self.may());
        if share.quotas().is_on() {
            share.quotas().made(made, &made.attributes(Want::empty(), Wait::May(may))?);
            // The store is asked what it occupies, with its streams.
            drop(share.charge_nothing(made, may)?);
        }
        Ok(())
    }

    fn tell(&self, dir: &NodeRef, name: &[u8], action: ChangeAction, is_dir: bool) {
        self.share().tell_name(dir, name, action, is_dir, None, self.may());
    }

    /// Removes what an attempt that was interrupted has left in a directory, if anything.
    fn remove_temporary(&self, dir: &NodeRef) {
        let Ok(name) = Name::new(self.temporary.as_bytes()) else { return };
        let Ok((node, left)) = dir.lookup_attributes(name, Want::empty(), Wait::May(self.may())) else {
            return;
        };
        // A count of what the share holds may have met it.
        let charge = self.share().charge_removal(&node, &left, self.may()).ok().flatten();
        if dir.remove_found(name, &left, self.may()).is_ok() {
            charge.iter().for_each(Charge::removed);
            self.share().budget.capacity().removed(&left);
        }
    }
}

/// Of a snapshot nothing vanishes but all of it.
fn of_snapshot(error: storage::Error) -> Error {
    if storage::is_nowhere(error) { storage::Error::Stale } else { error }.into()
}

/// Whether an error concerns one object, and the others can be restored.
fn is_of_one(error: Error) -> bool {
    use storage::Error as E;
    match error {
        Error::Storage(error) => matches!(
            error,
            E::NotFound
                | E::Exists
                | E::NotDirectory
                | E::IsDirectory
                | E::WrongKind
                | E::NotEmpty
                | E::PermissionDenied
                | E::NotPermitted
                | E::TooLarge
                | E::NameTooLong
                | E::InvalidName
                | E::InvalidArgument
                | E::CrossDevice
                | E::TooManyLinks
                | E::SymlinkLoop
                | E::NotSupported
                | E::Busy
                | E::NoAttribute
                | E::AttributeTooLarge
        ),
        Error::SharingViolation | Error::DeletePending | Error::CannotDelete | Error::Gone => true,
        _ => false,
    }
}

/// Counts the files below an object, or itself, and their bytes. None if it is to stop.
pub(super) fn count(
    top: NodeRef,
    is_stopped: impl Fn() -> bool,
    may: MayWait<'_>,
) -> Result<Option<(u64, u64)>> {
    if top.kind() != FileKind::Directory {
        return Ok(Some((1, top.attributes(Want::empty(), Wait::May(may))?.size)));
    }
    let (mut files, mut bytes) = (0, 0);
    let mut levels = vec![(top, VecDeque::new(), 0, false)];
    while let Some((dir, names, cookie, is_read)) = levels.last_mut() {
        if is_stopped() {
            return Ok(None);
        }
        if names.is_empty() && !*is_read {
            *is_read = dir.read_dir(*cookie, may, &mut |entry| {
                *cookie = entry.cookie;
                names.push_back(entry.name.to_vec());
                if names.len() < NAMES { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        let Some(name) = names.pop_front() else {
            levels.pop();
            continue;
        };
        if is_temporary(&name) {
            continue;
        }
        let (node, attributes) = dir.lookup_attributes(Name::new(&name)?, Want::empty(), Wait::May(may))?;
        if attributes.kind == FileKind::Directory {
            if levels.len() < DEPTH_MAX {
                levels.push((node, VecDeque::new(), 0, false));
            }
        } else {
            files += 1;
            bytes += attributes.size;
        }
    }
    Ok(Some((files, bytes)))
}
