//! Maps the errors of a share to the statuses of NFSv3 (RFC 1813 2.6), of NFSv4 (RFC 8881 15.1) and of MOUNT.
#![deny(clippy::wildcard_enum_match_arm, clippy::match_wildcard_for_single_variants)]

use nfs_wire::xdr::Failure;
use nfs_wire::{mount, v3, v4};
use share::{Error, Outcome};
use v3::status::Status;

/// The NFSv3 status of an error.
pub(crate) fn of(error: Error) -> Status {
    match error {
        Error::Storage(error) => of_storage(error),
        Error::ReadOnly(_) => Status::RoFs,
        Error::AccessDenied => Status::Acces,
        // chmod, chown and sticky directories: EPERM in POSIX.
        Error::NotOwner | Error::InvalidOwner | Error::InvalidGroup => Status::Perm,
        Error::GuardFailed => Status::NotSync,
        // A client of another protocol is in the way. That may pass: the client is to retry (RFC 1813 2.6,
        // NFS3ERR_JUKEBOX).
        Error::SharingViolation
        | Error::DeletePending
        | Error::RangeLocked
        | Error::LockNotGranted
        | Error::Delayed
        | Error::Gone
        | Error::LimitReached(_) => Status::JukeBox,
        Error::TooManyOpens => Status::DQuot,
        Error::PlanFull => Status::NoSpc,
        Error::InvalidRange | Error::RangeNotLocked => Status::Inval,
        Error::CannotDelete => Status::Acces,
        // NFSv3 has no opens, so these errors are a fault of this server.
        Error::Closed | Error::NotOpenedForThis => Status::ServerFault,
    }
}

fn of_storage(error: storage::Error) -> Status {
    use storage::Error as E;
    match error {
        E::NotFound => Status::NoEnt,
        E::Exists => Status::Exist,
        E::NotDirectory => Status::NotDir,
        E::IsDirectory => Status::IsDir,
        E::NotEmpty => Status::NotEmpty,
        E::WrongKind | E::InvalidArgument | E::InvalidName | E::SymlinkLoop => Status::Inval,
        // A text file that is busy (ETXTBSY), or a directory that is a mount point (EBUSY): a retry would not help.
        E::PermissionDenied | E::Busy => Status::Acces,
        E::NotPermitted => Status::Perm,
        E::ReadOnly => Status::RoFs,
        E::NoSpace => Status::NoSpc,
        E::QuotaExceeded => Status::DQuot,
        E::TooLarge => Status::FBig,
        E::NameTooLong => Status::NameTooLong,
        E::Stale => Status::Stale,
        E::BadHandle => Status::BadHandle,
        E::CrossDevice => Status::XDev,
        E::TooManyLinks => Status::MLink,
        E::NotSupported => Status::NotSupp,
        // The call can be answered later.
        E::WouldBlock | E::OutOfResources => Status::JukeBox,
        E::NoAttribute | E::AttributeTooLarge => Status::ServerFault,
        E::Io(_) => Status::Io,
    }
}

/// The NFSv4 status of an error.
pub(crate) fn v4(error: Error) -> v4::status::Status {
    use v4::status::Status as S;
    match error {
        Error::Storage(error) => v4_of_storage(error),
        Error::ReadOnly(_) => S::RoFs,
        Error::AccessDenied | Error::CannotDelete => S::Access,
        Error::NotOwner | Error::InvalidOwner | Error::InvalidGroup => S::Perm,
        Error::GuardFailed => S::NotSame,
        Error::SharingViolation => S::ShareDenied,
        Error::RangeLocked => S::Locked,
        Error::LockNotGranted => S::Denied,
        Error::RangeNotLocked | Error::InvalidRange => S::Inval,
        // The file is about to be deleted, a client of another protocol is slow, or a limit is reached: a retry may
        // succeed.
        Error::DeletePending | Error::Delayed | Error::Gone | Error::LimitReached(_) => S::Delay,
        // A client would retry again and again after NFS4ERR_DELAY. RFC 8881 15.2 allows this status for OPEN.
        Error::TooManyOpens => S::DQuot,
        Error::PlanFull => S::NoSpc,
        // The open was revoked: its stateid is no longer valid.
        Error::Closed => S::BadStateId,
        Error::NotOpenedForThis => S::OpenMode,
    }
}

fn v4_of_storage(error: storage::Error) -> v4::status::Status {
    use storage::Error as E;
    use v4::status::Status as S;
    match error {
        E::NotFound => S::NoEnt,
        E::Exists => S::Exist,
        E::NotDirectory => S::NotDir,
        E::IsDirectory => S::IsDir,
        E::NotEmpty => S::NotEmpty,
        E::WrongKind => S::WrongType,
        E::InvalidArgument => S::Inval,
        E::InvalidName => S::BadName,
        E::SymlinkLoop => S::SymLink,
        // A text file that is busy (ETXTBSY), or a directory that is a mount point (EBUSY): a retry would not help.
        E::PermissionDenied | E::Busy => S::Access,
        E::NotPermitted => S::Perm,
        E::ReadOnly => S::RoFs,
        E::NoSpace => S::NoSpc,
        E::QuotaExceeded => S::DQuot,
        E::TooLarge => S::FBig,
        E::NameTooLong => S::NameTooLong,
        E::Stale => S::Stale,
        E::BadHandle => S::BadHandle,
        E::CrossDevice => S::XDev,
        E::TooManyLinks => S::MLink,
        E::NotSupported => S::NotSupp,
        E::WouldBlock | E::OutOfResources => S::Delay,
        E::NoAttribute => S::NoXattr,
        E::AttributeTooLarge => S::XattrTooBig,
        E::Io(_) => S::Io,
    }
}

/// How a call that failed with this status is counted.
pub(crate) fn outcome(status: Status) -> Outcome {
    failed(matches!(status, Status::Io | Status::ServerFault))
}

/// How a call of NFSv4 that failed with this status is counted.
pub(crate) fn v4_outcome(status: v4::status::Status) -> Outcome {
    use v4::status::Status as S;
    failed(matches!(status, S::Io | S::ServerFault | S::Resource))
}

/// The outcome of a MOUNT call.
pub(crate) fn mount_outcome<T, B>(result: &Result<T, Failure<mount::Status, B>>) -> Outcome {
    let of = |failure: &Failure<mount::Status, B>| {
        failed(matches!(failure.status, mount::Status::Io | mount::Status::ServerFault))
    };
    result.as_ref().map_or_else(of, |_| Outcome::Done)
}

fn failed(by_the_server: bool) -> Outcome {
    if by_the_server { Outcome::Failed } else { Outcome::Refused }
}

/// The MOUNT status that corresponds to an NFSv3 status, as far as there is one (RFC 1813 5.1.5).
pub(crate) fn of_mount(status: Status) -> mount::Status {
    match status {
        Status::Perm => mount::Status::Perm,
        Status::NoEnt | Status::Stale | Status::BadHandle => mount::Status::NoEnt,
        Status::Io | Status::NxIo | Status::NoDev => mount::Status::Io,
        Status::Acces | Status::RoFs => mount::Status::Acces,
        Status::NotDir => mount::Status::NotDir,
        Status::Inval | Status::IsDir | Status::BadType => mount::Status::Inval,
        Status::NameTooLong => mount::Status::NameTooLong,
        Status::NotSupp => mount::Status::NotSupp,
        Status::Exist
        | Status::XDev
        | Status::FBig
        | Status::NoSpc
        | Status::MLink
        | Status::NotEmpty
        | Status::DQuot
        | Status::Remote
        | Status::NotSync
        | Status::BadCookie
        | Status::TooSmall
        | Status::ServerFault
        | Status::JukeBox => mount::Status::ServerFault,
    }
}
