//! Removes what the server made in a pool, and nothing else, in steps.
//!
//! What is to be removed is first renamed to a name that only the server uses, and looked at again under that name. On Btrfs, the
//! subvolume and the snapshots that the server took of it go by their numbers, which are never given again. Elsewhere each directory
//! is reached from the one above it, without symbolic links, and never on another file system.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, RawDir, RenameFlags, fsync, openat, openat2, renameat_with, syncfs,
    unlinkat,
};
use rustix::io::Errno;
use storage::{Error, Result};

use crate::attributes::{device_of, stat};
use crate::btrfs;
use crate::errno::from_errno;
use crate::pool::{Pool, PoolError, check_subvolumes, hidden_name};
use crate::pool_mark::{PoolMark, is_subvolume};
use crate::resolve::BELOW;
use crate::snapshot_folder::{open_folder, subvolumes};

/// How many calls to the file system one step makes, besides some that it always makes.
const STEP: usize = 512;
/// How long a step takes, apart from one call: large files take long to remove.
const STEP_TIME: Duration = Duration::from_secs(1);
/// How many directories of one directory are noted at a time.
const NOTED_MAX: usize = 64;
/// How much of a listing is read at a time, in bytes.
const BUFFER_BYTES: usize = 32 << 10;
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What is being removed.
#[derive(Debug)]
pub struct Removal {
    pool: Pool,
    hidden: String,
    /// The directory in which the removal goes on.
    here: OwnedFd,
    /// From the one that is removed down to `here`. One descriptor is open, however deep this is.
    levels: Vec<Level>,
    is_subvolume: bool,
}

/// A directory on the way.
#[derive(Debug)]
struct Level {
    /// Its name in the one above.
    name: Vec<u8>,
    object: (u32, u32, u64),
    /// Directories in it that are still there.
    below: Vec<Vec<u8>>,
}

/// What an open directory is.
fn object(directory: &OwnedFd) -> Result<(u32, u32, u64)> {
    let known = stat(directory)?;
    let device = device_of(&known);
    Ok((device.major, device.minor, known.stx_ino))
}

impl Removal {
    /// Begins to remove what the server made in a pool under this name, with this number; or goes on. None: it is gone, or was
    /// never made.
    ///
    /// # Errors
    /// [`PoolError::NotMade`] if something else has the name: it stays as it is. What else stands against it.
    pub fn begin(pool: Pool, name: &str, mark: PoolMark) -> std::result::Result<Option<Self>, PoolError> {
        let hidden = hidden_name(mark);
        // One that the server made, but did not come to mark, is empty.
        let is_unmarked = matches!(pool.open_made(&hidden, mark), Err(PoolError::NotMade));
        if is_unmarked && !pool.remove_empty(&hidden)? {
            return Err(PoolError::NotMade);
        }
        if pool.is_free(&hidden)? {
            let Some(made) = pool.open_made(name, mark)? else {
                // Before a crash it may have been gone without being so on stable storage.
                syncfs(&pool.0).map_err(from_errno)?;
                return Ok(None);
            };
            check_subvolumes(&made)?;
            match renameat_with(&pool.0, name, &pool.0, hidden.as_str(), RenameFlags::NOREPLACE) {
                Ok(()) => {}
                Err(Errno::BUSY) => return Err(PoolError::Mounted),
                Err(errno) => return Err(from_errno(errno).into()),
            }
        }
        let here = match pool.open_made(&hidden, mark) {
            Ok(here) => here.ok_or(PoolError::NotMade)?,
            Err(e) => {
                // Somebody put another directory in its place meanwhile: that one gets its name back.
                let _ = renameat_with(&pool.0, hidden.as_str(), &pool.0, name, RenameFlags::NOREPLACE);
                return Err(e);
            }
        };
        fsync(&pool.0).map_err(from_errno)?;
        let top = Level { name: Vec::new(), object: object(&here)?, below: Vec::new() };
        let is_subvolume = is_subvolume(&here)?;
        Ok(Some(Self { pool, hidden, here, levels: vec![top], is_subvolume }))
    }

    /// The name that it has in the pool meanwhile.
    #[must_use]
    pub fn hidden_name(&self) -> &str {
        &self.hidden
    }

    /// Goes on for a while. Whether everything is gone.
    ///
    /// # Errors
    /// What stands against it. What is gone by then stays gone.
    pub fn step(&mut self) -> std::result::Result<bool, PoolError> {
        if self.is_subvolume { self.remove_a_subvolume() } else { self.remove_some() }
    }

    /// Removes one snapshot, or the folder of the snapshots, or what they were taken of.
    fn remove_a_subvolume(&self) -> std::result::Result<bool, PoolError> {
        check_subvolumes(&self.here)?;
        let of = |top: &OwnedFd| btrfs::subvolume_of(top).map_err(from_errno);
        let (id, is_last) = match open_folder(&self.here)? {
            Some(folder) => match subvolumes(&folder)?.first() {
                Some(snapshot) => (snapshot.subvolume.id, false),
                None => (of(&folder)?.id, false),
            },
            None => (of(&self.here)?.id, true),
        };
        btrfs::remove_by_id(&self.pool.0, id).map_err(|errno| match errno {
            Errno::NOTEMPTY => PoolError::Subvolume,
            errno => from_errno(errno).into(),
        })?;
        if is_last {
            // A removal is part of the next commit of the file system. Whoever notes that all is gone must not be ahead of it.
            syncfs(&self.pool.0).map_err(from_errno)?;
        }
        Ok(is_last)
    }

    fn remove_some(&mut self) -> std::result::Result<bool, PoolError> {
        let (mut left, begun) = (STEP, Instant::now());
        while left > 0 && begun.elapsed() < STEP_TIME {
            left = left.saturating_sub(1);
            let Some(level) = self.levels.last_mut() else { return Ok(true) };
            match level.below.pop() {
                Some(name) => self.descend(name)?,
                None => {
                    let (removed, is_empty) = self.remove_files(begun)?;
                    left = left.saturating_sub(removed);
                    if is_empty && self.ascend()? {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    fn descend(&mut self, name: Vec<u8>) -> std::result::Result<(), PoolError> {
        let below = match openat2(&self.here, name.as_slice(), DIRECTORY, Mode::empty(), BELOW) {
            Ok(below) => below,
            // A local program was faster: the next listing shows what there is.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(Errno::XDEV) => return Err(PoolError::Mounted),
            Err(errno) => return Err(from_errno(errno).into()),
        };
        let found = object(&below)?;
        if self.levels.first().is_some_and(|top| (top.object.0, top.object.1) != (found.0, found.1)) {
            return Err(PoolError::Mounted);
        }
        self.levels.push(Level { name, object: found, below: Vec::new() });
        self.here = below;
        Ok(())
    }

    /// Removes the files in a directory, and notes some of the directories. How many files these were, and whether the directory was
    /// empty.
    fn remove_files(&mut self, begun: Instant) -> std::result::Result<(usize, bool), PoolError> {
        // From its beginning.
        let listed = openat(&self.here, c".", DIRECTORY, Mode::empty()).map_err(from_errno)?;
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        let mut entries = RawDir::new(&listed, buffer.spare_capacity_mut());
        let (mut removed, mut below) = (0, Vec::new());
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(from_errno)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let unlink = || unlinkat(&self.here, name, AtFlags::empty());
            match if entry.file_type() == FileType::Directory { Err(Errno::ISDIR) } else { unlink() } {
                Ok(()) | Err(Errno::NOENT) => removed += 1,
                Err(Errno::ISDIR) => below.push(name.to_vec()),
                Err(Errno::BUSY) => return Err(PoolError::Mounted),
                Err(errno) => return Err(from_errno(errno).into()),
            }
            if removed >= STEP || below.len() >= NOTED_MAX || begun.elapsed() >= STEP_TIME {
                break;
            }
        }
        let is_empty = removed == 0 && below.is_empty();
        if let Some(level) = self.levels.last_mut() {
            level.below = below;
        }
        Ok((removed, is_empty))
    }

    /// Removes the empty directory in which this is, and goes on above. Whether nothing is left.
    fn ascend(&mut self) -> std::result::Result<bool, PoolError> {
        let Some(Level { name, .. }) = self.levels.pop() else { return Ok(true) };
        let Some(above) = self.levels.last() else {
            let hidden = std::mem::take(&mut self.hidden);
            remove_directory(&self.pool.0, hidden.as_bytes())?;
            fsync(&self.pool.0).map_err(from_errno)?;
            return Ok(true);
        };
        let reached = openat(&self.here, c"..", DIRECTORY, Mode::empty()).map_err(from_errno)?;
        if object(&reached)? != above.object {
            // A local program has moved it. The next attempt begins at the top.
            return Err(PoolError::Store(Error::Busy));
        }
        self.here = reached;
        remove_directory(&self.here, &name)?;
        Ok(false)
    }
}

/// Removes a directory that was empty. One that is not any more is found again.
fn remove_directory(above: &OwnedFd, name: &[u8]) -> std::result::Result<(), PoolError> {
    match unlinkat(above, name, AtFlags::REMOVEDIR) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(Errno::BUSY) => Err(PoolError::Mounted),
        Err(errno) => Err(from_errno(errno).into()),
    }
}
