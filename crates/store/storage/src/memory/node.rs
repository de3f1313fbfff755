//! A pinned object.

use std::any::Any;
use std::collections::btree_map::Entry;
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::sync::Arc;

use acl::SecurityDescriptor;

use super::data::{PAGE_BYTES, end_of};
use super::object::Content;
use super::{Shared, State, file_systems};
use crate::name::check_xattr_name;
use crate::{
    Attributes, DirEntry, Error, FileKind, Handle, MayWait, Name, NewNode, Node, NodeRef, ObjectId, Replace,
    Result, SeekTo, SetAttributes, Stability, StreamEntry, StreamName, Wait, Want, XattrMode,
};

/// How many entries a listing takes from the directory at a time.
const LISTED_AT_ONCE: usize = 128;
/// The longest extended attribute in bytes, as on Linux.
const XATTR_BYTES_MAX: usize = 65_536;
/// The most that one copy moves, in bytes.
const COPY_BYTES_MAX: u64 = 16 << 20;

#[derive(Debug)]
pub(super) struct MemoryNode {
    shared: Arc<Shared>,
    id: ObjectId,
    kind: FileKind,
}

impl MemoryNode {
    pub(super) fn pin(shared: &Arc<Shared>, state: &mut State, id: ObjectId, kind: FileKind) -> NodeRef {
        if let Some(object) = state.objects.get_mut(&id) {
            object.held += 1;
        }
        Arc::new(Self { shared: Arc::clone(shared), id, kind })
    }

    fn peer<'a>(&self, node: &'a dyn Node) -> Result<&'a Self> {
        let peer: Option<&Self> = node.as_any().downcast_ref();
        peer.filter(|p| Arc::ptr_eq(&p.shared, &self.shared)).ok_or(Error::CrossDevice)
    }

    /// Whether the object is of this store.
    pub(super) fn is_of(&self, shared: &Arc<Shared>) -> bool {
        Arc::ptr_eq(&self.shared, shared)
    }

    fn check_data(&self) -> Result<()> {
        match self.kind {
            FileKind::Regular => Ok(()),
            FileKind::Directory => Err(Error::IsDirectory),
            _ => Err(Error::WrongKind),
        }
    }

    /// Copies at most [`COPY_BYTES_MAX`]. Returns how much was copied.
    fn copy(&self, offset: u64, to: &Self, to_offset: u64, length: u64) -> Result<u64> {
        let mut state = self.shared.state.lock();
        let left = state.object(self.id)?.data()?.size().saturating_sub(offset);
        let count = left.min(length).min(COPY_BYTES_MAX);
        end_of(to_offset, count)?;
        let mut bytes = vec![0; usize::try_from(count).map_err(|_| Error::OutOfResources)?];
        state.object(self.id)?.data()?.read(offset, &mut bytes);
        if count > 0 {
            let fills = (to_offset, count);
            state.change_data(to.id, fills, |data| data.write(to_offset, &[IoSlice::new(&bytes)]))?;
        }
        Ok(count)
    }
}

impl Drop for MemoryNode {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        if let Some(object) = state.objects.get_mut(&self.id) {
            object.held = object.held.saturating_sub(1);
        }
        state.free_unused(self.id);
    }
}

impl Node for MemoryNode {
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
        file_systems::handle_of(self.id)
    }

    fn path(&self) -> Result<Vec<u8>> {
        self.shared.state.lock().path(self.id)
    }

    fn attributes(&self, want: Want, wait: Wait<'_>) -> Result<Attributes> {
        self.shared.check_wait(wait)?;
        Ok(self.shared.state.lock().object(self.id)?.attributes(want))
    }

    fn security(&self, attributes: &Attributes, wait: Wait<'_>) -> Result<Option<Arc<SecurityDescriptor>>> {
        self.shared.check_wait(wait)?;
        Ok(self.shared.state.lock().object(self.id)?.security(attributes))
    }

    fn lookup(&self, name: Name<'_>, wait: Wait<'_>) -> Result<NodeRef> {
        self.shared.check_wait(wait)?;
        let mut state = self.shared.state.lock();
        let found = state.find(self.id, name.as_bytes())?;
        let (id, kind) = (found.id, found.kind());
        Ok(Self::pin(&self.shared, &mut state, id, kind))
    }

    fn parent(&self, _: MayWait<'_>) -> Result<NodeRef> {
        let mut state = self.shared.state.lock();
        let object = state.object(self.id)?;
        object.directory()?;
        let id = match object.names.first() {
            _ if state.is_top(self.id) => self.id,
            Some((dir, _)) => *dir,
            None => return Err(Error::Stale),
        };
        Ok(Self::pin(&self.shared, &mut state, id, FileKind::Directory))
    }

    fn read_dir(
        &self,
        cookie: u64,
        _: MayWait<'_>,
        each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        let mut cookie = cookie;
        loop {
            let mut listed = Vec::new();
            {
                let state = self.shared.state.lock();
                let directory = state.check_enters(self.id)?;
                for entry in directory.behind(cookie, LISTED_AT_ONCE) {
                    let kind = state.object(entry.id)?.kind();
                    listed.push((entry, kind));
                }
            }
            for (entry, kind) in &listed {
                let kind = Some(*kind);
                cookie = entry.cookie;
                if each(DirEntry { name: &entry.name, id: entry.id, kind, cookie }).is_break() {
                    return Ok(false);
                }
            }
            if listed.len() < LISTED_AT_ONCE {
                return Ok(true);
            }
        }
    }

    fn read_link(&self, _: MayWait<'_>) -> Result<Vec<u8>> {
        match &self.shared.state.lock().object(self.id)?.content {
            Content::Symlink(text) => Ok(text.clone()),
            _ => Err(Error::WrongKind),
        }
    }

    fn read(&self, offset: u64, into: &mut [u8], wait: Wait<'_>) -> Result<usize> {
        self.check_data()?;
        self.shared.check_wait(wait)?;
        Ok(self.shared.state.lock().object(self.id)?.data()?.read(offset, into))
    }

    fn set_attributes(&self, set: &SetAttributes, _: MayWait<'_>) -> Result<Attributes> {
        let mut state = self.shared.state.lock();
        state.object(self.id)?.check(set)?;
        if let Some(size) = set.size {
            state.change_data(self.id, (0, 0), |data| data.set_size(size))?;
        }
        let now = state.now();
        let object = state.object_mut(self.id)?;
        if *set != SetAttributes::default() {
            object.set(set, now);
        }
        let attributes = object.attributes(Want::all());
        state.changes.tell_itself(self.id);
        Ok(attributes)
    }

    fn set_security(&self, descriptor: Option<SecurityDescriptor>, _: MayWait<'_>) -> Result<Attributes> {
        let mut state = self.shared.state.lock();
        let now = state.now();
        let object = state.object_mut(self.id)?;
        object.check_carries_xattrs()?;
        object.set_security(descriptor, now);
        let attributes = object.attributes(Want::all());
        state.changes.tell_itself(self.id);
        Ok(attributes)
    }

    fn prepare_security(
        &self,
        descriptor: SecurityDescriptor,
        terms: (u32, (u32, u32)),
        _: MayWait<'_>,
    ) -> Result<Attributes> {
        let mut state = self.shared.state.lock();
        let now = state.now();
        let object = state.object_mut(self.id)?;
        object.check_carries_xattrs()?;
        object.prepare_security(descriptor, terms, now);
        let attributes = object.attributes(Want::all());
        state.changes.tell_itself(self.id);
        Ok(attributes)
    }

    fn create(&self, name: Name<'_>, new: &NewNode<'_>, _: MayWait<'_>) -> Result<NodeRef> {
        let mut state = self.shared.state.lock();
        let id = state.create(self.id, name.as_bytes(), new)?;
        let kind = state.object(id)?.kind();
        Ok(Self::pin(&self.shared, &mut state, id, kind))
    }

    fn link(&self, name: Name<'_>, target: &dyn Node, _: MayWait<'_>) -> Result<()> {
        let target = self.peer(target)?;
        self.shared.state.lock().link(self.id, name.as_bytes(), target.id)
    }

    fn remove_file(&self, name: Name<'_>, _: MayWait<'_>) -> Result<()> {
        self.shared.state.lock().remove(self.id, name.as_bytes(), false)
    }

    fn remove_dir(&self, name: Name<'_>, _: MayWait<'_>) -> Result<()> {
        self.shared.state.lock().remove(self.id, name.as_bytes(), true)
    }

    fn rename(
        &self,
        name: Name<'_>,
        to_dir: &dyn Node,
        to_name: Name<'_>,
        replace: Replace,
        _: MayWait<'_>,
    ) -> Result<()> {
        let to = (self.peer(to_dir)?.id, to_name.as_bytes());
        self.shared.state.lock().rename((self.id, name.as_bytes()), to, replace)
    }

    fn write(&self, offset: u64, data: &[IoSlice<'_>], _: Stability, wait: Wait<'_>) -> Result<usize> {
        self.check_data()?;
        self.shared.check_wait(wait)?;
        let count: usize = data.iter().map(|slice| slice.len()).sum();
        end_of(offset, count as u64)?;
        if count > 0 {
            let mut state = self.shared.state.lock();
            state.change_data(self.id, (offset, count as u64), |d| d.write(offset, data))?;
        }
        Ok(count)
    }

    fn commit(&self, _: MayWait<'_>) -> Result<()> {
        Ok(())
    }

    fn allocate(&self, offset: u64, length: u64, grow: bool, _: MayWait<'_>) -> Result<()> {
        self.check_data()?;
        if length == 0 {
            return Err(Error::InvalidArgument);
        }
        end_of(offset, length)?;
        let mut state = self.shared.state.lock();
        state.change_data(self.id, (offset, length), |data| data.reserve(offset, length, grow))
    }

    fn punch_hole(&self, offset: u64, length: u64, _: MayWait<'_>) -> Result<()> {
        self.check_data()?;
        if length == 0 {
            return Err(Error::InvalidArgument);
        }
        end_of(offset, length)?;
        self.shared.state.lock().change_data(self.id, (0, 0), |data| data.punch(offset, length))
    }

    fn seek(&self, offset: u64, to: SeekTo, _: MayWait<'_>) -> Result<Option<u64>> {
        self.check_data()?;
        Ok(self.shared.state.lock().object(self.id)?.data()?.seek(offset, to))
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
        self.check_data()?;
        to.check_data()?;
        if self.id == to.id && offset.abs_diff(to_offset) < length {
            return Err(Error::InvalidArgument);
        }
        self.copy(offset, to, to_offset, length)
    }

    fn clone_range(
        &self,
        offset: u64,
        to: &dyn Node,
        to_offset: u64,
        length: u64,
        _: MayWait<'_>,
    ) -> Result<()> {
        let to = self.peer(to)?;
        self.check_data()?;
        to.check_data()?;
        if self.id.fs != to.id.fs {
            return Err(Error::CrossDevice);
        }
        let size = self.shared.state.lock().object(self.id)?.data()?.size();
        let length = if length == 0 { size.saturating_sub(offset) } else { length };
        let end = end_of(offset, length)?;
        let aligned = [offset, to_offset].iter().all(|at| at.is_multiple_of(PAGE_BYTES));
        let overlaps = self.id == to.id && offset.abs_diff(to_offset) < length;
        if !aligned || overlaps || end > size || (end < size && !end.is_multiple_of(PAGE_BYTES)) {
            return Err(Error::InvalidArgument);
        }
        let mut done = 0;
        while done < length {
            let count = self.copy(offset + done, to, to_offset.saturating_add(done), length - done)?;
            if count == 0 {
                break;
            }
            done += count;
        }
        Ok(())
    }

    fn xattr(&self, name: &[u8], _: MayWait<'_>) -> Result<Vec<u8>> {
        let state = self.shared.state.lock();
        let object = state.object(self.id)?;
        object.check_carries_xattrs()?;
        object.xattrs.get(name).cloned().ok_or(Error::NoAttribute)
    }

    fn xattrs(&self, _: MayWait<'_>) -> Result<Vec<Vec<u8>>> {
        let state = self.shared.state.lock();
        let object = state.object(self.id)?;
        object.check_carries_xattrs()?;
        Ok(object.xattrs.keys().cloned().collect())
    }

    fn set_xattr(&self, name: &[u8], value: &[u8], mode: XattrMode, _: MayWait<'_>) -> Result<()> {
        check_xattr_name(name)?;
        if value.len() > XATTR_BYTES_MAX {
            return Err(Error::AttributeTooLarge);
        }
        let mut state = self.shared.state.lock();
        let now = state.now();
        let object = state.object_mut(self.id)?;
        object.check_carries_xattrs()?;
        match (object.xattrs.entry(name.to_vec()), mode) {
            (Entry::Occupied(_), XattrMode::Create) => return Err(Error::Exists),
            (Entry::Vacant(_), XattrMode::Replace) => return Err(Error::NoAttribute),
            (entry, _) => entry.insert_entry(value.to_vec()),
        };
        object.ctime = now;
        state.changes.tell_itself(self.id);
        Ok(())
    }

    fn remove_xattr(&self, name: &[u8], _: MayWait<'_>) -> Result<()> {
        let mut state = self.shared.state.lock();
        let now = state.now();
        let object = state.object_mut(self.id)?;
        object.check_carries_xattrs()?;
        object.xattrs.remove(name).ok_or(Error::NoAttribute)?;
        object.ctime = now;
        state.changes.tell_itself(self.id);
        Ok(())
    }

    fn note(&self, _: MayWait<'_>) -> Result<Option<Vec<u8>>> {
        let state = self.shared.state.lock();
        let object = state.object(self.id)?;
        object.check_carries_xattrs()?;
        Ok(object.note.clone())
    }

    fn set_note(&self, note: Option<&[u8]>, _: MayWait<'_>) -> Result<()> {
        let mut state = self.shared.state.lock();
        let now = state.now();
        let object = state.object_mut(self.id)?;
        object.check_carries_xattrs()?;
        object.note = note.map(<[u8]>::to_vec);
        object.ctime = now;
        state.changes.tell_itself(self.id);
        Ok(())
    }

    fn streams(&self, _: MayWait<'_>) -> Result<Vec<StreamEntry>> {
        self.shared.state.lock().streams(self.id)
    }

    fn stream(&self, name: StreamName<'_>, _: MayWait<'_>) -> Result<NodeRef> {
        let mut state = self.shared.state.lock();
        let id = state.stream(self.id, name.as_bytes())?;
        Ok(Self::pin(&self.shared, &mut state, id, FileKind::Regular))
    }

    fn create_stream(&self, name: StreamName<'_>, _: MayWait<'_>) -> Result<NodeRef> {
        let mut state = self.shared.state.lock();
        let id = state.create_stream(self.id, name.as_bytes())?;
        Ok(Self::pin(&self.shared, &mut state, id, FileKind::Regular))
    }

    fn remove_stream(&self, name: StreamName<'_>, _: MayWait<'_>) -> Result<()> {
        self.shared.state.lock().remove_stream(self.id, name.as_bytes())
    }

    fn rename_stream(
        &self,
        name: StreamName<'_>,
        to: StreamName<'_>,
        replace: Replace,
        _: MayWait<'_>,
    ) -> Result<()> {
        self.shared.state.lock().rename_stream(self.id, name.as_bytes(), to.as_bytes(), replace)
    }
}
