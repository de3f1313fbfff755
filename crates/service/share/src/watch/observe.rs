//! Changes by local programs in the directory of a share.
//!
//! While there are watches, one thread per share observes the watched directories (and the trees below them, for watches on
//! trees) and tells the watchers of changes that the server did not make itself. Where the system allows no more
//! observation, the server's own changes are still reported.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use storage::{
    Deed, Error as StoreError, FileKind, MayWait, Name, NodeRef, ObjectId, Observed, ObservedId, Observer,
    StoreThread, View, Wait,
};

use super::own_changes::{Effect, OwnChanges};
use super::{ChangeAction, ChangeKinds, Changes, Event};

/// Directories of a share that are observed at a time. Each takes a descriptor.
const DIRECTORIES_MAX: usize = 4096;
/// Entries of a new directory that are reported one by one.
const ENTRIES_MAX: usize = 4096;
/// How far apart the two halves of a rename may be, in events.
const NEAR: usize = 16;
/// What may have changed when the kernel reports a change of attributes.
const ANY_ATTRIBUTES: ChangeKinds = ChangeKinds::ATTRIBUTES
    .union(ChangeKinds::LAST_WRITE)
    .union(ChangeKinds::LAST_ACCESS)
    .union(ChangeKinds::CREATION)
    .union(ChangeKinds::EA)
    .union(ChangeKinds::SECURITY);

/// A command for the thread.
#[derive(Debug)]
enum Command {
    Begin { dir: NodeRef, recursive: bool },
    End { dir: NodeRef, recursive: bool },
    Stop,
}

/// The commands that the thread finds when it wakes. Guards the list.
#[derive(Debug, Default)]
struct Inbox(Mutex<Vec<Command>>);

impl Inbox {
    fn push(&self, command: Command) {
        self.0.lock().push(command);
    }

    fn take(&self) -> Vec<Command> {
        std::mem::take(&mut *self.0.lock())
    }

    /// Ends a watch. If the thread has not heard of the watch yet, both commands are dropped, so that short watches do not
    /// pile up.
    fn end(&self, dir: &NodeRef, recursive: bool) {
        let mut commands = self.0.lock();
        let begun = commands.iter().rposition(|command| match command {
            Command::Begin { dir: begun, recursive: tree } => begun.id() == dir.id() && *tree == recursive,
            Command::End { .. } | Command::Stop => false,
        });
        match begun {
            Some(index) => drop(commands.remove(index)),
            None => commands.push(Command::End { dir: Arc::clone(dir), recursive }),
        }
    }
}

/// The link to the observing thread.
#[derive(Debug, Clone)]
struct Link {
    observer: Arc<dyn Observer>,
    inbox: Arc<Inbox>,
}

#[derive(Debug, Default)]
struct Running {
    link: Option<Link>,
    watches: usize,
}

/// The observation of a share.
#[derive(Debug, Default)]
pub(super) struct Observation {
    pub(super) own: OwnChanges,
    /// Guards the link to the thread and the number of watches that it serves.
    running: Mutex<Running>,
    has_complained: AtomicBool,
    /// The number of observed directories.
    pub(super) directories: AtomicUsize,
}

impl Observation {
    /// Begins observation for a new watch.
    pub(super) fn begin(&self, changes: &Arc<Changes>, dir: &NodeRef, recursive: bool) {
        let (mut new, mut tried) = (None, false);
        let link = loop {
            let mut running = self.running.lock();
            if running.link.is_none() && new.is_none() && !tried {
                drop(running);
                (new, tried) = (self.start(changes), true);
                continue;
            }
            if running.link.is_none() {
                running.link = new.take().and_then(|link| self.spawn(changes, link));
            }
            running.watches += 1;
            break running.link.clone();
        };
        if let Some(link) = link {
            link.inbox.push(Command::Begin { dir: Arc::clone(dir), recursive });
            link.observer.wake();
        }
    }

    /// Ends observation for a watch.
    pub(super) fn end(&self, dir: &NodeRef, recursive: bool) {
        let link = {
            let mut running = self.running.lock();
            running.watches = running.watches.saturating_sub(1);
            let last = running.watches == 0;
            if last {
                running.link.take().map(|link| (link, true))
            } else {
                running.link.clone().map(|l| (l, false))
            }
        };
        let Some((link, last)) = link else { return };
        if last {
            link.inbox.push(Command::Stop);
        } else {
            link.inbox.end(dir, recursive);
        }
        link.observer.wake();
    }

    fn start(&self, changes: &Changes) -> Option<Link> {
        match changes.store.observer() {
            Ok(observer) => Some(Link { observer, inbox: Arc::default() }),
            Err(StoreError::NotSupported) => None,
            Err(e) => {
                self.complain(changes, e);
                None
            }
        }
    }

    fn spawn(&self, changes: &Arc<Changes>, link: Link) -> Option<Link> {
        let thread = Thread {
            changes: Arc::downgrade(changes),
            link: link.clone(),
            dirs: HashMap::new(),
            numbers: HashMap::new(),
            trees: Vec::new(),
        };
        match StoreThread::spawn("observe", move |own| thread.run(own.may_wait(View::FRESH))) {
            Ok(_) => {
                self.own.set_observed(true);
                Some(link)
            }
            Err(_) => {
                self.complain(changes, StoreError::OutOfResources);
                None
            }
        }
    }

    /// Logs once that not everything is observed.
    fn complain(&self, changes: &Changes, error: StoreError) {
        if !self.has_complained.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                share = &*changes.name,
                "not all changes by programs of this machine are told to clients that watch directories: {error} \
                 (sysctl fs.inotify.max_user_watches and max_user_instances may be too low)"
            );
        }
    }
}

/// An observed directory.
#[derive(Debug)]
struct Directory {
    node: NodeRef,
    /// Watches on the directory itself.
    watches: usize,
    /// Whether it belongs to a watched tree.
    in_tree: bool,
}

/// An observed event, kept for a moment.
#[derive(Debug)]
enum Seen {
    Entry { dir: ObservedId, name: Vec<u8>, is_dir: bool, deed: Deed },
    Lost,
    Ended(ObservedId),
}

impl From<Observed<'_>> for Seen {
    fn from(observed: Observed<'_>) -> Self {
        match observed {
            Observed::Entry { dir, name, is_dir, deed } => {
                Self::Entry { dir, name: name.to_vec(), is_dir, deed }
            }
            Observed::Lost => Self::Lost,
            Observed::Ended(dir) => Self::Ended(dir),
        }
    }
}

/// The thread that observes for a share, with its state.
#[derive(Debug)]
struct Thread {
    changes: Weak<Changes>,
    link: Link,
    dirs: HashMap<ObservedId, Directory>,
    numbers: HashMap<ObjectId, ObservedId>,
    /// The top directories of watched trees, one for each watch.
    trees: Vec<NodeRef>,
}

impl Drop for Thread {
    /// However the thread ends: the next watch starts another one.
    fn drop(&mut self) {
        let Some(changes) = self.changes.upgrade() else { return };
        let observation = &changes.observation;
        let mut running = observation.running.lock();
        let is_present = running.link.as_ref().is_some_and(|link| Arc::ptr_eq(&link.inbox, &self.link.inbox));
        if is_present {
            running.link = None;
        }
        if running.link.is_none() {
            observation.own.set_observed(false);
            observation.directories.store(0, Ordering::Relaxed);
        }
    }
}

impl Thread {
    fn run(mut self, may: MayWait<'_>) {
        loop {
            let mut seen = Vec::new();
            let mut first = None;
            let waited = self.link.observer.wait(&mut |observed| {
                first.get_or_insert_with(Instant::now);
                seen.push(Seen::from(observed));
            });
            let Some(changes) = self.changes.upgrade() else { return };
            let whole = match waited {
                Ok(whole) => whole,
                Err(e) => return changes.observation.complain(&changes, e),
            };
            if !seen.is_empty() {
                changes.observation.own.settle();
            }
            // Commands come first: events after the end of the last watch concern no watcher, and own changes were not
            // remembered then.
            for command in self.link.inbox.take() {
                match command {
                    Command::Begin { dir, recursive } => self.begin(&changes, dir, recursive, may),
                    Command::End { dir, recursive } => self.end(&changes, &dir, recursive),
                    Command::Stop => return,
                }
            }
            self.judge(&changes, &seen, may);
            // The batch has everything that was done before its first event was reported.
            if let (true, Some(first)) = (whole, first) {
                changes.observation.own.forget(first);
            }
            changes.observation.directories.store(self.dirs.len(), Ordering::Relaxed);
        }
    }

    fn begin(&mut self, changes: &Changes, dir: NodeRef, recursive: bool, may: MayWait<'_>) {
        if recursive {
            changes.observation.own.set_trees(true);
            let is_covered =
                self.numbers.get(&dir.id()).and_then(|id| self.dirs.get(id)).is_some_and(|d| d.in_tree);
            self.trees.push(Arc::clone(&dir));
            if !is_covered {
                self.cover(changes, dir, false, may);
            }
        } else if let Some(directory) = self.observe(changes, &dir) {
            directory.watches += 1;
        }
    }

    fn end(&mut self, changes: &Changes, dir: &NodeRef, recursive: bool) {
        if recursive {
            if let Some(index) = self.trees.iter().position(|tree| tree.id() == dir.id()) {
                self.trees.swap_remove(index);
            }
            changes.observation.own.set_trees(!self.trees.is_empty());
            self.uncover(changes);
        } else if let Some(directory) = self.numbers.get(&dir.id()).and_then(|id| self.dirs.get_mut(id)) {
            directory.watches = directory.watches.saturating_sub(1);
            self.ignore_unused(changes);
        }
    }

    /// Observes a directory, if possible.
    fn observe(&mut self, changes: &Changes, dir: &NodeRef) -> Option<&mut Directory> {
        let complain = |error| changes.observation.complain(changes, error);
        if self.dirs.len() >= DIRECTORIES_MAX && !self.numbers.contains_key(&dir.id()) {
            complain(StoreError::OutOfResources);
            return None;
        }
        // Set the place first, so that the server's own changes from now on are remembered.
        changes.observation.own.set_place(dir.id(), true);
        match self.link.observer.observe(&**dir) {
            Ok(id) => {
                self.numbers.insert(dir.id(), id);
                let new = || Directory { node: Arc::clone(dir), watches: 0, in_tree: false };
                Some(self.dirs.entry(id).or_insert_with(new))
            }
            Err(e) => {
                changes.observation.own.set_place(dir.id(), false);
                // Otherwise the directory no longer exists.
                if !matches!(e, StoreError::NotFound | StoreError::Stale | StoreError::NotDirectory) {
                    complain(e);
                }
                None
            }
        }
    }

    /// Observes the tree below a directory. The contents of a new tree are reported if `tell` is set.
    fn cover(&mut self, changes: &Changes, top: NodeRef, tell: bool, may: MayWait<'_>) {
        let mut left = vec![top];
        while let Some(dir) = left.pop() {
            let Some(directory) = self.observe(changes, &dir) else { continue };
            directory.in_tree = true;
            let (entries, whole) = entries(&dir, tell, may);
            if tell {
                changes.observation.own.settle();
            }
            if !whole {
                changes.overflow();
            }
            for (name, is_dir) in entries {
                if tell {
                    tell_found(changes, &dir, &name, is_dir, may);
                }
                // Each directory left takes a descriptor too.
                if is_dir && left.len() >= DIRECTORIES_MAX {
                    changes.observation.complain(changes, StoreError::OutOfResources);
                } else if is_dir
                    && let Ok(name) = Name::new(&name)
                    && let Ok(child) = dir.lookup(name, Wait::May(may))
                {
                    left.push(child);
                }
            }
        }
    }

    /// Follows the end of a watch on a tree: finds the directories that still belong to one.
    fn uncover(&mut self, changes: &Changes) {
        let tops: Vec<Vec<u8>> = self.trees.iter().filter_map(|tree| tree.path().ok()).collect();
        for directory in self.dirs.values_mut().filter(|directory| directory.in_tree) {
            let path = directory.node.path();
            directory.in_tree = path.is_ok_and(|path| tops.iter().any(|top| is_below(top, &path)));
        }
        self.ignore_unused(changes);
    }

    fn ignore_unused(&mut self, changes: &Changes) {
        let unused = |directory: &Directory| directory.watches == 0 && !directory.in_tree;
        for (id, directory) in self.dirs.extract_if(|_, directory| unused(directory)) {
            self.numbers.remove(&directory.node.id());
            self.link.observer.ignore(id);
            changes.observation.own.set_place(directory.node.id(), false);
        }
    }

    /// Tells the watchers what others have done.
    fn judge(&mut self, changes: &Changes, all: &[Seen], may: MayWait<'_>) {
        for (index, seen) in all.iter().enumerate() {
            match seen {
                Seen::Lost => {
                    changes.overflow();
                    // New directories may have been missed.
                    let mut covered = HashSet::new();
                    for tree in self.trees.clone() {
                        if covered.insert(tree.id()) {
                            self.cover(changes, tree, false, may);
                        }
                    }
                }
                Seen::Ended(id) => {
                    if let Some(directory) = self.dirs.remove(id) {
                        self.numbers.remove(&directory.node.id());
                        changes.observation.own.set_place(directory.node.id(), false);
                    }
                }
                Seen::Entry { dir: id, name, is_dir, deed } => {
                    let Some(Directory { node, in_tree, .. }) = self.dirs.get(id) else { continue };
                    let (dir, in_tree) = (Arc::clone(node), *in_tree);
                    let (action, kinds) = change(*deed, *is_dir, |half| is_near(all, index, *id, half));
                    let is_own = changes.observation.own.is_own(dir.id(), name, action.into());
                    // Changes in a directory that was moved out of the share are not reported.
                    if !is_own && dir.check_place().is_ok() {
                        announce(changes, &dir, name, action, kinds, may);
                    }
                    if in_tree
                        && *is_dir
                        && Effect::from(action) == Effect::Come
                        && let Ok(name) = Name::new(name)
                        && let Ok(child) = dir.lookup(name, Wait::May(may))
                    {
                        // A tree that is moved here is reported as one change.
                        self.cover(changes, child, matches!(deed, Deed::Made), may);
                    }
                }
            }
        }
    }
}

/// What watchers are told of a deed. A rename is reported as such only within one directory; `is_within` finds its other
/// half there.
fn change(deed: Deed, is_dir: bool, is_within: impl Fn(Deed) -> bool) -> (ChangeAction, ChangeKinds) {
    let names = if is_dir { ChangeKinds::DIR_NAME } else { ChangeKinds::FILE_NAME };
    match deed {
        Deed::Made => (ChangeAction::Added, names),
        Deed::Removed => (ChangeAction::Removed, names),
        Deed::MovedAway(number) if is_within(Deed::MovedHere(number)) => (ChangeAction::RenamedFrom, names),
        Deed::MovedAway(_) => (ChangeAction::Removed, names),
        Deed::MovedHere(number) if is_within(Deed::MovedAway(number)) => (ChangeAction::RenamedTo, names),
        Deed::MovedHere(_) => (ChangeAction::Added, names),
        Deed::Written => (ChangeAction::Modified, ChangeKinds::SIZE | ChangeKinds::LAST_WRITE),
        Deed::Attributes => (ChangeAction::Modified, ANY_ATTRIBUTES),
    }
}

/// Whether the other half of a rename is near: the kernel reports both at once, with few events in between.
fn is_near(all: &[Seen], index: usize, id: ObservedId, half: Deed) -> bool {
    let around = index.saturating_sub(NEAR)..index.saturating_add(NEAR).min(all.len());
    let mut near = all.get(around).unwrap_or_default().iter();
    near.any(|seen| matches!(seen, Seen::Entry { dir, deed, .. } if *dir == id && *deed == half))
}

fn announce(
    changes: &Changes,
    dir: &NodeRef,
    name: &[u8],
    action: ChangeAction,
    kinds: ChangeKinds,
    may: MayWait<'_>,
) {
    tracing::trace!(share = &*changes.name, name = %name.escape_ascii(), ?action, "a change by others");
    changes.announce(&Event { dir, name, action, kinds, unless: ChangeKinds::empty() }, may);
}

/// Reports an entry found in a new directory, unless it has been or will be reported otherwise.
fn tell_found(changes: &Changes, dir: &NodeRef, name: &[u8], is_dir: bool, may: MayWait<'_>) {
    let own = &changes.observation.own;
    if own.is_own(dir.id(), name, Effect::Modified) {
        return;
    }
    own.tell(dir.id(), name, Effect::Come, Instant::now());
    let (action, kinds) = change(Deed::Made, is_dir, |_| false);
    announce(changes, dir, name, action, kinds, may);
}

/// The entries of a directory, and whether the list is complete. Unless `all` is set, only directories are listed, at most
/// one more than can be observed.
fn entries(dir: &NodeRef, all: bool, may: MayWait<'_>) -> (Vec<(Vec<u8>, bool)>, bool) {
    let mut found = Vec::new();
    let listed = dir.survey(may, &mut |entry| {
        let kind = entry.kind.or_else(|| {
            let name = Name::new(entry.name).ok()?;
            dir.lookup(name, Wait::May(may)).ok().map(|node| node.kind())
        });
        let is_dir = kind == Some(FileKind::Directory);
        if is_dir || all {
            found.push((entry.name.to_vec(), is_dir));
        }
        let count_max = if all { ENTRIES_MAX } else { DIRECTORIES_MAX.saturating_add(1) };
        if found.len() >= count_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    (found, !all || listed.unwrap_or(true))
}

/// Whether a path is that of a directory, or below it.
fn is_below(top: &[u8], path: &[u8]) -> bool {
    top.is_empty() || path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::Storage;
    use storage::memory::MemoryStore;

    /// While the thread is busy with a large tree, clients begin and end watches as they like.
    #[test]
    fn watches_that_come_and_go_pile_up_nothing() {
        let (inbox, dir) = (Inbox::default(), MemoryStore::new().root());
        inbox.end(&dir, true);
        for recursive in [true, false].repeat(100) {
            inbox.push(Command::Begin { dir: Arc::clone(&dir), recursive });
            inbox.push(Command::Begin { dir: Arc::clone(&dir), recursive: true });
            inbox.end(&dir, recursive);
            inbox.end(&dir, true);
        }
        let left = inbox.take();
        assert!(matches!(left.as_slice(), [Command::End { recursive: true, .. }]), "{left:?}");
    }
}
