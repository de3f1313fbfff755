//! The directories of servers that run for a measurement.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use crate::error::{Cause, Error, Result};

/// A new directory, removed with all that is in it when this is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

/// Who works in the shares.
#[derive(Debug, Clone, Copy)]
pub struct Account {
    /// Its name.
    pub name: &'static str,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

impl Account {
    /// The user of this machine that each Debian has for such things; whoever runs this where that is not root.
    #[must_use]
    pub fn of_this_machine() -> Self {
        let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
        if uid.is_root() {
            Self { name: "daemon", uid: 1, gid: 1 }
        } else {
            Self { name: "bench", uid: uid.as_raw(), gid: gid.as_raw() }
        }
    }
}

impl Scratch {
    /// A directory in `parent` that all users can enter.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(parent: &Path) -> Result<Self> {
        let mut number = [0; 8];
        getrandom::fill(&mut number)
            .map_err(|e| Error::new(Cause::Serving, format!("no random numbers: {e}"), ""))?;
        let path = parent.join(format!("anabranch-peers-{:016x}", u64::from_le_bytes(number)));
        fs::create_dir(&path).map_err(|e| trouble(&path, &e))?;
        let made = Self { path };
        fs::set_permissions(&made.path, fs::Permissions::from_mode(0o755))
            .map_err(|e| trouble(&made.path, &e))?;
        Ok(made)
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A directory in it that belongs to an account.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn directory(&self, name: &str, account: Account) -> Result<PathBuf> {
        let path = self.path.join(name);
        let made = fs::create_dir(&path).and_then(|()| chown(&path, Some(account.uid), Some(account.gid)));
        made.map_err(|e| trouble(&path, &e)).map(|()| path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(e) = fs::remove_dir_all(&self.path) {
            eprintln!("{} could not be removed: {e}", self.path.display());
        }
    }
}

/// A file or directory that cannot be made.
#[must_use]
pub fn trouble(path: &Path, error: &std::io::Error) -> Error {
    Error::new(Cause::Directory, format!("cannot make {}: {error}", path.display()), "")
}
