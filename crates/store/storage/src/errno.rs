//! The meaning of the kernel's error numbers.

use crate::Error;
use rustix::io::Errno;

/// The meaning of an error number, unless the call defines another one.
#[must_use]
pub fn from_errno(errno: Errno) -> Error {
    match errno {
        Errno::NOENT => Error::NotFound,
        Errno::EXIST => Error::Exists,
        Errno::NOTDIR => Error::NotDirectory,
        Errno::ISDIR => Error::IsDirectory,
        Errno::NOTEMPTY => Error::NotEmpty,
        Errno::ACCESS => Error::PermissionDenied,
        Errno::PERM => Error::NotPermitted,
        Errno::ROFS => Error::ReadOnly,
        Errno::NOSPC => Error::NoSpace,
        Errno::DQUOT => Error::QuotaExceeded,
        Errno::FBIG | Errno::OVERFLOW => Error::TooLarge,
        Errno::NAMETOOLONG => Error::NameTooLong,
        Errno::INVAL => Error::InvalidArgument,
        Errno::STALE => Error::Stale,
        Errno::XDEV => Error::CrossDevice,
        Errno::MLINK => Error::TooManyLinks,
        Errno::LOOP => Error::SymlinkLoop,
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY => Error::NotSupported,
        Errno::AGAIN => Error::WouldBlock,
        Errno::BUSY | Errno::TXTBSY => Error::Busy,
        Errno::NODATA => Error::NoAttribute,
        Errno::TOOBIG | Errno::RANGE => Error::AttributeTooLarge,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => Error::OutOfResources,
        other => Error::Io(other.raw_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_man_pages() {
        // errno(3), numbers of Linux on x86-64 and aarch64.
        let table = [
            (1, Error::NotPermitted),
            (2, Error::NotFound),
            (5, Error::Io(5)),
            (7, Error::AttributeTooLarge),
            (11, Error::WouldBlock),
            (12, Error::OutOfResources),
            (13, Error::PermissionDenied),
            (16, Error::Busy),
            (17, Error::Exists),
            (18, Error::CrossDevice),
            (20, Error::NotDirectory),
            (21, Error::IsDirectory),
            (22, Error::InvalidArgument),
            (24, Error::OutOfResources),
            (26, Error::Busy),
            (27, Error::TooLarge),
            (28, Error::NoSpace),
            (30, Error::ReadOnly),
            (31, Error::TooManyLinks),
            (34, Error::AttributeTooLarge),
            (36, Error::NameTooLong),
            (39, Error::NotEmpty),
            (40, Error::SymlinkLoop),
            (61, Error::NoAttribute),
            (95, Error::NotSupported),
            (116, Error::Stale),
            (122, Error::QuotaExceeded),
        ];
        for (number, error) in table {
            assert_eq!(from_errno(Errno::from_raw_os_error(number)), error, "errno {number}");
        }
    }
}
