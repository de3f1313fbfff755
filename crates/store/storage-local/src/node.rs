//! A pinned object.

use std::any::Any;
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, OnceLock};

use acl::SecurityDescriptor;
use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags, Statx, openat, readlinkat};
use rustix::io::Errno;
use rustix::path::DecInt;
use storage::{
    Attributes, DirEntry, Error, FileKind, Handle, MayWait, Name, NewNode, Node, NodeRef, ObjectId, Replace,
    Result, SeekTo, SetAttributes, Stability, StreamEntry, StreamName, Timestamp, Wait, Want, XattrMode,
};

use crate::attributes::{btime_of, device_of, kind_of};
use crate::below::LastFound;
use crate::errno::from_errno;
use crate::handle::Handles;
use crate::store::{Reach, Shared};
use crate::{descriptor, dos};

/// Flags for opening data: without side effects, whatever the object is.
const OPEN: OFlags = OFlags::NONBLOCK.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// An object below the root.
pub(crate) struct LocalNode {
    pub(crate) store: Arc<Shared>,
    /// Pins the object: O_PATH, or open for reading and writing when `is_open`.
    pub(crate) fd: OwnedFd,
    pub(crate) is_open: bool,
    pub(crate) id: ObjectId,
    pub(crate) kind: FileKind,
    /// Creation time: distinguishes the object from others with the same number.
    pub(crate) btime: Option<Timestamp>,
    /// Open for reading. A file that is only read is not opened for writing, since then it could not be executed.
    reader: OnceLock<OwnedFd>,
    /// Open for writing, and for reading where that is permitted.
    writer: OnceLock<OwnedFd>,
    pub(crate) handle: OnceLock<Handle>,
    /// For a directory: when it was last found below the root.
    pub(crate) place: LastFound,
    /// The generation in the index of handles.
    pub(crate) generation: OnceLock<u64>,
    /// Guards the flags and birth time as last read.
    pub(crate) dos: Mutex<Option<dos::KnownDos>>,
    /// Guards the security descriptor as last read.
    pub(crate) security: Mutex<Option<descriptor::KnownDescriptor>>,
    /// Guards the number that leads to the object's streams: it is held while the number is given or taken away.
    pub(crate) numbering: Mutex<()>,
}

impl std::fmt::Debug for LocalNode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LocalNode({:?} {})", self.kind, self.id.number)
    }
}

impl Drop for LocalNode {
    fn drop(&mut self) {
        let Some(closer) = &self.store.closer else { return };
        // The field needs a value in place of the descriptor that is taken out.
        let pin = self.store.descriptors.try_clone().map(|other| std::mem::replace(&mut self.fd, other));
        for descriptor in [pin.ok(), self.reader.take(), self.writer.take()].into_iter().flatten() {
            let _ = closer.send(descriptor);
        }
    }
}

impl LocalNode {
    pub(crate) fn new(store: &Arc<Shared>, fd: OwnedFd, is_open: bool, stat: &Statx) -> Self {
        Self {
            store: Arc::clone(store),
            fd,
            is_open,
            id: ObjectId::live(stat.stx_ino),
            kind: kind_of(stat),
            btime: btime_of(stat),
            reader: OnceLock::new(),
            writer: OnceLock::new(),
            handle: OnceLock::new(),
            place: LastFound::default(),
            generation: OnceLock::new(),
            dos: Mutex::new(None),
            security: Mutex::new(None),
            numbering: Mutex::new(()),
        }
    }

    /// Whether this result of statx belongs to this object.
    pub(crate) fn is_object_of(&self, stat: &Statx) -> bool {
        // The root of a file system that is mounted below the share has a number of its own numbering.
        device_of(stat) == self.store.device
            && (self.id.number, self.kind, self.btime) == (stat.stx_ino, kind_of(stat), btime_of(stat))
    }

    pub(crate) fn check_data(&self) -> Result<()> {
        match self.kind {
            FileKind::Regular => Ok(()),
            FileKind::Directory => Err(Error::IsDirectory),
            _ => Err(Error::WrongKind),
        }
    }

    /// A descriptor opened for data, if there is one already.
    pub(crate) fn open_descriptor(&self) -> Option<BorrowedFd<'_>> {
        if self.is_open {
            return Some(self.fd.as_fd());
        }
        self.writer.get().or_else(|| self.reader.get()).map(AsFd::as_fd)
    }

    /// A descriptor for reading without waiting: on a file system that may stop answering, only one that is already
    /// open.
    pub(crate) fn reader_at_hand(&self) -> Result<BorrowedFd<'_>> {
        if self.store.closer.is_none() {
            return self.reader();
        }
        let present = if self.is_open { Some(&self.fd) } else { self.reader.get() };
        present.map(AsFd::as_fd).ok_or(Error::WouldBlock)
    }

    /// Reads the handle of a node that was just found or created, since the caller has already waited. Later calls then
    /// need not wait for it.
    fn known_by_handle(node: Arc<Self>) -> Arc<Self> {
        if node.store.closer.is_some() {
            // If there is no handle, the caller that asks for it gets the error.
            let _ = node.handle_now();
        }
        node
    }

    /// A descriptor for reading. Files and directories only.
    pub(crate) fn reader(&self) -> Result<BorrowedFd<'_>> {
        if self.is_open {
            return Ok(self.fd.as_fd());
        }
        if let Some(fd) = self.reader.get() {
            return Ok(fd.as_fd());
        }
        let fd = self.open(OFlags::RDONLY)?;
        Ok(self.reader.get_or_init(|| fd).as_fd())
    }

    /// A descriptor for writing. Files only.
    pub(crate) fn writer(&self) -> Result<BorrowedFd<'_>> {
        if self.is_open {
            return Ok(self.fd.as_fd());
        }
        if let Some(fd) = self.writer.get() {
            return Ok(fd.as_fd());
        }
        let fd = match self.open(OFlags::RDWR) {
            Err(Error::PermissionDenied) => self.open(OFlags::WRONLY),
            other => other,
        }?;
        Ok(self.writer.get_or_init(|| fd).as_fd())
    }

    fn open(&self, access: OFlags) -> Result<OwnedFd> {
        let flags = access | OPEN;
        let opened = self.store.with_descriptor(|| match self.kind {
            FileKind::Directory => openat(&self.fd, c".", flags | OFlags::DIRECTORY, Mode::empty()),
            FileKind::Regular => {
                openat(&self.store.descriptors, DecInt::from_fd(&self.fd), flags, Mode::empty())
            }
            _ => Err(Errno::INVAL),
        });
        // Another process on this machine holds a lease on the file (fcntl(2), F_SETLEASE).
        opened.map_err(|e| if e == Error::WouldBlock { Error::Busy } else { e })
    }

    /// Another node of the same store.
    pub(crate) fn peer<'a>(&self, node: &'a dyn Node) -> Result<&'a Self> {
        let peer: Option<&Self> = node.as_any().downcast_ref();
        peer.filter(|p| Arc::ptr_eq(&p.store, &self.store)).ok_or(Error::CrossDevice)
    }

    /// Another local node, which may be of a snapshot. The kernel refuses those of other file systems.
    fn neighbour(node: &dyn Node) -> Result<&Self> {
        node.as_any().downcast_ref().ok_or(Error::CrossDevice)
    }
}

impl Node for LocalNode {
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
        self.handle_now()
    }

    fn path(&self) -> Result<Vec<u8>> {
        self.path_below_root()
    }

    fn check_place(&self) -> Result<()> {
        Self::check_place(self)
    }

    fn vouch_for(&self, child: &dyn Node) {
        if let Ok(child) = self.peer(child) {
            Self::vouch_for(self, child);
        }
    }

    fn attributes(&self, want: Want, wait: Wait<'_>) -> Result<Attributes> {
        self.store.check_at_hand(wait.into())?;
        self.attributes_now(want, wait.into())
    }

    fn security(&self, attributes: &Attributes, wait: Wait<'_>) -> Result<Option<Arc<SecurityDescriptor>>> {
        self.store.check_at_hand(wait.into())?;
        self.descriptor(attributes, wait.into())
    }

    fn lookup(&self, name: Name<'_>, wait: Wait<'_>) -> Result<NodeRef> {
        self.store.check_at_hand(wait.into())?;
        Ok(Self::known_by_handle(self.find(name, wait.into())?.0))
    }

    fn lookup_attributes(&self, name: Name<'_>, want: Want, wait: Wait<'_>) -> Result<(NodeRef, Attributes)> {
        self.store.check_at_hand(wait.into())?;
        let (node, stat) = self.find(name, wait.into())?;
        let attributes = node.attributes_from(&stat, want, wait.into())?;
        Ok((Self::known_by_handle(node), attributes))
    }

    fn parent_number(&self, _: MayWait<'_>) -> Result<ObjectId> {
        self.number_above()
    }

    fn parent(&self, _: MayWait<'_>) -> Result<NodeRef> {
        Ok(self.find_parent()?)
    }

    fn read_dir(
        &self,
        cookie: u64,
        _: MayWait<'_>,
        each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        self.list(cookie, OFlags::empty(), each)
    }

    fn survey(&self, _: MayWait<'_>, each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>) -> Result<bool> {
        self.list(0, OFlags::NOATIME, each)
    }

    fn read_link(&self, _: MayWait<'_>) -> Result<Vec<u8>> {
        if self.kind != FileKind::Symlink {
            return Err(Error::WrongKind);
        }
        Ok(readlinkat(&self.fd, c"", Vec::new()).map_err(from_errno)?.into_bytes())
    }

    fn read(&self, offset: u64, into: &mut [u8], wait: Wait<'_>) -> Result<usize> {
        self.read_data(offset, into, wait.into())
    }

    fn set_attributes(&self, set: &SetAttributes, _: MayWait<'_>) -> Result<Attributes> {
        self.check_place()?;
        self.change_attributes(set)
    }

    fn set_security(&self, descriptor: Option<SecurityDescriptor>, _: MayWait<'_>) -> Result<Attributes> {
        self.check_place()?;
        self.store_descriptor(descriptor)
    }

    fn prepare_security(
        &self,
        descriptor: SecurityDescriptor,
        terms: (u32, (u32, u32)),
        _: MayWait<'_>,
    ) -> Result<Attributes> {
        self.check_place()?;
        self.prepare_descriptor(descriptor, terms)
    }

    fn create(&self, name: Name<'_>, new: &NewNode<'_>, _: MayWait<'_>) -> Result<NodeRef> {
        Ok(Self::known_by_handle(self.make(name, new)?.0))
    }

    fn create_attributes(
        &self,
        name: Name<'_>,
        new: &NewNode<'_>,
        want: Want,
        _: MayWait<'_>,
    ) -> Result<(NodeRef, Attributes)> {
        let (node, stat) = self.make(name, new)?;
        let attributes = node.attributes_from(&stat, want, Reach::Device)?;
        Ok((Self::known_by_handle(node), attributes))
    }

    fn link(&self, name: Name<'_>, target: &dyn Node, _: MayWait<'_>) -> Result<()> {
        self.add_name(name, self.peer(target)?)
    }

    fn remove_file(&self, name: Name<'_>, _: MayWait<'_>) -> Result<()> {
        self.remove_name(name, false)
    }

    fn remove_dir(&self, name: Name<'_>, _: MayWait<'_>) -> Result<()> {
        self.remove_name(name, true)
    }

    fn remove_found(&self, name: Name<'_>, found: &Attributes, _: MayWait<'_>) -> Result<()> {
        match self.store.handles {
            Handles::Native(_) => self.remove_known(name, found.id, found.kind, found.links),
            // The index must not lose another object that may have the name by now.
            Handles::Index(_) => self.remove_name(name, found.kind == FileKind::Directory),
        }
    }

    fn rename(
        &self,
        name: Name<'_>,
        to_dir: &dyn Node,
        to_name: Name<'_>,
        replace: Replace,
        _: MayWait<'_>,
    ) -> Result<()> {
        self.move_name(name, self.peer(to_dir)?, to_name, replace)
    }

    fn write(
        &self,
        offset: u64,
        data: &[IoSlice<'_>],
        stability: Stability,
        wait: Wait<'_>,
    ) -> Result<usize> {
        self.write_data(offset, data, stability, wait.into())
    }

    fn commit(&self, _: MayWait<'_>) -> Result<()> {
        self.sync()
    }

    fn allocate(&self, offset: u64, length: u64, grow: bool, _: MayWait<'_>) -> Result<()> {
        self.reserve(offset, length, grow)
    }

    fn punch_hole(&self, offset: u64, length: u64, _: MayWait<'_>) -> Result<()> {
        self.punch(offset, length)
    }

    fn seek(&self, offset: u64, to: SeekTo, _: MayWait<'_>) -> Result<Option<u64>> {
        self.seek_next(offset, to)
    }

    fn copy_range(
        &self,
        offset: u64,
        to: &dyn Node,
        to_offset: u64,
        length: u64,
        _: MayWait<'_>,
    ) -> Result<u64> {
        self.copy_to(offset, self.peer(to)?, to_offset, length)
    }

    fn clone_range(
        &self,
        offset: u64,
        to: &dyn Node,
        to_offset: u64,
        length: u64,
        _: MayWait<'_>,
    ) -> Result<()> {
        self.clone_to(offset, Self::neighbour(to)?, to_offset, length)
    }

    fn xattr(&self, name: &[u8], _: MayWait<'_>) -> Result<Vec<u8>> {
        self.read_xattr(name)
    }

    fn xattrs(&self, _: MayWait<'_>) -> Result<Vec<Vec<u8>>> {
        self.list_xattrs()
    }

    fn set_xattr(&self, name: &[u8], value: &[u8], mode: XattrMode, _: MayWait<'_>) -> Result<()> {
        self.check_place()?;
        self.write_xattr(name, value, mode)
    }

    fn remove_xattr(&self, name: &[u8], _: MayWait<'_>) -> Result<()> {
        self.check_place()?;
        self.delete_xattr(name)
    }

    fn note(&self, _: MayWait<'_>) -> Result<Option<Vec<u8>>> {
        self.read_note()
    }

    fn set_note(&self, note: Option<&[u8]>, _: MayWait<'_>) -> Result<()> {
        self.check_place()?;
        self.write_note(note)
    }

    fn streams(&self, _: MayWait<'_>) -> Result<Vec<StreamEntry>> {
        self.list_streams()
    }

    fn stream(&self, name: StreamName<'_>, _: MayWait<'_>) -> Result<NodeRef> {
        Ok(self.find_stream(name)?)
    }

    fn create_stream(&self, name: StreamName<'_>, _: MayWait<'_>) -> Result<NodeRef> {
        Ok(self.make_stream(name)?)
    }

    fn remove_stream(&self, name: StreamName<'_>, _: MayWait<'_>) -> Result<()> {
        self.delete_stream(name)
    }

    fn rename_stream(
        &self,
        name: StreamName<'_>,
        to: StreamName<'_>,
        replace: Replace,
        _: MayWait<'_>,
    ) -> Result<()> {
        self.move_stream(name, to, replace)
    }
}
