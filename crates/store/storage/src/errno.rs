//! The meaning of the kernel's error numbers.

use crate::Error;

impl Error {
    /// The meaning of an error number of Linux on x86-64 and aarch64 (errno(3)), unless the call defines another one.
    #[must_use]
    pub const fn of_errno(number: i32) -> Self {
        match number {
            1 => Self::NotPermitted,              // EPERM
            2 => Self::NotFound,                  // ENOENT
            7 | 34 => Self::AttributeTooLarge,    // E2BIG, ERANGE
            11 => Self::WouldBlock,               // EAGAIN
            12 | 23 | 24 => Self::OutOfResources, // ENOMEM, ENFILE, EMFILE
            13 => Self::PermissionDenied,         // EACCES
            16 | 26 => Self::Busy,                // EBUSY, ETXTBSY
            17 => Self::Exists,                   // EEXIST
            18 => Self::CrossDevice,              // EXDEV
            20 => Self::NotDirectory,             // ENOTDIR
            21 => Self::IsDirectory,              // EISDIR
            22 => Self::InvalidArgument,          // EINVAL
            25 | 38 | 95 => Self::NotSupported,   // ENOTTY, ENOSYS, EOPNOTSUPP
            27 | 75 => Self::TooLarge,            // EFBIG, EOVERFLOW
            28 => Self::NoSpace,                  // ENOSPC
            30 => Self::ReadOnly,                 // EROFS
            31 => Self::TooManyLinks,             // EMLINK
            36 => Self::NameTooLong,              // ENAMETOOLONG
            39 => Self::NotEmpty,                 // ENOTEMPTY
            40 => Self::SymlinkLoop,              // ELOOP
            61 => Self::NoAttribute,              // ENODATA
            116 => Self::Stale,                   // ESTALE
            122 => Self::QuotaExceeded,           // EDQUOT
            other => Self::Io(other),
        }
    }
}
