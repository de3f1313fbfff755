//! What is known about an object.

use std::sync::Arc;
use std::time::Duration;

use acl::SecurityDescriptor;
use bitflags::bitflags;

/// What tells an object from all others of its store while it exists, and is the same after a restart. Clients see the
/// number alone, which several objects of one store may share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// The file system within the store. 0 is the one that holds the store's root.
    pub fs: u32,
    /// The number in its file system. In a store on a local directory this is the inode number.
    pub number: u64,
    /// The snapshot that holds the object. 0 is the present state of the file system. An object of a snapshot has the
    /// number of the object that it is a picture of, and takes no changes.
    pub snapshot: u32,
}

impl ObjectId {
    /// The object with this number in the present state of the file system that holds the store's root.
    #[must_use]
    pub const fn live(number: u64) -> Self {
        Self { fs: 0, number, snapshot: 0 }
    }

    /// Whether the object is of the present state of its file system, and not of a snapshot.
    #[must_use]
    pub const fn is_live(self) -> bool {
        self.snapshot == 0
    }
}

/// The type of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileKind {
    /// A file with data.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link; the store never follows it.
    Symlink,
    /// A named pipe. The server keeps the name and never opens the pipe.
    Fifo,
    /// The name of a socket. Never opened.
    Socket,
    /// The name of a block device. Never opened.
    BlockDevice,
    /// The name of a character device. Never opened.
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

/// The longest time between two ticks of the clock from which stores take the times of changes. Changes within one tick have
/// the same time.
pub const CLOCK_TICK: Duration = Duration::from_millis(20);

impl Timestamp {
    /// Whether any change of an object with this change time certainly sets another one, if the change time was read at `now`
    /// (of the system's clock, since 1970) or later.
    #[inline]
    #[must_use]
    pub fn is_settled_at(self, now: Duration) -> bool {
        let Ok(secs) = u64::try_from(self.secs) else { return false };
        now.saturating_sub(Duration::new(secs, self.nanos.min(999_999_999))) > CLOCK_TICK
    }
}

bitflags! {
    /// Attributes that SMB clients store with a file, apart from its mode. The bits are those of [MS-FSCC] 2.6.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct FileFlags: u32 {
        /// May not be changed or deleted.
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
        /// The data is not immediately available.
        const OFFLINE = 0x1000;
        /// Excluded from the search index.
        const NOT_CONTENT_INDEXED = 0x2000;
    }
}

bitflags! {
    /// Attributes that are read only when asked for, since they are costly.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Want: u8 {
        /// [`Attributes::flags`], and the birth time and change time that a client has set.
        const FLAGS = 1;
    }
}

/// Everything that is known about an object at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Which object it is.
    pub id: ObjectId,
    /// The type of the object.
    pub kind: FileKind,
    /// Permission bits, set-user-id, set-group-id and sticky: the low 12 bits of a POSIX mode.
    pub mode: u32,
    /// How many names the object has; 0 when it was removed and is still held.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// For a device, its number.
    pub device: Device,
    /// Length of the data in bytes.
    pub size: u64,
    /// Bytes that the data occupies.
    pub allocated: u64,
    /// Last read.
    pub atime: Timestamp,
    /// Last write of data.
    pub mtime: Timestamp,
    /// Last change of data or attributes, maintained by the store.
    pub ctime: Timestamp,
    /// Creation; a client may have set it ([`Want::FLAGS`]). None where the store does not know.
    pub btime: Option<Timestamp>,
    /// The flags of SMB clients. None if none were ever set, or [`Want::FLAGS`] was not asked for.
    pub flags: Option<FileFlags>,
    /// The change time that an SMB client has set; None once something else has changed, or without [`Want::FLAGS`].
    pub ctime_set: Option<Timestamp>,
    /// How many further changes are known to have the same [`Attributes::ctime`] as the first one, because the store's
    /// clock does not tell them apart. A store itself reports 0.
    pub changes_within_ctime: u32,
}

impl Attributes {
    /// A number that differs after each change of data or attributes, as far as the store's clock tells changes apart
    /// or they were counted (RFC 8881 5.8.1.4 `change`): nanoseconds of [`Attributes::ctime`].
    #[must_use]
    pub fn change(&self) -> u64 {
        let secs = self.ctime.secs.cast_unsigned().wrapping_mul(1_000_000_000);
        secs.wrapping_add(u64::from(self.ctime.nanos)).wrapping_add(u64::from(self.changes_within_ctime))
    }
}

/// What decides about access to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protection {
    /// The type of the object.
    pub kind: FileKind,
    /// [`Attributes::mode`]
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// The security descriptor that is in force.
    pub security: Option<Arc<SecurityDescriptor>>,
    /// All attributes, if they were read at the same time.
    pub attributes: Option<Attributes>,
}

impl Protection {
    /// The protection of an object with these attributes that has no security descriptor.
    #[must_use]
    pub fn of(attributes: &Attributes) -> Self {
        let &Attributes { kind, mode, uid, gid, .. } = attributes;
        Self { kind, mode, uid, gid, security: None, attributes: Some(*attributes) }
    }
}

/// A time to set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetTime {
    /// The current time of the store.
    Now,
    /// This time.
    To(Timestamp),
}

/// Attributes to change. Those that are None stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetAttributes {
    /// The low 12 bits of a POSIX mode.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Length in bytes: cuts off data, or extends the file with a hole.
    pub size: Option<u64>,
    /// Last read.
    pub atime: Option<SetTime>,
    /// Last write.
    pub mtime: Option<SetTime>,
    /// Creation.
    pub btime: Option<Timestamp>,
    /// The flags of SMB clients.
    pub flags: Option<FileFlags>,
    /// Last change, as SMB clients see it until something changes ([`Attributes::ctime_set`]).
    pub ctime: Option<Timestamp>,
}

/// How much a store holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    /// Bytes in total.
    pub total: u64,
    /// Bytes not in use.
    pub free: u64,
    /// Bytes that ordinary users may still use.
    pub available: u64,
    /// Objects in total.
    pub files: u64,
    /// Objects that may still be created.
    pub files_free: u64,
    /// Allocation unit in bytes.
    pub block: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_time_is_settled_when_its_tick_is_over() {
        let time = Timestamp { secs: 7, nanos: 5 };
        let tick_over = Duration::new(7, 5) + CLOCK_TICK;
        assert!(!time.is_settled_at(Duration::new(6, 0)), "in the future");
        assert!(!time.is_settled_at(tick_over));
        assert!(time.is_settled_at(tick_over + Duration::from_nanos(1)));
        assert!(!Timestamp { secs: -1, nanos: 0 }.is_settled_at(tick_over));
        assert!(!Timestamp { secs: i64::MAX, nanos: u32::MAX }.is_settled_at(tick_over));
    }
}
