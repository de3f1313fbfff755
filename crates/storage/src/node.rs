//! The trait.

use std::any::Any;
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::sync::Arc;

use acl::SecurityDescriptor;
use bitflags::bitflags;

use crate::{
    Attributes, Device, Error, Feed, FileId, FileKind, Handle, Name, Observer, Protection, Result,
    SetAttributes, Space, StreamName, Want,
};

/// Whether a call may wait for a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Answer from memory, else [`Error::WouldBlock`]. A read may answer in part.
    Never,
    /// Wait as long as it takes. Not on a shard.
    May,
}

/// How safe written data must be when the call returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stability {
    /// In the page cache; [`Node::commit`] makes it safe.
    Unstable,
    /// Data, and what is needed to find it again, are on stable storage.
    Data,
    /// Data and all attributes are on stable storage.
    File,
}

/// What happens to an object that a rename would hide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replace {
    /// [`Error::Exists`].
    Never,
    /// It goes, as in POSIX rename.
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
    /// Either.
    Set,
    /// It must not exist: [`Error::Exists`].
    Create,
    /// It must exist: [`Error::NoAttribute`].
    Replace,
}

bitflags! {
    /// What a store can do beyond the least. What is not named here answers [`Error::NotSupported`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Capabilities: u32 {
        /// Objects can be made, changed and removed.
        const WRITE = 1;
        /// Extended attributes of the `user.` name space.
        const XATTRS = 2;
        /// Holes: [`Node::seek`] and [`Node::punch_hole`].
        const SPARSE = 4;
        /// [`Node::clone_range`] shares blocks.
        const CLONE = 8;
        /// [`Attributes::btime`] is known.
        const BIRTH_TIME = 16;
        /// Owners can be set to any user (the server is privileged).
        const OWNERS = 32;
        /// [`Wait::Never`] reads can succeed.
        const READ_NEVER = 64;
        /// [`Wait::Never`] writes can succeed.
        const WRITE_NEVER = 128;
        /// Handles are those of the file system itself, and so survive renames made behind the server's back.
        const NATIVE_HANDLES = 256;
        /// Files and directories have named streams.
        const STREAMS = 512;
        /// It is known to lie on this machine's own devices, or in its memory. Other stores (a network's, a program's, those
        /// of which nothing is known) may stop answering for good: what is not [`Wait::Never`] is never called on a shard.
        const LOCAL = 1024;
    }
}

/// What to make.
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
    /// A socket's name.
    Socket,
    /// A block device's name.
    BlockDevice(Device),
    /// A character device's name.
    CharDevice(Device),
}

/// A new object and who it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewNode<'a> {
    /// What to make.
    pub kind: NewKind<'a>,
    /// The low 12 bits of its mode; no umask applies.
    pub mode: u32,
    /// Owner and group, where the store can set them ([`Capabilities::OWNERS`]); else they are the server's.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// One entry of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirEntry<'a> {
    /// Its name: never `.` or `..`.
    pub name: &'a [u8],
    /// Its number.
    pub id: FileId,
    /// What it is, where the directory itself tells.
    pub kind: Option<FileKind>,
    /// Give this to [`Node::read_dir`] to go on behind this entry.
    pub cookie: u64,
}

/// One named stream of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamEntry {
    /// Its name.
    pub name: Vec<u8>,
    /// Length of its data in bytes.
    pub size: u64,
    /// Bytes that its data occupies.
    pub allocated: u64,
}

/// A shared, pinned object.
pub type NodeRef = Arc<dyn Node>;

/// A store: a tree of [`Node`]s.
pub trait Storage: Send + Sync + 'static {
    /// What this store can do.
    fn capabilities(&self) -> Capabilities;

    /// The directory at the top.
    fn root(&self) -> NodeRef;

    /// Finds an object by the handle that [`Node::handle`] gave, also before a restart. A file whose last name was removed is
    /// found as long as anybody has it; a directory that was removed is not.
    ///
    /// # Errors
    /// [`Error::Stale`] when the object is gone, [`Error::BadHandle`] when the bytes were never a handle of
    /// this store or lead out of its tree, [`Error::WouldBlock`].
    fn by_handle(&self, handle: &Handle, wait: Wait) -> Result<NodeRef>;

    /// Something that observes changes of its directories, whoever makes them.
    ///
    /// # Errors
    /// [`Error::NotSupported`], [`Error::OutOfResources`].
    fn observer(&self) -> Result<Arc<dyn Observer>> {
        Err(Error::NotSupported)
    }

    /// Something that tells for certain which directories have changed, whoever changed them.
    ///
    /// # Errors
    /// [`Error::NotSupported`] where that cannot be known; [`Error::OutOfResources`].
    fn feed(&self) -> Result<Arc<dyn Feed>> {
        Err(Error::NotSupported)
    }

    /// How much the store holds.
    ///
    /// # Errors
    /// Those of the device.
    fn space(&self) -> Result<Space>;

    /// Whether it takes no changes at present: a device that has failed may turn read-only in service.
    ///
    /// # Errors
    /// Those of the device.
    fn is_read_only(&self) -> Result<bool> {
        Ok(!self.capabilities().contains(Capabilities::WRITE))
    }

    /// Whether the path that it was opened by still leads to its root: a local program may have renamed or replaced that.
    ///
    /// # Errors
    /// Those of the device.
    fn is_in_place(&self) -> Result<bool> {
        Ok(true)
    }
}

/// An object of a store, pinned: while a reference lives, [`Node::id`] names the same object, also after
/// its last name is gone. Calls on one node may run at the same time.
///
/// Two nodes given to one call must be of one store, else [`Error::CrossDevice`].
pub trait Node: Send + Sync + std::fmt::Debug + 'static {
    // --- the least: what a read-only store needs ---

    /// For a store to recognise its own nodes.
    fn as_any(&self) -> &dyn Any;

    /// Its number.
    fn id(&self) -> FileId;

    /// What it is.
    fn kind(&self) -> FileKind;

    /// Its name for after a restart.
    ///
    /// # Errors
    /// Those of the device.
    fn handle(&self) -> Result<Handle>;

    /// Where it lies below the root, as far as known: `a/b/c`, empty for the root. For change notification
    /// and logs; it may be out of date at once.
    ///
    /// # Errors
    /// [`Error::Stale`] when it has no name any more.
    fn path(&self) -> Result<Vec<u8>>;

    /// Refuses a directory that others have moved out of the store meanwhile: nothing is found, made or listed in it. It may be
    /// found out late, a second at most; at once where a [`crate::Feed`] of the store has told of the move.
    ///
    /// # Errors
    /// [`Error::Stale`].
    fn check_place(&self) -> Result<()> {
        Ok(())
    }

    /// A directory is known to be in this one, in which [`Node::check_place`] let the caller work: it lies in the store as this
    /// one does, and need not be asked for it.
    fn vouch_for(&self, _child: &dyn Node) {}

    /// What is known about it.
    ///
    /// # Errors
    /// [`Error::WouldBlock`], those of the device.
    fn attributes(&self, want: Want, wait: Wait) -> Result<Attributes>;

    /// The security descriptor that was stored with it, if it is still in force: as long as the permission bits and
    /// owners in `attributes`, which were just read, are those that it was stored for.
    ///
    /// # Errors
    /// [`Error::WouldBlock`], those of the device.
    fn security(&self, attributes: &Attributes, wait: Wait) -> Result<Option<Arc<SecurityDescriptor>>> {
        let _ = (attributes, wait);
        Ok(None)
    }

    /// What decides about access to it.
    ///
    /// # Errors
    /// [`Error::WouldBlock`], those of the device.
    fn protection(&self, wait: Wait) -> Result<Protection> {
        let attributes = self.attributes(Want::empty(), wait)?;
        let security = self.security(&attributes, wait)?;
        Ok(Protection { security, ..Protection::of(&attributes) })
    }

    /// The object of that name in this directory. Symbolic links are not followed.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotDirectory`], [`Error::WouldBlock`].
    fn lookup(&self, name: Name<'_>, wait: Wait) -> Result<NodeRef>;

    /// [`Node::lookup`], and [`Node::attributes`] of what it finds, as of one moment.
    ///
    /// # Errors
    /// Those of both.
    fn lookup_attributes(&self, name: Name<'_>, want: Want, wait: Wait) -> Result<(NodeRef, Attributes)> {
        let node = self.lookup(name, wait)?;
        let attributes = node.attributes(want, wait)?;
        Ok((node, attributes))
    }

    /// The directory that holds this directory; the root's is the root.
    ///
    /// # Errors
    /// [`Error::NotDirectory`], [`Error::Stale`].
    fn parent(&self) -> Result<NodeRef>;

    /// The number of the directory that holds this directory, for who only tells it; the root's is its own. It may be a second
    /// old ([`Node::check_place`]).
    ///
    /// # Errors
    /// [`Error::NotDirectory`], [`Error::Stale`].
    fn parent_number(&self) -> Result<FileId> {
        Ok(self.parent()?.id())
    }

    /// Gives each entry behind `cookie` (0: from the start) to `each` until it breaks; true when the end was
    /// reached. Cookies stay valid while entries come and go: an entry that stays is given exactly once.
    /// An entry's cookie is never 0.
    ///
    /// # Errors
    /// [`Error::NotDirectory`], [`Error::Stale`] when the directory has been removed.
    fn read_dir(&self, cookie: u64, each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>) -> Result<bool>;

    /// [`Node::read_dir`] from the start, for the server itself and no client: the directory's time of last access stays what it
    /// is, where the store may leave it so.
    ///
    /// # Errors
    /// The same.
    fn survey(&self, each: &mut dyn FnMut(DirEntry<'_>) -> ControlFlow<()>) -> Result<bool> {
        self.read_dir(0, each)
    }

    /// The text of a symbolic link.
    ///
    /// # Errors
    /// [`Error::WrongKind`].
    fn read_link(&self) -> Result<Vec<u8>>;

    /// Reads into `into` from `offset`: the count is short only at the end of the data or, with
    /// [`Wait::Never`], where the rest is not at hand.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] when nothing is at hand, [`Error::IsDirectory`], [`Error::WrongKind`].
    fn read(&self, offset: u64, into: &mut [u8], wait: Wait) -> Result<usize>;

    // --- writing ---

    /// Changes attributes, all or none as far as the store can; returns them as they are then.
    ///
    /// # Errors
    /// [`Error::NotPermitted`] for owners without [`Capabilities::OWNERS`]; [`Error::TooLarge`]. For the size:
    /// [`Error::IsDirectory`], [`Error::WrongKind`]. [`Error::NotSupported`] for the mode of a symbolic link;
    /// [`Error::WrongKind`] for flags and birth times of what is neither file nor directory.
    fn set_attributes(&self, set: &SetAttributes) -> Result<Attributes> {
        let _ = set;
        Err(Error::NotSupported)
    }

    /// Stores a security descriptor for the permission bits and owners that the object has now; None: takes the one that
    /// is stored away. The attributes as they are then.
    ///
    /// # Errors
    /// [`Error::AttributeTooLarge`], [`Error::NoSpace`]; [`Error::WrongKind`] for what is neither file nor directory.
    fn set_security(&self, descriptor: Option<SecurityDescriptor>) -> Result<Attributes> {
        let _ = descriptor;
        Err(Error::NotSupported)
    }

    /// Makes a new object in this directory. The mode of a symbolic link is the store's affair.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::NotDirectory`], [`Error::NoSpace`]; [`Error::Stale`] when the directory has
    /// been removed.
    fn create(&self, name: Name<'_>, new: &NewNode<'_>) -> Result<NodeRef> {
        let _ = (name, new);
        Err(Error::NotSupported)
    }

    /// [`Node::create`], and [`Node::attributes`] of what it has made.
    ///
    /// # Errors
    /// Those of both.
    fn create_attributes(
        &self,
        name: Name<'_>,
        new: &NewNode<'_>,
        want: Want,
    ) -> Result<(NodeRef, Attributes)> {
        let node = self.create(name, new)?;
        let attributes = node.attributes(want, Wait::May)?;
        Ok((node, attributes))
    }

    /// Gives `target` a further name in this directory.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::TooManyLinks`], [`Error::IsDirectory`] when `target` is one;
    /// [`Error::Stale`] when the directory or the last name of `target` has been removed.
    fn link(&self, name: Name<'_>, target: &dyn Node) -> Result<()> {
        let _ = (name, target);
        Err(Error::NotSupported)
    }

    /// Removes a name of something that is not a directory.
    ///
    /// # Errors
    /// [`Error::IsDirectory`], [`Error::NotFound`].
    fn remove_file(&self, name: Name<'_>) -> Result<()> {
        let _ = name;
        Err(Error::NotSupported)
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// [`Error::NotEmpty`], [`Error::NotDirectory`], [`Error::NotFound`].
    fn remove_dir(&self, name: Name<'_>) -> Result<()> {
        let _ = name;
        Err(Error::NotSupported)
    }

    /// Removes the name of something that was just found by it, with these attributes.
    ///
    /// # Errors
    /// As [`Node::remove_dir`] for a directory, as [`Node::remove_file`] for all else.
    fn remove_found(&self, name: Name<'_>, found: &Attributes) -> Result<()> {
        if found.kind == FileKind::Directory { self.remove_dir(name) } else { self.remove_file(name) }
    }

    /// Moves `name` of this directory to `to_name` of `to_dir`, at once.
    ///
    /// # Errors
    /// [`Error::Exists`] with [`Replace::Never`]; [`Error::NotEmpty`], [`Error::IsDirectory`],
    /// [`Error::NotDirectory`] as POSIX rename; [`Error::InvalidArgument`] for a directory into itself.
    fn rename(&self, name: Name<'_>, to_dir: &dyn Node, to_name: Name<'_>, replace: Replace) -> Result<()> {
        let _ = (name, to_dir, to_name, replace);
        Err(Error::NotSupported)
    }

    /// Writes `data` at `offset`, all of it or an error; with [`Wait::Never`] it may write a part.
    ///
    /// # Errors
    /// [`Error::WouldBlock`] when nothing was written, [`Error::NoSpace`], [`Error::TooLarge`].
    fn write(&self, offset: u64, data: &[IoSlice<'_>], stability: Stability, wait: Wait) -> Result<usize> {
        let _ = (offset, data, stability, wait);
        Err(Error::NotSupported)
    }

    /// Puts everything written so far, data and attributes, on stable storage.
    ///
    /// # Errors
    /// Those of the device: the data may be lost then.
    fn commit(&self) -> Result<()> {
        Err(Error::NotSupported)
    }

    // --- sparse files ---

    /// Reserves space for `length` bytes from `offset`; the file grows only when `grow`.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::NotSupported`].
    fn allocate(&self, offset: u64, length: u64, grow: bool) -> Result<()> {
        let _ = (offset, length, grow);
        Err(Error::NotSupported)
    }

    /// Makes `length` bytes from `offset` read as zeroes and frees their space; the size stays.
    ///
    /// # Errors
    /// [`Error::NotSupported`].
    fn punch_hole(&self, offset: u64, length: u64) -> Result<()> {
        let _ = (offset, length);
        Err(Error::NotSupported)
    }

    /// The next offset at or behind `offset` that is data or a hole. The end of the data counts as a hole, so
    /// a hole is always found before the end. None from the end on, and when no more data follows.
    ///
    /// # Errors
    /// [`Error::NotSupported`].
    fn seek(&self, offset: u64, to: SeekTo) -> Result<Option<u64>> {
        let _ = (offset, to);
        Err(Error::NotSupported)
    }

    // --- copies without the data passing through the server ---

    /// Copies up to `length` bytes to another file; the count is what was copied.
    ///
    /// # Errors
    /// [`Error::NotSupported`], [`Error::CrossDevice`].
    fn copy_range(&self, offset: u64, to: &dyn Node, to_offset: u64, length: u64) -> Result<u64> {
        let _ = (offset, to, to_offset, length);
        Err(Error::NotSupported)
    }

    /// Shares blocks with another file.
    ///
    /// # Errors
    /// [`Error::NotSupported`] without [`Capabilities::CLONE`].
    fn clone_range(&self, offset: u64, to: &dyn Node, to_offset: u64, length: u64) -> Result<()> {
        let _ = (offset, to, to_offset, length);
        Err(Error::NotSupported)
    }

    // --- extended attributes of files and directories (others: WrongKind): names without the `user.` in
    // front, see [`crate::check_xattr_name`] ---

    /// The value of an extended attribute.
    ///
    /// # Errors
    /// [`Error::NoAttribute`], [`Error::NotSupported`].
    fn xattr(&self, name: &[u8]) -> Result<Vec<u8>> {
        let _ = name;
        Err(Error::NotSupported)
    }

    /// The names of the extended attributes, the server's own (below `anabranch.`) left out.
    ///
    /// # Errors
    /// [`Error::NotSupported`].
    fn xattrs(&self) -> Result<Vec<Vec<u8>>> {
        Err(Error::NotSupported)
    }

    /// Sets an extended attribute.
    ///
    /// # Errors
    /// [`Error::AttributeTooLarge`], [`Error::NoSpace`], [`Error::NotSupported`].
    fn set_xattr(&self, name: &[u8], value: &[u8], mode: XattrMode) -> Result<()> {
        let _ = (name, value, mode);
        Err(Error::NotSupported)
    }

    /// Removes an extended attribute.
    ///
    /// # Errors
    /// [`Error::NoAttribute`], [`Error::NotSupported`].
    fn remove_xattr(&self, name: &[u8]) -> Result<()> {
        let _ = name;
        Err(Error::NotSupported)
    }

    // --- named streams of files and directories: further data, each under a name of its own. They belong to the
    // object, not to one of its names, and go with its last name; who has a stream's node keeps its data until then.
    // A stream's node has data and a number of its own, a size and allocated bytes; nothing else of it has a meaning. ---

    /// The named streams, in no order that means anything.
    ///
    /// # Errors
    /// [`Error::NotSupported`], [`Error::WrongKind`] for what is neither file nor directory.
    fn streams(&self) -> Result<Vec<StreamEntry>> {
        Err(Error::NotSupported)
    }

    /// The named stream of this name.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotSupported`], [`Error::WrongKind`].
    fn stream(&self, name: StreamName<'_>) -> Result<NodeRef> {
        let _ = name;
        Err(Error::NotSupported)
    }

    /// Makes an empty named stream.
    ///
    /// # Errors
    /// [`Error::Exists`], [`Error::NoSpace`], [`Error::NotSupported`], [`Error::WrongKind`]; [`Error::Stale`] when the
    /// object's last name has been removed.
    fn create_stream(&self, name: StreamName<'_>) -> Result<NodeRef> {
        let _ = name;
        Err(Error::NotSupported)
    }

    /// Removes a named stream.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::NotSupported`], [`Error::WrongKind`].
    fn remove_stream(&self, name: StreamName<'_>) -> Result<()> {
        let _ = name;
        Err(Error::NotSupported)
    }

    /// Gives a named stream another name, at once. With [`Replace::Yes`] a stream of that name goes.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Exists`] with [`Replace::Never`], [`Error::NotSupported`], [`Error::WrongKind`].
    fn rename_stream(&self, name: StreamName<'_>, to: StreamName<'_>, replace: Replace) -> Result<()> {
        let _ = (name, to, replace);
        Err(Error::NotSupported)
    }
}
