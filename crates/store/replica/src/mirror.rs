//! A store that shows the last complete snapshot of another store, and never what is becoming of that one.
//!
//! An object has the same handle in all snapshots: that of the store itself. Which snapshot is shown can change at any moment. An
//! object that somebody has found is then looked up by its handle in the snapshot that is shown, so it goes on under the same handle,
//! with what it is now; and it is stale if it is not there.

use std::any::Any;
use std::ops::ControlFlow;
use std::sync::Arc;

use acl::SecurityDescriptor;
use parking_lot::RwLock;
use storage::{
    Attributes, Capabilities, DirEntry, Error, FileKind, Handle, MayWait, Name, NoSnapshots, Node, NodeRef,
    ObjectId, Result, SeekTo, SnapshotId, Snapshots, Space, Storage, StreamEntry, StreamName, Wait, Want,
};

/// A store that shows a snapshot of another one, read-only.
pub struct MirrorStore {
    shown: Arc<Shown>,
}

/// What is shown.
pub struct Shown {
    live: Arc<dyn Storage>,
    snapshots: Arc<dyn Snapshots>,
    /// Guards itself alone.
    now: RwLock<Snapshot>,
}

/// The snapshot that is shown.
#[derive(Clone)]
struct Snapshot {
    id: SnapshotId,
    store: Arc<dyn Storage>,
}

impl std::fmt::Debug for Shown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shown").field("snapshot", &self.now.read().id).finish_non_exhaustive()
    }
}

impl Shown {
    /// The store that changes, which nobody else shows.
    #[must_use]
    pub fn live(&self) -> &Arc<dyn Storage> {
        &self.live
    }

    /// Which snapshot is shown.
    #[must_use]
    pub fn snapshot(&self) -> SnapshotId {
        self.now.read().id
    }

    /// Shows another snapshot from now on.
    ///
    /// # Errors
    /// It is not there.
    pub fn show(&self, id: SnapshotId, may: MayWait<'_>) -> Result<()> {
        let store = self.snapshots.open(id, may)?;
        *self.now.write() = Snapshot { id, store };
        Ok(())
    }

    /// The handle of an object of a snapshot in the store itself.
    fn handle_of(&self, node: &NodeRef, of: SnapshotId) -> Result<Handle> {
        self.snapshots.live_handle(&node.handle()?, of)
    }

    fn now(&self) -> Snapshot {
        self.now.read().clone()
    }

    fn find(&self, now: &Snapshot, handle: &Handle, wait: Wait<'_>) -> Result<NodeRef> {
        now.store.by_handle(&self.snapshots.handle_in(handle, now.id)?, wait)
    }
}

impl MirrorStore {
    /// Shows this snapshot of a store.
    ///
    /// # Errors
    /// [`Error::NotSupported`] if the store has no snapshots, or does not know handles of the same object in several of them;
    /// [`Error::NotFound`] if the snapshot is not there.
    pub fn new(live: Arc<dyn Storage>, id: SnapshotId, may: MayWait<'_>) -> Result<Self> {
        let snapshots = live.snapshots().map_err(|_| Error::NotSupported)?;
        let store = snapshots.open(id, may)?;
        snapshots.live_handle(&store.root().handle()?, id)?;
        Ok(Self { shown: Arc::new(Shown { live, snapshots, now: RwLock::new(Snapshot { id, store }) }) })
    }

    /// What is shown, for who changes that.
    #[must_use]
    pub fn shown(&self) -> &Arc<Shown> {
        &self.shown
    }
}

impl Storage for MirrorStore {
    fn capabilities(&self) -> Capabilities {
        self.shown.now.read().store.capabilities() - Capabilities::WRITE
    }

    fn root(&self) -> NodeRef {
        let now = self.shown.now();
        MirrorNode::of(&self.shown, &now, now.store.root(), true)
    }

    fn by_handle(&self, handle: &Handle, wait: Wait<'_>) -> Result<NodeRef> {
        let now = self.shown.now();
        let node = self.shown.find(&now, handle, wait)?;
        let is_root = node.id() == now.store.root().id();
        Ok(MirrorNode::of(&self.shown, &now, node, is_root))
    }

    /// Those of the store itself: who looks at earlier versions sees earlier states of the replica.
    fn snapshots(&self) -> std::result::Result<Arc<dyn Snapshots>, NoSnapshots> {
        Ok(Arc::new(MirrorSnapshots(Arc::clone(&self.shown.snapshots))))
    }

    fn space(&self, may: MayWait<'_>) -> Result<Space> {
        self.shown.live.space(may)
    }

    fn is_in_place(&self, may: MayWait<'_>) -> Result<bool> {
        self.shown.live.is_in_place(may)
    }
}

/// The snapshots of a store that nobody may take one of, because it may be half of what it is to be.
#[derive(Debug)]
struct MirrorSnapshots(Arc<dyn Snapshots>);

impl Snapshots for MirrorSnapshots {
    fn list(&self, may: MayWait<'_>) -> Result<Vec<storage::Snapshot>> {
        self.0.list(may)
    }

    fn file_system(&self) -> Vec<u8> {
        self.0.file_system()
    }

    fn take(&self, _: &str, _: MayWait<'_>) -> Result<storage::Snapshot> {
        Err(Error::ReadOnly)
    }

    fn open(&self, id: SnapshotId, may: MayWait<'_>) -> Result<Arc<dyn Storage>> {
        self.0.open(id, may)
    }

    fn with_path(&self, path: &[u8], among: &[SnapshotId], may: MayWait<'_>) -> Result<Vec<SnapshotId>> {
        self.0.with_path(path, among, may)
    }

    fn remove(&self, id: SnapshotId, may: MayWait<'_>) -> Result<()> {
        self.0.remove(id, may)
    }

    fn can_revert(&self, _: MayWait<'_>) -> std::result::Result<(), NoSnapshots> {
        Err(NoSnapshots::Replica)
    }

    fn revert(&self, _: SnapshotId, _: MayWait<'_>) -> Result<storage::Snapshot> {
        Err(Error::NotSupported)
    }

    fn handle_in(&self, live: &Handle, id: SnapshotId) -> Result<Handle> {
        self.0.handle_in(live, id)
    }

    fn live_handle(&self, handle: &Handle, id: SnapshotId) -> Result<Handle> {
        self.0.live_handle(handle, id)
    }
}

/// An object of the snapshot that is shown.
struct MirrorNode {
    shown: Arc<Shown>,
    is_root: bool,
    id: ObjectId,
    kind: FileKind,
    /// None: the object has no handle, and lives as long as its snapshot is shown.
    handle: Option<Handle>,
    /// Guards itself alone: the snapshot and the object in it.
    found: RwLock<(SnapshotId, NodeRef)>,
}

impl std::fmt::Debug for MirrorNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.found.read().1.fmt(f)
    }
}

impl MirrorNode {
    fn of(shown: &Arc<Shown>, now: &Snapshot, node: NodeRef, is_root: bool) -> NodeRef {
        Arc::new(Self {
            shown: Arc::clone(shown),
            is_root,
            id: node.id(),
            kind: node.kind(),
            handle: shown.handle_of(&node, now.id).ok(),
            found: RwLock::new((now.id, node)),
        })
    }

    /// The object in the snapshot that is shown.
    fn now(&self, wait: Wait<'_>) -> Result<NodeRef> {
        Ok(self.in_snapshot(wait)?.1)
    }

    fn in_snapshot(&self, wait: Wait<'_>) -> Result<(Snapshot, NodeRef)> {
        let now = self.shown.now();
        {
            let found = self.found.read();
            if found.0 == now.id {
                return Ok((now, NodeRef::clone(&found.1)));
            }
        }
        let node = if self.is_root {
            now.store.root()
        } else {
            self.shown.find(&now, self.handle.as_ref().ok_or(Error::Stale)?, wait)?
        };
        *self.found.write() = (now.id, NodeRef::clone(&node));
        Ok((now, node))
    }

    /// Something that was found from here.
    fn beside(&self, now: &Snapshot, node: NodeRef) -> NodeRef {
        let is_root = node.id() == now.store.root().id();
        Self::of(&self.shown, now, node, is_root)
    }
}

impl Node for MirrorNode {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn id(&self) -> ObjectId {
        ObjectId { snapshot: 0, ..self.id }
    }

    fn kind(&self) -> FileKind {
        self.kind
    }

    fn handle(&self) -> Result<Handle> {
        self.handle.ok_or(Error::NotSupported)
    }

    fn path(&self) -> Result<Vec<u8>> {
        self.found.read().1.path()
    }

    fn attributes(&self, want: Want, wait: Wait<'_>) -> Result<Attributes> {
        let attributes = self.now(wait)?.attributes(want, wait)?;
        Ok(live(attributes))
    }

    fn security(&self, attributes: &Attributes, wait: Wait<'_>) -> Result<Option<Arc<SecurityDescriptor>>> {
        self.now(wait)?.security(attributes, wait)
    }

    fn lookup(&self, name: Name<'_>, wait: Wait<'_>) -> Result<NodeRef> {
        let (now, dir) = self.in_snapshot(wait)?;
        Ok(self.beside(&now, dir.lookup(name, wait)?))
    }

    fn lookup_attributes(&self, name: Name<'_>, want: Want, wait: Wait<'_>) -> Result<(NodeRef, Attributes)> {
        let (now, dir) = self.in_snapshot(wait)?;
        let (node, attributes) = dir.lookup_attributes(name, want, wait)?;
        Ok((self.beside(&now, node), live(attributes)))
    }

    fn parent(&self, may: MayWait<'_>) -> Result<NodeRef> {
        let (now, dir) = self.in_snapshot(Wait::May(may))?;
        Ok(self.beside(&now, dir.parent(may)?))
    }

    fn read_dir(
        &self,
        cookie: u64,
        may: MayWait<'_>,
        each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        self.now(Wait::May(may))?.read_dir(cookie, may, &mut |entry| {
            each(DirEntry { id: ObjectId { snapshot: 0, ..entry.id }, ..entry })
        })
    }

    fn read_link(&self, may: MayWait<'_>) -> Result<Vec<u8>> {
        self.now(Wait::May(may))?.read_link(may)
    }

    fn read(&self, offset: u64, into: &mut [u8], wait: Wait<'_>) -> Result<usize> {
        self.now(wait)?.read(offset, into, wait)
    }

    fn seek(&self, offset: u64, to: SeekTo, may: MayWait<'_>) -> Result<Option<u64>> {
        self.now(Wait::May(may))?.seek(offset, to, may)
    }

    fn xattr(&self, name: &[u8], may: MayWait<'_>) -> Result<Vec<u8>> {
        self.now(Wait::May(may))?.xattr(name, may)
    }

    fn xattrs(&self, may: MayWait<'_>) -> Result<Vec<Vec<u8>>> {
        self.now(Wait::May(may))?.xattrs(may)
    }

    fn streams(&self, may: MayWait<'_>) -> Result<Vec<StreamEntry>> {
        self.now(Wait::May(may))?.streams(may)
    }

    fn stream(&self, name: StreamName<'_>, may: MayWait<'_>) -> Result<NodeRef> {
        let (now, node) = self.in_snapshot(Wait::May(may))?;
        Ok(Self::of(&self.shown, &now, node.stream(name, may)?, false))
    }
}

fn live(attributes: Attributes) -> Attributes {
    Attributes { id: ObjectId { snapshot: 0, ..attributes.id }, ..attributes }
}
