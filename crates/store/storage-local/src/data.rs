//! Reading, writing, holes and copies.

use std::io::{IoSlice, IoSliceMut};
use std::sync::atomic::Ordering;

use rustix::fs::{FallocateFlags, SeekFrom, copy_file_range, fallocate, fsync, seek, syncfs};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2, pwritev2};
use storage::{Capabilities, Error, FileKind, Result, SeekTo, Stability};

use crate::errno::from_errno;
use crate::node::LocalNode;
use crate::store::Reach;
use crate::sys;

/// The largest offset that the kernel accepts.
pub(crate) const OFFSET_MAX: u64 = i64::MAX.unsigned_abs();
/// How many pieces the kernel accepts in one write (IOV_MAX).
const PIECES_MAX: usize = 1024;

/// Checks that a range ends within what the kernel accepts.
fn check_range(offset: u64, length: u64) -> Result<()> {
    let end = offset.checked_add(length).ok_or(Error::TooLarge)?;
    if end > OFFSET_MAX { Err(Error::TooLarge) } else { Ok(()) }
}

impl LocalNode {
    pub(crate) fn read_data(&self, offset: u64, into: &mut [u8], reach: Reach) -> Result<usize> {
        self.check_data()?;
        let room = usize::try_from(OFFSET_MAX.saturating_sub(offset)).unwrap_or(usize::MAX).min(into.len());
        let into = into.get_mut(..room).unwrap_or_default();
        if into.is_empty() {
            return Ok(0);
        }
        let store = &self.store;
        if reach == Reach::Device || store.is_in_memory {
            return pread(self.reader()?, into, offset).map_err(from_errno);
        }
        if !store.reads_nowait.load(Ordering::Relaxed) {
            return Err(Error::WouldBlock);
        }
        let mut into = [IoSliceMut::new(into)];
        match preadv2(self.reader_at_hand()?, &mut into, offset, ReadWriteFlags::NOWAIT) {
            Err(Errno::OPNOTSUPP) => {
                store.reads_nowait.store(false, Ordering::Relaxed);
                Err(Error::WouldBlock)
            }
            other => other.map_err(from_errno),
        }
    }

    pub(crate) fn write_data(
        &self,
        offset: u64,
        data: &[IoSlice<'_>],
        stability: Stability,
        reach: Reach,
    ) -> Result<usize> {
        self.check_data()?;
        let total = data.iter().map(|slice| slice.len()).sum();
        check_range(offset, total as u64)?;
        if total == 0 {
            return Ok(0);
        }
        let flags = match stability {
            Stability::Unstable => ReadWriteFlags::empty(),
            Stability::Data => ReadWriteFlags::DSYNC,
            Stability::File => ReadWriteFlags::SYNC,
        };
        if reach == Reach::Memory && !self.store.is_in_memory {
            return self.write_nowait(offset, data, stability);
        }
        let fd = self.writer()?;
        let pieces = data.get(..PIECES_MAX).unwrap_or(data);
        let mut done = pwritev2(fd, pieces, offset, flags).map_err(from_errno)?;
        while done < total {
            let rest = behind(data, done);
            let pieces = rest.get(..PIECES_MAX).unwrap_or(&rest);
            match pwritev2(fd, pieces, offset + done as u64, flags) {
                Ok(0) => return Err(Error::Io(libc::EIO)),
                Ok(count) => done += count,
                Err(errno) => return Err(from_errno(errno)),
            }
        }
        Ok(done)
    }

    fn write_nowait(&self, offset: u64, data: &[IoSlice<'_>], stability: Stability) -> Result<usize> {
        // Even a write that must not wait would wait for a file system that is frozen.
        self.store.check_at_hand(Reach::Memory)?;
        let nowait = &self.store.writes_nowait;
        if stability != Stability::Unstable || !nowait.load(Ordering::Relaxed) {
            return Err(Error::WouldBlock);
        }
        let pieces = data.get(..PIECES_MAX).unwrap_or(data);
        match pwritev2(self.writer()?, pieces, offset, ReadWriteFlags::NOWAIT) {
            Err(Errno::OPNOTSUPP) => {
                nowait.store(false, Ordering::Relaxed);
                Err(Error::WouldBlock)
            }
            other => other.map_err(from_errno),
        }
    }

    pub(crate) fn sync(&self) -> Result<()> {
        match (self.kind, self.open_descriptor()) {
            (_, Some(fd)) => fsync(fd),
            (FileKind::Regular | FileKind::Directory, None) => fsync(self.reader()?),
            // The kernel cannot sync a single object that is not open.
            _ => syncfs(&self.store.root),
        }
        .map_err(from_errno)
    }

    pub(crate) fn reserve(&self, offset: u64, length: u64, grow: bool) -> Result<()> {
        let flags = if grow { FallocateFlags::empty() } else { FallocateFlags::KEEP_SIZE };
        self.fallocate(flags, offset, length)
    }

    pub(crate) fn punch(&self, offset: u64, length: u64) -> Result<()> {
        self.fallocate(FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, length)
    }

    fn fallocate(&self, flags: FallocateFlags, offset: u64, length: u64) -> Result<()> {
        self.check_data()?;
        if length == 0 {
            return Err(Error::InvalidArgument);
        }
        check_range(offset, length)?;
        fallocate(self.writer()?, flags, offset, length).map_err(from_errno)
    }

    pub(crate) fn seek_next(&self, offset: u64, to: SeekTo) -> Result<Option<u64>> {
        self.check_data()?;
        if !self.store.capabilities.contains(Capabilities::SPARSE) {
            return Err(Error::NotSupported);
        }
        if offset > OFFSET_MAX {
            return Ok(None);
        }
        let to = match to {
            SeekTo::Data => SeekFrom::Data(offset),
            SeekTo::Hole => SeekFrom::Hole(offset),
        };
        // This sets the file position, which nothing else uses.
        match seek(self.reader()?, to) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NXIO) => Ok(None),
            Err(errno) => Err(from_errno(errno)),
        }
    }

    pub(crate) fn copy_to(&self, offset: u64, to: &Self, to_offset: u64, length: u64) -> Result<u64> {
        self.check_data()?;
        to.check_data()?;
        if offset > OFFSET_MAX {
            return Ok(0);
        }
        if self.id == to.id && offset.abs_diff(to_offset) < length {
            return Err(Error::InvalidArgument);
        }
        let (mut from_at, mut to_at) = (offset, to_offset);
        let length = usize::try_from(length.min(OFFSET_MAX - offset)).unwrap_or(usize::MAX);
        check_range(to_offset, 0)?;
        let copied =
            copy_file_range(self.reader()?, Some(&mut from_at), to.writer()?, Some(&mut to_at), length);
        Ok(copied.map_err(from_errno)? as u64)
    }

    pub(crate) fn clone_to(&self, offset: u64, to: &Self, to_offset: u64, length: u64) -> Result<()> {
        self.check_data()?;
        to.check_data()?;
        check_range(offset, length)?;
        check_range(to_offset, length)?;
        sys::clone_range(self.reader()?, offset, to.writer()?, to_offset, length).map_err(from_errno)
    }
}

/// The pieces after the first `done` bytes.
fn behind<'a>(data: &'a [IoSlice<'_>], mut done: usize) -> Vec<IoSlice<'a>> {
    let rest = |slice: &'a IoSlice<'_>| {
        let skipped = done.min(slice.len());
        done -= skipped;
        slice.get(skipped..).filter(|rest| !rest.is_empty()).map(IoSlice::new)
    };
    data.iter().filter_map(rest).collect()
}
