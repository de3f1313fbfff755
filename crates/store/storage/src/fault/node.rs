//! A node whose calls fail or wait according to the rules of its store.

use std::any::Any;
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::sync::Arc;

use acl::SecurityDescriptor;

use super::{Call, Shared};
use crate::{
    Attributes, DirEntry, Error, FileKind, Handle, MayWait, Name, NewNode, Node, NodeRef, ObjectId, Replace,
    Result, SeekTo, SetAttributes, Stability, StreamEntry, StreamName, Wait, Want, XattrMode,
};

#[derive(Debug)]
pub(super) struct FaultyNode {
    store: Arc<Shared>,
    node: NodeRef,
}

/// The wrapped node.
pub(super) fn inner(node: &dyn Node) -> Result<&NodeRef> {
    let node: Option<&FaultyNode> = node.as_any().downcast_ref();
    node.map(|node| &node.node).ok_or(Error::CrossDevice)
}

impl FaultyNode {
    pub(super) fn wrap(store: &Arc<Shared>, node: NodeRef) -> NodeRef {
        Arc::new(Self { store: Arc::clone(store), node })
    }

    fn enter(&self, call: Call) -> Result<()> {
        self.store.enter(call, false)
    }

    fn peer<'a>(&self, node: &'a dyn Node) -> Result<&'a dyn Node> {
        let peer: Option<&Self> = node.as_any().downcast_ref();
        let peer = peer.filter(|p| Arc::ptr_eq(&p.store, &self.store)).ok_or(Error::CrossDevice)?;
        Ok(&*peer.node)
    }
}

impl Node for FaultyNode {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn id(&self) -> ObjectId {
        self.node.id()
    }

    fn kind(&self) -> FileKind {
        self.node.kind()
    }

    fn handle(&self) -> Result<Handle> {
        self.enter(Call::Handle)?;
        self.node.handle()
    }

    fn path(&self) -> Result<Vec<u8>> {
        self.enter(Call::Path)?;
        self.node.path()
    }

    fn check_place(&self) -> Result<()> {
        self.node.check_place()
    }

    fn vouch_for(&self, child: &dyn Node) {
        if let Some(child) = child.as_any().downcast_ref::<Self>() {
            self.node.vouch_for(&*child.node);
        }
    }

    fn attributes(&self, want: Want, wait: Wait<'_>) -> Result<Attributes> {
        self.store.enter(Call::Attributes, wait.is_never())?;
        self.node.attributes(want, wait)
    }

    fn lookup(&self, name: Name<'_>, wait: Wait<'_>) -> Result<NodeRef> {
        self.store.enter(Call::Lookup, wait.is_never())?;
        Ok(Self::wrap(&self.store, self.node.lookup(name, wait)?))
    }

    fn lookup_attributes(&self, name: Name<'_>, want: Want, wait: Wait<'_>) -> Result<(NodeRef, Attributes)> {
        self.store.enter(Call::Lookup, wait.is_never())?;
        let (node, attributes) = self.node.lookup_attributes(name, want, wait)?;
        Ok((Self::wrap(&self.store, node), attributes))
    }

    fn security(&self, attributes: &Attributes, wait: Wait<'_>) -> Result<Option<Arc<SecurityDescriptor>>> {
        self.store.enter(Call::Security, wait.is_never())?;
        self.node.security(attributes, wait)
    }

    fn parent_number(&self, may: MayWait<'_>) -> Result<ObjectId> {
        self.enter(Call::Parent)?;
        self.node.parent_number(may)
    }

    fn parent(&self, may: MayWait<'_>) -> Result<NodeRef> {
        self.enter(Call::Parent)?;
        Ok(Self::wrap(&self.store, self.node.parent(may)?))
    }

    fn read_dir(
        &self,
        cookie: u64,
        may: MayWait<'_>,
        each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        self.enter(Call::ReadDir)?;
        self.node.read_dir(cookie, may, each)
    }

    fn survey(
        &self,
        may: MayWait<'_>,
        each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        self.enter(Call::ReadDir)?;
        self.node.survey(may, each)
    }

    fn read_link(&self, may: MayWait<'_>) -> Result<Vec<u8>> {
        self.enter(Call::ReadLink)?;
        self.node.read_link(may)
    }

    fn read(&self, offset: u64, into: &mut [u8], wait: Wait<'_>) -> Result<usize> {
        self.store.enter(Call::Read, wait.is_never())?;
        self.node.read(offset, into, wait)
    }

    fn set_attributes(&self, set: &SetAttributes, may: MayWait<'_>) -> Result<Attributes> {
        self.enter(Call::SetAttributes)?;
        self.node.set_attributes(set, may)
    }

    fn set_security(&self, descriptor: Option<SecurityDescriptor>, may: MayWait<'_>) -> Result<Attributes> {
        self.enter(Call::SetSecurity)?;
        self.node.set_security(descriptor, may)
    }

    fn prepare_security(
        &self,
        descriptor: SecurityDescriptor,
        terms: (u32, (u32, u32)),
        may: MayWait<'_>,
    ) -> Result<Attributes> {
        self.enter(Call::SetSecurity)?;
        self.node.prepare_security(descriptor, terms, may)
    }

    fn create(&self, name: Name<'_>, new: &NewNode<'_>, may: MayWait<'_>) -> Result<NodeRef> {
        self.enter(Call::Create)?;
        Ok(Self::wrap(&self.store, self.node.create(name, new, may)?))
    }

    fn create_attributes(
        &self,
        name: Name<'_>,
        new: &NewNode<'_>,
        want: Want,
        may: MayWait<'_>,
    ) -> Result<(NodeRef, Attributes)> {
        self.enter(Call::Create)?;
        let (node, attributes) = self.node.create_attributes(name, new, want, may)?;
        Ok((Self::wrap(&self.store, node), attributes))
    }

    fn link(&self, name: Name<'_>, target: &dyn Node, may: MayWait<'_>) -> Result<()> {
        self.enter(Call::Link)?;
        self.node.link(name, self.peer(target)?, may)
    }

    fn remove_file(&self, name: Name<'_>, may: MayWait<'_>) -> Result<()> {
        self.enter(Call::RemoveFile)?;
        self.node.remove_file(name, may)
    }

    fn remove_dir(&self, name: Name<'_>, may: MayWait<'_>) -> Result<()> {
        self.enter(Call::RemoveDir)?;
        self.node.remove_dir(name, may)
    }

    fn rename(
        &self,
        name: Name<'_>,
        to_dir: &dyn Node,
        to_name: Name<'_>,
        replace: Replace,
        may: MayWait<'_>,
    ) -> Result<()> {
        self.enter(Call::Rename)?;
        self.node.rename(name, self.peer(to_dir)?, to_name, replace, may)
    }

    fn write(
        &self,
        offset: u64,
        data: &[IoSlice<'_>],
        stability: Stability,
        wait: Wait<'_>,
    ) -> Result<usize> {
        self.store.enter(Call::Write, wait.is_never())?;
        self.node.write(offset, data, stability, wait)
    }

    fn commit(&self, may: MayWait<'_>) -> Result<()> {
        self.enter(Call::Commit)?;
        self.node.commit(may)
    }

    fn allocate(&self, offset: u64, length: u64, grow: bool, may: MayWait<'_>) -> Result<()> {
        self.enter(Call::Allocate)?;
        self.node.allocate(offset, length, grow, may)
    }

    fn punch_hole(&self, offset: u64, length: u64, may: MayWait<'_>) -> Result<()> {
        self.enter(Call::PunchHole)?;
        self.node.punch_hole(offset, length, may)
    }

    fn seek(&self, offset: u64, to: SeekTo, may: MayWait<'_>) -> Result<Option<u64>> {
        self.enter(Call::Seek)?;
        self.node.seek(offset, to, may)
    }

    fn copy_range(
        &self,
        offset: u64,
        to: &dyn Node,
        to_offset: u64,
        length: u64,
        may: MayWait<'_>,
    ) -> Result<u64> {
        self.enter(Call::CopyRange)?;
        self.node.copy_range(offset, self.peer(to)?, to_offset, length, may)
    }

    fn clone_range(
        &self,
        offset: u64,
        to: &dyn Node,
        to_offset: u64,
        length: u64,
        may: MayWait<'_>,
    ) -> Result<()> {
        self.enter(Call::CloneRange)?;
        self.node.clone_range(offset, self.peer(to)?, to_offset, length, may)
    }

    fn xattr(&self, name: &[u8], may: MayWait<'_>) -> Result<Vec<u8>> {
        self.enter(Call::Xattr)?;
        self.node.xattr(name, may)
    }

    fn xattrs(&self, may: MayWait<'_>) -> Result<Vec<Vec<u8>>> {
        self.enter(Call::Xattrs)?;
        self.node.xattrs(may)
    }

    fn set_xattr(&self, name: &[u8], value: &[u8], mode: XattrMode, may: MayWait<'_>) -> Result<()> {
        self.enter(Call::SetXattr)?;
        self.node.set_xattr(name, value, mode, may)
    }

    fn remove_xattr(&self, name: &[u8], may: MayWait<'_>) -> Result<()> {
        self.enter(Call::RemoveXattr)?;
        self.node.remove_xattr(name, may)
    }

    fn note(&self, may: MayWait<'_>) -> Result<Option<Vec<u8>>> {
        self.enter(Call::Xattr)?;
        self.node.note(may)
    }

    fn set_note(&self, note: Option<&[u8]>, may: MayWait<'_>) -> Result<()> {
        self.enter(Call::SetXattr)?;
        self.node.set_note(note, may)
    }

    fn streams(&self, may: MayWait<'_>) -> Result<Vec<StreamEntry>> {
        self.enter(Call::Streams)?;
        self.node.streams(may)
    }

    fn stream(&self, name: StreamName<'_>, may: MayWait<'_>) -> Result<NodeRef> {
        self.enter(Call::Stream)?;
        Ok(Self::wrap(&self.store, self.node.stream(name, may)?))
    }

    fn create_stream(&self, name: StreamName<'_>, may: MayWait<'_>) -> Result<NodeRef> {
        self.enter(Call::CreateStream)?;
        Ok(Self::wrap(&self.store, self.node.create_stream(name, may)?))
    }

    fn remove_stream(&self, name: StreamName<'_>, may: MayWait<'_>) -> Result<()> {
        self.enter(Call::RemoveStream)?;
        self.node.remove_stream(name, may)
    }

    fn rename_stream(
        &self,
        name: StreamName<'_>,
        to: StreamName<'_>,
        replace: Replace,
        may: MayWait<'_>,
    ) -> Result<()> {
        self.enter(Call::RenameStream)?;
        self.node.rename_stream(name, to, replace, may)
    }
}
