//! The functions of libcephfs that are used, as its header `cephfs/libcephfs.h` declares them, in the library of this machine.
#![expect(unsafe_code, reason = "functions of a C library are declared and loaded here")]

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;

use libloading::Library;

use crate::mount::MountError;

/// The library since Ceph 12, with all functions of below since 16.
const NAME: &str = "libcephfs.so.2";

pub(crate) type CMount = *mut c_void;
pub(crate) type CInode = *mut c_void;
pub(crate) type CFile = *mut c_void;
pub(crate) type CListing = *mut c_void;
pub(crate) type CPerms = *mut c_void;

/// `CEPH_STATX_BASIC_STATS | CEPH_STATX_BTIME`
pub(crate) const WANTED: c_uint = 0x0fff;
/// `AT_NO_ATTR_SYNC`, which is `AT_STATX_DONT_SYNC` since Ceph 17: what the client knows will do.
pub(crate) const NOT_ASKED: c_uint = 0x4000;
/// `CEPH_SETATTR_MODE` and others: what [`CStat`] changes.
pub(crate) const SET_MODE: c_int = 1;
pub(crate) const SET_UID: c_int = 1 << 1;
pub(crate) const SET_GID: c_int = 1 << 2;
pub(crate) const SET_MTIME: c_int = 1 << 3;
pub(crate) const SET_ATIME: c_int = 1 << 4;
pub(crate) const SET_SIZE: c_int = 1 << 5;

/// `CEPH_RECLAIM_RESET`: the other session is ended, with its locks.
pub(crate) const END_SESSION: c_uint = 1;

/// `struct timespec` where both fields have 64 bits, as on all machines that this program is made for.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CTime {
    pub(crate) secs: i64,
    pub(crate) nanos: i64,
}

/// `struct ceph_statx`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CStat {
    pub(crate) mask: u32,
    pub(crate) block_bytes: u32,
    pub(crate) links: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) mode: u16,
    pub(crate) number: u64,
    pub(crate) size: u64,
    pub(crate) blocks: u64,
    /// The number of the snapshot that the object is of; [`NO_SNAPSHOT`] for the present state.
    pub(crate) device: u64,
    pub(crate) special: u64,
    pub(crate) atime: CTime,
    pub(crate) ctime: CTime,
    pub(crate) mtime: CTime,
    pub(crate) btime: CTime,
    pub(crate) version: u64,
}

/// `vinodeno_t`: a number and a snapshot.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct CNumber {
    pub(crate) number: u64,
    pub(crate) snapshot: u64,
}

/// `CEPH_NOSNAP`: the present state.
pub(crate) const NO_SNAPSHOT: u64 = u64::MAX - 1;

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The loaded functions, without the `ceph_` before their names.
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// The functions are gone when it is.
            _library: Library,
        }

        impl Functions {
            fn load() -> Result<Self, MountError> {
                // SAFETY: the library's initializers are those of Ceph, which any program may run that links it.
                let library = unsafe { Library::new(NAME) }.map_err(|e| MountError::Library(e.to_string()))?;
                Ok(Self {
                    $($name: {
                        // SAFETY: the types are those that the header declares.
                        let found = unsafe { library.get(concat!("ceph_", stringify!($name))) };
                        *found.map_err(|e| MountError::Library(e.to_string()))?
                    },)*
                    _library: library,
                })
            }
        }
    };
}

functions! {
    create: fn(*mut CMount, *const c_char) -> c_int;
    conf_read_file: fn(CMount, *const c_char) -> c_int;
    conf_set: fn(CMount, *const c_char, *const c_char) -> c_int;
    init: fn(CMount) -> c_int;
    select_filesystem: fn(CMount, *const c_char) -> c_int;
    start_reclaim: fn(CMount, *const c_char, c_uint) -> c_int;
    finish_reclaim: fn(CMount);
    set_uuid: fn(CMount, *const c_char);
    mount: fn(CMount, *const c_char) -> c_int;
    getaddrs: fn(CMount, *mut *mut c_char) -> c_int;
    unmount: fn(CMount) -> c_int;
    release: fn(CMount) -> c_int;
    userperm_new: fn(u32, u32, c_int, *mut u32) -> CPerms;
    userperm_destroy: fn(CPerms);
    statfs: fn(CMount, *const c_char, *mut libc::statvfs) -> c_int;
    ll_lookup_root: fn(CMount, *mut CInode) -> c_int;
    ll_lookup_vino: fn(CMount, CNumber, *mut CInode) -> c_int;
    ll_lookup: fn(CMount, CInode, *const c_char, *mut CInode, *mut CStat, c_uint, c_uint, CPerms) -> c_int;
    ll_put: fn(CMount, CInode) -> c_int;
    ll_getattr: fn(CMount, CInode, *mut CStat, c_uint, c_uint, CPerms) -> c_int;
    ll_setattr: fn(CMount, CInode, *mut CStat, c_int, CPerms) -> c_int;
    ll_create: fn(
        CMount, CInode, *const c_char, u32, c_int, *mut CInode, *mut CFile, *mut CStat, c_uint, c_uint, CPerms
    ) -> c_int;
    ll_mknod: fn(CMount, CInode, *const c_char, u32, u64, *mut CInode, *mut CStat, c_uint, c_uint, CPerms) -> c_int;
    ll_mkdir: fn(CMount, CInode, *const c_char, u32, *mut CInode, *mut CStat, c_uint, c_uint, CPerms) -> c_int;
    ll_symlink: fn(
        CMount, CInode, *const c_char, *const c_char, *mut CInode, *mut CStat, c_uint, c_uint, CPerms
    ) -> c_int;
    ll_link: fn(CMount, CInode, CInode, *const c_char, CPerms) -> c_int;
    ll_unlink: fn(CMount, CInode, *const c_char, CPerms) -> c_int;
    ll_rmdir: fn(CMount, CInode, *const c_char, CPerms) -> c_int;
    ll_rename: fn(CMount, CInode, *const c_char, CInode, *const c_char, CPerms) -> c_int;
    ll_readlink: fn(CMount, CInode, *mut c_char, usize, CPerms) -> c_int;
    ll_open: fn(CMount, CInode, c_int, *mut CFile, CPerms) -> c_int;
    ll_close: fn(CMount, CFile) -> c_int;
    ll_read: fn(CMount, CFile, i64, u64, *mut c_char) -> c_int;
    ll_write: fn(CMount, CFile, i64, u64, *const c_char) -> c_int;
    ll_fsync: fn(CMount, CFile, c_int) -> c_int;
    ll_sync_inode: fn(CMount, CInode, c_int) -> c_int;
    ll_fallocate: fn(CMount, CFile, c_int, i64, i64) -> c_int;
    ll_setlk: fn(CMount, CFile, *mut libc::flock, u64, c_int) -> c_int;
    ll_getxattr: fn(CMount, CInode, *const c_char, *mut c_void, usize, CPerms) -> c_int;
    ll_setxattr: fn(CMount, CInode, *const c_char, *const c_void, usize, c_int, CPerms) -> c_int;
    ll_listxattr: fn(CMount, CInode, *mut c_char, usize, *mut usize, CPerms) -> c_int;
    ll_removexattr: fn(CMount, CInode, *const c_char, CPerms) -> c_int;
    ll_opendir: fn(CMount, CInode, *mut CListing, CPerms) -> c_int;
    ll_releasedir: fn(CMount, CListing) -> c_int;
    seekdir: fn(CMount, CListing, i64);
    readdirplus_r: fn(
        CMount, CListing, *mut libc::dirent64, *mut CStat, c_uint, c_uint, *mut CInode
    ) -> c_int;
}

static LOADED: OnceLock<Functions> = OnceLock::new();

/// Ends the process, if the library is loaded, without the finalizers of libraries: those of Ceph's would end what its own threads, and
/// calls that wait for a cluster, still use.
pub fn end_process(status: u8) {
    if LOADED.get().is_some() {
        // SAFETY: the process ends at once, and nothing of it runs any more.
        unsafe { libc::_exit(i32::from(status)) }
    }
}

/// The functions. They are loaded once and stay: libcephfs is not made to be unloaded, as threads of its own may outlive a mount.
///
/// # Errors
/// The library is not there, or has not all functions.
pub(crate) fn functions() -> Result<&'static Functions, MountError> {
    match LOADED.get() {
        Some(functions) => Ok(functions),
        None => Functions::load().map(|functions| LOADED.get_or_init(|| functions)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structures_are_laid_out_as_in_the_header() {
        // For 64-bit Linux: five numbers of 32 bits, one of 16 and padding, five of 64, four times, one of 64.
        assert_eq!(size_of::<CStat>(), 5 * 4 + 4 + 5 * 8 + 4 * 16 + 8);
        assert_eq!(std::mem::offset_of!(CStat, number), 24);
        assert_eq!(std::mem::offset_of!(CStat, atime), 64);
        assert_eq!(std::mem::offset_of!(CStat, version), 128);
        assert_eq!(size_of::<CNumber>(), 16);
    }
}
