//! The meaning of the kernel's error numbers.

use rustix::io::Errno;
use storage::Error;

/// The meaning of an error number, unless the call defines another one.
pub(crate) fn from_errno(errno: Errno) -> Error {
    Error::of_errno(errno.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_man_pages() {
        let table = [
            (Errno::PERM, Error::NotPermitted),
            (Errno::NOENT, Error::NotFound),
            (Errno::IO, Error::Io(5)),
            (Errno::TOOBIG, Error::AttributeTooLarge),
            (Errno::RANGE, Error::AttributeTooLarge),
            (Errno::AGAIN, Error::WouldBlock),
            (Errno::NOMEM, Error::OutOfResources),
            (Errno::NFILE, Error::OutOfResources),
            (Errno::MFILE, Error::OutOfResources),
            (Errno::ACCESS, Error::PermissionDenied),
            (Errno::BUSY, Error::Busy),
            (Errno::TXTBSY, Error::Busy),
            (Errno::EXIST, Error::Exists),
            (Errno::XDEV, Error::CrossDevice),
            (Errno::NOTDIR, Error::NotDirectory),
            (Errno::ISDIR, Error::IsDirectory),
            (Errno::INVAL, Error::InvalidArgument),
            (Errno::NOTTY, Error::NotSupported),
            (Errno::NOSYS, Error::NotSupported),
            (Errno::OPNOTSUPP, Error::NotSupported),
            (Errno::FBIG, Error::TooLarge),
            (Errno::OVERFLOW, Error::TooLarge),
            (Errno::NOSPC, Error::NoSpace),
            (Errno::ROFS, Error::ReadOnly),
            (Errno::MLINK, Error::TooManyLinks),
            (Errno::NAMETOOLONG, Error::NameTooLong),
            (Errno::NOTEMPTY, Error::NotEmpty),
            (Errno::LOOP, Error::SymlinkLoop),
            (Errno::NODATA, Error::NoAttribute),
            (Errno::STALE, Error::Stale),
            (Errno::DQUOT, Error::QuotaExceeded),
            (Errno::SHUTDOWN, Error::Io(108)),
        ];
        for (errno, error) in table {
            assert_eq!(from_errno(errno), error, "{errno:?}");
        }
    }
}
