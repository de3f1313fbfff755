//! Changes by others: programs of this machine that work on the directory of a share behind the server's back.
//!
//! While somebody watches, one thread a share observes the watched directories (and what lies below them, where the tree
//! is watched) and tells the watchers what the server did not do itself. Where the system allows no more of it, the
//! server's own changes are still told.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use parking_lot::Mutex;
use storage::{
    Deed, Error as StoreError, FileId, FileKind, Name, NodeRef, Observed, ObservedId, Observer, Wait,
};

use crate::notify::Event;
use crate::own_changes::{Effect, OwnChanges};
use crate::{ChangeAction, ChangeKinds, Share};

/// Directories of a share that are observed at a time: each takes a descriptor.
const DIRECTORIES_MAX: usize = 4096;
/// Entries of a directory that has just come which are told one by one.
const ENTRIES_MAX: usize = 4096;
/// How far apart the two halves of a rename may be.
const NEAR: usize = 16;
/// What may have changed when the kernel says that attributes have.
const ANY_ATTRIBUTES: ChangeKinds = ChangeKinds::ATTRIBUTES
    .union(ChangeKinds::LAST_WRITE)
    .union(ChangeKinds::LAST_ACCESS)
    .union(ChangeKinds::CREATION)
    .union(ChangeKinds::EA)
    .union(ChangeKinds::SECURITY);

/// What the thread is to do.
#[derive(Debug)]
enum Command {
    Begin { dir: NodeRef, recursive: bool },
    End { dir: NodeRef, recursive: bool },
    Stop,
}

/// What the thread finds when it is woken. Guards the list.
#[derive(Debug, Default)]
struct Inbox(Mutex<Vec<Command>>);

impl Inbox {
    fn push(&self, command: Command) {
        self.0.lock().push(command);
    }

    fn take(&self) -> Vec<Command> {
        std::mem::take(&mut *self.0.lock())
    }

    /// A watch has ended. One that the thread has not heard of yet never was: watches that come and go faster than the
    /// thread can follow pile up nothing.
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

/// The way to the thread that observes.
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

/// What a share has to do with observing.
#[derive(Debug, Default)]
pub(crate) struct Observation {
    pub(crate) own: OwnChanges,
    /// Guards the way to the thread and the number of watches that it serves.
    running: Mutex<Running>,
    has_complained: AtomicBool,
    /// How many directories are observed.
    pub(crate) directories: AtomicUsize,
}

impl Observation {
    /// Observes for a watch that begins.
    pub(crate) fn begin(&self, share: &Arc<Share>, dir: &NodeRef, recursive: bool) {
        let (mut new, mut tried) = (None, false);
        let link = loop {
            let mut running = self.running.lock();
            if running.link.is_none() && new.is_none() && !tried {
                drop(running);
                (new, tried) = (self.start(share), true);
                continue;
            }
            if running.link.is_none() {
                running.link = new.take().and_then(|link| self.spawn(share, link));
            }
            running.watches += 1;
            break running.link.clone();
        };
        if let Some(link) = link {
            link.inbox.push(Command::Begin { dir: Arc::clone(dir), recursive });
            link.observer.wake();
        }
    }

    /// A watch has ended.
    pub(crate) fn end(&self, dir: &NodeRef, recursive: bool) {
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

    fn start(&self, share: &Share) -> Option<Link> {
        match share.store.observer() {
            Ok(observer) => Some(Link { observer, inbox: Arc::default() }),
            Err(StoreError::NotSupported) => None,
            Err(e) => {
                self.complain(share, e);
                None
            }
        }
    }

    fn spawn(&self, share: &Arc<Share>, link: Link) -> Option<Link> {
        let thread = Thread {
            share: Arc::downgrade(share),
            link: link.clone(),
            dirs: HashMap::new(),
            numbers: HashMap::new(),
            trees: Vec::new(),
        };
        match std::thread::Builder::new().name("observe".to_owned()).spawn(move || thread.run()) {
            Ok(_) => {
                self.own.set_observed(true);
                Some(link)
            }
            Err(_) => {
                self.complain(share, StoreError::OutOfResources);
                None
            }
        }
    }

    /// Says, once, that not everything is observed.
    fn complain(&self, share: &Share, error: StoreError) {
        if !self.has_complained.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                share = share.name(),
                "not all changes by programs of this machine are told to clients that watch directories: {error} \
                 (sysctl fs.inotify.max_user_watches and max_user_instances may be too low)"
            );
        }
    }
}

/// A directory that is observed.
#[derive(Debug)]
struct Directory {
    node: NodeRef,
    /// Watches on itself.
    watches: usize,
    /// Whether it belongs to a tree that is watched.
    in_tree: bool,
}

/// What was observed, kept for a moment.
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

/// The thread that observes for a share, and all that it knows.
#[derive(Debug)]
struct Thread {
    share: Weak<Share>,
    link: Link,
    dirs: HashMap<ObservedId, Directory>,
    numbers: HashMap<FileId, ObservedId>,
    /// The tops of the trees that are watched, one for each watch.
    trees: Vec<NodeRef>,
}

impl Drop for Thread {
    /// However it ends: the next watch starts another one.
    fn drop(&mut self) {
        let Some(share) = self.share.upgrade() else { return };
        let observation = share.changes().observation();
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
    fn run(mut self) {
        loop {
            let mut seen = Vec::new();
            let mut first = None;
            let waited = self.link.observer.wait(&mut |observed| {
                first.get_or_insert_with(Instant::now);
                seen.push(Seen::from(observed));
            });
            let Some(share) = self.share.upgrade() else { return };
            let whole = match waited {
                Ok(whole) => whole,
                Err(e) => return share.changes().observation().complain(&share, e),
            };
            if !seen.is_empty() {
                share.changes().observation().own.settle();
            }
            // First: what was seen after the last watch had ended is nobody's concern, and was not remembered.
            for command in self.link.inbox.take() {
                match command {
                    Command::Begin { dir, recursive } => self.begin(&share, dir, recursive),
                    Command::End { dir, recursive } => self.end(&share, &dir, recursive),
                    Command::Stop => return,
                }
            }
            self.judge(&share, &seen);
            // Everything done before the first of these was given is among them.
            if let (true, Some(first)) = (whole, first) {
                share.changes().observation().own.forget(first);
            }
            share.changes().observation().directories.store(self.dirs.len(), Ordering::Relaxed);
        }
    }

    fn begin(&mut self, share: &Share, dir: NodeRef, recursive: bool) {
        if recursive {
            share.changes().observation().own.set_trees(true);
            let is_covered =
                self.numbers.get(&dir.id()).and_then(|id| self.dirs.get(id)).is_some_and(|d| d.in_tree);
            self.trees.push(Arc::clone(&dir));
            if !is_covered {
                self.cover(share, dir, false);
            }
        } else if let Some(directory) = self.observe(share, &dir) {
            directory.watches += 1;
        }
    }

    fn end(&mut self, share: &Share, dir: &NodeRef, recursive: bool) {
        if recursive {
            if let Some(index) = self.trees.iter().position(|tree| tree.id() == dir.id()) {
                self.trees.swap_remove(index);
            }
            share.changes().observation().own.set_trees(!self.trees.is_empty());
            self.uncover(share);
        } else if let Some(directory) = self.numbers.get(&dir.id()).and_then(|id| self.dirs.get_mut(id)) {
            directory.watches = directory.watches.saturating_sub(1);
            self.ignore_unused(share);
        }
    }

    /// Observes a directory, if that is possible.
    fn observe(&mut self, share: &Share, dir: &NodeRef) -> Option<&mut Directory> {
        let complain = |error| share.changes().observation().complain(share, error);
        if self.dirs.len() >= DIRECTORIES_MAX && !self.numbers.contains_key(&dir.id()) {
            complain(StoreError::OutOfResources);
            return None;
        }
        // Before: what the server does there from now on is seen.
        share.changes().observation().own.set_place(dir.id(), true);
        match self.link.observer.observe(&**dir) {
            Ok(id) => {
                self.numbers.insert(dir.id(), id);
                let new = || Directory { node: Arc::clone(dir), watches: 0, in_tree: false };
                Some(self.dirs.entry(id).or_insert_with(new))
            }
            Err(e) => {
                share.changes().observation().own.set_place(dir.id(), false);
                // Else it is gone already.
                if !matches!(e, StoreError::NotFound | StoreError::Stale | StoreError::NotDirectory) {
                    complain(e);
                }
                None
            }
        }
    }

    /// Observes the tree below a directory. Where the tree has just come, what is in it is told.
    fn cover(&mut self, share: &Share, top: NodeRef, tell: bool) {
        let mut left = vec![top];
        while let Some(dir) = left.pop() {
            let Some(directory) = self.observe(share, &dir) else { continue };
            directory.in_tree = true;
            let (entries, whole) = entries(&dir, tell);
            if tell {
                share.changes().observation().own.settle();
            }
            if !whole {
                share.changes().overflow();
            }
            for (name, is_dir) in entries {
                if tell {
                    tell_found(share, &dir, &name, is_dir);
                }
                // Each that is left takes a descriptor too.
                if is_dir && left.len() >= DIRECTORIES_MAX {
                    share.changes().observation().complain(share, StoreError::OutOfResources);
                } else if is_dir
                    && let Ok(name) = Name::new(&name)
                    && let Ok(child) = dir.lookup(name, Wait::May)
                {
                    left.push(child);
                }
            }
        }
    }

    /// After a tree is watched no more: finds out which directories still belong to one.
    fn uncover(&mut self, share: &Share) {
        let tops: Vec<Vec<u8>> = self.trees.iter().filter_map(|tree| tree.path().ok()).collect();
        for directory in self.dirs.values_mut().filter(|directory| directory.in_tree) {
            let path = directory.node.path();
            directory.in_tree = path.is_ok_and(|path| tops.iter().any(|top| is_below(top, &path)));
        }
        self.ignore_unused(share);
    }

    fn ignore_unused(&mut self, share: &Share) {
        let unused = |directory: &Directory| directory.watches == 0 && !directory.in_tree;
        for (id, directory) in self.dirs.extract_if(|_, directory| unused(directory)) {
            self.numbers.remove(&directory.node.id());
            self.link.observer.ignore(id);
            share.changes().observation().own.set_place(directory.node.id(), false);
        }
    }

    /// Tells the watchers of what others have done.
    fn judge(&mut self, share: &Share, all: &[Seen]) {
        for (index, seen) in all.iter().enumerate() {
            match seen {
                Seen::Lost => {
                    share.changes().overflow();
                    // Directories may have come unseen.
                    let mut covered = HashSet::new();
                    for tree in self.trees.clone() {
                        if covered.insert(tree.id()) {
                            self.cover(share, tree, false);
                        }
                    }
                }
                Seen::Ended(id) => {
                    if let Some(directory) = self.dirs.remove(id) {
                        self.numbers.remove(&directory.node.id());
                        share.changes().observation().own.set_place(directory.node.id(), false);
                    }
                }
                Seen::Entry { dir: id, name, is_dir, deed } => {
                    let Some(Directory { node, in_tree, .. }) = self.dirs.get(id) else { continue };
                    let (dir, in_tree) = (Arc::clone(node), *in_tree);
                    let (action, kinds) = change(*deed, *is_dir, |half| is_near(all, index, *id, half));
                    let is_own = share.changes().observation().own.is_own(dir.id(), name, action.into());
                    // What is done in a directory that was moved out of the share is nobody's business here.
                    if !is_own && dir.check_place().is_ok() {
                        announce(share, &dir, name, action, kinds);
                    }
                    if in_tree
                        && *is_dir
                        && Effect::from(action) == Effect::Come
                        && let Ok(name) = Name::new(name)
                        && let Ok(child) = dir.lookup(name, Wait::May)
                    {
                        // What is moved here as a whole is told as a whole.
                        self.cover(share, child, matches!(deed, Deed::Made));
                    }
                }
            }
        }
    }
}

/// What a deed is to watchers. A rename is one only within a directory; `is_within` finds its other half there.
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

/// Whether the other half of a rename is there: the kernel gives both at once, and little comes in between.
fn is_near(all: &[Seen], index: usize, id: ObservedId, half: Deed) -> bool {
    let around = index.saturating_sub(NEAR)..index.saturating_add(NEAR).min(all.len());
    let mut near = all.get(around).unwrap_or_default().iter();
    near.any(|seen| matches!(seen, Seen::Entry { dir, deed, .. } if *dir == id && *deed == half))
}

fn announce(share: &Share, dir: &NodeRef, name: &[u8], action: ChangeAction, kinds: ChangeKinds) {
    tracing::trace!(share = share.name(), name = %name.escape_ascii(), ?action, "a change by others");
    share.changes().announce(&Event { dir, name, action, kinds, unless: ChangeKinds::empty() });
}

/// Tells of an entry that was found in a directory that has just come, unless that was or will be told otherwise.
fn tell_found(share: &Share, dir: &NodeRef, name: &[u8], is_dir: bool) {
    let own = &share.changes().observation().own;
    if own.is_own(dir.id(), name, Effect::Modified) {
        return;
    }
    own.tell(dir.id(), name, Effect::Come, Instant::now());
    let (action, kinds) = change(Deed::Made, is_dir, |_| false);
    announce(share, dir, name, action, kinds);
}

/// The entries of a directory, and whether these are all; unless all are wanted the directories only, one more than can be
/// observed at most.
fn entries(dir: &NodeRef, all: bool) -> (Vec<(Vec<u8>, bool)>, bool) {
    let mut found = Vec::new();
    let listed = dir.survey(&mut |entry| {
        let kind = entry.kind.or_else(|| {
            let name = Name::new(entry.name).ok()?;
            dir.lookup(name, Wait::May).ok().map(|node| node.kind())
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

/// Whether a path is that of a directory or lies below it.
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
