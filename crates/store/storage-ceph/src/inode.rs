//! An object of the file system, held, and the calls on it. What libcephfs reports as an error number is an [`Errno`].
#![expect(unsafe_code, reason = "functions of a C library are called here")]

use std::ffi::{CStr, c_int};
use std::ptr::null_mut;
use std::sync::Arc;

use rustix::io::Errno;

use crate::library::{CFile, CInode, CNumber, CStat, NO_SNAPSHOT, WANTED};
use crate::mount::{Mount, Perms, Unused, done};
use crate::open_file::OpenFile;

/// The longest text of a symbolic link, and one byte more.
const LINK_BYTES: usize = 4097;
/// The longest value and the longest list of extended attributes in bytes (xattr(7)).
pub(crate) const XATTR_BYTES_MAX: usize = 65_536;
/// Most values are shorter than this.
const XATTR_BYTES_USUAL: usize = 1024;

/// An object that exists in the library as long as this value does.
pub(crate) struct Inode {
    pub(crate) mount: Arc<Mount>,
    pub(crate) inode: CInode,
}

// SAFETY: libcephfs locks what it has in memory, so that several threads may use one object at the same time.
unsafe impl Send for Inode {}
// SAFETY: as above.
unsafe impl Sync for Inode {}

impl Drop for Inode {
    fn drop(&mut self) {
        self.mount.let_go(Unused::Inode(self.inode));
    }
}

/// An object and what is known about it.
pub(crate) type Found = (Inode, CStat);

/// What kind of object is made, apart from files.
pub(crate) enum Make<'a> {
    Directory,
    Symlink(&'a CStr),
    /// Of this type and with this number of a device.
    Special(u32, u64),
}

impl Inode {
    /// The root of the file system.
    pub(crate) fn root(mount: &Arc<Mount>) -> Result<Self, Errno> {
        let mut inode = null_mut();
        // SAFETY: the file system is mounted.
        done(unsafe { (mount.functions.ll_lookup_root)(mount.mount, &raw mut inode) })?;
        Ok(Self { mount: Arc::clone(mount), inode })
    }

    /// The object with this number in the present state of the file system.
    pub(crate) fn of_number(mount: &Arc<Mount>, number: u64) -> Result<Self, Errno> {
        let mut inode = null_mut();
        let number = CNumber { number, snapshot: NO_SNAPSHOT };
        // SAFETY: the file system is mounted.
        done(unsafe { (mount.functions.ll_lookup_vino)(mount.mount, number, &raw mut inode) })?;
        Ok(Self { mount: Arc::clone(mount), inode })
    }

    /// Calls a function that finds or makes an object.
    fn finding(&self, call: impl FnOnce(*mut CInode, *mut CStat) -> c_int) -> Result<Found, Errno> {
        let (mut inode, mut stat) = (null_mut(), CStat::default());
        done(call(&raw mut inode, &raw mut stat))?;
        Ok((Self { mount: Arc::clone(&self.mount), inode }, stat))
    }

    /// The object with this name in this directory; `..` is the directory that holds this object.
    pub(crate) fn lookup(&self, name: &CStr) -> Result<Found, Errno> {
        let Mount { functions, mount, root, .. } = &*self.mount;
        self.finding(|inode, stat| {
            // SAFETY: the object is held, and the text ends with NUL.
            unsafe {
                (functions.ll_lookup)(*mount, self.inode, name.as_ptr(), inode, stat, WANTED, 0, root.perms)
            }
        })
    }

    /// What is known about the object.
    pub(crate) fn stat(&self) -> Result<CStat, Errno> {
        let Mount { functions, mount, root, .. } = &*self.mount;
        let mut stat = CStat::default();
        // SAFETY: the object is held.
        done(unsafe { (functions.ll_getattr)(*mount, self.inode, &raw mut stat, WANTED, 0, root.perms) })?;
        Ok(stat)
    }

    /// Changes what `mask` names.
    pub(crate) fn set_stat(&self, stat: &CStat, mask: c_int) -> Result<(), Errno> {
        let Mount { functions, mount, root, .. } = &*self.mount;
        let mut stat = *stat;
        // SAFETY: the object is held.
        done(unsafe { (functions.ll_setattr)(*mount, self.inode, &raw mut stat, mask, root.perms) }).map(drop)
    }

    /// Makes a file that belongs to a user and a group, and opens it.
    pub(crate) fn create(
        &self,
        name: &CStr,
        mode: u32,
        owner: (u32, u32),
    ) -> Result<(Found, OpenFile), Errno> {
        const NEW: c_int = libc::O_CREAT | libc::O_EXCL | libc::O_RDWR | libc::O_NOFOLLOW;
        let Mount { functions, mount, .. } = &*self.mount;
        let perms = Perms::of(&self.mount, owner.0, owner.1);
        let mut file: CFile = null_mut();
        let found = self.finding(|inode, stat| {
            // SAFETY: the object is held, and the text ends with NUL.
            unsafe {
                (functions.ll_create)(
                    *mount,
                    self.inode,
                    name.as_ptr(),
                    mode,
                    NEW,
                    inode,
                    &raw mut file,
                    stat,
                    WANTED,
                    0,
                    perms.perms,
                )
            }
        })?;
        Ok((found, OpenFile { mount: Arc::clone(&self.mount), file }))
    }

    /// Makes another object that belongs to a user and a group.
    pub(crate) fn make(
        &self,
        name: &CStr,
        make: &Make<'_>,
        mode: u32,
        owner: (u32, u32),
    ) -> Result<Found, Errno> {
        let Mount { functions, mount, .. } = &*self.mount;
        let perms = Perms::of(&self.mount, owner.0, owner.1);
        let (dir, name, p) = (self.inode, name.as_ptr(), perms.perms);
        self.finding(|inode, stat| match make {
            // SAFETY: the object is held, and the text ends with NUL.
            Make::Directory => unsafe {
                (functions.ll_mkdir)(*mount, dir, name, mode, inode, stat, WANTED, 0, p)
            },
            // SAFETY: the object is held, and the texts end with NUL.
            Make::Symlink(text) => unsafe {
                (functions.ll_symlink)(*mount, dir, name, text.as_ptr(), inode, stat, WANTED, 0, p)
            },
            // SAFETY: the object is held, and the text ends with NUL.
            Make::Special(kind, device) => unsafe {
                (functions.ll_mknod)(*mount, dir, name, kind | mode, *device, inode, stat, WANTED, 0, p)
            },
        })
    }

    /// Gives the object another name, in `dir`.
    pub(crate) fn link(&self, dir: &Self, name: &CStr) -> Result<(), Errno> {
        let Mount { functions, mount, root, .. } = &*self.mount;
        // SAFETY: both objects are held, and the text ends with NUL.
        done(unsafe { (functions.ll_link)(*mount, self.inode, dir.inode, name.as_ptr(), root.perms) })
            .map(drop)
    }

    /// Removes a name of this directory that is a directory's, or one that is not.
    pub(crate) fn remove(&self, name: &CStr, is_directory: bool) -> Result<(), Errno> {
        let Mount { functions, mount, root, .. } = &*self.mount;
        let remove = if is_directory { functions.ll_rmdir } else { functions.ll_unlink };
        // SAFETY: the object is held, and the text ends with NUL.
        done(unsafe { remove(*mount, self.inode, name.as_ptr(), root.perms) }).map(drop)
    }

    /// Moves a name of this directory to a name of another, whose object is replaced.
    pub(crate) fn rename(&self, name: &CStr, to: &Self, to_name: &CStr) -> Result<(), Errno> {
        let Mount { functions, mount, root, .. } = &*self.mount;
        let (name, to_name) = (name.as_ptr(), to_name.as_ptr());
        // SAFETY: both objects are held, and the texts end with NUL.
        done(unsafe { (functions.ll_rename)(*mount, self.inode, name, to.inode, to_name, root.perms) })
            .map(drop)
    }

    /// The text of a symbolic link.
    pub(crate) fn read_link(&self) -> Result<Vec<u8>, Errno> {
        let Mount { functions, mount, root, .. } = &*self.mount;
        let mut text = vec![0_u8; LINK_BYTES];
        let room = text.as_mut_ptr().cast();
        // SAFETY: the object is held, and no more is written than the length that is given.
        let length =
            done(unsafe { (functions.ll_readlink)(*mount, self.inode, room, text.len(), root.perms) })?;
        text.truncate(length);
        Ok(text)
    }

    /// Opens a file: for reading and writing, or only for reading.
    pub(crate) fn open(&self, writes: bool) -> Result<OpenFile, Errno> {
        let Mount { functions, mount, root, .. } = &*self.mount;
        let flags = if writes { libc::O_RDWR } else { libc::O_RDONLY };
        let mut file = null_mut();
        // SAFETY: the object is held.
        done(unsafe { (functions.ll_open)(*mount, self.inode, flags, &raw mut file, root.perms) })?;
        Ok(OpenFile { mount: Arc::clone(&self.mount), file })
    }

    /// Puts what was changed on stable storage.
    pub(crate) fn sync(&self) -> Result<(), Errno> {
        // SAFETY: the object is held.
        done(unsafe { (self.mount.functions.ll_sync_inode)(self.mount.mount, self.inode, 0) }).map(drop)
    }

    /// The value of an extended attribute.
    pub(crate) fn xattr(&self, name: &CStr) -> Result<Vec<u8>, Errno> {
        let Mount { functions, mount, root, .. } = &*self.mount;
        let mut value = vec![0_u8; XATTR_BYTES_USUAL];
        let read = |value: &mut Vec<u8>| {
            let (room, length) = (value.as_mut_ptr().cast(), value.len());
            // SAFETY: the object is held, the text ends with NUL, and no more is written than the length that is given.
            done(unsafe {
                (functions.ll_getxattr)(*mount, self.inode, name.as_ptr(), room, length, root.perms)
            })
        };
        let length = match read(&mut value) {
            Err(Errno::RANGE) => {
                value.resize(XATTR_BYTES_MAX, 0);
                read(&mut value)
            }
            other => other,
        }?;
        value.truncate(length);
        Ok(value)
    }

    /// Sets an extended attribute. `flags` are those of setxattr(2).
    pub(crate) fn set_xattr(&self, name: &CStr, value: &[u8], flags: c_int) -> Result<(), Errno> {
        let Mount { functions, mount, root, .. } = &*self.mount;
        let (bytes, length) = (value.as_ptr().cast(), value.len());
        // SAFETY: the object is held, the text ends with NUL, and the value has its length with it.
        done(unsafe {
            (functions.ll_setxattr)(*mount, self.inode, name.as_ptr(), bytes, length, flags, root.perms)
        })
        .map(drop)
    }

    /// The names of the extended attributes, each with a NUL behind it.
    pub(crate) fn xattrs(&self) -> Result<Vec<u8>, Errno> {
        let Mount { functions, mount, root, .. } = &*self.mount;
        let mut list = vec![0_u8; XATTR_BYTES_MAX];
        let mut length = 0;
        let room = list.as_mut_ptr().cast();
        // SAFETY: the object is held, and no more is written than the length that is given.
        done(unsafe {
            (functions.ll_listxattr)(*mount, self.inode, room, list.len(), &raw mut length, root.perms)
        })?;
        list.truncate(length);
        Ok(list)
    }

    /// Removes an extended attribute.
    pub(crate) fn remove_xattr(&self, name: &CStr) -> Result<(), Errno> {
        let Mount { functions, mount, root, .. } = &*self.mount;
        // SAFETY: the object is held, and the text ends with NUL.
        done(unsafe { (functions.ll_removexattr)(*mount, self.inode, name.as_ptr(), root.perms) }).map(drop)
    }
}
