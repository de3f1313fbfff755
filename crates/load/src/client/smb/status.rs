//! What an NTSTATUS means for a run.

use smb_wire::NtStatus;

use crate::fault::Fault;
use crate::result::ProblemKind;

/// The fault behind a status that is no success; `what` is what was asked for.
pub(super) fn fault(what: &str, status: NtStatus) -> Fault {
    let kind = match status {
        NtStatus::LOGON_FAILURE
        | NtStatus::WRONG_PASSWORD
        | NtStatus::NO_SUCH_USER
        | NtStatus::ACCOUNT_RESTRICTION
        | NtStatus::ACCOUNT_DISABLED
        | NtStatus::ACCOUNT_LOCKED_OUT
        | NtStatus::PASSWORD_EXPIRED => ProblemKind::WrongPassword,
        NtStatus::BAD_NETWORK_NAME | NtStatus::BAD_DEVICE_TYPE => ProblemKind::NoSuchShare,
        NtStatus::ACCESS_DENIED | NtStatus::MEDIA_WRITE_PROTECTED => ProblemKind::ReadOnly,
        NtStatus::DISK_FULL | NtStatus::QUOTA_EXCEEDED => ProblemKind::NoSpace,
        NtStatus::USER_SESSION_DELETED | NtStatus::NETWORK_NAME_DELETED => ProblemKind::Closed,
        NtStatus::END_OF_FILE => ProblemKind::ShortTransfer,
        _ => ProblemKind::Refused,
    };
    Fault::new(kind, format!("{what}: {status}"))
}
