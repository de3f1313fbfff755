//! The meaning of the library's error numbers, which are those of the kernel.

use rustix::io::Errno;
use storage::Error;

/// The meaning of an error number, unless the call defines another one.
pub(crate) fn from_errno(errno: Errno) -> Error {
    Error::of_errno(errno.raw_os_error())
}
