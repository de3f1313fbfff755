//! The functions of librados that are used, as its header `rados/librados.h` declares them, in the library of this machine.
#![expect(unsafe_code, reason = "functions of a C library are declared and loaded here")]

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::sync::OnceLock;

use libloading::Library;
use state::Error;

/// The library since Ceph 0.80, with all functions of below since 16.
const NAME: &str = "librados.so.2";

pub(crate) type Rados = *mut c_void;
pub(crate) type IoContext = *mut c_void;
pub(crate) type Operation = *mut c_void;
pub(crate) type OmapIterator = *mut c_void;
pub(crate) type Heard = unsafe extern "C" fn(*mut c_void, u64, u64, u64, *mut c_void, usize);
pub(crate) type Broken = unsafe extern "C" fn(*mut c_void, u64, c_int);

/// `LIBRADOS_CREATE_EXCLUSIVE`, `LIBRADOS_CREATE_IDEMPOTENT`
pub(crate) const CREATE_EXCLUSIVE: c_int = 1;
pub(crate) const CREATE_IDEMPOTENT: c_int = 0;
/// `LIBRADOS_CMPXATTR_OP_EQ`
pub(crate) const EQUAL: u8 = 1;
/// `LIBRADOS_LOCK_FLAG_MAY_RENEW`
pub(crate) const MAY_RENEW: u8 = 1;
/// `LIBRADOS_LOCK_FLAG_MUST_RENEW`
pub(crate) const MUST_RENEW: u8 = 2;

/// `struct timeval` where `time_t` and `suseconds_t` have 64 bits, as on all machines that this program is made for.
#[repr(C)]
pub(crate) struct TimeValue {
    pub(crate) seconds: i64,
    pub(crate) microseconds: i64,
}

macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The loaded functions, without the `rados_` before their names.
        pub(crate) struct Functions {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
            /// The functions are gone when it is.
            _library: Library,
        }

        impl Functions {
            fn load() -> Result<Self, Error> {
                // SAFETY: the library's initializers are those of Ceph, which any program may run that links it.
                let library = unsafe { Library::new(NAME) }.map_err(|e| missing(&e))?;
                Ok(Self {
                    // SAFETY: the types are those that the header declares.
                    $($name: *unsafe { library.get(concat!("rados_", stringify!($name))) }.map_err(|e| missing(&e))?,)*
                    _library: library,
                })
            }
        }
    };
}

functions! {
    create2: fn(*mut Rados, *const c_char, *const c_char, u64) -> c_int;
    conf_read_file: fn(Rados, *const c_char) -> c_int;
    conf_set: fn(Rados, *const c_char, *const c_char) -> c_int;
    connect: fn(Rados) -> c_int;
    shutdown: fn(Rados);
    wait_for_latest_osdmap: fn(Rados) -> c_int;
    mon_command: fn(
        Rados, *const *const c_char, usize, *const c_char, usize, *mut *mut c_char, *mut usize, *mut *mut c_char, *mut usize
    ) -> c_int;
    blocklist_add: fn(Rados, *mut c_char, u32) -> c_int;
    ioctx_create: fn(Rados, *const c_char, *mut IoContext) -> c_int;
    ioctx_destroy: fn(IoContext);
    ioctx_set_namespace: fn(IoContext, *const c_char);
    getxattr: fn(IoContext, *const c_char, *const c_char, *mut c_char, usize) -> c_int;
    create_write_op: fn() -> Operation;
    release_write_op: fn(Operation);
    write_op_create: fn(Operation, c_int, *const c_char);
    write_op_cmpxattr: fn(Operation, *const c_char, u8, *const c_char, usize);
    write_op_setxattr: fn(Operation, *const c_char, *const c_char, usize);
    write_op_omap_cmp2: fn(Operation, *const c_char, u8, *const c_char, usize, usize, *mut c_int);
    write_op_omap_set2: fn(Operation, *const *const c_char, *const *const c_char, *const usize, *const usize, usize);
    write_op_omap_rm_keys2: fn(Operation, *const *const c_char, *const usize, usize);
    write_op_omap_rm_range2: fn(Operation, *const c_char, usize, *const c_char, usize);
    write_op_operate2: fn(Operation, IoContext, *const c_char, *mut c_void, c_int) -> c_int;
    create_read_op: fn() -> Operation;
    release_read_op: fn(Operation);
    read_op_cmpxattr: fn(Operation, *const c_char, u8, *const c_char, usize);
    read_op_omap_get_vals2: fn(Operation, *const c_char, *const c_char, u64, *mut OmapIterator, *mut c_uchar, *mut c_int);
    read_op_omap_get_vals_by_keys2: fn(Operation, *const *const c_char, usize, *const usize, *mut OmapIterator, *mut c_int);
    read_op_operate: fn(Operation, IoContext, *const c_char, c_int) -> c_int;
    omap_get_next2: fn(OmapIterator, *mut *mut c_char, *mut *mut c_char, *mut usize, *mut usize) -> c_int;
    omap_get_end: fn(OmapIterator);
    lock_exclusive: fn(IoContext, *const c_char, *const c_char, *const c_char, *const c_char, *mut TimeValue, u8) -> c_int;
    unlock: fn(IoContext, *const c_char, *const c_char, *const c_char) -> c_int;
    list_lockers: fn(
        IoContext, *const c_char, *const c_char, *mut c_int, *mut c_char, *mut usize, *mut c_char, *mut usize, *mut c_char, *mut usize,
        *mut c_char, *mut usize
    ) -> isize;
    watch3: fn(IoContext, *const c_char, *mut u64, Heard, Broken, u32, *mut c_void) -> c_int;
    unwatch2: fn(IoContext, u64) -> c_int;
    watch_flush: fn(Rados) -> c_int;
    notify2: fn(IoContext, *const c_char, *const c_char, c_int, u64, *mut *mut c_char, *mut usize) -> c_int;
    notify_ack: fn(IoContext, *const c_char, u64, u64, *const c_char, c_int) -> c_int;
    buffer_free: fn(*mut c_char);
}

/// The functions. They are loaded once and stay: librados is not made to be unloaded, as threads of its own may outlive a connection.
///
/// # Errors
/// The library is not there, or has not all functions.
pub(crate) fn functions() -> Result<&'static Functions, Error> {
    static LOADED: OnceLock<Functions> = OnceLock::new();
    match LOADED.get() {
        Some(functions) => Ok(functions),
        None => Functions::load().map(|functions| LOADED.get_or_init(|| functions)),
    }
}

fn missing(error: &libloading::Error) -> Error {
    Error::new(
        format!("Ceph's client library cannot be used: {error}"),
        "Install it, version 16 or later (Debian and Ubuntu: librados2; Fedora and RHEL: librados)",
    )
}
