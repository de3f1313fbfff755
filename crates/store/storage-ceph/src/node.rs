//! An object of the store.

use std::any::Any;
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::sync::Arc;

use acl::SecurityDescriptor;
use parking_lot::Mutex;
use storage::{
    Attributes, DirEntry, Error, FileKind, Handle, MayWait, Name, NewNode, Node, NodeRef, ObjectId, Replace,
    Result, SeekTo, SetAttributes, Stability, StreamEntry, StreamName, Wait, Want, XattrMode,
};

use crate::data::Files;
use crate::errno::from_errno;
use crate::handle;
use crate::inode::Inode;
use crate::library::CStat;
use crate::place::Place;
use crate::store::Shared;

/// An object below the root.
pub(crate) struct CephNode {
    pub(crate) store: Arc<Shared>,
    pub(crate) inode: Inode,
    pub(crate) id: ObjectId,
    pub(crate) kind: FileKind,
    pub(crate) files: Files,
    /// Guards where the object is.
    pub(crate) place: Mutex<Place>,
    /// Held by who reads an attribute of the server in order to change it. It guards no data.
    pub(crate) changing: Mutex<()>,
}

impl std::fmt::Debug for CephNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CephNode({:?} {:x})", self.kind, self.id.number)
    }
}

impl CephNode {
    /// Another node of the same store.
    fn peer(&self, node: &dyn Node) -> Result<Arc<Self>> {
        let peer: Option<&Self> = node.as_any().downcast_ref();
        peer.filter(|p| Arc::ptr_eq(&p.store, &self.store)).ok_or(Error::CrossDevice)?.held()
    }

    /// This node, held once more: who calls holds it, so it is cached, unless it is a directory that was removed.
    fn held(&self) -> Result<Arc<Self>> {
        self.store.cache.get(self.id).ok_or(Error::Stale)
    }

    fn find_in(&self, name: Name<'_>, wait: Wait<'_>) -> Result<(Arc<Self>, CStat)> {
        self.check_directory()?;
        Self::check_wait(wait)?;
        if self.is_removed() {
            return Err(Error::NotFound);
        }
        self.found(self.held()?.find(name))
    }

    /// What a call has found, unless it was looked for in a snapshot that is gone: the cluster answers with what is there by chance.
    fn found<T>(&self, found: Result<T>) -> Result<T> {
        self.store.check_snapshot_lately().and(found)
    }

    /// Refuses a change of an object of a snapshot.
    fn check_live(&self) -> Result<()> {
        if self.store.snapshot.is_some() { Err(Error::ReadOnly) } else { Ok(()) }
    }

    /// Fails if a call must not wait: each call may wait for the cluster.
    fn check_wait(wait: Wait<'_>) -> Result<()> {
        if wait.is_never() { Err(Error::WouldBlock) } else { Ok(()) }
    }
}

impl Node for CephNode {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn id(&self) -> ObjectId {
        self.id
    }

    fn kind(&self) -> FileKind {
        self.kind
    }

    fn handle(&self) -> Result<Handle> {
        let key = &self.store.handle_key;
        if self.store.snapshot.is_some() {
            return handle::encode_then(key, self.id, self.directory());
        }
        handle::encode(key, self.id)
    }

    fn path(&self) -> Result<Vec<u8>> {
        self.path_below_root()
    }

    fn attributes(&self, want: Want, wait: Wait<'_>) -> Result<Attributes> {
        Self::check_wait(wait)?;
        self.found(self.attributes_now(want))
    }

    fn security(&self, attributes: &Attributes, wait: Wait<'_>) -> Result<Option<Arc<SecurityDescriptor>>> {
        Self::check_wait(wait)?;
        self.found(self.descriptor(attributes))
    }

    fn lookup(&self, name: Name<'_>, wait: Wait<'_>) -> Result<NodeRef> {
        Ok(self.find_in(name, wait)?.0)
    }

    fn lookup_attributes(&self, name: Name<'_>, want: Want, wait: Wait<'_>) -> Result<(NodeRef, Attributes)> {
        let (node, stat) = self.find_in(name, wait)?;
        let attributes = node.found(node.attributes_from(&stat, want))?;
        Ok((node, attributes))
    }

    fn parent(&self, _: MayWait<'_>) -> Result<NodeRef> {
        Ok(self.held()?.find_parent()?)
    }

    fn read_dir(
        &self,
        cookie: u64,
        _: MayWait<'_>,
        each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        self.found(self.list(cookie, each))
    }

    fn read_link(&self, _: MayWait<'_>) -> Result<Vec<u8>> {
        if self.kind != FileKind::Symlink {
            return Err(Error::WrongKind);
        }
        self.found(self.inode.read_link().map_err(from_errno))
    }

    fn read(&self, offset: u64, into: &mut [u8], wait: Wait<'_>) -> Result<usize> {
        self.check_data()?;
        if wait.is_never() { self.read_at_hand(offset, into) } else { self.read_data(offset, into) }
    }

    fn set_attributes(&self, set: &SetAttributes, _: MayWait<'_>) -> Result<Attributes> {
        self.check_live()?;
        self.change_attributes(set)
    }

    fn set_security(&self, descriptor: Option<SecurityDescriptor>, _: MayWait<'_>) -> Result<Attributes> {
        self.check_live()?;
        self.store_descriptor(descriptor)
    }

    fn prepare_security(
        &self,
        descriptor: SecurityDescriptor,
        terms: (u32, (u32, u32)),
        _: MayWait<'_>,
    ) -> Result<Attributes> {
        self.check_live()?;
        self.prepare_descriptor(descriptor, terms)
    }

    fn create(&self, name: Name<'_>, new: &NewNode<'_>, _: MayWait<'_>) -> Result<NodeRef> {
        self.check_live()?;
        Ok(self.held()?.make(name, new)?.0)
    }

    fn create_attributes(
        &self,
        name: Name<'_>,
        new: &NewNode<'_>,
        want: Want,
        _: MayWait<'_>,
    ) -> Result<(NodeRef, Attributes)> {
        self.check_live()?;
        let (node, stat) = self.held()?.make(name, new)?;
        let attributes = node.attributes_from(&stat, want)?;
        Ok((node, attributes))
    }

    fn link(&self, name: Name<'_>, target: &dyn Node, _: MayWait<'_>) -> Result<()> {
        self.check_live()?;
        self.held()?.add_name(name, &*self.peer(target)?)
    }

    fn remove_file(&self, name: Name<'_>, _: MayWait<'_>) -> Result<()> {
        self.check_live()?;
        self.held()?.remove_name(name, false)
    }

    fn remove_dir(&self, name: Name<'_>, _: MayWait<'_>) -> Result<()> {
        self.check_live()?;
        self.held()?.remove_name(name, true)
    }

    fn rename(
        &self,
        name: Name<'_>,
        to_dir: &dyn Node,
        to_name: Name<'_>,
        replace: Replace,
        _: MayWait<'_>,
    ) -> Result<()> {
        self.check_live()?;
        // A directory that was removed is not cached: nothing is found there.
        let to =
            self.peer(to_dir).map_err(|error| if error == Error::Stale { Error::NotFound } else { error })?;
        self.held()?.move_name(name, &to, to_name, replace)
    }

    fn write(
        &self,
        offset: u64,
        data: &[IoSlice<'_>],
        stability: Stability,
        wait: Wait<'_>,
    ) -> Result<usize> {
        self.check_live()?;
        self.check_data()?;
        Self::check_wait(wait)?;
        self.write_data(offset, data, stability)
    }

    fn commit(&self, _: MayWait<'_>) -> Result<()> {
        self.sync()
    }

    fn allocate(&self, _: u64, _: u64, _: bool, _: MayWait<'_>) -> Result<()> {
        self.check_live()?;
        self.check_data()?;
        // Some versions of CephFS answer that they have reserved space, and have not.
        Err(Error::NotSupported)
    }

    fn punch_hole(&self, offset: u64, length: u64, _: MayWait<'_>) -> Result<()> {
        self.check_live()?;
        self.check_data()?;
        self.punch(offset, length)
    }

    fn seek(&self, _: u64, _: SeekTo, _: MayWait<'_>) -> Result<Option<u64>> {
        self.check_data()?;
        Err(Error::NotSupported)
    }

    fn copy_range(
        &self,
        offset: u64,
        to: &dyn Node,
        to_offset: u64,
        length: u64,
        _: MayWait<'_>,
    ) -> Result<u64> {
        let to = self.peer(to)?;
        self.check_live()?;
        self.check_data()?;
        to.check_data()?;
        self.copy_to(offset, &to, to_offset, length)
    }

    fn xattr(&self, name: &[u8], _: MayWait<'_>) -> Result<Vec<u8>> {
        self.found(self.read_xattr(name))
    }

    fn xattrs(&self, _: MayWait<'_>) -> Result<Vec<Vec<u8>>> {
        self.found(self.list_xattrs())
    }

    fn set_xattr(&self, name: &[u8], value: &[u8], mode: XattrMode, _: MayWait<'_>) -> Result<()> {
        self.check_live()?;
        self.write_xattr(name, value, mode)
    }

    fn remove_xattr(&self, name: &[u8], _: MayWait<'_>) -> Result<()> {
        self.check_live()?;
        self.delete_xattr(name)
    }

    fn streams(&self, _: MayWait<'_>) -> Result<Vec<StreamEntry>> {
        self.found(self.list_streams())
    }

    fn stream(&self, name: StreamName<'_>, _: MayWait<'_>) -> Result<NodeRef> {
        Ok(self.found(self.find_stream(name))?)
    }

    fn create_stream(&self, name: StreamName<'_>, _: MayWait<'_>) -> Result<NodeRef> {
        self.check_live()?;
        Ok(self.make_stream(name)?)
    }

    fn remove_stream(&self, name: StreamName<'_>, _: MayWait<'_>) -> Result<()> {
        self.check_live()?;
        self.delete_stream(name)
    }

    fn rename_stream(
        &self,
        name: StreamName<'_>,
        to: StreamName<'_>,
        replace: Replace,
        _: MayWait<'_>,
    ) -> Result<()> {
        self.check_live()?;
        self.move_stream(name, to, replace)
    }
}
