//! The directory of a pool, in which the server makes directories for shares.
//!
//! A directory is made under a name that only the server uses, is marked ([`crate::pool_mark`]), and then gets the name that it is to
//! have. It is removed in the other order ([`Removal`](crate::Removal)). So whatever has the mark was made by the server as a whole,
//! and a server that was killed finds what it had begun under the one name or the other.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, RenameFlags, Uid, fchmod, fchown, fstatvfs, fsync, mkdirat, open, openat,
    renameat_with, unlinkat,
};
use rustix::io::Errno;
use storage::{Error, Result};

use crate::errno::from_errno;
use crate::pool_mark::{self, PoolMark};
use crate::snapshot_folder;
use crate::{btrfs, probe};

/// statfs(2): a directory of CephFS with snapshots cannot be removed as other directories are.
const CEPH_MAGIC: i64 = 0x00c3_6400;
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Why the server does not make or remove a directory in a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The directory of the pool is missing, or is not a directory.
    #[error("there is no such directory")]
    Missing,
    /// The directory is not the one in which the server has made directories: its mark is another one, or missing.
    #[error(
        "it is not the directory in which the shares of the pool were made: perhaps its file system is not mounted"
    )]
    OtherPool,
    /// The file system cannot have a pool.
    #[error("its file system cannot have a pool: {0}")]
    Unfit(&'static str),
    /// What has the name is not what the server made.
    #[error("it is not the directory that the server made")]
    NotMade,
    /// There is a subvolume in the directory that the server has not made.
    #[error("there is a subvolume in it that the server has not made")]
    Subvolume,
    /// Another file system is mounted in the directory.
    #[error("another file system is mounted in it")]
    Mounted,
    /// The file system's own refusal.
    #[error(transparent)]
    Store(#[from] Error),
}

/// Whose a new directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolOwner {
    /// The user.
    pub uid: u32,
    /// The group.
    pub gid: u32,
}

/// The room of a file system, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolSpace {
    /// All of it.
    pub total: u64,
    /// What ordinary users can still write.
    pub free: u64,
}

/// The directory of a pool.
#[derive(Debug)]
pub struct Pool(pub(crate) OwnedFd);

impl Pool {
    /// Opens the directory of a pool.
    ///
    /// # Errors
    /// It is missing, or its file system cannot have a pool.
    pub fn open(directory: &Path) -> std::result::Result<Self, PoolError> {
        let opened = open(directory, DIRECTORY, Mode::empty()).map_err(|errno| match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => PoolError::Missing,
            errno => from_errno(errno).into(),
        })?;
        if probe::file_system(&opened)? == CEPH_MAGIC {
            return Err(PoolError::Unfit("in CephFS, make the directories of shares by hand"));
        }
        Ok(Self(opened))
    }

    /// Refuses a directory that is not that of the pool with this number.
    ///
    /// # Errors
    /// [`PoolError::OtherPool`], or it cannot be read.
    pub fn check(&self, mark: PoolMark) -> std::result::Result<(), PoolError> {
        if pool_mark::of_pool(&self.0)? == Some(mark) { Ok(()) } else { Err(PoolError::OtherPool) }
    }

    /// The number of the pool, which it gets now if it has none.
    ///
    /// # Errors
    /// The server may not set such attributes, or the file system has none.
    pub fn mark(&self) -> std::result::Result<PoolMark, PoolError> {
        if let Some(mark) = pool_mark::of_pool(&self.0)? {
            return Ok(mark);
        }
        self.set_mark(PoolMark::random()?)
    }

    /// Gives the pool a number unless it has one. Returns the one that it has then.
    fn set_mark(&self, mark: PoolMark) -> std::result::Result<PoolMark, PoolError> {
        match pool_mark::mark_pool(&self.0, mark) {
            Ok(()) => Ok(mark),
            // It has one, or somebody else was faster.
            Err(Error::Exists) => pool_mark::of_pool(&self.0)?.ok_or(PoolError::OtherPool),
            Err(Error::NotSupported) => {
                Err(PoolError::Unfit("it has no extended attributes of the kind `trusted`"))
            }
            Err(Error::NotPermitted) => {
                Err(PoolError::Unfit("this server may not set attributes of the kind `trusted` there"))
            }
            Err(e) => Err(e.into()),
        }
    }

    /// The room of its file system.
    ///
    /// # Errors
    /// The system does not say.
    pub fn space(&self) -> Result<PoolSpace> {
        let found = fstatvfs(&self.0).map_err(from_errno)?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(PoolSpace { total: bytes(found.f_blocks), free: bytes(found.f_bavail) })
    }

    /// Whether nothing has this name.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn is_free(&self, name: &str) -> Result<bool> {
        match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(false),
            Err(Errno::NOENT) => Ok(true),
            Err(errno) => Err(from_errno(errno)),
        }
    }

    /// Makes the directory of a share: on Btrfs a subvolume, so that it can have snapshots. When this returns, it is on stable
    /// storage. What is left if this fails, or if the server is killed, [`Removal`](crate::Removal) removes.
    ///
    /// # Errors
    /// [`Error::Exists`] if something has the name, and those of the file system.
    pub fn make(&self, name: &str, mark: PoolMark, owner: PoolOwner) -> Result<()> {
        let hidden = hidden_name(mark);
        if probe::is_btrfs(&self.0) {
            btrfs::make_subvolume(&self.0, hidden.as_bytes()).map_err(from_errno)?;
        } else {
            mkdirat(&self.0, hidden.as_str(), Mode::RWXU).map_err(from_errno)?;
        }
        let made = openat(&self.0, hidden.as_str(), DIRECTORY, Mode::empty()).map_err(from_errno)?;
        pool_mark::mark_directory(&made, mark)?;
        fchown(&made, Some(Uid::from_raw(owner.uid)), Some(Gid::from_raw(owner.gid))).map_err(from_errno)?;
        fchmod(&made, Mode::from_raw_mode(0o755)).map_err(from_errno)?;
        fsync(&made).map_err(from_errno)?;
        renameat_with(&self.0, hidden.as_str(), &self.0, name, RenameFlags::NOREPLACE).map_err(from_errno)?;
        fsync(&self.0).map_err(from_errno)
    }

    /// Takes what has a name for the directory that the server made with this number, in the pool with its number: it was restored from a
    /// backup, which has no marks or copies of them. Whether that is so, the administrator knows. What the server made for somebody else
    /// stays that.
    ///
    /// # Errors
    /// [`PoolError::Missing`] if nothing has the name, [`PoolError::NotMade`] if it is no directory or was made for somebody else,
    /// [`PoolError::OtherPool`] if this is the directory of another pool.
    pub fn adopt(&self, name: &str, pool: PoolMark, mark: PoolMark) -> std::result::Result<(), PoolError> {
        let restored = open_directory(&self.0, name)?.ok_or(PoolError::Missing)?;
        if pool_mark::of_directory(&restored)?.is_some_and(|known| known != mark) {
            return Err(PoolError::NotMade);
        }
        if self.set_mark(pool)? != pool {
            return Err(PoolError::OtherPool);
        }
        pool_mark::mark_directory(&restored, mark)?;
        fsync(&restored).map_err(from_errno)?;
        Ok(fsync(&self.0).map_err(from_errno)?)
    }

    /// Removes what is left of a directory that no share ever had: it is empty. False: it has something in it, and stays.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn unmake(&self, name: &str, mark: PoolMark) -> std::result::Result<bool, PoolError> {
        let hidden = hidden_name(mark);
        match self.open_made(&hidden, mark) {
            // Perhaps it was not marked yet.
            Ok(Some(_)) | Err(PoolError::NotMade) => _ = self.remove_empty(&hidden)?,
            Ok(None) => {}
            Err(e) => return Err(e),
        }
        match self.open_made(name, mark) {
            Ok(Some(_)) if !self.remove_empty(name)? => return Ok(false),
            // Something else has the name.
            Ok(_) | Err(PoolError::NotMade) => {}
            Err(e) => return Err(e),
        }
        fsync(&self.0).map_err(from_errno)?;
        Ok(self.is_free(&hidden)?)
    }

    /// Checks that a name has what the server made with this number, and nothing in it that keeps it from being removed.
    ///
    /// # Errors
    /// What stands against it; [`PoolError::Missing`] if nothing has the name.
    pub fn check_removable(&self, name: &str, mark: PoolMark) -> std::result::Result<(), PoolError> {
        let made = self.open_made(name, mark)?.ok_or(PoolError::Missing)?;
        check_subvolumes(&made)
    }

    /// What has a name, if it is what the server made with this number. None: nothing has the name.
    pub(crate) fn open_made(
        &self,
        name: &str,
        mark: PoolMark,
    ) -> std::result::Result<Option<OwnedFd>, PoolError> {
        let Some(opened) = open_directory(&self.0, name)? else { return Ok(None) };
        match pool_mark::of_directory(&opened)? {
            Some(known) if known == mark => Ok(Some(opened)),
            _ => Err(PoolError::NotMade),
        }
    }

    /// Removes what has a name if it is an empty directory. Whether it is gone.
    pub(crate) fn remove_empty(&self, name: &str) -> Result<bool> {
        match unlinkat(&self.0, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(true),
            Err(Errno::NOTEMPTY | Errno::NOTDIR | Errno::BUSY) => Ok(false),
            Err(errno) => Err(from_errno(errno)),
        }
    }
}

/// The directory with a name. None: nothing has the name.
fn open_directory(above: &OwnedFd, name: &str) -> std::result::Result<Option<OwnedFd>, PoolError> {
    match openat(above, name, DIRECTORY, Mode::empty()) {
        Ok(opened) => Ok(Some(opened)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::NOTDIR | Errno::LOOP) => Err(PoolError::NotMade),
        Err(errno) => Err(from_errno(errno).into()),
    }
}

/// The name of a directory while it is made or removed.
pub(crate) fn hidden_name(mark: PoolMark) -> String {
    format!(".anabranch-pool-{mark}")
}

/// Refuses a subvolume that has others in it than the snapshots that the server took of it. Whoever made these wants to keep them.
pub(crate) fn check_subvolumes(made: &OwnedFd) -> std::result::Result<(), PoolError> {
    if !pool_mark::is_subvolume(made)? {
        return Ok(());
    }
    let below = |top: &OwnedFd| btrfs::below(top).map_err(from_errno);
    let folder = snapshot_folder::open_folder(made)?;
    let own = folder.as_ref().map(|folder| btrfs::subvolume_of(folder).map_err(from_errno)).transpose()?;
    let is_own = |id: &u64| own.is_some_and(|own| own.id == *id);
    if !below(made)?.iter().all(is_own) {
        return Err(PoolError::Subvolume);
    }
    let Some(folder) = folder else { return Ok(()) };
    let snapshots = snapshot_folder::subvolumes(&folder)?;
    // What can be written is no snapshot: somebody has made or changed it. Nor is what lies deeper in the folder.
    let are_snapshots = snapshots.iter().all(|found| found.as_snapshot().is_some());
    let is_among = |id: &u64| snapshots.iter().any(|found| found.subvolume.id == *id);
    let are_all = below(&folder)?.iter().all(is_among);
    for snapshot in &snapshots {
        if !below(&snapshot.top)?.is_empty() {
            return Err(PoolError::Subvolume);
        }
    }
    if are_snapshots && are_all { Ok(()) } else { Err(PoolError::Subvolume) }
}
