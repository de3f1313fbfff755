//! The entries of a directory.
#![expect(unsafe_code, reason = "functions of a C library are called here")]

use std::ffi::{CStr, c_uint};
use std::ptr::null_mut;

use rustix::io::Errno;

use crate::inode::Inode;
use crate::library::{CListing, CStat, NOT_ASKED, WANTED};
use crate::mount::{Mount, done};

/// A listing that is under way.
pub(crate) struct Listing<'a> {
    dir: &'a Inode,
    listing: CListing,
    /// Flags of the call for each entry.
    flags: c_uint,
}

/// An entry.
pub(crate) struct Entry {
    /// Where the listing goes on behind this entry.
    pub(crate) cookie: u64,
    pub(crate) stat: CStat,
    name: [u8; 256],
    length: usize,
}

impl Entry {
    pub(crate) fn name(&self) -> &[u8] {
        self.name.get(..self.length).unwrap_or_default()
    }
}

impl Drop for Listing<'_> {
    fn drop(&mut self) {
        let Mount { functions, mount, .. } = &*self.dir.mount;
        // SAFETY: the listing was begun for this value, which is used no more. It does not fail for such a listing.
        let _ = unsafe { (functions.ll_releasedir)(*mount, self.listing) };
    }
}

impl<'a> Listing<'a> {
    /// A listing of a directory that goes on behind the entry with this cookie; 0: from the start.
    pub(crate) fn behind(dir: &'a Inode, cookie: u64) -> Result<Self, Errno> {
        let Mount { functions, mount, root, .. } = &*dir.mount;
        let mut listing = null_mut();
        // SAFETY: the object is held.
        done(unsafe { (functions.ll_opendir)(*mount, dir.inode, &raw mut listing, root.perms) })?;
        let listing = Self { dir, listing, flags: 0 };
        if cookie != 0 {
            // SAFETY: the listing was just begun. A cookie that was never given out lists from another entry on.
            unsafe { (functions.seekdir)(*mount, listing.listing, cookie.cast_signed()) };
        }
        Ok(listing)
    }

    /// A listing from the start of names, and of the numbers that tell objects apart: nobody asks the metadata servers for what else
    /// there is to say of each entry.
    pub(crate) fn of_names(dir: &'a Inode) -> Result<Self, Errno> {
        let mut listing = Self::behind(dir, 0)?;
        listing.flags = NOT_ASKED;
        Ok(listing)
    }

    /// The next entry, `.` and `..` among them; None at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Entry>, Errno> {
        let Mount { functions, mount, .. } = &*self.dir.mount;
        // SAFETY: all of the structure are numbers, for which zero is a value.
        let mut entry: libc::dirent64 = unsafe { std::mem::zeroed() };
        let mut stat = CStat::default();
        // SAFETY: the listing is under way, the structures are those of this system, and no object is asked for.
        let more = unsafe {
            let (entry, stat) = (&raw mut entry, &raw mut stat);
            (functions.readdirplus_r)(*mount, self.listing, entry, stat, WANTED, self.flags, null_mut())
        };
        if done(more)? == 0 {
            return Ok(None);
        }
        // SAFETY: the name ends with NUL within the structure.
        let text = unsafe { CStr::from_ptr(entry.d_name.as_ptr()) }.to_bytes();
        let mut name = [0; 256];
        let length = text.len().min(name.len());
        name[..length].copy_from_slice(&text[..length]);
        Ok(Some(Entry { cookie: entry.d_off.cast_unsigned(), stat, name, length }))
    }
}
