//! What is different between two snapshots, said by the source.
//!
//! First it is said what has left its place: so the destination can keep it for the place that it has now. Then the later snapshot
//! is gone through, beside the earlier one. A directory is compared with what it was in the earlier snapshot, wherever it was then, if
//! the store can find it by its handle, and otherwise with what had its name.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use replica_wire::{DEPTH_MAX, Directory, Entry, Record};
use storage::{
    Attributes, Error, FileKind, MayWait, Name, NodeRef, ObjectId, SnapshotId, Snapshots, Storage, Wait, Want,
};

use crate::attributes::{kind, number, time};
use crate::failure::{Failure, Result};
use crate::state::Moment;
use crate::tree::{Named, names};

/// Two snapshots of a store.
#[derive(Debug)]
pub struct Compared {
    snapshots: Arc<dyn Snapshots>,
    earlier: Option<Opened>,
    later: Opened,
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
        Ok(Self { snapshots: Arc::clone(snapshots), earlier, later: open(later)? })
    }

    /// The same directory in the other snapshot, wherever it is there.
    fn counterpart(&self, dir: &NodeRef, from: &Opened, to: &Opened, may: MayWait<'_>) -> Option<NodeRef> {
        let live = self.snapshots.live_handle(&dir.handle().ok()?, from.moment.id).ok()?;
        let there = self.snapshots.handle_in(&live, to.moment.id).ok()?;
        to.store.by_handle(&there, Wait::May(may)).ok().filter(|node| node.kind() == FileKind::Directory)
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
    if compared.earlier.is_some() {
        Departures { compared, levels: Vec::new(), path: Vec::new(), may }.tell(say)?;
    }
    Differences { compared, levels: Vec::new(), path: Vec::new(), may }.tell(say)?;
    say(&Record::End)
}

/// What has left its place.
struct Departures<'a> {
    compared: &'a Compared,
    levels: Vec<Past>,
    path: Vec<Vec<u8>>,
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
    fn tell(mut self, say: &mut dyn FnMut(&Record) -> Result<()>) -> Result<()> {
        let Some(earlier) = &self.compared.earlier else { return Ok(()) };
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
        Ok(())
    }

    fn enter(&mut self, then: NodeRef, now: Option<NodeRef>, departed: Option<ObjectId>) -> Result<()> {
        let is_root = self.levels.is_empty();
        let list = |dir: &NodeRef| names(dir, is_root, self.may);
        let present = now.as_ref().map(list).transpose()?.unwrap_or_default();
        let present = present.into_iter().map(|named| (named.name, numbered(named.id))).collect();
        let names = list(&then)?.into();
        self.levels.push(Past { then, now, names, present, departed });
        Ok(())
    }

    /// Whether the name is that of a directory, which was entered.
    fn look_at(&mut self, named: &Named, say: &mut dyn FnMut(&Record) -> Result<()>) -> Result<bool> {
        let Some(level) = self.levels.last() else { return Ok(false) };
        let is_there = level.present.get(&named.name) == Some(&numbered(named.id));
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
    may: MayWait<'a>,
}

/// A directory of the later snapshot.
struct Level {
    now: NodeRef,
    then: Option<NodeRef>,
    /// The directories in it that were not entered yet.
    dirs: VecDeque<Vec<u8>>,
}

/// An entry of the later snapshot.
struct Present {
    name: Vec<u8>,
    attributes: Attributes,
    /// None: they were not asked for yet.
    more: Option<More>,
}

/// What takes longer to find out.
struct More {
    state: u64,
    handle: Vec<u8>,
}

impl More {
    fn of(node: &NodeRef, attributes: &Attributes, moment: Moment, may: MayWait<'_>) -> Result<Self> {
        let state = moment.state(&**node, attributes.ctime, may)?;
        Ok(Self { state, handle: node.handle()?.as_bytes().to_vec() })
    }
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
                    self.compared.counterpart(&child, &self.compared.later, earlier, self.may)
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
        if self.levels.len() >= DEPTH_MAX {
            return Err(Failure::from(Error::NameTooLong).at(&self.path));
        }
        say(&Record::Alive)?;
        let entries = self.list(&now, then.is_none())?;
        let is_different = match &then {
            // The folder of the destination changes its times.
            _ if self.levels.is_empty() => true,
            Some(then) => self.is_different(&now, then, &entries)?,
            None => true,
        };
        let is_dir = |present: &&Present| present.attributes.kind == FileKind::Directory;
        let dirs = entries.iter().filter(is_dir).map(|present| present.name.clone()).collect();
        if is_different {
            self.say(&now, entries, say)?;
        }
        self.levels.push(Level { now, then, dirs });
        Ok(())
    }

    fn list(&self, dir: &NodeRef, is_new: bool) -> Result<Vec<Present>> {
        let mut list = Vec::new();
        for Named { name, .. } in names(dir, self.levels.is_empty(), self.may)? {
            let found = dir.lookup_attributes(Name::new(&name)?, Want::empty(), Wait::May(self.may));
            let (node, attributes) = match found {
                // Clients cannot see it either.
                Err(e) if storage::is_nowhere(e) || e == Error::PermissionDenied => continue,
                found => found?,
            };
            let more = if is_new {
                Some(More::of(&node, &attributes, self.compared.later.moment, self.may)?)
            } else {
                None
            };
            list.push(Present { name, attributes, more });
        }
        Ok(list)
    }

    /// Whether a directory, or what is in it, is not as it was. A directory's change time changes with its names.
    fn is_different(&self, now: &NodeRef, then: &NodeRef, entries: &[Present]) -> Result<bool> {
        let attributes = now.attributes(Want::empty(), Wait::May(self.may))?;
        if !self.is_same(now, &attributes, then)? {
            return Ok(true);
        }
        for Present { name, attributes, .. } in entries {
            let Some(then) = looked_up(then, name, self.may)? else { return Ok(true) };
            if then.id().number != attributes.id.number || then.kind() != attributes.kind {
                return Ok(true);
            }
            if attributes.kind != FileKind::Directory {
                let Some(now) = looked_up(now, name, self.may)? else { return Ok(true) };
                if !self.is_same(&now, attributes, &then)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether an object itself is as it was.
    fn is_same(&self, now: &NodeRef, attributes: &Attributes, then: &NodeRef) -> Result<bool> {
        let Some(earlier) = &self.compared.earlier else { return Ok(false) };
        let was = then.attributes(Want::empty(), Wait::May(self.may))?;
        if (was.ctime, was.size) != (attributes.ctime, attributes.size) {
            return Ok(false);
        }
        let is = self.compared.later.moment.state(&**now, attributes.ctime, self.may)?;
        Ok(is == earlier.moment.state(&**then, was.ctime, self.may)?)
    }

    fn say(
        &self,
        dir: &NodeRef,
        entries: Vec<Present>,
        say: &mut dyn FnMut(&Record) -> Result<()>,
    ) -> Result<()> {
        let of_dir = dir.attributes(Want::empty(), Wait::May(self.may))?;
        say(&Record::Directory(Directory {
            path: self.path.clone(),
            number: number(of_dir.id),
            handle: dir.handle()?.as_bytes().to_vec(),
        }))?;
        for Present { name, attributes, more } in entries {
            let More { state, handle } = match more {
                Some(more) => more,
                None => {
                    let Some(node) = looked_up(dir, &name, self.may)? else { continue };
                    More::of(&node, &attributes, self.compared.later.moment, self.may)?
                }
            };
            say(&Record::Entry(Entry {
                name,
                kind: kind(attributes.kind),
                number: number(attributes.id),
                links: attributes.links,
                ctime: time(attributes.ctime),
                state,
                handle,
            }))?;
        }
        say(&Record::DirectoryEnd)
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
