//! Snapshots that are stores of their own: the model of all providers. A snapshot is a copy of everything, and takes as much
//! room.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use super::file_systems::{handle_of, id_of};
use super::node::MemoryNode;
use super::object::Object;
use super::{ROOT, Shared, State};
use crate::{
    BEFORE_REVERT, Capabilities, Error, FileKind, FoundSnapshot, Handle, MayWait, NoSnapshots, NodeRef,
    ObjectId, Result, Snapshot, SnapshotId, Snapshots, Space, Storage, Timestamp, Wait, in_order,
    name_beside,
};

/// The snapshots of a store.
#[derive(Debug)]
pub(super) struct MemorySnapshots(Arc<Shared>);

impl MemorySnapshots {
    pub(super) fn of(shared: &Arc<Shared>) -> Self {
        Self(Arc::clone(shared))
    }
}

impl Snapshots for MemorySnapshots {
    fn list(&self, _: MayWait<'_>) -> Result<Vec<Snapshot>> {
        Ok(self.0.state.lock().snapshots())
    }

    fn file_system(&self) -> Vec<u8> {
        Arc::as_ptr(&self.0).addr().to_ne_bytes().to_vec()
    }

    fn take(&self, label: &str, _: MayWait<'_>) -> Result<Snapshot> {
        self.0.state.lock().take(label)
    }

    fn open(&self, id: SnapshotId, _: MayWait<'_>) -> Result<Arc<dyn Storage>> {
        self.0.state.lock().check_taken(id)?;
        Ok(Arc::new(MemorySnapshot { shared: Arc::clone(&self.0), id: id.0 }))
    }

    fn remove(&self, id: SnapshotId, _: MayWait<'_>) -> Result<()> {
        self.0.state.lock().remove_snapshot(id)
    }

    fn handle_in(&self, live: &Handle, id: SnapshotId) -> Result<Handle> {
        let known = id_of(live)?;
        if known.is_live() { handle_of(ObjectId { snapshot: id.0, ..known }) } else { Err(Error::BadHandle) }
    }

    fn live_handle(&self, handle: &Handle, id: SnapshotId) -> Result<Handle> {
        let known = id_of(handle)?;
        if known.snapshot == id.0 {
            handle_of(ObjectId { snapshot: 0, ..known })
        } else {
            Err(Error::BadHandle)
        }
    }

    fn touched(
        &self,
        earlier: SnapshotId,
        later: SnapshotId,
        goes_on: &mut dyn FnMut() -> ControlFlow<()>,
        _: MayWait<'_>,
    ) -> Result<Option<HashSet<u64>>> {
        if goes_on().is_break() {
            return Ok(None);
        }
        let state = self.0.state.lock();
        state.check_taken(earlier)?;
        state.check_taken(later)?;
        Ok(Some(state.touched(earlier, later)))
    }

    fn can_revert(&self, _: MayWait<'_>) -> std::result::Result<(), NoSnapshots> {
        Ok(())
    }

    fn revert(&self, id: SnapshotId, _: MayWait<'_>) -> Result<Snapshot> {
        self.0.state.lock().revert(id)
    }
}

/// A snapshot as a store.
#[derive(Debug)]
struct MemorySnapshot {
    shared: Arc<Shared>,
    id: u32,
}

impl Storage for MemorySnapshot {
    fn capabilities(&self) -> Capabilities {
        Capabilities::all() - Capabilities::WRITE
    }

    fn root(&self) -> NodeRef {
        let top = ObjectId { snapshot: self.id, ..ROOT };
        MemoryNode::pin(&self.shared, &mut self.shared.state.lock(), top, FileKind::Directory)
    }

    fn by_handle(&self, handle: &Handle, wait: Wait<'_>) -> Result<NodeRef> {
        let id = id_of(handle)?;
        if id.snapshot == self.id { self.shared.find(id, wait) } else { Err(Error::BadHandle) }
    }

    fn space(&self, _: MayWait<'_>) -> Result<Space> {
        Ok(self.shared.space())
    }
}

impl State {
    fn check_taken(&self, id: SnapshotId) -> Result<()> {
        if self.taken.contains_key(&id.0) { Ok(()) } else { Err(Error::NotFound) }
    }

    fn snapshots(&self) -> Vec<Snapshot> {
        let found = self.taken.iter().map(|(id, name)| FoundSnapshot {
            id: SnapshotId(*id),
            name: name.to_string(),
            recorded: Timestamp { secs: name.secs(), nanos: 0 },
            is_own: true,
            uuid: None,
        });
        in_order(found.collect())
    }

    fn take(&mut self, label: &str) -> Result<Snapshot> {
        let now = self.now();
        let name = name_beside(label, now, &self.snapshots()).ok_or(Error::InvalidName)?;
        if self.taken.len() >= self.taken_max {
            return Err(Error::SnapshotLimit(u32::try_from(self.taken.len()).unwrap_or(u32::MAX)));
        }
        self.check_room(ObjectId::is_live)?;
        let id = self.add_pictures();
        let taken = Timestamp { secs: name.secs(), nanos: 0 };
        let snapshot =
            Snapshot { id: SnapshotId(id), name: name.to_string(), taken, is_own: true, uuid: None };
        self.taken.insert(id, name);
        Ok(snapshot)
    }

    /// Checks that there is room for copies of these objects.
    fn check_room(&self, is_copied: impl Fn(ObjectId) -> bool) -> Result<()> {
        let pages: u64 = self.objects.values().filter(|o| is_copied(o.id)).map(Object::pages).sum();
        if self.pages.saturating_add(pages) > self.pages_max { Err(Error::NoSpace) } else { Ok(()) }
    }

    /// The objects with another change time or other streams, and the objects that name these. A store in memory has no two changes
    /// at one time.
    fn touched(&self, earlier: SnapshotId, later: SnapshotId) -> HashSet<u64> {
        let mut touched = HashSet::from([ROOT.number]);
        for object in self.objects.values().filter(|object| object.id.snapshot == later.0) {
            let then = self.objects.get(&ObjectId { snapshot: earlier.0, ..object.id });
            if then.is_some_and(|then| is_same(then, object)) {
                continue;
            }
            let mut rest = vec![object.id];
            while let Some(id) = rest.pop() {
                touched.insert(id.number);
                let names = self.objects.get(&id).map(|object| &object.names).into_iter().flatten();
                rest.extend(names.map(|(above, _)| *above).filter(|above| !touched.contains(&above.number)));
            }
        }
        touched
    }

    fn remove_snapshot(&mut self, id: SnapshotId) -> Result<()> {
        self.taken.remove(&id.0).ok_or(Error::NotFound)?;
        self.let_go(|object| object.snapshot == id.0);
        Ok(())
    }

    /// Takes the names of these objects away: what nobody holds is freed.
    fn let_go(&mut self, is_meant: impl Fn(ObjectId) -> bool) {
        let ids: Vec<ObjectId> = self.objects.keys().copied().filter(|id| is_meant(*id)).collect();
        for id in &ids {
            if let Some(object) = self.objects.get_mut(id) {
                object.names.clear();
            }
        }
        for id in ids {
            self.free_unused(id);
        }
    }

    /// The objects of the snapshot get new numbers in the store, so that nobody takes them for those that were there.
    fn revert(&mut self, id: SnapshotId) -> Result<Snapshot> {
        self.check_taken(id)?;
        let is_of_it = |object: ObjectId| object.snapshot == id.0;
        self.check_room(|object| object.is_live() || is_of_it(object))?;
        let before = self.take(BEFORE_REVERT)?;
        self.let_go(|object| object.is_live() && object.fs == ROOT.fs && object != ROOT);
        let pictures: Vec<ObjectId> = self.objects.keys().copied().filter(|id| is_of_it(*id)).collect();
        let mut numbers = BTreeMap::from([(ROOT.number, ROOT)]);
        for picture in &pictures {
            if picture.number != ROOT.number {
                numbers.insert(picture.number, self.new_id(ROOT)?);
            }
        }
        let live = |picture: ObjectId| numbers.get(&picture.number).copied();
        for picture in pictures {
            let Some(id) = live(picture) else { continue };
            let mut object = self.object(picture)?.as_of(id, live);
            object.held = self.objects.get(&id).map_or(0, |former| former.held);
            self.pages += object.pages();
            self.objects.insert(id, object);
        }
        self.changes.tell_all();
        Ok(before)
    }
}

/// Whether an object is in one snapshot as it is in another one, apart from the contents of its streams.
fn is_same(one: &Object, other: &Object) -> bool {
    let streams =
        |of: &Object| of.streams.iter().map(|(name, id)| (name.clone(), id.number)).collect::<Vec<_>>();
    one.ctime == other.ctime && streams(one) == streams(other)
}
