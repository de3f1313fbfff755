//! Converts between attributes of the storage and those of NFSv3 (RFC 1813 2.6).

use nfs_wire::v3::attr::{Attributes, SetAttributes, SetTime, WccAttributes, WccData};
use nfs_wire::v3::status::Status;
use nfs_wire::v3::types::{FileType, SpecData, Time};
use share::{Share, ShareId};
use storage::{Device, FileKind, Timestamp};

/// The bits of a mode that a client sets: permissions, set-user-id, set-group-id, sticky.
pub(crate) const MODE_BITS: u32 = 0o7777;

/// Makes the number of a share a file system's number that is not 0, which some clients take for "unknown".
const FSID: u64 = 1 << 32;

pub(crate) const NANOSECONDS_PER_SECOND: u32 = 1_000_000_000;

/// The number of the file system that a share represents, or a view of it: clients must not take a file for its earlier
/// version, which has the same number.
pub(crate) fn fsid(share: &Share) -> u64 {
    let snapshot = share.snapshot().map(|snapshot| u64::from(snapshot.id.0));
    match snapshot {
        Some(number) => FSID.wrapping_mul(number.wrapping_add(1)) | u64::from(share.id().0),
        None => fsid_of(share.id()),
    }
}

/// The number of the file system of the share with this number, also when another server has it.
pub(crate) fn fsid_of(share: ShareId) -> u64 {
    FSID | u64::from(share.0)
}

/// The NFSv3 attributes of an object of a share.
pub(crate) fn told(share: &Share, attributes: &storage::Attributes) -> Attributes {
    Attributes {
        file_type: file_type(attributes.kind),
        mode: attributes.mode & MODE_BITS,
        links: attributes.links,
        uid: attributes.uid,
        gid: attributes.gid,
        size: attributes.size,
        used: attributes.allocated,
        rdev: SpecData { major: attributes.device.major, minor: attributes.device.minor },
        fsid: fsid(share),
        fileid: attributes.id.number,
        atime: time(attributes.atime),
        mtime: time(attributes.mtime),
        ctime: time(attributes.ctime),
    }
}

/// Weak cache consistency data of an object that was changed.
pub(crate) fn wcc(share: &Share, before: &storage::Attributes, after: &storage::Attributes) -> WccData {
    WccData { before: Some(wcc_before(before)), after: Some(told(share, after)) }
}

/// Weak cache consistency data of a directory that was changed. If the state before the change is missing, a client
/// assumes that others have changed the directory too, which is the case.
pub(crate) fn dir_wcc(share: &Share, change: &share::DirChange) -> WccData {
    WccData {
        before: change.before.as_ref().map(wcc_before),
        after: change.after.map(|after| told(share, &after)),
    }
}

fn wcc_before(before: &storage::Attributes) -> WccAttributes {
    WccAttributes { size: before.size, mtime: time(before.mtime), ctime: time(before.ctime) }
}

fn file_type(kind: FileKind) -> FileType {
    match kind {
        FileKind::Regular => FileType::Regular,
        FileKind::Directory => FileType::Directory,
        FileKind::Symlink => FileType::SymbolicLink,
        FileKind::Fifo => FileType::Fifo,
        FileKind::Socket => FileType::Socket,
        FileKind::BlockDevice => FileType::BlockDevice,
        FileKind::CharDevice => FileType::CharacterDevice,
    }
}

/// The nearest time that the wire can carry: from 1970 to 2106.
fn time(timestamp: Timestamp) -> Time {
    match u32::try_from(timestamp.secs) {
        Ok(seconds) => Time { seconds, nanoseconds: timestamp.nanos },
        Err(_) if timestamp.secs < 0 => Time::default(),
        Err(_) => Time { seconds: u32::MAX, nanoseconds: NANOSECONDS_PER_SECOND - 1 },
    }
}

/// The time that a client sent.
///
/// # Errors
/// [`Status::Inval`] for nanoseconds of 10^9 or more.
pub(crate) fn timestamp(time: Time) -> Result<Timestamp, Status> {
    if time.nanoseconds >= NANOSECONDS_PER_SECOND {
        return Err(Status::Inval);
    }
    Ok(Timestamp { secs: i64::from(time.seconds), nanos: time.nanoseconds })
}

/// The attributes that a client wants to set.
///
/// # Errors
/// [`Status::Inval`] for an invalid time; [`Status::FBig`] for a size beyond the largest file.
pub(crate) fn to_set(set: &SetAttributes) -> Result<storage::SetAttributes, Status> {
    if set.size.is_some_and(|size| size > FILE_BYTES_MAX) {
        return Err(Status::FBig);
    }
    Ok(storage::SetAttributes {
        mode: set.mode.map(|mode| mode & MODE_BITS),
        uid: set.uid,
        gid: set.gid,
        size: set.size,
        atime: set_time(set.atime)?,
        mtime: set_time(set.mtime)?,
        btime: None,
        flags: None,
        ctime: None,
    })
}

/// The largest file size in bytes: offsets are signed in POSIX.
pub(crate) const FILE_BYTES_MAX: u64 = i64::MAX.cast_unsigned();

fn set_time(time: SetTime) -> Result<Option<storage::SetTime>, Status> {
    Ok(match time {
        SetTime::DontChange => None,
        SetTime::ServerTime => Some(storage::SetTime::Now),
        SetTime::ClientTime(time) => Some(storage::SetTime::To(timestamp(time)?)),
    })
}

/// The device number that a client sent.
pub(crate) fn device(device: SpecData) -> Device {
    Device { major: device.major, minor: device.minor }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_outside_the_wire_become_the_nearest() {
        let at = |secs, nanos| time(Timestamp { secs, nanos });
        assert_eq!(at(-1, 5), Time { seconds: 0, nanoseconds: 0 });
        assert_eq!(at(0, 5), Time { seconds: 0, nanoseconds: 5 });
        assert_eq!(at(i64::from(u32::MAX), 7), Time { seconds: u32::MAX, nanoseconds: 7 });
        assert_eq!(at(1 << 32, 5), Time { seconds: u32::MAX, nanoseconds: 999_999_999 });
    }

    #[test]
    fn a_second_has_a_thousand_million_nanoseconds() {
        assert!(timestamp(Time { seconds: 1, nanoseconds: 999_999_999 }).is_ok());
        assert_eq!(timestamp(Time { seconds: 1, nanoseconds: 1_000_000_000 }), Err(Status::Inval));
    }

    #[test]
    fn sizes_end_where_offsets_do() {
        let size = |size| to_set(&SetAttributes { size: Some(size), ..SetAttributes::default() });
        assert!(size(FILE_BYTES_MAX).is_ok());
        assert_eq!(size(FILE_BYTES_MAX + 1), Err(Status::FBig));
    }
}
