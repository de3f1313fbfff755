//! What is different between two snapshots, said by the source.
//!
//! First it is said what has left its place: so the destination can keep it for the place that it has now. Then the later snapshot
//! is gone through, beside the earlier one. A directory is compared with what it was in the earlier snapshot: in its place, or, if it
//! was said to have left its place, where it was then, if the store can find it by its handle. Any other directory is new to the
//! destination, even if the earlier snapshot has it: it was where names are not replicated. So is one that is not as deep below the root
//! as it was: something in it may have been too deep to be replicated ([`DEPTH_MAX`]), or be so now.
//!
//! If the store knows which objects may be different ([`Snapshots::touched`]), the others are not looked at. This holds for the
//! earlier snapshot, too: of a directory that was moved or removed, the one that was above it has changed, or is gone itself. So
//! whoever goes down from the root, and leaves out what is in its place and not touched, comes by everything that has left its
//! place.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use replica_wire::{DEPTH_MAX, Directory, Entry, Record, Version};
use storage::{
    Attributes, Error, FileKind, Handle, MayWait, Name, NodeRef, ObjectId, SnapshotId, Snapshots, Storage,
    Wait, Want,
};

use crate::attributes::{kind, number, time};
use crate::failure::Result;
use crate::state::Moment;
use crate::tree::{Named, names};

/// Two snapshots of a store.
#[derive(Debug)]
pub struct Compared {
    snapshots: Arc<dyn Snapshots>,
    earlier: Option<Opened>,
    later: Opened,
    /// What may be different; None: everything.
    touched: Option<HashSet<u64>>,
}

struct Opened {
    moment: Moment,
    store: Arc<dyn Storage>,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.moment.fmt(f)
    }
}

impl Compared {
    /// Opens the snapshots. Without an earlier one, everything is different. With each is when it was taken: not before this, since
    /// 1970, or None if change times tell all changes apart.
    ///
    /// # Errors
    /// One of them is not there.
    pub fn open(
        snapshots: &Arc<dyn Snapshots>,
        earlier: Option<(SnapshotId, Option<Duration>)>,
        later: (SnapshotId, Option<Duration>),
        may: MayWait<'_>,
    ) -> storage::Result<Self> {
        let open = |(id, taken)| {
            let store = snapshots.open(id, may)?;
            Ok::<_, Error>(Opened { moment: Moment { id, taken }, store })
        };
        let earlier = earlier.map(open).transpose()?;
        Ok(Self { snapshots: Arc::clone(snapshots), earlier, later: open(later)?, touched: None })
    }

    /// Has [`changes`] look only at what the store says may be different, if it knows that. Says meanwhile that it goes on.
    ///
    /// # Errors
    /// Those of `say`, and of the store.
    pub fn where_touched(
        mut self,
        may: MayWait<'_>,
        say: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<Self> {
        if let Some(earlier) = &self.earlier {
            let mut said = Ok(());
            let mut goes_on = || {
                said = say(&Record::Alive);
                if said.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            let touched = self.snapshots.touched(earlier.moment.id, self.later.moment.id, &mut goes_on, may);
            said?;
            self.touched = touched?;
        }
        Ok(self)
    }

    /// Whether the store knows what may be different.
    pub fn knows_touched(&self) -> bool {
        self.touched.is_some()
    }

    /// An object of the later snapshot.
    pub(crate) fn by_handle(&self, handle: &[u8], may: MayWait<'_>) -> storage::Result<NodeRef> {
        self.later.store.by_handle(&Handle::new(handle)?, Wait::May(may))
    }

    /// A file as it is in the earlier snapshot, if the destination has it as it is there.
    ///
    /// The destination is like the earlier snapshot, apart from what it has of the later one already. It does not ask for what it
    /// has of that; so a version with the change time of the earlier one is that. Its state may be that of a still earlier snapshot,
    /// since which the file was not touched.
    pub(crate) fn with_version(&self, file: &NodeRef, version: Version, may: MayWait<'_>) -> Option<NodeRef> {
        let earlier = self.earlier.as_ref().filter(|_| file.kind() == FileKind::Regular)?;
        let then = self.counterpart(file, &self.later, earlier, may)?;
        let was = then.attributes(Want::empty(), Wait::May(may)).ok()?;
        (version.ctime == time(was.ctime)).then_some(then)
    }

    /// Whether an object may be different, or something below it.
    fn is_touched(&self, id: ObjectId) -> bool {
        let is_known = id.fs == self.later.store.root().id().fs;
        self.touched.as_ref().is_none_or(|touched| !is_known || touched.contains(&id.number))
    }

    /// The same object in the other snapshot, wherever it is there.
    fn counterpart(&self, of: &NodeRef, from: &Opened, to: &Opened, may: MayWait<'_>) -> Option<NodeRef> {
        let live = self.snapshots.live_handle(&of.handle().ok()?, from.moment.id).ok()?;
        let there = self.snapshots.handle_in(&live, to.moment.id).ok()?;
        to.store.by_handle(&there, Wait::May(may)).ok().filter(|node| node.kind() == of.kind())
    }
}

/// Says what is different, and with each directory that it goes on.
///
/// # Errors
/// Those of `say`, and of the store.
pub fn changes(
    compared: &Compared,
    may: MayWait<'_>,
    say: &mut dyn FnMut(&Record) -> Result<()>,
) -> Result<()> {
    let mut moved = HashMap::new();
    if compared.earlier.is_some() {
        moved = Departures { compared, levels: Vec::new(), path: Vec::new(), moved, may }.tell(say)?;
    }
    Differences { compared, levels: Vec::new(), path: Vec::new(), moved: &moved, may }.tell(say)?;
    say(&Record::End)
}

/// What has left its place.
struct Departures<'a> {
    compared: &'a Compared,
    levels: Vec<Past>,
    path: Vec<Vec<u8>>,
    /// The directories that have left their places and are elsewhere now, with how deep they were.
    moved: HashMap<ObjectId, usize>,
    may: MayWait<'a>,
}

/// A directory of the earlier snapshot.
struct Past {
    then: NodeRef,
    now: Option<NodeRef>,
    names: VecDeque<Named>,
    present: BTreeMap<Vec<u8>, ObjectId>,
    /// Which object it is, if it has left its place itself.
    departed: Option<ObjectId>,
}

impl Departures<'_> {
    /// Returns the directories that are elsewhere now, with how deep they were.
    fn tell(mut self, say: &mut dyn FnMut(&Record) -> Result<()>) -> Result<HashMap<ObjectId, usize>> {
        let Some(earlier) = &self.compared.earlier else { return Ok(self.moved) };
        self.enter(earlier.store.root(), Some(self.compared.later.store.root()), None)?;
        while let Some(level) = self.levels.last_mut() {
            say(&Record::Alive)?;
            let Some(named) = level.names.pop_front() else {
                let departed = level.departed;
                self.levels.pop();
                if let Some(id) = departed {
                    say(&Record::Departed { path: self.path.clone(), number: number(id) })?;
                }
                self.path.pop();
                continue;
            };
            self.path.push(named.name.clone());
            if !self.look_at(&named, say)? {
                self.path.pop();
            }
        }
        Ok(self.moved)
    }

    fn enter(&mut self, then: NodeRef, now: Option<NodeRef>, departed: Option<ObjectId>) -> Result<()> {
        let is_root = self.levels.is_empty();
        let list = |dir: &NodeRef| names(dir, is_root, self.may);
        let present = now.as_ref().map(list).transpose()?.unwrap_or_default();
        let present = present.into_iter().map(|named| (named.name, numbered(named.id))).collect();
        let names = list(&then)?.into();
        if now.is_some() {
            self.moved.extend(departed.map(|id| (numbered(id), self.path.len())));
        }
        self.levels.push(Past { then, now, names, present, departed });
        Ok(())
    }

    /// Whether the name is that of a directory, which was entered.
    fn look_at(&mut self, named: &Named, say: &mut dyn FnMut(&Record) -> Result<()>) -> Result<bool> {
        let Some(level) = self.levels.last() else { return Ok(false) };
        let is_there = level.present.get(&named.name) == Some(&numbered(named.id));
        if is_there && !self.compared.is_touched(named.id) {
            return Ok(false);
        }
        let departed = (!is_there).then_some(named.id);
        if matches!(named.kind, None | Some(FileKind::Directory)) {
            let Some(then) = looked_up(&level.then, &named.name, self.may)? else { return Ok(false) };
            if then.kind() == FileKind::Directory && self.levels.len() < DEPTH_MAX {
                let now = match &level.now {
                    Some(now) if is_there => looked_up(now, &named.name, self.may)?,
                    _ => self.compared.earlier.as_ref().and_then(|earlier| {
                        self.compared.counterpart(&then, earlier, &self.compared.later, self.may)
                    }),
                };
                self.enter(then, now, departed)?;
                return Ok(true);
            }
        }
        if let Some(id) = departed {
            say(&Record::Departed { path: self.path.clone(), number: number(id) })?;
        }
        Ok(false)
    }
}

/// The directories in which something is different.
struct Differences<'a> {
    compared: &'a Compared,
    levels: Vec<Level>,
    path: Vec<Vec<u8>>,
    moved: &'a HashMap<ObjectId, usize>,
    may: MayWait<'a>,
}

/// A directory of the later snapshot.
struct Level {
    now: NodeRef,
    then: Option<NodeRef>,
    /// The directories in it that were not entered yet.
    dirs: VecDeque<Vec<u8>>,
}

/// What is different in a directory.
#[derive(Default)]
struct Found {
    entries: Vec<Entry>,
    /// The names that are not there any more.
    left: Vec<Vec<u8>>,
    /// The directories in which something may be different.
    dirs: VecDeque<Vec<u8>>,
}

impl Differences<'_> {
    fn tell(mut self, say: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
        let then = self.compared.earlier.as_ref().map(|earlier| earlier.store.root());
        self.enter(self.compared.later.store.root(), then, say)?;
        while let Some(level) = self.levels.last_mut() {
            let Some(name) = level.dirs.pop_front() else {
                self.levels.pop();
                self.path.pop();
                continue;
            };
            let (now, then) = (NodeRef::clone(&level.now), level.then.clone());
            let Some(child) = looked_up(&now, &name, self.may)? else { continue };
            let of_name = match &then {
                Some(then) => looked_up(then, &name, self.may)?,
                None => None,
            };
            let then = match of_name {
                Some(then) if then.id().number == child.id().number => Some(then),
                _ => self.compared.earlier.as_ref().and_then(|earlier| {
                    let depth = self.moved.get(&numbered(child.id())).copied();
                    let is_as_deep = depth == Some(self.path.len() + 1);
                    let later = &self.compared.later;
                    if is_as_deep {
                        self.compared.counterpart(&child, later, earlier, self.may)
                    } else {
                        None
                    }
                }),
            };
            self.path.push(name);
            self.enter(child, then, say)?;
        }
        Ok(())
    }

    fn enter(
        &mut self,
        now: NodeRef,
        then: Option<NodeRef>,
        say: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<()> {
        let mut found = self.look_through(&now, then.as_ref(), say)?;
        let dirs = std::mem::take(&mut found.dirs);
        if self.is_to_be_said(&now, then.as_ref(), &found)? {
            self.say(&now, then.is_some(), found, say)?;
        }
        self.levels.push(Level { now, then, dirs });
        Ok(())
    }

    /// What is different in a directory: everything, if it was not there before.
    fn look_through(
        &self,
        now: &NodeRef,
        then: Option<&NodeRef>,
        say: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<Found> {
        say(&Record::Alive)?;
        let list = |dir: &NodeRef| names(dir, self.levels.is_empty(), self.may);
        let before = then.map(list).transpose()?.unwrap_or_default();
        let mut before: BTreeMap<_, _> = before.into_iter().map(|named| (named.name, named.id)).collect();
        let mut found = Found::default();
        for Named { name, id, .. } in list(now)? {
            say(&Record::Alive)?;
            let is_there = before.remove(&name).map(numbered) == Some(numbered(id));
            if is_there && !self.compared.is_touched(id) {
                continue;
            }
            let looked = now.lookup_attributes(Name::new(&name)?, Want::empty(), Wait::May(self.may));
            let (node, attributes) = match looked {
                // Clients cannot see it either.
                Err(e) if storage::is_nowhere(e) || e == Error::PermissionDenied => {
                    found.left.push(name);
                    continue;
                }
                looked => looked?,
            };
            // The destination leaves out what is deeper.
            if attributes.kind == FileKind::Directory && self.path.len() + 1 < DEPTH_MAX {
                found.dirs.push_back(name.clone());
            }
            let was = if is_there { then } else { None };
            if !self.is_as_it_was(&name, &node, &attributes, was)? {
                found.entries.push(self.entry(name, &node, &attributes)?);
            }
        }
        found.left.extend(before.into_keys());
        Ok(found)
    }

    /// Whether an entry is that of the same object, and the object as it was. What is different of a directory is said with the directory.
    fn is_as_it_was(
        &self,
        name: &[u8],
        node: &NodeRef,
        attributes: &Attributes,
        then: Option<&NodeRef>,
    ) -> Result<bool> {
        let Some(then) = then else { return Ok(false) };
        let Some(was) = looked_up(then, name, self.may)? else { return Ok(false) };
        if was.id().number != attributes.id.number || was.kind() != attributes.kind {
            return Ok(false);
        }
        Ok(attributes.kind == FileKind::Directory || self.is_same(node, attributes, &was)?)
    }

    fn entry(&self, name: Vec<u8>, node: &NodeRef, attributes: &Attributes) -> Result<Entry> {
        Ok(Entry {
            name,
            kind: kind(attributes.kind),
            number: number(attributes.id),
            links: attributes.links,
            ctime: time(attributes.ctime),
            state: self.compared.later.moment.state(&**node, attributes, self.may)?,
            handle: node.handle()?.as_bytes().to_vec(),
        })
    }

    fn is_to_be_said(&self, now: &NodeRef, then: Option<&NodeRef>, found: &Found) -> Result<bool> {
        // The folder of the destination changes the times of the root.
        let is_root = self.levels.is_empty();
        let Some(then) = then.filter(|_| !is_root && found.entries.is_empty() && found.left.is_empty())
        else {
            return Ok(true);
        };
        let attributes = now.attributes(Want::empty(), Wait::May(self.may))?;
        Ok(!self.is_same(now, &attributes, then)?)
    }

    /// Whether an object itself is as it was. A directory's change time changes with its names.
    fn is_same(&self, now: &NodeRef, attributes: &Attributes, then: &NodeRef) -> Result<bool> {
        let Some(earlier) = &self.compared.earlier else { return Ok(false) };
        let was = then.attributes(Want::empty(), Wait::May(self.may))?;
        if was.ctime != attributes.ctime {
            return Ok(false);
        }
        let is = self.compared.later.moment.state(&**now, attributes, self.may)?;
        Ok(is == earlier.moment.state(&**then, &was, self.may)?)
    }

    fn say(
        &self,
        dir: &NodeRef,
        was_there: bool,
        found: Found,
        say: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<()> {
        let of_dir = dir.attributes(Want::empty(), Wait::May(self.may))?;
        say(&Record::Directory(Directory {
            path: self.path.clone(),
            number: number(of_dir.id),
            handle: dir.handle()?.as_bytes().to_vec(),
        }))?;
        for name in found.left {
            say(&Record::Left { name })?;
        }
        for entry in found.entries {
            say(&Record::Entry(entry))?;
        }
        say(if was_there { &Record::Rest } else { &Record::DirectoryEnd })
    }
}

/// What has a name in a directory; None for nothing.
fn looked_up(dir: &NodeRef, name: &[u8], may: MayWait<'_>) -> Result<Option<NodeRef>> {
    match dir.lookup(Name::new(name)?, Wait::May(may)) {
        Ok(node) => Ok(Some(node)),
        Err(e) if storage::is_nowhere(e) || e == Error::PermissionDenied => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// The number without the snapshot.
fn numbered(id: ObjectId) -> ObjectId {
    ObjectId { snapshot: 0, ..id }
}
