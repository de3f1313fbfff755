//! A directory at another place, where each access takes as long as on a slow storage: a pass-through file system in user space (FUSE).
//!
//! Servers that serve it see a local file system, with handles (name_to_handle_at(2)), extended attributes and access lists. Nothing
//! is cached on the way: data are read and written past the kernel's page cache, and what was said of a name or of an object holds for
//! as long as it took to say it, so that to walk a path asks once for each name. The kernel counts that in its own ticks, which are up to
//! 10 ms long.

mod attributes;
mod below;
mod due;
mod filesystem;
mod nodes;
mod opens;

use std::io;
use std::path::Path;
use std::time::Duration;

use fuser::{BackgroundSession, Config, MountOption, Session, SessionACL};

use crate::filesystem::Slow;

/// Threads that read requests. None of them waits for a delay, but some for the directory below.
const THREADS: usize = 4;

/// How long accesses take, from the arrival of the request to the answer. What the directory below needs is part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delays {
    /// Each read and write, of at most 1 MiB, and each flush of a file.
    pub data: Duration,
    /// Each lookup of a name, look at attributes, piece of a listing, and change of names or attributes. To open and to close what
    /// was looked up take none.
    pub metadata: Duration,
}

/// A directory that is shown at another place. It is there until this is dropped or ended.
#[derive(Debug)]
pub struct Delayed {
    session: BackgroundSession,
}

impl Delayed {
    /// Shows the directory `source`, with a delay for each access, at the directory `at`. The kernel checks permissions, and users
    /// other than root may use it. Needs root, and /dev/fuse.
    ///
    /// # Errors
    /// `source` is no directory, its file system has no handles, or there is no FUSE here.
    pub fn mount(source: &Path, at: &Path, delays: Delays) -> io::Result<Self> {
        let mut config = Config::default();
        let name = MountOption::FSName(source.display().to_string());
        config.mount_options = vec![name, MountOption::Subtype("anabranch-delay".to_owned())];
        config.mount_options.extend([
            MountOption::DefaultPermissions,
            MountOption::NoDev,
            MountOption::NoSuid,
        ]);
        config.acl = SessionACL::All;
        config.n_threads = Some(THREADS);
        config.clone_fd = true;
        let session = Session::new(Slow::over(source, delays)?, at, &config)?.spawn()?;
        Ok(Self { session })
    }

    /// Takes the directory away from the other place. The requests that are under way are answered first.
    ///
    /// # Errors
    /// It is in use there.
    pub fn end(self) -> io::Result<()> {
        self.session.umount_and_join()
    }
}
