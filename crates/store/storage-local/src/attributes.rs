//! Reading attributes with statx, and changing them.

use std::os::fd::AsFd;
use std::time::SystemTime;

use rustix::fs::{
    AtFlags, Gid, Mode, Statx, StatxFlags, StatxTimestamp, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid,
    chmodat, chownat, fchmod, ftruncate, statx, utimensat,
};
use rustix::path::{Arg, DecInt};
use storage::{
    Attributes, Device, Error, FileKind, ObjectId, Result, SetAttributes, SetTime, Timestamp, Want,
};

use crate::data::OFFSET_MAX;
use crate::errno::from_errno;
use crate::node::LocalNode;
use crate::store::Reach;

/// The fields that are asked of statx.
const MASK: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

/// The result of statx for an open object.
pub(crate) fn stat(fd: impl AsFd) -> Result<Statx> {
    statx(fd, c"", AtFlags::EMPTY_PATH, MASK).map_err(from_errno)
}

/// The result of statx for a name in a directory.
pub(crate) fn stat_name(dir: impl AsFd, name: impl Arg) -> Result<Statx> {
    statx(dir, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT, MASK).map_err(from_errno)
}

/// The kind of an object.
pub(crate) fn kind_of(stat: &Statx) -> FileKind {
    match u32::from(stat.stx_mode) & libc::S_IFMT {
        libc::S_IFDIR => FileKind::Directory,
        libc::S_IFLNK => FileKind::Symlink,
        libc::S_IFIFO => FileKind::Fifo,
        libc::S_IFSOCK => FileKind::Socket,
        libc::S_IFBLK => FileKind::BlockDevice,
        libc::S_IFCHR => FileKind::CharDevice,
        _ => FileKind::Regular,
    }
}

/// The file system that an object is on.
pub(crate) fn device_of(stat: &Statx) -> Device {
    Device { major: stat.stx_dev_major, minor: stat.stx_dev_minor }
}

/// When an object was created, where the file system knows that.
pub(crate) fn btime_of(stat: &Statx) -> Option<Timestamp> {
    let known = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    known.then(|| timestamp(&stat.stx_btime))
}

/// The last change of an object.
pub(crate) fn ctime_of(stat: &Statx) -> Timestamp {
    timestamp(&stat.stx_ctime)
}

/// Whether a later change is certain to get a later time.
pub(crate) fn is_settled(ctime: Timestamp) -> bool {
    ctime.is_settled_at(SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default())
}

fn timestamp(time: &StatxTimestamp) -> Timestamp {
    Timestamp { secs: time.tv_sec, nanos: time.tv_nsec }
}

fn attributes_of(stat: &Statx) -> Attributes {
    Attributes {
        id: ObjectId::live(stat.stx_ino),
        kind: kind_of(stat),
        mode: u32::from(stat.stx_mode) & 0o7777,
        links: stat.stx_nlink,
        uid: stat.stx_uid,
        gid: stat.stx_gid,
        device: Device { major: stat.stx_rdev_major, minor: stat.stx_rdev_minor },
        size: stat.stx_size,
        allocated: stat.stx_blocks.saturating_mul(512),
        atime: timestamp(&stat.stx_atime),
        mtime: timestamp(&stat.stx_mtime),
        ctime: ctime_of(stat),
        btime: btime_of(stat),
        flags: None,
        ctime_set: None,
        changes_within_ctime: 0,
    }
}

impl LocalNode {
    pub(crate) fn attributes_now(&self, want: Want, reach: Reach) -> Result<Attributes> {
        self.attributes_from(&stat(&self.fd)?, want, reach)
    }

    /// The attributes. `stat` was just read.
    pub(crate) fn attributes_from(&self, stat: &Statx, want: Want, reach: Reach) -> Result<Attributes> {
        let mut attributes = attributes_of(stat);
        if stat.stx_nlink == 0 {
            self.store.cache.release(self.id);
        }
        if want.contains(Want::FLAGS) && self.carries_dos() {
            let dos = self.dos(attributes.ctime, reach)?;
            attributes.flags = dos.flags;
            attributes.btime = dos.btime.or(attributes.btime);
            attributes.ctime_set = dos.ctime_set(attributes.ctime);
        }
        Ok(attributes)
    }

    pub(crate) fn change_attributes(&self, set: &SetAttributes) -> Result<Attributes> {
        self.check_settable(set)?;
        // Changes that may be refused come before those that cannot fail; the mode comes after the owner, whose change
        // clears set-user-id bits; the times come last, since a change of size sets them.
        if set.uid.is_some() || set.gid.is_some() {
            self.set_owner(set.uid, set.gid)?;
        }
        if let Some(size) = set.size {
            ftruncate(self.writer()?, size).map_err(from_errno)?;
        }
        if set.flags.is_some() || set.btime.is_some() || set.ctime.is_some() {
            self.set_dos(set)?;
        }
        if let Some(mode) = set.mode {
            self.set_mode(mode)?;
        }
        if set.atime.is_some() || set.mtime.is_some() {
            let times =
                Timestamps { last_access: timespec(set.atime)?, last_modification: timespec(set.mtime)? };
            utimensat(&self.fd, c"", &times, AtFlags::EMPTY_PATH).map_err(from_errno)?;
        }
        self.attributes_now(Want::all(), Reach::Device)
    }

    fn check_settable(&self, set: &SetAttributes) -> Result<()> {
        if let Some(size) = set.size {
            self.check_data()?;
            if size > OFFSET_MAX {
                return Err(Error::TooLarge);
            }
        }
        if set.mode.is_some() && self.kind == FileKind::Symlink {
            return Err(Error::NotSupported);
        }
        if set.flags.is_some() || set.btime.is_some() || set.ctime.is_some() {
            self.check_carries_xattrs()?;
        }
        timespec(set.atime)?;
        timespec(set.mtime)?;
        Ok(())
    }

    pub(crate) fn set_owner(&self, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        // To the kernel -1 means "leave it", so nobody has this number.
        if uid == Some(u32::MAX) || gid == Some(u32::MAX) {
            return Err(Error::InvalidArgument);
        }
        let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
        chownat(&self.fd, c"", uid, gid, AtFlags::EMPTY_PATH).map_err(from_errno)
    }

    pub(crate) fn set_mode(&self, mode: u32) -> Result<()> {
        let mode = Mode::from_raw_mode(mode & 0o7777);
        match self.open_descriptor() {
            Some(fd) => fchmod(fd, mode),
            // The kernel does not accept an O_PATH descriptor for this; the descriptor's name in /proc leads to the
            // object itself.
            None => chmodat(&self.store.descriptors, DecInt::from_fd(&self.fd), mode, AtFlags::empty()),
        }
        .map_err(from_errno)
    }
}

fn timespec(time: Option<SetTime>) -> Result<Timespec> {
    Ok(match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(SetTime::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(SetTime::To(time)) if time.nanos < 1_000_000_000 => {
            Timespec { tv_sec: time.secs, tv_nsec: time.nanos.into() }
        }
        Some(SetTime::To(_)) => return Err(Error::InvalidArgument),
    })
}
