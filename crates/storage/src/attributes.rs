//! What is known about an object.

use std::sync::Arc;

use acl::SecurityDescriptor;
use bitflags::bitflags;

/// The number of an object: unique in its store while the object exists, the same after a restart.
/// On a local directory this is the inode number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId(pub u64);

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A file with data.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link; the store never follows it.
    Symlink,
    /// A named pipe. The server keeps the name, it never opens it.
    Fifo,
    /// A socket's name. Never opened.
    Socket,
    /// A block device's name. Never opened.
    BlockDevice,
    /// A character device's name. Never opened.
    CharDevice,
}

/// The number of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Device {
    /// The driver.
    pub major: u32,
    /// The unit of the driver.
    pub minor: u32,
}

/// A moment: seconds since 1970-01-01 UTC (negative before) and nanoseconds (below 1,000,000,000).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp {
    /// Whole seconds.
    pub secs: i64,
    /// Nanoseconds past the second.
    pub nanos: u32,
}

bitflags! {
    /// What SMB clients keep with a file beside its mode. The bits are those of [MS-FSCC] 2.6.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct FileFlags: u32 {
        /// Not to be changed or deleted.
        const READONLY = 0x0001;
        /// Not shown in ordinary listings.
        const HIDDEN = 0x0002;
        /// Part of an operating system.
        const SYSTEM = 0x0004;
        /// Changed since the last backup.
        const ARCHIVE = 0x0020;
        /// Temporary storage.
        const TEMPORARY = 0x0100;
        /// Marked as sparse by a client.
        const SPARSE = 0x0200;
        /// Not at hand at once.
        const OFFLINE = 0x1000;
        /// Left out of the search index.
        const NOT_CONTENT_INDEXED = 0x2000;
    }
}

bitflags! {
    /// Which attributes the caller needs: the costly ones are read only when asked for.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Want: u8 {
        /// [`Attributes::flags`], and the birth time and time of last change that a client has set.
        const FLAGS = 1;
    }
}

/// Everything that is known about an object at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Its number.
    pub id: FileId,
    /// What it is.
    pub kind: FileKind,
    /// Permission bits, set-user-id, set-group-id and sticky: the low 12 bits of a POSIX mode.
    pub mode: u32,
    /// How many names it has; 0 when it was removed and is still held.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// The device that a device's name stands for.
    pub device: Device,
    /// Length of the data in bytes.
    pub size: u64,
    /// Bytes that the data occupies.
    pub allocated: u64,
    /// Last read.
    pub atime: Timestamp,
    /// Last write of data.
    pub mtime: Timestamp,
    /// Last change of data or attributes, kept by the store.
    pub ctime: Timestamp,
    /// Creation; a client may have set it ([`Want::FLAGS`]). None where the store does not know.
    pub btime: Option<Timestamp>,
    /// What SMB clients keep with the file; none were ever set, or [`Want::FLAGS`] was not asked: None.
    pub flags: Option<FileFlags>,
    /// The last change as an SMB client has set it; None once something else has changed, or without
    /// [`Want::FLAGS`].
    pub ctime_set: Option<Timestamp>,
    /// Changes that are known to have come after the first one of this [`Attributes::ctime`]: the store's clock does not tell
    /// them apart. A store counts none.
    pub changes_within_ctime: u32,
}

impl Attributes {
    /// A number that is different after each change of data or attributes, as far as the store's clock
    /// tells them apart, or somebody has counted them (RFC 8881 5.8.1.4 `change`): nanoseconds of [`Attributes::ctime`].
    #[must_use]
    pub fn change(&self) -> u64 {
        let secs = self.ctime.secs.cast_unsigned().wrapping_mul(1_000_000_000);
        secs.wrapping_add(u64::from(self.ctime.nanos)).wrapping_add(u64::from(self.changes_within_ctime))
    }
}

/// What decides about access to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protection {
    /// What it is.
    pub kind: FileKind,
    /// [`Attributes::mode`]
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// The security descriptor that is in force.
    pub security: Option<Arc<SecurityDescriptor>>,
    /// All attributes, where they came along with it.
    pub attributes: Option<Attributes>,
}

impl Protection {
    /// That of an object of these attributes, which has no security descriptor.
    #[must_use]
    pub fn of(attributes: &Attributes) -> Self {
        let &Attributes { kind, mode, uid, gid, .. } = attributes;
        Self { kind, mode, uid, gid, security: None, attributes: Some(*attributes) }
    }
}

/// A time to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetTime {
    /// The store's present time.
    Now,
    /// This time.
    To(Timestamp),
}

/// Attributes to change: what is None stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetAttributes {
    /// The low 12 bits of a POSIX mode.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Length in bytes: cuts off or extends with a hole.
    pub size: Option<u64>,
    /// Last read.
    pub atime: Option<SetTime>,
    /// Last write.
    pub mtime: Option<SetTime>,
    /// Creation.
    pub btime: Option<Timestamp>,
    /// What SMB clients keep with the file.
    pub flags: Option<FileFlags>,
    /// Last change, as SMB clients are to see it until something changes ([`Attributes::ctime_set`]).
    pub ctime: Option<Timestamp>,
}

/// How much a store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    /// Bytes in all.
    pub total: u64,
    /// Bytes not in use.
    pub free: u64,
    /// Bytes that ordinary users may still use.
    pub available: u64,
    /// Objects in all.
    pub files: u64,
    /// Objects that may still be made.
    pub files_free: u64,
    /// Unit of allocation in bytes.
    pub block: u32,
}
