//! System calls that rustix lacks. The ioctls of Btrfs are in [`crate::btrfs`].
#![expect(unsafe_code, reason = "the calls of this file have no safe wrapper in rustix")]

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

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
pub(crate) struct KernelHandle {
    /// The handle's type.
    pub(crate) kind: i32,
    /// The handle's bytes.
    pub(crate) bytes: Vec<u8>,
}

fn last_errno() -> Errno {
    let number = std::io::Error::last_os_error().raw_os_error();
    Errno::from_raw_os_error(number.unwrap_or(libc::EIO))
}

/// name_to_handle_at(2) of an open object.
pub(crate) fn name_to_handle(fd: BorrowedFd<'_>) -> Result<KernelHandle, Errno> {
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

/// open_by_handle_at(2) with O_PATH, on the file system that holds `mount`.
pub(crate) fn open_by_handle(mount: BorrowedFd<'_>, handle: &KernelHandle) -> Result<OwnedFd, Errno> {
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

/// A fanotify group whose events name the directory by its handle, and the entry (fanotify_init(2)). Such a group needs
/// no privileges.
pub(crate) fn fanotify_group() -> Result<OwnedFd, Errno> {
    let flags = libc::FAN_CLASS_NOTIF | libc::FAN_CLOEXEC | libc::FAN_NONBLOCK | libc::FAN_REPORT_DFID_NAME;
    // SAFETY: the call takes no pointers.
    let fd = unsafe { libc::fanotify_init(flags, libc::O_RDONLY as libc::c_uint) };
    if fd < 0 {
        return Err(last_errno());
    }
    // SAFETY: the call has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether a mark is added or removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Add,
    Remove,
}

/// Marks the directory of a path (fanotify_mark(2)).
pub(crate) fn fanotify_mark(group: BorrowedFd<'_>, mark: Mark, mask: u64, path: &CStr) -> Result<(), Errno> {
    let flags = match mark {
        Mark::Add => libc::FAN_MARK_ADD | libc::FAN_MARK_ONLYDIR,
        Mark::Remove => libc::FAN_MARK_REMOVE | libc::FAN_MARK_ONLYDIR,
    };
    // SAFETY: the path is a C string that lives as long as the call.
    let result =
        unsafe { libc::fanotify_mark(group.as_raw_fd(), flags, mask, libc::AT_FDCWD, path.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(last_errno()) }
}

/// `struct file_clone_range` (ioctl_ficlonerange(2)).
#[repr(C)]
struct CloneRange {
    src_fd: i64,
    src_offset: u64,
    src_length: u64,
    dest_offset: u64,
}

/// FICLONERANGE: `_IOW(0x94, 13, struct file_clone_range)`.
const FICLONERANGE: rustix::ioctl::Opcode = rustix::ioctl::opcode::write::<CloneRange>(0x94, 13);

/// Shares blocks between files: the FICLONERANGE ioctl (ioctl_ficlonerange(2)).
pub(crate) fn clone_range(
    from: BorrowedFd<'_>,
    offset: u64,
    to: BorrowedFd<'_>,
    to_offset: u64,
    length: u64,
) -> Result<(), Errno> {
    let range = CloneRange {
        src_fd: i64::from(from.as_raw_fd()),
        src_offset: offset,
        src_length: length,
        dest_offset: to_offset,
    };
    // SAFETY: the opcode is the one whose argument is a `struct file_clone_range`, which it only reads.
    unsafe { rustix::ioctl::ioctl(to, rustix::ioctl::Setter::<FICLONERANGE, CloneRange>::new(range)) }
}
