//! A store, and what it can do.

use std::sync::Arc;

use bitflags::bitflags;

use crate::{Error, Feed, Handle, MayWait, NoSnapshots, NodeRef, Observer, Result, Snapshots, Space, Wait};

bitflags! {
    /// What a store can do beyond the minimum. Calls for a capability that is missing return [`Error::NotSupported`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Capabilities: u32 {
        /// Objects can be created, changed and removed.
        const WRITE = 1;
        /// Extended attributes of the `user.` name space.
        const XATTRS = 2;
        /// Holes are known: [`Node::seek`] finds them, and [`Attributes::allocated`] does not count them.
        const SPARSE = 4;
        /// [`Node::clone_range`] shares blocks.
        const CLONE = 8;
        /// [`Attributes::btime`] is known.
        const BIRTH_TIME = 16;
        /// Owners can be set to any user (the server is privileged).
        const OWNERS = 32;
        /// Reads with [`Wait::Never`] can succeed.
        const READ_NEVER = 64;
        /// Writes with [`Wait::Never`] can succeed.
        const WRITE_NEVER = 128;
        /// Handles are those of the file system itself, so they survive renames made by other programs.
        const NATIVE_HANDLES = 256;
        /// Files and directories have named streams.
        const STREAMS = 512;
        /// The store is known to lie on this machine's own devices, or in its memory. Other stores (on a network,
        /// provided by a program, or unknown) may stop answering for good: on a shard they are only called with
        /// [`Wait::Never`].
        const LOCAL = 1024;
        /// [`Node::punch_hole`] frees space.
        const PUNCH_HOLE = 2048;
    }
}

/// A store: a tree of [`Node`]s.
pub trait Storage: Send + Sync + 'static {
    /// What this store can do.
    fn capabilities(&self) -> Capabilities;

    /// The directory at the top.
    fn root(&self) -> NodeRef;

    /// Finds an object by a handle that [`Node::handle`] returned, now or before a restart. A file whose last name was
    /// removed is found as long as anybody has it open; a directory that was removed is not.
    ///
    /// # Errors
    /// [`Error::Stale`] when the object is gone; [`Error::BadHandle`] when the bytes were never a handle of this store
    /// or lead out of its tree; [`Error::WouldBlock`].
    fn by_handle(&self, handle: &Handle, wait: Wait<'_>) -> Result<NodeRef>;

    /// An observer of changes in the store's directories, whoever makes them.
    ///
    /// # Errors
    /// [`Error::NotSupported`], [`Error::OutOfResources`].
    fn observer(&self) -> Result<Arc<dyn Observer>> {
        Err(Error::NotSupported)
    }

    /// A feed that tells reliably which directories have changed, whoever changed them.
    ///
    /// # Errors
    /// [`Error::NotSupported`] where that cannot be known; [`Error::OutOfResources`].
    fn feed(&self) -> Result<Arc<dyn Feed>> {
        Err(Error::NotSupported)
    }

    /// The snapshots of the store.
    ///
    /// # Errors
    /// Why there are none, and what would be needed.
    fn snapshots(&self) -> std::result::Result<Arc<dyn Snapshots>, NoSnapshots> {
        Err(NoSnapshots::Storage)
    }

    /// How much the store can hold, and how much of that is free.
    ///
    /// # Errors
    /// Those of the device.
    fn space(&self, may: MayWait<'_>) -> Result<Space>;

    /// Whether the store is currently read-only: a device that has failed may become read-only in service.
    ///
    /// # Errors
    /// Those of the device.
    fn is_read_only(&self, may: MayWait<'_>) -> Result<bool> {
        let _ = may;
        Ok(!self.capabilities().contains(Capabilities::WRITE))
    }

    /// Whether the path by which the store was opened still leads to its root: a local program may have renamed or
    /// replaced the directory.
    ///
    /// # Errors
    /// Those of the device.
    fn is_in_place(&self, may: MayWait<'_>) -> Result<bool> {
        let _ = may;
        Ok(true)
    }

    /// Puts everything on stable storage that was changed in the store until now, data and all else. For many changes this takes less
    /// time than [`Node::commit`] of each.
    ///
    /// # Errors
    /// [`Error::NotSupported`] where this cannot be done at once; those of the device, also for what was written before.
    fn sync(&self, may: MayWait<'_>) -> Result<()> {
        let _ = may;
        Err(Error::NotSupported)
    }
}
