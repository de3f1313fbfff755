//! Named streams of files and directories.
//!
//! A stream has its own data, opens, locks and caching grants. Everything else is its file's: identity, times, attributes,
//! permissions. So a stream is a node made of two nodes, and an open of it also holds its file.

use std::any::Any;
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::sync::Arc;

use acl::SecurityDescriptor;
use cache::fold;
use file_state::Access;
use storage::{
    Attributes, DirEntry, Error as StoreError, FileFlags, FileKind, Handle, MayWait, Name, NewNode, Node,
    NodeRef, ObjectId, Protection, Replace, SeekTo, SetAttributes, SetTime, Stability, StreamEntry,
    StreamName, Wait, Want, XattrMode,
};

use crate::found::{Found, Stream};
use crate::schedule::Work;
use crate::watch::{ChangeAction, ChangeKinds, Event};
use crate::{Call, Error, Location, Open, Result, Share};

/// Named streams of one file.
const STREAMS_MAX: usize = 4096;

impl Share {
    /// The named streams of an object; none where the store keeps none.
    ///
    /// # Errors
    /// The store's.
    pub async fn streams(self: &Arc<Self>, call: &Call, node: &NodeRef) -> Result<Vec<StreamEntry>> {
        let node = Arc::clone(node);
        self.run(call, Work::Metadata, move |_, may| match node.streams(may) {
            Err(StoreError::NotSupported | StoreError::WrongKind) => Ok(Vec::new()),
            listed => Ok(listed?),
        })
        .await
    }

    /// The named stream of a file that was found, regardless of case. A name that matches exactly is preferred.
    ///
    /// # Errors
    /// [`storage::Error::NotSupported`], the store's.
    pub async fn find_stream(
        self: &Arc<Self>,
        call: &Call,
        file: &Found,
        name: &[u8],
    ) -> Result<Option<Found>> {
        let (file, name) = (file.clone(), name.to_vec());
        self.run(call, Work::Metadata, move |_, may| {
            Ok(match look(&file.node, &name, may)? {
                Some((name, data)) => Some(found(&file, name, data, may)?),
                None => None,
            })
        })
        .await
    }

    /// Creates a named stream of a file that was found, after the caller's permission to write to the file was checked.
    ///
    /// # Errors
    /// [`storage::Error::Exists`] also for a name that differs only in case, [`Error::DeletePending`],
    /// [`Error::LimitReached`], [`storage::Error::NotSupported`], the store's.
    pub async fn create_stream(self: &Arc<Self>, call: &Call, file: &Found, name: &[u8]) -> Result<Found> {
        self.check_writable(file.node.id())?;
        let (file, name) = (file.clone(), name.to_vec());
        self.run(call, Work::Metadata, move |share, may| {
            if share.is_delete_pending(&file.node) {
                return Err(Error::DeletePending);
            }
            let present = file.node.streams(may)?;
            if present.len() >= STREAMS_MAX {
                return Err(Error::LimitReached("streams of one file"));
            }
            if same_name(&present, &name).is_some() {
                return Err(StoreError::Exists.into());
            }
            let data = file.node.create_stream(StreamName::new(&name)?, may)?;
            share.tell_stream(
                file.location().as_ref(),
                &name,
                ChangeAction::AddedStream,
                ChangeKinds::STREAM_NAME,
                may,
            );
            found(&file, name, data, may)
        })
        .await
    }

    /// Removes a stream that was just created but cannot be used.
    ///
    /// # Errors
    /// The store's.
    pub async fn discard_stream(self: &Arc<Self>, call: &Call, found: &Found) -> Result<()> {
        let Some(stream) = found.stream.clone() else { return Ok(()) };
        self.run(call, Work::Metadata, move |share, may| {
            let _charge = share.charge_nothing(&stream.file, may)?;
            Ok(stream.file.remove_stream(StreamName::new(&stream.name)?, may)?)
        })
        .await
    }

    /// Renames the open stream. An existing stream with the new name is replaced if the caller asks for that, it is not
    /// open, and it is empty.
    ///
    /// # Errors
    /// [`Error::NotOpenedForThis`] without DELETE, [`storage::Error::Exists`] with [`Replace::Never`],
    /// [`storage::Error::InvalidArgument`] if the open is not of a stream or the existing stream cannot be replaced.
    pub async fn rename_stream(
        self: &Arc<Self>,
        call: &Call,
        open: &Arc<Open>,
        to: &[u8],
        replace: Replace,
    ) -> Result<()> {
        self.check_writable(open.node().id())?;
        open.require(Access::DELETE)?;
        let (open, to) = (Arc::clone(open), to.to_vec());
        self.run(call, Work::Metadata, move |share, may| share.rename_stream_now(&open, &to, replace, may))
            .await
    }

    fn rename_stream_now(
        self: &Arc<Self>,
        open: &Open,
        to: &[u8],
        replace: Replace,
        may: MayWait<'_>,
    ) -> Result<()> {
        let file = open.file().ok_or(StoreError::InvalidArgument)?;
        let from = self.stream_location(open).ok_or(Error::Closed)?;
        if fold(&from.name) == fold(to) {
            return Ok(());
        }
        let node = file.node();
        if let Some(other) = same_name(&node.streams(may)?, to) {
            if replace == Replace::Never {
                return Err(StoreError::Exists.into());
            }
            let name = StreamName::new(&other.name)?;
            let is_open = self.agreement.has_opens(node.stream(name, may)?.id());
            if is_open || other.size != 0 {
                return Err(StoreError::InvalidArgument.into());
            }
            let _charge = self.charge_nothing(node, may)?;
            node.remove_stream(name, may)?;
        }
        node.rename_stream(StreamName::new(&from.name)?, StreamName::new(to)?, Replace::Never, may)?;
        let target = Location { parent: Arc::clone(node), name: to.to_vec() };
        self.agreement.moved(open.node().id(), &from, &target);
        let location = self.location(open);
        let (gone, come) = (ChangeAction::RemovedStream, ChangeAction::AddedStream);
        self.tell_stream(location.as_ref(), &from.name, gone, ChangeKinds::STREAM_NAME, may);
        self.tell_stream(location.as_ref(), to, come, ChangeKinds::STREAM_NAME, may);
        Ok(())
    }

    /// The name of the open stream; None if the file itself is open.
    #[must_use]
    pub fn stream_name(&self, open: &Open) -> Option<Vec<u8>> {
        self.stream_location(open).map(|location| location.name)
    }

    /// The file and name of the open stream.
    fn stream_location(&self, open: &Open) -> Option<Location> {
        open.file()?;
        self.agreement.location(open)
    }

    /// Removes a stream whose last open is closed, if the name still refers to that stream.
    pub(crate) fn delete_stream(
        self: &Arc<Self>,
        open: &Open,
        stream: &Location,
        may: MayWait<'_>,
    ) -> Result<()> {
        let name = StreamName::new(&stream.name)?;
        if stream.parent.stream(name, may)?.id() != open.node().id() {
            return Ok(());
        }
        let _charge = self.charge_nothing(&stream.parent, may)?;
        stream.parent.remove_stream(name, may)?;
        let location = open.file().and_then(|file| self.location(file));
        let action = ChangeAction::RemovedStream;
        self.tell_stream(location.as_ref(), &stream.name, action, ChangeKinds::STREAM_NAME, may);
        Ok(())
    }

    /// Tells watchers that the data of an open stream changed, and thereby its file.
    pub(crate) fn tell_stream_modified(&self, open: &Open, kinds: ChangeKinds, may: MayWait<'_>) {
        if !self.changes.is_watched() {
            return;
        }
        let (Some(location), Some(stream)) = (self.location(open), self.stream_name(open)) else { return };
        let mut of_stream = ChangeKinds::empty();
        of_stream.set(ChangeKinds::STREAM_SIZE, kinds.contains(ChangeKinds::SIZE));
        of_stream.set(ChangeKinds::STREAM_WRITE, kinds.contains(ChangeKinds::LAST_WRITE));
        self.tell_stream(Some(&location), &stream, ChangeAction::ModifiedStream, of_stream, may);
        self.changes.publish(
            &Event {
                dir: &location.parent,
                name: &location.name,
                action: ChangeAction::Modified,
                kinds: kinds.difference(ChangeKinds::SIZE),
                unless: ChangeKinds::empty(),
            },
            may,
        );
    }

    /// Tells watchers of a change of a stream. Its name there is the file's name, a colon, and the stream's name.
    fn tell_stream(
        &self,
        file: Option<&Location>,
        stream: &[u8],
        action: ChangeAction,
        kinds: ChangeKinds,
        may: MayWait<'_>,
    ) {
        let Some(file) = file else { return };
        let name = [&file.name, &b":"[..], stream].concat();
        let unless = ChangeKinds::empty();
        self.changes.publish(&Event { dir: &file.parent, name: &name, action, kinds, unless }, may);
    }
}

/// Removes all named streams of a file that is being overwritten. A stream that is open remains available to its opens.
pub(crate) fn remove_all(node: &NodeRef, may: MayWait<'_>) -> Result<()> {
    let streams = match node.streams(may) {
        Err(StoreError::NotSupported | StoreError::WrongKind) => return Ok(()),
        listed => listed?,
    };
    for stream in streams {
        match node.remove_stream(StreamName::new(&stream.name)?, may) {
            Ok(()) | Err(StoreError::NotFound) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// The stream whose name is the same regardless of case.
fn same_name<'a>(streams: &'a [StreamEntry], name: &[u8]) -> Option<&'a StreamEntry> {
    let folded = fold(name);
    streams.iter().find(|stream| fold(&stream.name) == folded)
}

/// The stored name and the data of a stream.
fn look(file: &NodeRef, name: &[u8], may: MayWait<'_>) -> Result<Option<(Vec<u8>, NodeRef)>> {
    match file.stream(StreamName::new(name)?, may) {
        Ok(data) => return Ok(Some((name.to_vec(), data))),
        Err(StoreError::NotFound) => {}
        Err(e) => return Err(e.into()),
    }
    let streams = file.streams(may)?;
    let Some(other) = same_name(&streams, name) else { return Ok(None) };
    match file.stream(StreamName::new(&other.name)?, may) {
        Ok(data) => Ok(Some((other.name.clone(), data))),
        Err(StoreError::NotFound) => Ok(None), // it has just gone
        Err(e) => Err(e.into()),
    }
}

/// Describes a stream as found in the directory of its file.
fn found(file: &Found, name: Vec<u8>, data: NodeRef, may: MayWait<'_>) -> Result<Found> {
    let attributes = combine(&file.attributes, &data.attributes(Want::empty(), Wait::May(may))?, true);
    let node: NodeRef = Arc::new(StreamNode { file: Arc::clone(&file.node), data });
    let stream = Some(Arc::new(Stream { file: Arc::clone(&file.node), name }));
    Ok(Found { node, attributes, stream, ..file.clone() })
}

/// The attributes of a stream: its own size, and otherwise those of its file. A directory's stream is not a directory.
fn combine(file: &Attributes, data: &Attributes, has_flags: bool) -> Attributes {
    // A file without stored flags has other default flags than a directory.
    let none = (has_flags && file.kind == FileKind::Directory).then_some(FileFlags::empty());
    Attributes {
        kind: FileKind::Regular,
        size: data.size,
        allocated: data.allocated,
        flags: file.flags.or(none),
        ..*file
    }
}

/// A named stream as a node: its data, and its file.
#[derive(Debug)]
struct StreamNode {
    file: NodeRef,
    data: NodeRef,
}

impl StreamNode {
    /// Marks the file as modified. If the time cannot be set, the write still succeeds.
    fn modified(&self, may: MayWait<'_>) {
        let set = SetAttributes { mtime: Some(SetTime::Now), ..SetAttributes::default() };
        if let Err(e) = self.file.set_attributes(&set, may) {
            tracing::debug!("a file does not show that its stream was written: {e}");
        }
    }
}

#[deny(clippy::missing_trait_methods, reason = "each call is for the data, for the file, or for neither")]
impl Node for StreamNode {
    /// The store recognizes its own node by the data.
    fn as_any(&self) -> &dyn Any {
        self.data.as_any()
    }

    fn beneath(&self) -> Option<&dyn Node> {
        self.data.beneath()
    }

    fn id(&self) -> ObjectId {
        self.data.id()
    }

    fn kind(&self) -> FileKind {
        FileKind::Regular
    }

    fn handle(&self) -> storage::Result<Handle> {
        Err(StoreError::NotSupported)
    }

    fn path(&self) -> storage::Result<Vec<u8>> {
        self.file.path()
    }

    fn check_place(&self) -> storage::Result<()> {
        self.file.check_place()
    }

    fn vouch_for(&self, _: &dyn Node) {}

    fn attributes(&self, want: Want, wait: Wait<'_>) -> storage::Result<Attributes> {
        let file = self.file.attributes(want, wait)?;
        Ok(combine(&file, &self.data.attributes(Want::empty(), wait)?, want.contains(Want::FLAGS)))
    }

    fn lookup(&self, _: Name<'_>, _: Wait<'_>) -> storage::Result<NodeRef> {
        Err(StoreError::NotDirectory)
    }

    fn lookup_attributes(&self, _: Name<'_>, _: Want, _: Wait<'_>) -> storage::Result<(NodeRef, Attributes)> {
        Err(StoreError::NotDirectory)
    }

    fn protection(&self, wait: Wait<'_>) -> storage::Result<Protection> {
        self.file.protection(wait)
    }

    fn create_attributes(
        &self,
        _: Name<'_>,
        _: &NewNode<'_>,
        _: Want,
        _: MayWait<'_>,
    ) -> storage::Result<(NodeRef, Attributes)> {
        Err(StoreError::NotDirectory)
    }

    fn parent_number(&self, _: MayWait<'_>) -> storage::Result<ObjectId> {
        Err(StoreError::NotDirectory)
    }

    fn parent(&self, _: MayWait<'_>) -> storage::Result<NodeRef> {
        Err(StoreError::NotDirectory)
    }

    fn read_dir(
        &self,
        _: u64,
        _: MayWait<'_>,
        _: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> storage::Result<bool> {
        Err(StoreError::NotDirectory)
    }

    fn survey(
        &self,
        _: MayWait<'_>,
        _: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> storage::Result<bool> {
        Err(StoreError::NotDirectory)
    }

    fn read_link(&self, _: MayWait<'_>) -> storage::Result<Vec<u8>> {
        Err(StoreError::WrongKind)
    }

    fn read(&self, offset: u64, into: &mut [u8], wait: Wait<'_>) -> storage::Result<usize> {
        self.data.read(offset, into, wait)
    }

    fn set_attributes(&self, set: &SetAttributes, may: MayWait<'_>) -> storage::Result<Attributes> {
        let mut of_file = SetAttributes { size: None, ..*set };
        if set.size.is_some() {
            self.data.set_attributes(&SetAttributes { size: set.size, ..SetAttributes::default() }, may)?;
            of_file.mtime = of_file.mtime.or(Some(SetTime::Now));
        }
        let file = self.file.set_attributes(&of_file, may)?;
        Ok(combine(&file, &self.data.attributes(Want::empty(), Wait::May(may))?, true))
    }

    fn security(
        &self,
        attributes: &Attributes,
        wait: Wait<'_>,
    ) -> storage::Result<Option<Arc<SecurityDescriptor>>> {
        self.file.security(attributes, wait)
    }

    fn set_security(
        &self,
        descriptor: Option<SecurityDescriptor>,
        may: MayWait<'_>,
    ) -> storage::Result<Attributes> {
        let file = self.file.set_security(descriptor, may)?;
        Ok(combine(&file, &self.data.attributes(Want::empty(), Wait::May(may))?, true))
    }

    fn prepare_security(
        &self,
        descriptor: SecurityDescriptor,
        terms: (u32, (u32, u32)),
        may: MayWait<'_>,
    ) -> storage::Result<Attributes> {
        let file = self.file.prepare_security(descriptor, terms, may)?;
        Ok(combine(&file, &self.data.attributes(Want::empty(), Wait::May(may))?, true))
    }

    fn create(&self, _: Name<'_>, _: &NewNode<'_>, _: MayWait<'_>) -> storage::Result<NodeRef> {
        Err(StoreError::NotDirectory)
    }

    fn link(&self, _: Name<'_>, _: &dyn Node, _: MayWait<'_>) -> storage::Result<()> {
        Err(StoreError::NotDirectory)
    }

    fn remove_file(&self, _: Name<'_>, _: MayWait<'_>) -> storage::Result<()> {
        Err(StoreError::NotDirectory)
    }

    fn remove_dir(&self, _: Name<'_>, _: MayWait<'_>) -> storage::Result<()> {
        Err(StoreError::NotDirectory)
    }

    fn remove_found(&self, _: Name<'_>, _: &Attributes, _: MayWait<'_>) -> storage::Result<()> {
        Err(StoreError::NotDirectory)
    }

    fn rename(
        &self,
        _: Name<'_>,
        _: &dyn Node,
        _: Name<'_>,
        _: Replace,
        _: MayWait<'_>,
    ) -> storage::Result<()> {
        Err(StoreError::NotDirectory)
    }

    fn write(
        &self,
        offset: u64,
        data: &[IoSlice<'_>],
        stability: Stability,
        wait: Wait<'_>,
    ) -> storage::Result<usize> {
        // What it does to the file may wait.
        let Wait::May(may) = wait else { return Err(StoreError::WouldBlock) };
        let count = self.data.write(offset, data, stability, wait)?;
        self.modified(may);
        Ok(count)
    }

    fn commit(&self, may: MayWait<'_>) -> storage::Result<()> {
        self.data.commit(may)?;
        self.file.commit(may)
    }

    fn allocate(&self, offset: u64, length: u64, grow: bool, may: MayWait<'_>) -> storage::Result<()> {
        self.data.allocate(offset, length, grow, may)
    }

    fn punch_hole(&self, offset: u64, length: u64, may: MayWait<'_>) -> storage::Result<()> {
        self.data.punch_hole(offset, length, may)?;
        self.modified(may);
        Ok(())
    }

    fn seek(&self, offset: u64, to: SeekTo, may: MayWait<'_>) -> storage::Result<Option<u64>> {
        self.data.seek(offset, to, may)
    }

    fn copy_range(
        &self,
        offset: u64,
        to: &dyn Node,
        to_offset: u64,
        length: u64,
        may: MayWait<'_>,
    ) -> storage::Result<u64> {
        self.data.copy_range(offset, to, to_offset, length, may)
    }

    fn clone_range(
        &self,
        offset: u64,
        to: &dyn Node,
        to_offset: u64,
        length: u64,
        may: MayWait<'_>,
    ) -> storage::Result<()> {
        self.data.clone_range(offset, to, to_offset, length, may)
    }

    fn xattr(&self, name: &[u8], may: MayWait<'_>) -> storage::Result<Vec<u8>> {
        self.file.xattr(name, may)
    }

    fn xattrs(&self, may: MayWait<'_>) -> storage::Result<Vec<Vec<u8>>> {
        self.file.xattrs(may)
    }

    fn set_xattr(&self, name: &[u8], value: &[u8], mode: XattrMode, may: MayWait<'_>) -> storage::Result<()> {
        self.file.set_xattr(name, value, mode, may)
    }

    fn remove_xattr(&self, name: &[u8], may: MayWait<'_>) -> storage::Result<()> {
        self.file.remove_xattr(name, may)
    }

    fn note(&self, may: MayWait<'_>) -> storage::Result<Option<Vec<u8>>> {
        self.file.note(may)
    }

    fn set_note(&self, note: Option<&[u8]>, may: MayWait<'_>) -> storage::Result<()> {
        self.file.set_note(note, may)
    }

    fn streams(&self, may: MayWait<'_>) -> storage::Result<Vec<StreamEntry>> {
        self.file.streams(may)
    }

    fn stream(&self, name: StreamName<'_>, may: MayWait<'_>) -> storage::Result<NodeRef> {
        self.file.stream(name, may)
    }

    fn create_stream(&self, name: StreamName<'_>, may: MayWait<'_>) -> storage::Result<NodeRef> {
        self.file.create_stream(name, may)
    }

    fn remove_stream(&self, name: StreamName<'_>, may: MayWait<'_>) -> storage::Result<()> {
        self.file.remove_stream(name, may)
    }

    fn rename_stream(
        &self,
        name: StreamName<'_>,
        to: StreamName<'_>,
        replace: Replace,
        may: MayWait<'_>,
    ) -> storage::Result<()> {
        self.file.rename_stream(name, to, replace, may)
    }
}
