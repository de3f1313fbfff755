//! Where an object is: the directory and the name by which it was last found. The gateway changes the directories itself, so it
//! knows the paths of objects in memory without asking.

use std::ffi::CString;
use std::sync::Arc;

use storage::{Error, FileKind, Result};

use crate::errno::from_errno;
use crate::listing::Listing;
use crate::node::CephNode;

/// How deep a path may be before its directories are taken for a circle.
const DEPTH_MAX: usize = 100_000;

/// A directory and a name in it.
type Entry = (Arc<CephNode>, Box<[u8]>);

/// Where an object is.
#[derive(Default)]
pub(crate) enum Place {
    /// Nobody has found the object by a name, or it has lost the name by which it was found.
    #[default]
    Unknown,
    /// In a directory, under a name.
    In(Arc<CephNode>, Box<[u8]>),
    /// The top of the store.
    Top,
    /// A directory that was removed.
    Nowhere,
}

impl Drop for CephNode {
    /// A node holds the directory above it. A long chain is let go of link by link, without recursion.
    fn drop(&mut self) {
        let mut place = std::mem::take(self.place.get_mut());
        while let Place::In(dir, _) = place {
            let Some(mut dir) = Arc::into_inner(dir) else { return };
            place = std::mem::take(dir.place.get_mut());
        }
    }
}

impl CephNode {
    /// Notes where the object was found.
    pub(crate) fn is_in(&self, dir: &Arc<Self>, name: &[u8]) {
        let mut place = self.place.lock();
        if matches!(&*place, Place::In(known, called) if Arc::ptr_eq(known, dir) && **called == *name) {
            return;
        }
        // The place before is dropped when the lock is not held any more.
        let _before = match *place {
            Place::Top | Place::Nowhere => return,
            Place::Unknown | Place::In(..) => {
                std::mem::replace(&mut *place, Place::In(Arc::clone(dir), name.into()))
            }
        };
        drop(place);
    }

    /// Notes that the object has lost a name.
    pub(crate) fn is_not_in(&self, dir: &Self, name: &[u8]) {
        let mut place = self.place.lock();
        let _before = match &*place {
            Place::In(known, called) if known.id == dir.id && **called == *name => {
                let now = if self.kind == FileKind::Directory { Place::Nowhere } else { Place::Unknown };
                std::mem::replace(&mut *place, now)
            }
            _ if self.kind == FileKind::Directory => std::mem::replace(&mut *place, Place::Nowhere),
            _ => return,
        };
        drop(place);
    }

    /// The number of the directory in which the object was found, if it was found in one.
    pub(crate) fn directory(&self) -> Option<u64> {
        match &*self.place.lock() {
            Place::In(dir, _) => Some(dir.id.number),
            Place::Unknown | Place::Top | Place::Nowhere => None,
        }
    }

    /// Whether this directory was removed.
    pub(crate) fn is_removed(&self) -> bool {
        matches!(*self.place.lock(), Place::Nowhere)
    }

    /// The directory above and the name in it, as far as known; None at the top.
    pub(crate) fn above(&self) -> Result<Option<Entry>> {
        match &*self.place.lock() {
            Place::In(dir, name) => Ok(Some((Arc::clone(dir), name.clone()))),
            Place::Top => Ok(None),
            Place::Unknown | Place::Nowhere => Err(Error::Stale),
        }
    }

    pub(crate) fn path_below_root(&self) -> Result<Vec<u8>> {
        let mut names = Vec::new();
        let mut above = self.above()?;
        while let Some((dir, name)) = above {
            names.push(name);
            above = dir.above()?;
            if names.len() > DEPTH_MAX {
                return Err(Error::Stale);
            }
        }
        names.reverse();
        Ok(names.join(&b'/'))
    }

    /// Whether a directory is this one or below it, as far as known.
    pub(crate) fn holds(&self, dir: &Arc<Self>) -> bool {
        let mut dir = Arc::clone(dir);
        for _ in 0..DEPTH_MAX {
            if dir.id == self.id {
                return true;
            }
            let Ok(Some((above, _))) = dir.above() else { return false };
            dir = above;
        }
        false
    }

    /// The directory that holds this one.
    pub(crate) fn find_parent(self: &Arc<Self>) -> Result<Arc<Self>> {
        if self.kind != FileKind::Directory {
            return Err(Error::NotDirectory);
        }
        Ok(self.above()?.map_or_else(|| Arc::clone(self), |(dir, _)| dir))
    }

    /// Finds out where a directory is that was found by its number: each directory above it, up to one of which that is known.
    ///
    /// # Errors
    /// [`Error::Stale`] if it is not below the top of the store.
    pub(crate) fn locate(self: &Arc<Self>) -> Result<()> {
        let mut dir = Arc::clone(self);
        for _ in 0..DEPTH_MAX {
            match *dir.place.lock() {
                Place::In(..) | Place::Top => return Ok(()),
                Place::Nowhere => return Err(Error::Stale),
                Place::Unknown => {}
            }
            let (above, stat) = dir.inode.lookup(c"..").map_err(from_errno).map_err(stale)?;
            if stat.number == dir.id.number {
                // The top of the file system, which is above the top of the store.
                return Err(Error::Stale);
            }
            let above = dir.store.adopt(above, &stat);
            let name = above.name_of(dir.id.number)?;
            dir.is_in(&above, &name);
            dir = above;
        }
        Err(Error::Stale)
    }

    /// The name of an object in this directory: the library does not tell it, so the directory is listed.
    pub(crate) fn name_of(&self, number: u64) -> Result<Box<[u8]>> {
        let mut listing = Listing::behind(&self.inode, 0).map_err(from_errno)?;
        while let Some(entry) = listing.next().map_err(from_errno)? {
            if entry.stat.number == number && !matches!(entry.name(), b"." | b"..") {
                return Ok(entry.name().into());
            }
        }
        Err(Error::Stale)
    }
}

/// In a directory that has been removed nothing is found: report the directory as stale, not the name as missing.
pub(crate) fn stale(error: Error) -> Error {
    if error == Error::NotFound { Error::Stale } else { error }
}

/// A name as the library takes it.
pub(crate) fn text(name: &[u8]) -> Result<CString> {
    CString::new(name).map_err(|_| Error::InvalidName)
}
