//! Why a request fails. This is the only file in which errors become NTSTATUS values.
#![deny(clippy::wildcard_enum_match_arm, clippy::match_wildcard_for_single_variants)]

use smb_wire::error_response::{ERROR_ID_DEFAULT, ERROR_ID_SHARE_REDIRECT};
use smb_wire::{NtStatus, WireError};

/// A request that fails: the status and the data of the error response ([MS-SMB2] 2.2.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The status.
    pub(crate) status: NtStatus,
    /// ErrorData; empty for most statuses.
    pub(crate) data: Vec<u8>,
    /// Which kind of data it is: the ErrorId of its error context (SMB 3.1.1).
    pub(crate) error_id: u32,
    /// Whether the server or its storage failed. INSUFFICIENT_RESOURCES is also the status for a client that has as
    /// much as one client may have.
    is_fault: bool,
}

impl Failure {
    /// A status with data.
    pub(crate) fn with_data(status: NtStatus, data: &[u8]) -> Self {
        Self { data: data.to_vec(), ..status.into() }
    }

    /// STATUS_BAD_NETWORK_NAME with the share redirect that a client gets ([MS-SMB2] 2.2.2.2.2).
    pub(crate) fn redirect(share_redirect: Vec<u8>) -> Self {
        Self { data: share_redirect, error_id: ERROR_ID_SHARE_REDIRECT, ..NtStatus::BAD_NETWORK_NAME.into() }
    }

    /// How a request with this failure is counted.
    pub(crate) fn outcome(&self) -> share::Outcome {
        if self.is_fault { share::Outcome::Failed } else { outcome(self.status) }
    }
}

impl From<NtStatus> for Failure {
    fn from(status: NtStatus) -> Self {
        Self { status, data: Vec::new(), error_id: ERROR_ID_DEFAULT, is_fault: false }
    }
}

/// [MS-SMB2] 3.3.5.2.6: "If the server receives a request that does not conform to the structures outlined in
/// section 2, the server MUST fail the request ... with the error code STATUS_INVALID_PARAMETER."
impl From<WireError> for Failure {
    fn from(_: WireError) -> Self {
        NtStatus::INVALID_PARAMETER.into()
    }
}

impl From<share::Error> for Failure {
    fn from(error: share::Error) -> Self {
        if let share::Error::Storage(error) = error { error.into() } else { status_of(error).into() }
    }
}

impl From<storage::Error> for Failure {
    fn from(error: storage::Error) -> Self {
        let is_fault = matches!(error, storage::Error::OutOfResources | storage::Error::WouldBlock);
        Self { is_fault, ..status_of_storage(error).into() }
    }
}

/// How a request with this status is counted, if nothing more is known about it.
pub(crate) fn outcome(status: NtStatus) -> share::Outcome {
    match status {
        NtStatus::INSUFF_SERVER_RESOURCES
        | NtStatus::INTERNAL_ERROR
        | NtStatus::IO_DEVICE_ERROR
        | NtStatus::UNEXPECTED_IO_ERROR => share::Outcome::Failed,
        NtStatus::STOPPED_ON_SYMLINK => share::Outcome::Refused, // nothing was opened
        status if status.is_error() => share::Outcome::Refused,
        _ => share::Outcome::Done,
    }
}

/// The NTSTATUS for a change of quotas that was refused.
pub(crate) fn status_of_quota_change(error: share::QuotaChangeError) -> NtStatus {
    use share::QuotaChangeError as Error;
    match error {
        Error::NotHere => NtStatus::NOT_SUPPORTED,
        Error::NotThere => NtStatus::NO_MATCH,
        Error::Limits => NtStatus::INVALID_PARAMETER,
        Error::TooMany | Error::Busy => NtStatus::INSUFFICIENT_RESOURCES,
        Error::Failed => NtStatus::INTERNAL_ERROR,
    }
}

/// The NTSTATUS for an error of a share.
pub(crate) fn status_of(error: share::Error) -> NtStatus {
    use share::Error;
    match error {
        Error::Storage(error) => status_of_storage(error),
        Error::ReadOnly(_) => NtStatus::MEDIA_WRITE_PROTECTED,
        Error::AccessDenied | Error::NotOwner | Error::NotOpenedForThis => NtStatus::ACCESS_DENIED,
        Error::InvalidOwner => NtStatus::INVALID_OWNER,
        Error::InvalidGroup => NtStatus::INVALID_PRIMARY_GROUP,
        Error::SharingViolation => NtStatus::SHARING_VIOLATION,
        Error::DeletePending => NtStatus::DELETE_PENDING,
        Error::Gone => NtStatus::FILE_DELETED,
        Error::RangeLocked => NtStatus::FILE_LOCK_CONFLICT,
        Error::LockNotGranted => NtStatus::LOCK_NOT_GRANTED,
        Error::RangeNotLocked => NtStatus::RANGE_NOT_LOCKED,
        Error::InvalidRange => NtStatus::INVALID_LOCK_RANGE,
        Error::Closed => NtStatus::FILE_CLOSED,
        Error::GuardFailed => NtStatus::UNSUCCESSFUL,
        Error::LimitReached(_) => NtStatus::INSUFFICIENT_RESOURCES,
        // Azure Files: programs see "Error 1816" (ERROR_NOT_ENOUGH_QUOTA), which is this status.
        Error::TooManyOpens => NtStatus::QUOTA_EXCEEDED,
        Error::PlanFull | Error::OverQuota => NtStatus::DISK_FULL,
        // SMB requests wait.
        Error::Delayed => NtStatus::SHARING_VIOLATION,
        Error::CannotDelete => NtStatus::CANNOT_DELETE,
    }
}

/// The NTSTATUS for an error of a store.
pub(crate) fn status_of_storage(error: storage::Error) -> NtStatus {
    use storage::Error;
    match error {
        Error::NotFound | Error::Stale => NtStatus::OBJECT_NAME_NOT_FOUND,
        Error::Exists => NtStatus::OBJECT_NAME_COLLISION,
        Error::NotDirectory => NtStatus::NOT_A_DIRECTORY,
        Error::IsDirectory => NtStatus::FILE_IS_A_DIRECTORY,
        Error::WrongKind => NtStatus::INVALID_DEVICE_REQUEST,
        Error::NotEmpty => NtStatus::DIRECTORY_NOT_EMPTY,
        Error::PermissionDenied | Error::NotPermitted => NtStatus::ACCESS_DENIED,
        Error::ReadOnly => NtStatus::MEDIA_WRITE_PROTECTED,
        Error::NoSpace => NtStatus::DISK_FULL,
        Error::QuotaExceeded => NtStatus::QUOTA_EXCEEDED,
        Error::TooLarge => NtStatus::FILE_SYSTEM_LIMITATION,
        // [MS-FSCC] 2.1.5: a component has at most 255 characters.
        Error::NameTooLong | Error::InvalidName => NtStatus::OBJECT_NAME_INVALID,
        Error::InvalidArgument | Error::BadHandle => NtStatus::INVALID_PARAMETER,
        Error::CrossDevice => NtStatus::NOT_SAME_DEVICE,
        Error::TooManyLinks => NtStatus::TOO_MANY_LINKS,
        Error::SymlinkLoop => NtStatus::ACCESS_DENIED,
        // No request of a client takes a snapshot.
        Error::NotSupported | Error::SnapshotLimit(_) => NtStatus::NOT_SUPPORTED,
        Error::WouldBlock | Error::OutOfResources => NtStatus::INSUFFICIENT_RESOURCES,
        Error::Busy => NtStatus::SHARING_VIOLATION,
        Error::NoAttribute => NtStatus::NONEXISTENT_EA_ENTRY,
        Error::AttributeTooLarge => NtStatus::EA_TOO_LARGE,
        Error::Io(_) => NtStatus::UNEXPECTED_IO_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// INSUFFICIENT_RESOURCES is also the status for a client that has as much as one client may have.
    #[test]
    fn only_what_the_server_lacks_counts_as_its_fault() {
        use share::{Error, Outcome};
        let short = NtStatus::INSUFFICIENT_RESOURCES;
        for (failure, outcome) in [
            (Failure::from(short), Outcome::Refused),
            (Error::LimitReached("opens").into(), Outcome::Refused),
            (storage::Error::OutOfResources.into(), Outcome::Failed),
            (Error::Storage(storage::Error::OutOfResources).into(), Outcome::Failed),
        ] {
            assert_eq!((failure.status, failure.outcome()), (short, outcome), "{failure:?}");
        }
        assert_eq!(Failure::from(NtStatus::UNEXPECTED_IO_ERROR).outcome(), Outcome::Failed);
        assert_eq!(Failure::from(NtStatus::ACCESS_DENIED).outcome(), Outcome::Refused);
        assert_eq!(outcome(NtStatus::SUCCESS), Outcome::Done);
        assert_eq!(outcome(NtStatus::BUFFER_OVERFLOW), Outcome::Done);
        assert_eq!(outcome(NtStatus::STOPPED_ON_SYMLINK), Outcome::Refused);
    }
}
