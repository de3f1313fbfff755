//! What an NTSTATUS means for whoever asked.

use smb_wire::NtStatus;

use crate::{Fault, FaultKind};

/// The fault behind a status that is no success; `what` is what was asked for.
pub(super) fn fault(what: &str, status: NtStatus) -> Fault {
    let kind = match status {
        NtStatus::LOGON_FAILURE
        | NtStatus::WRONG_PASSWORD
        | NtStatus::NO_SUCH_USER
        | NtStatus::ACCOUNT_RESTRICTION
        | NtStatus::ACCOUNT_DISABLED
        | NtStatus::ACCOUNT_LOCKED_OUT
        | NtStatus::PASSWORD_EXPIRED => FaultKind::WrongPassword,
        NtStatus::BAD_NETWORK_NAME | NtStatus::BAD_DEVICE_TYPE => FaultKind::NoSuchShare,
        NtStatus::ACCESS_DENIED | NtStatus::MEDIA_WRITE_PROTECTED => FaultKind::ReadOnly,
        NtStatus::DISK_FULL | NtStatus::QUOTA_EXCEEDED => FaultKind::NoSpace,
        NtStatus::USER_SESSION_DELETED | NtStatus::NETWORK_NAME_DELETED => FaultKind::Closed,
        NtStatus::END_OF_FILE => FaultKind::ShortTransfer,
        _ => FaultKind::Refused,
    };
    Fault::new(kind, format!("{what}: {status}"))
}
