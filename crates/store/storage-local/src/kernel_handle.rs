//! Handles of the kernel: name_to_handle_at(2) and open_by_handle_at(2).
#![expect(unsafe_code, reason = "the calls of this file have no safe wrapper in rustix")]

use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use crate::sys::last_errno;

/// The longest handle that the kernel returns (MAX_HANDLE_SZ).
const HANDLE_SZ_MAX: libc::c_uint = 128;
const ROOM: usize = 128;

/// `struct file_handle` with room for the longest handle (open_by_handle_at(2)).
#[repr(C)]
struct RawHandle {
    handle_bytes: libc::c_uint,
    handle_type: libc::c_int,
    f_handle: [u8; ROOM],
}

/// A handle as returned by the file system.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KernelHandle {
    /// The handle's type.
    pub kind: i32,
    /// The handle's bytes.
    pub bytes: Vec<u8>,
}

/// name_to_handle_at(2) of an open object.
///
/// # Errors
/// Its file system has no handles (EOPNOTSUPP), or it failed.
pub fn name_to_handle(fd: BorrowedFd<'_>) -> Result<KernelHandle, Errno> {
    let mut raw = RawHandle { handle_bytes: HANDLE_SZ_MAX, handle_type: 0, f_handle: [0; ROOM] };
    let mut mount_id: libc::c_int = 0;
    // SAFETY: `raw` begins like `struct file_handle` and has `handle_bytes` bytes after it, which is the most that the
    // call fills; the path is a C string; `mount_id` is valid for the duration of the call.
    let result = unsafe {
        libc::name_to_handle_at(
            fd.as_raw_fd(),
            c"".as_ptr(),
            (&raw mut raw).cast(),
            &raw mut mount_id,
            libc::AT_EMPTY_PATH,
        )
    };
    if result != 0 {
        return Err(last_errno());
    }
    let length = usize::try_from(raw.handle_bytes).map_err(|_| Errno::OVERFLOW)?;
    let bytes = raw.f_handle.get(..length).ok_or(Errno::OVERFLOW)?.to_vec();
    Ok(KernelHandle { kind: raw.handle_type, bytes })
}

/// open_by_handle_at(2) with O_PATH, on the file system that holds `mount`, which is not opened with O_PATH itself.
///
/// # Errors
/// ESTALE: there is no such object any more. EPERM: this process may not (CAP_DAC_READ_SEARCH).
pub fn open_by_handle(mount: BorrowedFd<'_>, handle: &KernelHandle) -> Result<OwnedFd, Errno> {
    let mut raw = RawHandle { handle_bytes: 0, handle_type: handle.kind, f_handle: [0; ROOM] };
    raw.f_handle.get_mut(..handle.bytes.len()).ok_or(Errno::STALE)?.copy_from_slice(&handle.bytes);
    raw.handle_bytes = libc::c_uint::try_from(handle.bytes.len()).map_err(|_| Errno::STALE)?;
    let flags = libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    // SAFETY: `raw` begins like `struct file_handle` and has `handle_bytes` initialised bytes after it.
    let fd = unsafe { libc::open_by_handle_at(mount.as_raw_fd(), (&raw mut raw).cast(), flags) };
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: the call has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}
