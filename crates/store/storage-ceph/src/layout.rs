//! Layouts: which data pool keeps what is made in a directory.

use std::sync::Arc;

use rustix::io::Errno;
use storage::Result;

use crate::errno::from_errno;
use crate::inode::Inode;
use crate::listing::Listing;
use crate::mount::Mount;
use crate::place::text;
use crate::store::CephStore;

/// The data pool that a directory tells in its own name, or that of what holds it. None: nothing has a layout, and the first data pool
/// of the file system counts.
///
/// # Errors
/// [`storage::Error::NotFound`], and those of the cluster.
pub fn data_pool_at(mount: &Arc<Mount>, path: &str) -> Result<Option<String>> {
    let mut dir = Inode::root(mount).map_err(from_errno)?;
    let mut pool = pool_of(&dir)?;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        dir = dir.lookup(&text(name.as_bytes())?).map_err(from_errno)?.0;
        pool = pool_of(&dir)?.or(pool);
    }
    Ok(pool)
}

/// The layout that a directory has itself.
fn pool_of(dir: &Inode) -> Result<Option<String>> {
    match dir.xattr(c"ceph.dir.layout.pool") {
        Ok(value) => Ok(Some(String::from_utf8_lossy(&value).into_owned())),
        Err(Errno::NODATA) => Ok(None),
        Err(errno) => Err(from_errno(errno)),
    }
}

impl CephStore {
    /// Whether there is nothing in the root, nor the depot of streams.
    ///
    /// # Errors
    /// Those of the cluster.
    pub fn is_empty(&self) -> Result<bool> {
        let mut listing = Listing::of_names(self.root_inode()).map_err(from_errno)?;
        while let Some(entry) = listing.next().map_err(from_errno)? {
            if !matches!(entry.name(), b"." | b"..") {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
