//! Attributes as FUSE tells them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use rustix::fs::{FileType as Kind, Stat, Timespec, UTIME_NOW, UTIME_OMIT};

/// The attributes of an object that has this number here.
pub(crate) fn attributes(stat: &Stat, number: u64) -> FileAttr {
    let (changed, accessed) =
        (time(stat.st_mtime, stat.st_mtime_nsec), time(stat.st_atime, stat.st_atime_nsec));
    FileAttr {
        ino: INodeNo(number),
        size: stat.st_size.unsigned_abs(),
        blocks: stat.st_blocks.unsigned_abs(),
        atime: accessed,
        mtime: changed,
        ctime: time(stat.st_ctime, stat.st_ctime_nsec),
        crtime: UNIX_EPOCH,
        kind: kind(Kind::from_raw_mode(stat.st_mode)),
        perm: u16::try_from(stat.st_mode & 0o7777).unwrap_or_default(),
        nlink: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
        uid: stat.st_uid,
        gid: stat.st_gid,
        rdev: u32::try_from(stat.st_rdev).unwrap_or_default(),
        blksize: u32::try_from(stat.st_blksize).unwrap_or(4096),
        flags: 0,
    }
}

/// The kind of an object.
pub(crate) fn kind(kind: Kind) -> FileType {
    match kind {
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
        Kind::Fifo => FileType::NamedPipe,
        Kind::Socket => FileType::Socket,
        Kind::CharacterDevice => FileType::CharDevice,
        Kind::BlockDevice => FileType::BlockDevice,
        Kind::RegularFile | Kind::Unknown => FileType::RegularFile,
    }
}

fn time(seconds: i64, nanos: u64) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let second = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    second.and_then(|second| second.checked_add(Duration::from_nanos(nanos))).unwrap_or(UNIX_EPOCH)
}

/// A time to set, as utimensat(2) takes it.
pub(crate) fn to_set(time: Option<TimeOrNow>) -> Timespec {
    match time {
        None => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Some(TimeOrNow::Now) => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Some(TimeOrNow::SpecificTime(time)) => timespec(time),
    }
}

fn timespec(time: SystemTime) -> Timespec {
    let seconds = |whole: u64| i64::try_from(whole).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => Timespec { tv_sec: seconds(since.as_secs()), tv_nsec: since.subsec_nanos().into() },
        // fuser 0.18 counts the nanoseconds of a time before 1970 backwards, unlike the kernel: 5 s before 1970 and 1 ns is told as
        // 5 s and 1 ns before it.
        Err(before) => Timespec {
            tv_sec: -seconds(before.duration().as_secs()),
            tv_nsec: before.duration().subsec_nanos().into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_are_told_as_the_kernel_has_them() {
        assert_eq!(time(-1, 500_000_000), UNIX_EPOCH - Duration::from_millis(500));
        assert_eq!(time(-2, 0), UNIX_EPOCH - Duration::from_secs(2));
        assert_eq!(time(5, 999_999_999), UNIX_EPOCH + Duration::new(5, 999_999_999));
    }
}
