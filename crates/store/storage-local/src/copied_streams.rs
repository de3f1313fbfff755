//! Copies of an object's streams, for a copy of the object.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{
    FileType, Gid, Mode, OFlags, SeekFrom, Uid, copy_file_range, fchown, fstat, fsync, ftruncate, openat2,
    seek,
};
use rustix::io::Errno;
use storage::depot::STREAM_DEPTH_MAX;
use storage::{Error, Result};

use crate::depot::{entries, make_directory, open_directory};
use crate::errno::from_errno;
use crate::resolve::BELOW;
use crate::sys;

const OLD_FILE: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
const NEW_FILE: OFlags =
    OFlags::CREATE.union(OFlags::EXCL).union(OFlags::RDWR).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);
/// How much is copied in one call, in bytes.
const PART_BYTES: usize = 1 << 30;

/// Who pays for the space.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owners {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Copies the streams of one directory into another one, onto stable storage. Streams that clients change meanwhile are
/// copied as `cp` copies files.
pub(crate) fn copy_streams(from: &OwnedFd, to: &OwnedFd, owners: Option<Owners>) -> Result<()> {
    copy_below(from, to, owners, STREAM_DEPTH_MAX)
}

fn copy_below(from: &OwnedFd, to: &OwnedFd, owners: Option<Owners>, depth: usize) -> Result<()> {
    for name in entries(from)? {
        let old = match openat2(from, name.as_slice(), OLD_FILE, Mode::empty(), BELOW) {
            Err(Errno::NOENT) => continue, // removed meanwhile
            opened => opened.map_err(from_errno)?,
        };
        match FileType::from_raw_mode(fstat(&old).map_err(from_errno)?.st_mode) {
            FileType::RegularFile => {
                let new = openat2(to, name.as_slice(), NEW_FILE, PRIVATE, BELOW).map_err(from_errno)?;
                if let Some(Owners { uid, gid }) = owners {
                    fchown(&new, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid))).map_err(from_errno)?;
                }
                copy_file(&old, &new)?;
            }
            FileType::Directory if depth > 0 => {
                make_directory(to, &name)?;
                let below = open_directory(to, &name)?.ok_or(Error::NotFound)?;
                copy_below(&old, &below, owners, depth.saturating_sub(1))?;
            }
            _ => {}
        }
    }
    fsync(to).map_err(from_errno)
}

fn copy_file(from: &OwnedFd, to: &OwnedFd) -> Result<()> {
    // A length of 0 stands for everything (ioctl_ficlonerange(2)).
    if sys::clone_range(from.as_fd(), 0, to.as_fd(), 0, 0).is_err() {
        copy_data(from, to)?;
    }
    fsync(to).map_err(from_errno)
}

/// Copies the data, and leaves the holes out.
fn copy_data(from: &OwnedFd, to: &OwnedFd) -> Result<()> {
    let size = u64::try_from(fstat(from).map_err(from_errno)?.st_size).unwrap_or(0);
    ftruncate(to, size).map_err(from_errno)?;
    let mut at = 0;
    while at < size {
        let (begin, end) = match seek(from, SeekFrom::Data(at)) {
            Ok(begin) => (begin, seek(from, SeekFrom::Hole(begin)).map_err(from_errno)?),
            Err(Errno::NXIO) => return Ok(()), // only a hole is left
            // The file system does not tell.
            Err(_) => (at, size),
        };
        copy_part(from, to, begin, end.min(size))?;
        at = end;
    }
    Ok(())
}

fn copy_part(from: &OwnedFd, to: &OwnedFd, begin: u64, end: u64) -> Result<()> {
    let (mut read, mut written) = (begin, begin);
    while read < end {
        let length = usize::try_from(end.saturating_sub(read)).unwrap_or(PART_BYTES).min(PART_BYTES);
        let copied = copy_file_range(from, Some(&mut read), to, Some(&mut written), length);
        if copied.map_err(from_errno)? == 0 {
            return Ok(()); // cut off meanwhile
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom as From, Write};
    use std::path::Path;

    use rustix::fs::open;

    use super::*;

    fn opened(dir: &Path) -> OwnedFd {
        open(dir, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap()
    }

    #[test]
    fn everything_is_copied_and_holes_stay_holes() {
        use std::os::unix::fs::MetadataExt;
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        std::fs::create_dir_all(from.join(":long/:longer")).unwrap();
        std::fs::create_dir(&to).unwrap();
        std::fs::write(from.join("s"), "data").unwrap();
        std::fs::write(from.join("empty"), "").unwrap();
        std::fs::write(from.join(":long/:longer/end"), "deep").unwrap();
        std::os::unix::fs::symlink("s", from.join(":link")).unwrap();
        let mut sparse = std::fs::File::create(from.join("sparse")).unwrap();
        sparse.seek(From::Start(16 << 20)).unwrap();
        sparse.write_all(b"end").unwrap();
        sparse.set_len(32 << 20).unwrap();
        assert_eq!(copy_streams(&opened(&from), &opened(&to), None), Err(Error::SymlinkLoop));
        std::fs::remove_file(from.join(":link")).unwrap();
        std::fs::remove_dir_all(&to).unwrap();
        std::fs::create_dir(&to).unwrap();
        copy_streams(&opened(&from), &opened(&to), None).unwrap();
        for name in ["s", "empty", ":long/:longer/end", "sparse"] {
            assert_eq!(
                std::fs::read(to.join(name)).unwrap(),
                std::fs::read(from.join(name)).unwrap(),
                "{name}"
            );
        }
        let blocks = |path: &Path| std::fs::metadata(path.join("sparse")).unwrap().blocks();
        assert!(blocks(&to) <= blocks(&from), "{} of {}", blocks(&to), blocks(&from));
    }
}
