//! The one error enum of every store.

/// Why a storage call failed. Deliberately closed: each server maps it to its own status codes in one exhaustive match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Error {
    /// No object of that name (ENOENT).
    #[error("no such file or directory")]
    NotFound,
    /// The name is taken (EEXIST).
    #[error("the name exists already")]
    Exists,
    /// The operation needs a directory (ENOTDIR).
    #[error("not a directory")]
    NotDirectory,
    /// The operation does not apply to a directory (EISDIR).
    #[error("is a directory")]
    IsDirectory,
    /// The operation does not apply to this kind of object, for example data calls on a symbolic link.
    #[error("wrong kind of object")]
    WrongKind,
    /// The directory still has entries (ENOTEMPTY).
    #[error("directory not empty")]
    NotEmpty,
    /// The store itself refuses access (EACCES): the server's own account lacks the permission.
    #[error("permission denied by the store")]
    PermissionDenied,
    /// The operation is not permitted to the server (EPERM), for example on an immutable file.
    #[error("operation not permitted by the store")]
    NotPermitted,
    /// The store is read-only, or the object is of a snapshot (EROFS).
    #[error("read-only store")]
    ReadOnly,
    /// No space left (ENOSPC).
    #[error("no space left")]
    NoSpace,
    /// The quota is exceeded (EDQUOT).
    #[error("quota exceeded")]
    QuotaExceeded,
    /// The file would exceed the largest size of the store (EFBIG).
    #[error("file too large")]
    TooLarge,
    /// The name is longer than [`crate::NAME_BYTES_MAX`] (ENAMETOOLONG).
    #[error("name too long")]
    NameTooLong,
    /// The name is empty, `.`, `..`, or holds `/` or NUL.
    #[error("invalid name")]
    InvalidName,
    /// An argument is out of range (EINVAL).
    #[error("invalid argument")]
    InvalidArgument,
    /// The object that the handle names no longer exists (ESTALE).
    #[error("stale handle")]
    Stale,
    /// The handle was not made by this store.
    #[error("malformed handle")]
    BadHandle,
    /// Two nodes belong to different stores or devices (EXDEV).
    #[error("crosses a device")]
    CrossDevice,
    /// Too many names for one object (EMLINK).
    #[error("too many links")]
    TooManyLinks,
    /// The file system keeps no more than so many snapshots of a directory.
    #[error("the file system keeps at most {0} snapshots of the directory")]
    SnapshotLimit(u32),
    /// A symbolic link is met where links are not followed (ELOOP).
    #[error("symbolic link not followed")]
    SymlinkLoop,
    /// The store does not have the feature.
    #[error("not supported by the store")]
    NotSupported,
    /// The call was made with [`crate::Wait::Never`] and would have to wait: try again with [`crate::Wait::May`].
    #[error("would block")]
    WouldBlock,
    /// The object is in use, which forbids the call (EBUSY, ETXTBSY).
    #[error("busy")]
    Busy,
    /// No such extended attribute (ENODATA).
    #[error("no such attribute")]
    NoAttribute,
    /// The extended attribute or the list is too large (E2BIG, ERANGE).
    #[error("attribute too large")]
    AttributeTooLarge,
    /// The server is out of descriptors or memory (EMFILE, ENFILE, ENOMEM).
    #[error("out of resources")]
    OutOfResources,
    /// The device failed (EIO and all other errors); the number is the errno.
    #[error("input/output error (errno {0})")]
    Io(i32),
}

/// The result of a storage call.
pub type Result<T> = std::result::Result<T, Error>;
