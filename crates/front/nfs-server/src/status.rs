//! Maps the errors of a share to the statuses of NFSv3 (RFC 1813 2.6), of NFSv4 (RFC 8881 15.1) and of MOUNT.
#![deny(clippy::wildcard_enum_match_arm, clippy::match_wildcard_for_single_variants)]

use std::borrow::Cow;
use std::fmt::Debug;

use nfs_wire::xdr::Failure;
use nfs_wire::{mount, nlm, v3, v4};
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
        Error::OverQuota => Status::DQuot,
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
        // No call of a client takes a snapshot.
        E::NotSupported | E::SnapshotLimit(_) => Status::NotSupp,
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
        Error::OverQuota => S::DQuot,
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
        // No operation of a client takes a snapshot.
        E::NotSupported | E::SnapshotLimit(_) => S::NotSupp,
        E::WouldBlock | E::OutOfResources => S::Delay,
        E::NoAttribute => S::NoXattr,
        E::AttributeTooLarge => S::XattrTooBig,
        E::Io(_) => S::Io,
    }
}

/// The NLM status of an error. A client tries again after DENIED_GRACE_PERIOD, and gives up after FAILED.
pub(crate) fn nlm(error: Error) -> nlm::Status {
    use nlm::Status as S;
    match error {
        Error::Storage(storage::Error::Stale | storage::Error::BadHandle | storage::Error::NotFound) => {
            S::StaleFileHandle
        }
        Error::Storage(storage::Error::ReadOnly) | Error::ReadOnly(_) => S::RoFs,
        Error::Storage(storage::Error::WouldBlock | storage::Error::OutOfResources)
        | Error::Delayed
        | Error::Gone
        | Error::DeletePending
        | Error::Closed => S::DeniedGracePeriod,
        Error::SharingViolation | Error::LockNotGranted | Error::RangeLocked => S::Denied,
        Error::LimitReached(_) | Error::TooManyOpens | Error::PlanFull | Error::OverQuota => S::DeniedNoLocks,
        Error::InvalidRange => S::FBig,
        Error::Storage(_)
        | Error::AccessDenied
        | Error::NotOwner
        | Error::InvalidOwner
        | Error::InvalidGroup
        | Error::GuardFailed
        | Error::RangeNotLocked
        | Error::CannotDelete
        | Error::NotOpenedForThis => S::Failed,
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

/// The names of RFC 1813 2.6, RFC 8881 15.1 and RFC 7862 11.1 that have an underscore after that of the prefix.
const UNDERSCORED: [&str; 58] = [
    "ADMIN_REVOKED",
    "BACK_CHAN_BUSY",
    "BAD_COOKIE",
    "BAD_HIGH_SLOT",
    "BAD_RANGE",
    "BAD_SEQID",
    "BAD_SESSION_DIGEST",
    "BAD_STATEID",
    "CB_PATH_DOWN",
    "CLID_INUSE",
    "CLIENTID_BUSY",
    "COMPLETE_ALREADY",
    "CONN_NOT_BOUND_TO_SESSION",
    "DELEG_ALREADY_WANTED",
    "DELEG_REVOKED",
    "DIRDELEG_UNAVAIL",
    "ENCR_ALG_UNSUPP",
    "FILE_OPEN",
    "HASH_ALG_UNSUPP",
    "LEASE_MOVED",
    "LOCKS_HELD",
    "LOCK_NOTSUPP",
    "LOCK_RANGE",
    "MINOR_VERS_MISMATCH",
    "NOMATCHING_LAYOUT",
    "NOT_ONLY_OP",
    "NOT_SAME",
    "NOT_SYNC",
    "NO_GRACE",
    "OFFLOAD_DENIED",
    "OFFLOAD_NO_REQS",
    "OLD_STATEID",
    "OP_ILLEGAL",
    "OP_NOT_IN_SESSION",
    "PARTNER_NOTSUPP",
    "PARTNER_NO_AUTH",
    "PNFS_IO_HOLE",
    "PNFS_NO_LAYOUT",
    "RECLAIM_BAD",
    "RECLAIM_CONFLICT",
    "REJECT_DELEG",
    "REP_TOO_BIG",
    "REP_TOO_BIG_TO_CACHE",
    "REQ_TOO_BIG",
    "RETRY_UNCACHED_REP",
    "SEQUENCE_POS",
    "SEQ_FALSE_RETRY",
    "SEQ_MISORDERED",
    "SHARE_DENIED",
    "STALE_CLIENTID",
    "STALE_STATEID",
    "TOO_MANY_OPS",
    "UNION_NOTSUPP",
    "UNKNOWN_LAYOUTTYPE",
    "UNSAFE_COMPOUND",
    "WRONG_CRED",
    "WRONG_LFS",
    "WRONG_TYPE",
];

/// The name of a status: its variant in capitals, with the underscores of its RFC.
fn name(prefix: &str, status: Option<impl Debug>) -> Cow<'static, str> {
    let Some(status) = status else { return format!("{prefix}_OK").into() };
    let plain = format!("{status:?}").to_ascii_uppercase();
    let is_it = |name: &&&str| name.bytes().filter(|byte| *byte != b'_').eq(plain.bytes());
    let name = UNDERSCORED.iter().find(is_it).map_or(plain.as_str(), |name| *name);
    format!("{prefix}ERR_{name}").into()
}

/// The name of an NFSv3 status; None is success.
pub(crate) fn v3_name(status: Option<Status>) -> Cow<'static, str> {
    name("NFS3", status)
}

/// The name of an NFSv4 status; None is success.
pub(crate) fn v4_name(status: Option<v4::status::Status>) -> Cow<'static, str> {
    if status == Some(v4::status::Status::XattrTooBig) {
        return "NFS4ERR_XATTR2BIG".into(); // RFC 8276 8.3
    }
    name("NFS4", status)
}

/// The name of a status of NLM version 4 (nlm4_stats).
pub(crate) fn nlm_name(status: nlm::Status) -> Cow<'static, str> {
    use nlm::Status as S;
    let name = match status {
        S::Granted => "NLM4_GRANTED",
        S::Denied => "NLM4_DENIED",
        S::DeniedNoLocks => "NLM4_DENIED_NOLOCKS",
        S::Blocked => "NLM4_BLOCKED",
        S::DeniedGracePeriod => "NLM4_DENIED_GRACE_PERIOD",
        S::Deadlock => "NLM4_DEADLCK",
        S::RoFs => "NLM4_ROFS",
        S::StaleFileHandle => "NLM4_STALE_FH",
        S::FBig => "NLM4_FBIG",
        S::Failed => "NLM4_FAILED",
    };
    Cow::Borrowed(name)
}

/// The name of a MOUNT status (RFC 1813 5.1.5); None is success.
pub(crate) fn mount_name(status: Option<mount::Status>) -> Cow<'static, str> {
    status
        .map_or(Cow::Borrowed("MNT3_OK"), |status| format!("MNT3ERR_{status:?}").to_ascii_uppercase().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_the_names_of_their_rfcs() {
        use v4::status::Status as S;
        assert_eq!((v3_name(None), v4_name(None)), ("NFS3_OK".into(), "NFS4_OK".into()));
        assert_eq!(v3_name(Some(Status::NameTooLong)), "NFS3ERR_NAMETOOLONG");
        assert_eq!(v3_name(Some(Status::NotSync)), "NFS3ERR_NOT_SYNC");
        for (status, name) in [
            (S::Access, "NFS4ERR_ACCESS"),
            (S::MinorVersMismatch, "NFS4ERR_MINOR_VERS_MISMATCH"),
            (S::RepTooBigToCache, "NFS4ERR_REP_TOO_BIG_TO_CACHE"),
            (S::XattrTooBig, "NFS4ERR_XATTR2BIG"),
        ] {
            assert_eq!(v4_name(Some(status)), name);
        }
        assert_eq!(mount_name(Some(mount::Status::NotDir)), "MNT3ERR_NOTDIR");
    }
}
