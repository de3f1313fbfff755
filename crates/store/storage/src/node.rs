//! An object of a store.

use std::any::Any;
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::sync::Arc;

use acl::SecurityDescriptor;

use crate::{
    Attributes, Device, Error, FileKind, Handle, MayWait, Name, ObjectId, Protection, Result, SetAttributes,
    StreamName, Wait, Want,
};

/// How safe written data must be when the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stability {
    /// In the page cache; [`Node::commit`] makes the data safe.
    Unstable,
    /// The data, and what is needed to find it again, are on stable storage.
    Data,
    /// The data and all attributes are on stable storage.
    File,
}

/// What happens to an object whose name a rename takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// The rename fails with [`Error::Exists`].
    Never,
    /// The object is replaced, as in POSIX rename.
    Yes,
}

/// What [`Node::seek`] looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeekTo {
    /// The next byte that is stored.
    Data,
    /// The next byte that is not.
    Hole,
}

/// Whether an extended attribute may or must exist before it is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XattrMode {
    /// It may exist or not.
    Set,
    /// It must not exist; otherwise [`Error::Exists`].
    Create,
    /// It must exist; otherwise [`Error::NoAttribute`].
    Replace,
}

/// The kind of object to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewKind<'a> {
    /// An empty file.
    Regular,
    /// An empty directory.
    Directory,
    /// A symbolic link with this text.
    Symlink(&'a [u8]),
    /// A named pipe.
    Fifo,
    /// The name of a socket.
    Socket,
    /// The name of a block device.
    BlockDevice(Device),
    /// The name of a character device.
    CharDevice(Device),
}

/// A new object and its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewNode<'a> {
    /// The kind of object to create.
    pub kind: NewKind<'a>,
    /// The low 12 bits of the mode; no umask applies.
    pub mode: u32,
    /// Owner, where the store can set owners ([`Capabilities::OWNERS`]); elsewhere owner and group are the server's.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// One entry of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirEntry<'a> {
    /// The name: never `.` or `..`.
    pub name: &'a [u8],
    /// Which object it is.
    pub id: ObjectId,
    /// The kind of the object, if the directory itself records it.
    pub kind: Option<FileKind>,
    /// Pass this to [`Node::read_dir`] to continue after this entry.
    pub cookie: u64,
}

/// One named stream of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEntry {
    /// The name of the stream.
    pub name: Vec<u8>,
    /// Length of the data in bytes.
    pub size: u64,
    /// Bytes that the data occupies.
    pub allocated: u64,
}

/// A shared, pinned object.
pub type NodeRef = Arc<dyn Node>;

/// An object of a store, pinned: while a reference lives, [`Node::id`] names the same object, even after its last name
/// is removed. Calls on one node may run at the same time.
///
/// Two nodes passed to one call must belong to the same store; otherwise the call returns [`Error::CrossDevice`]. Only
/// [`Node::clone_range`] may take one of a snapshot and one of the store itself.
pub trait Node: Send + Sync + std::fmt::Debug + 'static {
    // --- the minimum: what a read-only store needs ---

    /// Lets a store recognise its own nodes.
    fn as_any(&self) -> &dyn Any;

    /// The node of the store itself, for a node of a layer in front of it: for calls with nodes of the store's snapshots, in front of
    /// which the layer is not.
    fn beneath(&self) -> Option<&dyn Node> {
        None
    }

    /// Which object it is.
    fn id(&self) -> ObjectId;

    /// The kind of the object.
    fn kind(&self) -> FileKind;

    /// The handle by which the object is found after a restart. Takes no token: a store that may stop answering reads the
    /// handle when it finds or creates the object.
    ///
    /// # Errors
    /// Those of the device.
    fn handle(&self) -> Result<Handle>;

    /// The path of the object below the root, as far as known: `a/b/c`, empty for the root. For change notification and
    /// logs; it may be out of date at once. Does not wait.
    ///
    /// # Errors
    /// [`Error::Stale`] when the object no longer has a name.
    fn path(&self) -> Result<Vec<u8>>;

    /// Fails for a directory that others have moved out of the store: nothing may be found, created or listed in it.
    /// The move may be noticed up to a second late, or at once if a [`crate::Feed`] of the store has reported it.
    /// Does not wait.
    ///
    /// # Errors
    /// [`Error::Stale`].
    fn check_place(&self) -> Result<()> {
        Ok(())
    }

    /// Notes that `child`, a directory, is in this one, for which [`Node::check_place`] succeeded. So the child lies in
    /// the store as well and need not be checked.
    fn vouch_for(&self, _child: &dyn Node) {}

    /// The attributes of the object.
    ///
    /// # Errors
    /// [`Error::WouldBlock`], those of the device.
    fn attributes(&self, want: Want, wait: Wait<'_>) -> Result<Attributes>;

    /// The security descriptor that was stored with the object, if it is still in force. It is in force as long as the
    /// permission bits and owners in `attributes`, which were just read, are those for which it was stored.
    ///
    /// # Errors
    /// [`Error::WouldBlock`], those of the device.
    fn security(&self, attributes: &Attributes, wait: Wait<'_>) -> Result<Option<Arc<SecurityDescriptor>>> {
        let _ = (attributes, wait);
        Ok(None)
    }

    /// What decides about access to the object.
    ///
    /// # Errors
    /// [`Error::WouldBlock`], those of the device.
    fn protection(&self, wait: Wait<'_>) -> Result<Protection> {
        let attributes = self.attributes(Want::empty(), wait)?;
        let security = self.security(&attributes, wait)?;
        Ok(Protection { security, ..Protection::of(&attributes) })
    }

    /// The object with this name in this directory. Symbolic links are not followed.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`], [`Error::WouldBlock`].
    fn lookup(&self, name: Name<'_>, wait: Wait<'_>) -> Result<NodeRef>;

    /// [`Node::lookup`] and [`Node::attributes`] of the object found, as of one moment.
    ///
    /// # Errors
    /// Those of both calls.
    fn lookup_attributes(&self, name: Name<'_>, want: Want, wait: Wait<'_>) -> Result<(NodeRef, Attributes)> {
        let node = self.lookup(name, wait)?;
        let attributes = node.attributes(want, wait)?;
        Ok((node, attributes))
    }

    /// The directory that holds this directory; the root's is the root.
    ///
    /// # Errors
    /// [`Error::NotDirectory`], [`Error::Stale`].
    fn parent(&self, may: MayWait<'_>) -> Result<NodeRef>;

    /// The number of the directory that contains this directory, for callers that only report it; the root's is its
    /// own. The result may be a second old ([`Node::check_place`]).
    ///
    /// # Errors
    /// [`Error::NotDirectory`], [`Error::Stale`].
    fn parent_number(&self, may: MayWait<'_>) -> Result<ObjectId> {
        Ok(self.parent(may)?.id())
    }

    /// Passes each entry after `cookie` (0: from the start) to `each` until it breaks. Returns true when the end was
    /// reached. Cookies stay valid while entries are added and removed: an entry that stays is passed exactly once. An
    /// entry's cookie is never 0.
    ///
    /// # Errors
    /// [`Error::NotDirectory`], [`Error::Stale`] when the directory has been removed.
    fn read_dir(
        &self,
        cookie: u64,
        may: MayWait<'_>,
        each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<bool>;

    /// [`Node::read_dir`] from the start, for the server itself and not for a client. The directory's access time is
    /// left unchanged where the store allows that.
    ///
    /// # Errors
    /// As [`Node::read_dir`].
    fn survey(
        &self,
        may: MayWait<'_>,
        each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>,
    ) -> Result<bool> {
        self.read_dir(0, may, each)
    }

    /// The text of a symbolic link.
    ///
    /// # Errors
    /// [`Error::WrongKind`].
    fn read_link(&self, may: MayWait<'_>) -> Result<Vec<u8>>;

    /// Reads into `into` from `offset`. The returned count is short only at the end of the data or, with
    /// [`Wait::Never`], where the rest would have to be waited for.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] when nothing can be read without waiting, [`Error::IsDirectory`], [`Error::WrongKind`].
    fn read(&self, offset: u64, into: &mut [u8], wait: Wait<'_>) -> Result<usize>;

    // --- writing ---

    /// Changes attributes: all or none, as far as the store can. Returns the attributes after the change. A time that the
    /// store cannot keep becomes the nearest that it can, as on Linux.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] for owners without [`Capabilities::OWNERS`]; [`Error::TooLarge`]. For the size:
    /// [`Error::IsDirectory`], [`Error::WrongKind`]. [`Error::NotSupported`] for the mode of a symbolic link;
    /// [`Error::WrongKind`] for flags and birth times of an object that is neither file nor directory.
    fn set_attributes(&self, set: &SetAttributes, may: MayWait<'_>) -> Result<Attributes> {
        let _ = (set, may);
        Err(Error::NotSupported)
    }

    /// Stores a security descriptor for the object's present permission bits and owners, or removes it (None). Returns
    /// the attributes after the change.
    ///
    /// # Errors
    /// [`Error::AttributeTooLarge`], [`Error::NoSpace`]; [`Error::WrongKind`] for an object that is neither file nor
    /// directory.
    fn set_security(&self, descriptor: Option<SecurityDescriptor>, may: MayWait<'_>) -> Result<Attributes> {
        let _ = (descriptor, may);
        Err(Error::NotSupported)
    }

    /// Stores a security descriptor that comes into force when the object gets this mode and these owners. The one in
    /// force now stays in force until then. Returns the attributes after the change.
    ///
    /// # Errors
    /// As [`Node::set_security`]; two descriptors may be too large where each is not.
    fn prepare_security(
        &self,
        descriptor: SecurityDescriptor,
        terms: (u32, (u32, u32)),
        may: MayWait<'_>,
    ) -> Result<Attributes> {
        let _ = (descriptor, terms, may);
        Err(Error::NotSupported)
    }

    /// Creates an object in this directory, in the same file system. The store decides the mode of a symbolic link.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::NotDirectory`], [`Error::NoSpace`]; [`Error::Stale`] when the directory has
    /// been removed.
    fn create(&self, name: Name<'_>, new: &NewNode<'_>, may: MayWait<'_>) -> Result<NodeRef> {
        let _ = (name, new, may);
        Err(Error::NotSupported)
    }

    /// [`Node::create`] and [`Node::attributes`] of the new object.
    ///
    /// # Errors
    /// Those of both calls.
    fn create_attributes(
        &self,
        name: Name<'_>,
        new: &NewNode<'_>,
        want: Want,
        may: MayWait<'_>,
    ) -> Result<(NodeRef, Attributes)> {
        let node = self.create(name, new, may)?;
        let attributes = node.attributes(want, Wait::May(may))?;
        Ok((node, attributes))
    }

    /// Gives `target` another name in this directory.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::TooManyLinks`], [`Error::IsDirectory`] when `target` is a directory;
    /// [`Error::Stale`] when the directory or the last name of `target` has been removed.
    fn link(&self, name: Name<'_>, target: &dyn Node, may: MayWait<'_>) -> Result<()> {
        let _ = (name, target, may);
        Err(Error::NotSupported)
    }

    /// Removes a name of something that is not a directory.
    ///
    /// # Errors
    /// [`Error::IsDirectory`], [`Error::NotFound`].
    fn remove_file(&self, name: Name<'_>, may: MayWait<'_>) -> Result<()> {
        let _ = (name, may);
        Err(Error::NotSupported)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// [`Error::NotEmpty`], [`Error::NotDirectory`], [`Error::NotFound`].
    fn remove_dir(&self, name: Name<'_>, may: MayWait<'_>) -> Result<()> {
        let _ = (name, may);
        Err(Error::NotSupported)
    }

    /// Removes the name of an object that was just looked up by this name and had these attributes.
    ///
    /// # Errors
    /// As [`Node::remove_dir`] for a directory, as [`Node::remove_file`] for other objects.
    fn remove_found(&self, name: Name<'_>, found: &Attributes, may: MayWait<'_>) -> Result<()> {
        if found.kind == FileKind::Directory {
            self.remove_dir(name, may)
        } else {
            self.remove_file(name, may)
        }
    }

    /// Atomically moves `name` of this directory to `to_name` of `to_dir`.
    ///
    /// # Errors
    /// [`Error::Exists`] with [`Replace::Never`]; [`Error::NotEmpty`], [`Error::IsDirectory`], [`Error::NotDirectory`]
    /// as in POSIX rename; [`Error::InvalidArgument`] when a directory would be moved into itself.
    fn rename(
        &self,
        name: Name<'_>,
        to_dir: &dyn Node,
        to_name: Name<'_>,
        replace: Replace,
        may: MayWait<'_>,
    ) -> Result<()> {
        let _ = (name, to_dir, to_name, replace, may);
        Err(Error::NotSupported)
    }

    /// Writes all of `data` at `offset`, or fails. With [`Wait::Never`] it may write a part.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] when nothing was written, [`Error::NoSpace`], [`Error::TooLarge`].
    fn write(
        &self,
        offset: u64,
        data: &[IoSlice<'_>],
        stability: Stability,
        wait: Wait<'_>,
    ) -> Result<usize> {
        let _ = (offset, data, stability, wait);
        Err(Error::NotSupported)
    }

    /// Puts everything written so far, data and attributes, on stable storage.
    ///
    /// # Errors
    /// Those of the device: the data may be lost.
    fn commit(&self, may: MayWait<'_>) -> Result<()> {
        let _ = may;
        Err(Error::NotSupported)
    }

    // --- sparse files ---

    /// Reserves space for `length` bytes from `offset`. The file grows only if `grow` is set.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::NotSupported`].
    fn allocate(&self, offset: u64, length: u64, grow: bool, may: MayWait<'_>) -> Result<()> {
        let _ = (offset, length, grow, may);
        Err(Error::NotSupported)
    }

    /// Makes `length` bytes from `offset` read as zeroes and frees their space. The size does not change.
    ///
    /// # Errors
    /// [`Error::NotSupported`] without [`Capabilities::PUNCH_HOLE`].
    fn punch_hole(&self, offset: u64, length: u64, may: MayWait<'_>) -> Result<()> {
        let _ = (offset, length, may);
        Err(Error::NotSupported)
    }

    /// The next offset at or after `offset` that is data or a hole. The end of the data counts as a hole, so a hole is
    /// always found for an offset before the end. None for an offset at or after the end, and when no more data
    /// follows.
    ///
    /// # Errors
    /// [`Error::NotSupported`] without [`Capabilities::SPARSE`].
    fn seek(&self, offset: u64, to: SeekTo, may: MayWait<'_>) -> Result<Option<u64>> {
        let _ = (offset, to, may);
        Err(Error::NotSupported)
    }

    // --- copies that do not pass through the server ---

    /// Copies up to `length` bytes to another file. Returns how many were copied.
    ///
    /// # Errors
    /// [`Error::NotSupported`], [`Error::CrossDevice`].
    fn copy_range(
        &self,
        offset: u64,
        to: &dyn Node,
        to_offset: u64,
        length: u64,
        may: MayWait<'_>,
    ) -> Result<u64> {
        let _ = (offset, to, to_offset, length, may);
        Err(Error::NotSupported)
    }

    /// Shares blocks with another file, which may be one of the store's where this one is of a snapshot of it.
    ///
    /// # Errors
    /// [`Error::NotSupported`] without [`Capabilities::CLONE`]; [`Error::CrossDevice`] also where the store cannot do it between a
    /// snapshot and itself.
    fn clone_range(
        &self,
        offset: u64,
        to: &dyn Node,
        to_offset: u64,
        length: u64,
        may: MayWait<'_>,
    ) -> Result<()> {
        let _ = (offset, to, to_offset, length, may);
        Err(Error::NotSupported)
    }

    // --- extended attributes of files and directories (other objects: WrongKind). Names are given without the prefix
    // `user.`; see [`crate::check_xattr_name`] ---

    /// The value of an extended attribute.
    ///
    /// # Errors
    /// [`Error::NoAttribute`], [`Error::NotSupported`].
    fn xattr(&self, name: &[u8], may: MayWait<'_>) -> Result<Vec<u8>> {
        let _ = (name, may);
        Err(Error::NotSupported)
    }

    /// The names of the extended attributes, without the server's own (those that begin with `anabranch.`).
    ///
    /// # Errors
    /// [`Error::NotSupported`].
    fn xattrs(&self, may: MayWait<'_>) -> Result<Vec<Vec<u8>>> {
        let _ = may;
        Err(Error::NotSupported)
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// [`Error::AttributeTooLarge`], [`Error::NoSpace`], [`Error::NotSupported`].
    fn set_xattr(&self, name: &[u8], value: &[u8], mode: XattrMode, may: MayWait<'_>) -> Result<()> {
        let _ = (name, value, mode, may);
        Err(Error::NotSupported)
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// [`Error::NoAttribute`], [`Error::NotSupported`].
    fn remove_xattr(&self, name: &[u8], may: MayWait<'_>) -> Result<()> {
        let _ = (name, may);
        Err(Error::NotSupported)
    }

    // --- a note of the server's own about a file or directory (other objects: WrongKind), which clients neither see nor change,
    // and which snapshots keep ---

    /// The note.
    ///
    /// # Errors
    /// [`Error::NotSupported`].
    fn note(&self, may: MayWait<'_>) -> Result<Option<Vec<u8>>> {
        let _ = may;
        Err(Error::NotSupported)
    }

    /// Sets the note, or removes it (None). This changes the change time.
    ///
    /// # Errors
    /// [`Error::AttributeTooLarge`], [`Error::NoSpace`], [`Error::NotSupported`].
    fn set_note(&self, note: Option<&[u8]>, may: MayWait<'_>) -> Result<()> {
        let _ = (note, may);
        Err(Error::NotSupported)
    }

    // --- named streams of files and directories: additional data, each under a name of its own. Streams belong to the
    // object, not to one of its names, and are removed with its last name. A stream's node that is still held keeps the
    // data until it is dropped. A stream's node has data, a number, a size and allocated bytes of its own; its other
    // attributes have no meaning. It is of the same file system and of the same snapshot as its object. ---

    /// The named streams, in no particular order.
    ///
    /// # Errors
    /// [`Error::NotSupported`]; [`Error::WrongKind`] for an object that is neither file nor directory.
    fn streams(&self, may: MayWait<'_>) -> Result<Vec<StreamEntry>> {
        let _ = may;
        Err(Error::NotSupported)
    }

    /// The stream with this name.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotSupported`], [`Error::WrongKind`].
    fn stream(&self, name: StreamName<'_>, may: MayWait<'_>) -> Result<NodeRef> {
        let _ = (name, may);
        Err(Error::NotSupported)
    }

    /// Makes an empty named stream.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::NoSpace`], [`Error::NotSupported`], [`Error::WrongKind`]; [`Error::Stale`] when the
    /// object's last name has been removed.
    fn create_stream(&self, name: StreamName<'_>, may: MayWait<'_>) -> Result<NodeRef> {
        let _ = (name, may);
        Err(Error::NotSupported)
    }

    /// Removes a named stream.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotSupported`], [`Error::WrongKind`].
    fn remove_stream(&self, name: StreamName<'_>, may: MayWait<'_>) -> Result<()> {
        let _ = (name, may);
        Err(Error::NotSupported)
    }

    /// Atomically renames a named stream. With [`Replace::Yes`] an existing stream of the new name is removed.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Exists`] with [`Replace::Never`], [`Error::NotSupported`], [`Error::WrongKind`].
    fn rename_stream(
        &self,
        name: StreamName<'_>,
        to: StreamName<'_>,
        replace: Replace,
        may: MayWait<'_>,
    ) -> Result<()> {
        let _ = (name, to, replace, may);
        Err(Error::NotSupported)
    }
}
