//! Why a call on a share failed.

use crate::ReadOnly;

/// The share's own errors, and the store's. Exhaustive on purpose: each server maps the errors to its own status codes in
/// one exhaustive match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// An error of the store.
    #[error(transparent)]
    Storage(#[from] storage::Error),
    /// Nobody may change the object (EROFS).
    #[error("read-only: {0}")]
    ReadOnly(ReadOnly),
    /// The permissions of the object do not allow this to the user (EACCES).
    #[error("access denied")]
    AccessDenied,
    /// Only the owner, or the superuser, may do this (EPERM).
    #[error("not the owner")]
    NotOwner,
    /// The caller may not make this user the owner.
    #[error("not a possible owner")]
    InvalidOwner,
    /// The caller may not give the object to this group.
    #[error("not a possible group")]
    InvalidGroup,
    /// Another open of the file excludes this open or this I/O.
    #[error("sharing violation")]
    SharingViolation,
    /// The file is about to be deleted: it cannot be opened any more.
    #[error("delete pending")]
    DeletePending,
    /// The name was removed after the lookup, by the close of its last open. Nothing was done: look the name up again.
    #[error("removed since it was found")]
    Gone,
    /// A byte range that this I/O needs is locked by another open.
    #[error("a byte-range lock is in the way")]
    RangeLocked,
    /// The byte-range lock cannot be granted now.
    #[error("lock not granted")]
    LockNotGranted,
    /// There is no such byte-range lock to release.
    #[error("range not locked")]
    RangeNotLocked,
    /// A byte range that ends beyond 2^64.
    #[error("invalid byte range")]
    InvalidRange,
    /// The open has been closed.
    #[error("closed")]
    Closed,
    /// The open does not include this kind of access.
    #[error("not opened for this")]
    NotOpenedForThis,
    /// The object changed since the caller looked (see [`Guard`](crate::Guard)).
    #[error("changed meanwhile")]
    GuardFailed,
    /// The plan of the share allows no more opens, of this object or of all together.
    #[error("as many opens as the plan allows")]
    TooManyOpens,
    /// The share would hold more than its plan allows, whatever room its store has (ENOSPC).
    #[error("as many bytes as the plan allows")]
    PlanFull,
    /// The owner of the file, its group or its directory would hold more than a quota allows (EDQUOT).
    #[error("as many bytes as the quota allows")]
    OverQuota,
    /// A limit of this server is reached: opens, locks or watches.
    #[error("limit reached: {0}")]
    LimitReached(&'static str),
    /// A client has yet to give up what it caches, and takes longer than this caller waits
    /// ([`Settings::retry_after`](crate::Settings::retry_after)): nothing was done, retry later.
    #[error("a client has yet to give back what it caches")]
    Delayed,
    /// The file cannot be deleted: it is marked read-only.
    #[error("cannot delete a read-only file")]
    CannotDelete,
}

/// The result of a call on a share.
pub type Result<T> = std::result::Result<T, Error>;

impl From<file_state::ReserveError> for Error {
    fn from(refused: file_state::ReserveError) -> Self {
        match refused {
            file_state::ReserveError::Sharing { .. } => Self::SharingViolation,
            file_state::ReserveError::DeletePending => Self::DeletePending,
            file_state::ReserveError::TooMany => Self::LimitReached("opens of one file"),
        }
    }
}

impl From<file_state::IoConflict> for Error {
    fn from(conflict: file_state::IoConflict) -> Self {
        match conflict {
            file_state::IoConflict::Sharing { .. } => Self::SharingViolation,
            file_state::IoConflict::Locked(_) => Self::RangeLocked,
        }
    }
}

impl From<file_state::InvalidRange> for Error {
    fn from(file_state::InvalidRange: file_state::InvalidRange) -> Self {
        Self::InvalidRange
    }
}
