//! The quotas of a share as its clients see them: those of users, in a file that only stands for them. [MS-FSCC] 2.4.41,
//! [MS-FSA] 2.1.5.21, 2.1.5.22.

use acl::Sid;
use share::{QuotaFor, QuotaStatus, QuotaSubject, Share};
use smb_wire::NtStatus;
use smb_wire::codec::Utf16;
use smb_wire::fscc::fs_info::Control;
use smb_wire::fscc::quota::NO_LIMIT;

use crate::context::OnShare;
use crate::status::Failure;

/// [MS-FSCC] 2.4.41, note 145: quotas are queried and set "only ... on handles opened to the NTFS metadata file" with this name. It is
/// no name of a file of the share.
const FILE: &str = r"$Extend\$Quota:$Q:$INDEX_ALLOCATION";

/// There are no quotas: no user is limited.
const NO_QUOTAS: Control = Control {
    free_space_start_filtering: 0,
    free_space_threshold: 0,
    free_space_stop_filtering: 0,
    default_quota_threshold: u64::MAX,
    default_quota_limit: u64::MAX,
    file_system_control_flags: 0,
};

/// FILE_VC_QUOTA_ENFORCE ([MS-FSCC] 2.5.2): "Quotas are tracked and enforced on the volume."
const ENFORCE: u32 = 0x0000_0002;
/// FILE_VC_LOG_QUOTA_THRESHOLD and FILE_VC_LOG_QUOTA_LIMIT: the log says that a user exceeds them.
const LOG: u32 = 0x0000_0030;
/// FILE_VC_QUOTAS_INCOMPLETE: not all files were counted yet.
const INCOMPLETE: u32 = 0x0000_0100;

/// Whether a client names the file of the quotas. Names are the same regardless of case.
pub(crate) fn is_named(name: &Utf16<'_>) -> bool {
    name.decode().is_ok_and(|name| name.eq_ignore_ascii_case(FILE))
}

/// Whether the caller may see and change the quotas of others: an administrator of the share or the server, or the superuser.
pub(crate) fn is_administrator(ctx: &OnShare<'_>) -> bool {
    let caller = ctx.caller();
    let authority = ctx.server.quota_authority();
    caller.identity.is_exempt() || authority.is_some_and(|authority| authority.is_administrator(caller))
}

/// The quotas as they stand. There are none in a share without quotas.
///
/// # Errors
/// Those of the store.
pub(crate) async fn status(share: &std::sync::Arc<Share>) -> Result<QuotaStatus, Failure> {
    let status = share.quota_status().await?;
    let none = QuotaStatus { counted: None, is_counting: false, rules: Vec::new(), standings: Vec::new() };
    Ok(status.or_else(|| share.quota_glance()).unwrap_or(none))
}

/// The SID under which clients see a user as an owner of files.
pub(crate) fn sid_of(share: &Share, uid: u32) -> Sid {
    let number = Sid::of_user(uid);
    share.people().domain_sid_of(&number).unwrap_or(number)
}

/// The user of a SID.
pub(crate) fn uid_of(ctx: &OnShare<'_>, sid: &Sid) -> Option<u32> {
    let who = &ctx.caller().identity;
    // A user's own SID is known by the logon, whatever else is.
    if who.sid() == Some(*sid) { Some(who.uid()) } else { ctx.share.people().uid_of(sid) }
}

/// A limit in the terms of quotas. The largest one limits nothing ([`bytes_of`]).
pub(crate) fn limit_of(bytes: Option<u64>) -> i64 {
    bytes.and_then(|bytes| i64::try_from(bytes).ok()).unwrap_or(NO_LIMIT)
}

/// The limit that a client means, if it means any.
///
/// [MS-FSCC] 2.4.41 has -1 for no limit, and 0 for a limit of no bytes. Samba's client has 0 for no limit, and shows it so; the tab of
/// Windows has nothing below 1 KiB. So a 0 keeps nobody from writing here.
///
/// # Errors
/// STATUS_INVALID_PARAMETER for other numbers below 0.
pub(crate) fn bytes_of(limit: i64) -> Result<Option<u64>, NtStatus> {
    match u64::try_from(limit) {
        Ok(bytes) => Ok((bytes > 0).then_some(bytes)),
        Err(_) if limit == NO_LIMIT => Ok(None),
        Err(_) => Err(NtStatus::INVALID_PARAMETER),
    }
}

/// What each user may hold.
pub(crate) fn control(share: &Share) -> Control {
    let rules = share.quota_rules();
    if rules.is_empty() {
        return NO_QUOTAS;
    }
    let of_each = rules.iter().find(|rule| rule.subject == QuotaFor::Known(QuotaSubject::EachUser));
    let limits = of_each.map(|rule| rule.limits);
    let incomplete = if share.quotas_counted().is_none() { INCOMPLETE } else { 0 };
    Control {
        default_quota_threshold: limits.and_then(|limits| limits.soft()).unwrap_or(u64::MAX),
        default_quota_limit: limits.and_then(|limits| limits.hard()).unwrap_or(u64::MAX),
        file_system_control_flags: ENFORCE | LOG | incomplete,
        ..NO_QUOTAS
    }
}
