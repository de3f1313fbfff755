//! Directories that one gateway alone changes.
//!
//! Whoever serves a directory as its only gateway holds a lock on the whole of the directory, and shared locks on the directories above
//! it: so no other gateway serves the directory, a part of it, or what holds it. The metadata servers keep these locks, and let go of
//! them when the gateway ends, or when they have given up its session.

use rustix::io::Errno;

use crate::inode::Inode;
use crate::open_file::{Lock, OpenFile};

/// The locks of a directory, until this is dropped.
#[derive(Debug)]
pub(crate) struct Claim(#[expect(dead_code, reason = "what is open is locked")] Vec<OpenFile>);

impl Claim {
    /// Claims the last of these directories, of which each is in the one before it.
    ///
    /// # Errors
    /// [`Errno::AGAIN`] if another gateway serves one of them alone, or serves a part of the last one; those of the cluster.
    pub(crate) fn of(path: &[Inode], owner: u64) -> Result<Self, Errno> {
        let mut locked = Vec::new();
        let locks = (1..path.len()).map(|_| Lock::Shared).chain([Lock::Exclusive]);
        for (directory, lock) in path.iter().zip(locks) {
            let open = directory.open(false)?;
            open.lock(lock, owner)?;
            locked.push(open);
        }
        Ok(Self(locked))
    }
}
