//! The data of an open file.
#![expect(unsafe_code, reason = "functions of a C library are called here")]

use std::ffi::c_int;
use std::sync::Arc;

use rustix::io::Errno;

use crate::library::CFile;
use crate::mount::{Mount, Unused, done};

/// How much one call reads or writes at most: the library counts in 32 bits.
const CALL_BYTES_MAX: usize = 64 << 20;

/// How a lock holds off others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lock {
    Shared,
    Exclusive,
}

/// An open file, which is closed when this value is dropped.
pub(crate) struct OpenFile {
    pub(crate) mount: Arc<Mount>,
    pub(crate) file: CFile,
}

// SAFETY: libcephfs locks what it has in memory, so that several threads may use one file at the same time. The position of a file,
// which belongs to all of them, is not used.
unsafe impl Send for OpenFile {}
// SAFETY: as above.
unsafe impl Sync for OpenFile {}

impl std::fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenFile").field("mount", &self.mount).finish_non_exhaustive()
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        self.mount.let_go(Unused::File(self.file));
    }
}

impl OpenFile {
    /// Reads into `into` until it is full or the data ends.
    pub(crate) fn read(&self, offset: i64, into: &mut [u8]) -> Result<usize, Errno> {
        let mut at = offset;
        let mut count = 0;
        for piece in into.chunks_mut(CALL_BYTES_MAX) {
            let (room, length) = (piece.as_mut_ptr().cast(), piece.len() as u64);
            // SAFETY: the file is open, and no more is written than the length that is given.
            let here = done(unsafe {
                (self.mount.functions.ll_read)(self.mount.mount, self.file, at, length, room)
            })?;
            count += here;
            if here < piece.len() {
                break;
            }
            at = at.saturating_add(i64::try_from(here).unwrap_or(i64::MAX));
        }
        Ok(count)
    }

    /// Writes all of the data.
    pub(crate) fn write(&self, offset: i64, mut data: &[u8]) -> Result<(), Errno> {
        let mut at = offset;
        while !data.is_empty() {
            let length = data.len().min(CALL_BYTES_MAX) as u64;
            // SAFETY: the file is open, and the data has its length with it.
            let written = done(unsafe {
                (self.mount.functions.ll_write)(self.mount.mount, self.file, at, length, data.as_ptr().cast())
            })?;
            data = data.get(written..).filter(|_| written > 0).ok_or(Errno::IO)?;
            at = at.saturating_add(i64::try_from(written).unwrap_or(i64::MAX));
        }
        Ok(())
    }

    /// Puts data and attributes on stable storage.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        // SAFETY: the file is open.
        done(unsafe { (self.mount.functions.ll_fsync)(self.mount.mount, self.file, 0) }).map(drop)
    }

    /// Locks all of the file or directory for an owner, until it is closed. The locks of one owner do not hold off each other.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] if another lock holds this one off; those of the cluster.
    pub(crate) fn lock(&self, lock: Lock, owner: u64) -> Result<(), Errno> {
        // SAFETY: all of the structure are numbers, for which zero is a value. Zero is the beginning, and a length without end.
        let mut range: libc::flock = unsafe { std::mem::zeroed() };
        let kind = if lock == Lock::Shared { libc::F_RDLCK } else { libc::F_WRLCK };
        range.l_type = libc::c_short::try_from(kind).map_err(|_| Errno::INVAL)?;
        range.l_pid = libc::pid_t::try_from(std::process::id()).unwrap_or_default();
        let Mount { functions, mount, .. } = &*self.mount;
        // SAFETY: the file is open, and the structure is that of this system.
        done(unsafe { (functions.ll_setlk)(*mount, self.file, &raw mut range, owner, 0) }).map(drop)
    }

    /// fallocate(2)
    pub(crate) fn allocate(&self, mode: c_int, offset: i64, length: i64) -> Result<(), Errno> {
        let Mount { functions, mount, .. } = &*self.mount;
        // SAFETY: the file is open.
        done(unsafe { (functions.ll_fallocate)(*mount, self.file, mode, offset, length) }).map(drop)
    }
}
