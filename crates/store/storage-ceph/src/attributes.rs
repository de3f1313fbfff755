//! What is known about an object, and changes of it.

use std::ffi::CStr;
use std::time::SystemTime;

use rustix::fs::{major, minor};
use rustix::io::Errno;
use storage::{
    Attributes, CLOCK_TICK, Device, Error, FileKind, ObjectId, Result, SetAttributes, SetTime, StoredDos,
    Timestamp, Want,
};

use crate::data::OFFSET_MAX;
use crate::errno::from_errno;
use crate::library::{CStat, CTime, SET_ATIME, SET_GID, SET_MODE, SET_MTIME, SET_SIZE, SET_UID};
use crate::node::CephNode;

/// The attribute with what SMB clients store.
const DOS_XATTR: &CStr = c"user.anabranch.dos";
/// How often a change time is set until it was set within a tick of the clock.
const TRIES: usize = 5;
/// The set-user-id, set-group-id and group-execute bits.
const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;
const GROUP_EXECUTE: u32 = 0o010;

/// The kind of an object.
pub(crate) fn kind_of(stat: &CStat) -> FileKind {
    match u32::from(stat.mode) & libc::S_IFMT {
        libc::S_IFDIR => FileKind::Directory,
        libc::S_IFLNK => FileKind::Symlink,
        libc::S_IFIFO => FileKind::Fifo,
        libc::S_IFSOCK => FileKind::Socket,
        libc::S_IFBLK => FileKind::BlockDevice,
        libc::S_IFCHR => FileKind::CharDevice,
        _ => FileKind::Regular,
    }
}

pub(crate) fn timestamp(time: CTime) -> Timestamp {
    Timestamp { secs: time.secs, nanos: u32::try_from(time.nanos).unwrap_or_default() }
}

/// The nearest time that CephFS can store: it counts seconds since 1970 in 32 bits.
fn stored(time: Timestamp) -> CTime {
    let latest = i64::from(u32::MAX);
    match time.secs {
        ..0 => CTime { secs: 0, nanos: 0 },
        secs if secs > latest => CTime { secs: latest, nanos: 999_999_999 },
        secs => CTime { secs, nanos: i64::from(time.nanos) },
    }
}

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp { secs: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanos: since.subsec_nanos() }
}

fn checked(time: Option<SetTime>) -> Result<Option<CTime>> {
    match time {
        None => Ok(None),
        Some(SetTime::Now) => Ok(Some(stored(now()))),
        Some(SetTime::To(time)) if time.nanos < 1_000_000_000 => Ok(Some(stored(time))),
        Some(SetTime::To(_)) => Err(Error::InvalidArgument),
    }
}

fn attributes_of(stat: &CStat) -> Attributes {
    Attributes {
        id: ObjectId::live(stat.number),
        kind: kind_of(stat),
        mode: u32::from(stat.mode) & 0o7777,
        links: stat.links,
        uid: stat.uid,
        gid: stat.gid,
        device: Device { major: major(stat.special), minor: minor(stat.special) },
        size: stat.size,
        allocated: stat.blocks.saturating_mul(512),
        atime: timestamp(stat.atime),
        mtime: timestamp(stat.mtime),
        ctime: timestamp(stat.ctime),
        btime: Some(timestamp(stat.btime)),
        flags: None,
        ctime_set: None,
        changes_within_ctime: 0,
    }
}

impl CephNode {
    pub(crate) fn stat(&self) -> Result<CStat> {
        self.inode.stat().map_err(from_errno)
    }

    pub(crate) fn attributes_now(&self, want: Want) -> Result<Attributes> {
        self.attributes_from(&self.stat()?, want)
    }

    /// The attributes. `stat` was just read.
    pub(crate) fn attributes_from(&self, stat: &CStat, want: Want) -> Result<Attributes> {
        let mut attributes = attributes_of(stat);
        if self.kind == FileKind::Directory {
            // CephFS counts what is in a directory. What counts here is whether the directory has a name.
            attributes.links = if self.is_removed() { 0 } else { attributes.links.max(1) };
        }
        if want.contains(Want::FLAGS) && self.carries_xattrs() {
            let dos = self.dos()?;
            attributes.flags = dos.flags;
            attributes.btime = dos.btime.or(attributes.btime);
            attributes.ctime_set = dos.ctime_set(attributes.ctime);
        }
        Ok(attributes)
    }

    pub(crate) fn change_attributes(&self, set: &SetAttributes) -> Result<Attributes> {
        self.check_settable(set)?;
        let (atime, mtime) = (checked(set.atime)?, checked(set.mtime)?);
        if set.flags.is_some() || set.btime.is_some() || set.ctime.is_some() {
            self.set_dos(set)?;
        }
        if let Some(size) = set.size {
            // A new size is a change of the data. The library is told the time: without it, it can set the time to 0. A time that
            // is to be set is set afterwards: the metadata server would set the present one instead.
            let stat = CStat { size, mtime: stored(now()), ..self.stat()? };
            let _change = self.changing_data(size, None);
            self.set_stat(&stat, SET_SIZE | SET_MTIME)?;
        }
        let mode = self.mode_after(set)?;
        let given = [
            (SET_UID, set.uid.is_some()),
            (SET_GID, set.gid.is_some()),
            (SET_ATIME, atime.is_some()),
            (SET_MTIME, mtime.is_some()),
            (SET_MODE, mode.is_some()),
        ];
        let mask = given.iter().filter(|(_, given)| *given).fold(0, |mask, (bit, _)| mask | bit);
        if mask != 0 {
            // What is not named by the mask stays what it is.
            let now = self.stat()?;
            let stat = CStat {
                uid: set.uid.unwrap_or(now.uid),
                gid: set.gid.unwrap_or(now.gid),
                atime: atime.unwrap_or(now.atime),
                mtime: mtime.unwrap_or(now.mtime),
                mode: mode.and_then(|mode| u16::try_from(mode).ok()).unwrap_or(now.mode),
                ..now
            };
            self.set_stat(&stat, mask)?;
        }
        if *set != SetAttributes::default() {
            self.store.changes.tell_itself(self.id);
        }
        self.pass_on(mask)?;
        self.attributes_now(Want::all())
    }

    /// Tells the metadata server what the library may have set in its memory alone: who may use the object, because whoever serves it after
    /// the death of this process would grant what was taken away; and the times of a directory, because the library would not believe the
    /// server those of later changes.
    fn pass_on(&self, mask: i32) -> Result<()> {
        let is_about_rights = mask & (SET_UID | SET_GID | SET_MODE) != 0;
        let is_time_of_directory = self.kind == FileKind::Directory && mask & (SET_ATIME | SET_MTIME) != 0;
        if is_about_rights || is_time_of_directory {
            self.inode.sync().map_err(from_errno)?;
        }
        Ok(())
    }

    /// The mode to set, if any: a new owner takes the set-user-id and set-group-id bits from a program (chown(2)).
    fn mode_after(&self, set: &SetAttributes) -> Result<Option<u32>> {
        if set.mode.is_some() || self.kind != FileKind::Regular || (set.uid.is_none() && set.gid.is_none()) {
            return Ok(set.mode.map(|mode| mode & 0o7777));
        }
        let mode = u32::from(self.stat()?.mode) & 0o7777;
        let taken = if mode & GROUP_EXECUTE != 0 { SETUID | SETGID } else { SETUID };
        Ok((mode & taken != 0).then_some(mode & !taken))
    }

    fn set_stat(&self, stat: &CStat, mask: i32) -> Result<()> {
        self.inode.set_stat(stat, mask).map_err(from_errno)
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
        // The number stands for nobody, as for the kernel.
        if set.uid == Some(u32::MAX) || set.gid == Some(u32::MAX) {
            return Err(Error::InvalidArgument);
        }
        Ok(())
    }

    fn dos(&self) -> Result<StoredDos> {
        match self.inode.xattr(DOS_XATTR) {
            Ok(value) => Ok(StoredDos::decode(&value).unwrap_or_default()),
            Err(Errno::NODATA) => Ok(StoredDos::default()),
            Err(errno) => Err(from_errno(errno)),
        }
    }

    /// Sets what is given and keeps the rest.
    fn set_dos(&self, set: &SetAttributes) -> Result<()> {
        // The lock is held throughout: of two concurrent changes, neither may undo the other.
        let _changing = self.changing.lock();
        let old = self.dos()?;
        for _ in 0..TRIES {
            let dos = old.changed_by(set, now());
            self.inode.set_xattr(DOS_XATTR, &dos.encode(), 0).map_err(from_errno)?;
            // The change time is that of the clock when the library sent the change: another one if this thread had to wait.
            let is_near = |ctime| dos.ctime_set(ctime) == set.ctime;
            if set.ctime.is_none() || is_near(timestamp(self.stat()?.ctime)) {
                return Ok(());
            }
        }
        tracing::debug!("a change time could not be set within {} ms of the change", CLOCK_TICK.as_millis());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_the_nearest_that_can_be_stored() {
        let to = |secs, nanos| {
            let time = stored(Timestamp { secs, nanos });
            (time.secs, time.nanos)
        };
        assert_eq!(to(-1, 999_999_999), (0, 0));
        assert_eq!(to(0, 1), (0, 1));
        assert_eq!(to(4_294_967_295, 5), (4_294_967_295, 5));
        assert_eq!(to(4_294_967_296, 0), (4_294_967_295, 999_999_999));
        assert!(matches!(
            checked(Some(SetTime::To(Timestamp { secs: 0, nanos: 1_000_000_000 }))),
            Err(Error::InvalidArgument)
        ));
    }
}
