//! System calls that rustix lacks. The ioctls of Btrfs are in [`crate::btrfs`].
#![expect(unsafe_code, reason = "the calls of this file have no safe wrapper in rustix")]

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

/// Why the last call of this thread failed.
pub(crate) fn last_errno() -> Errno {
    let number = std::io::Error::last_os_error().raw_os_error();
    Errno::from_raw_os_error(number.unwrap_or(libc::EIO))
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
