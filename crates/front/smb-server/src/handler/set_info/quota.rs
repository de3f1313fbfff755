//! Changes of quotas. [MS-SMB2] 3.3.5.21.4, 3.3.5.21.2; [MS-FSA] 2.1.5.22, 2.1.5.16.6.

use acl::Sid;
use share::{NewLimits, QUOTAS_MAX, QuotaChange, QuotaChangeError};
use smb_wire::fscc::fs_info::Control;
use smb_wire::fscc::quota::{DELETE, NO_LIMIT, Quota};
use smb_wire::{AccessMask, NtStatus};

use super::{length_mismatch, require};
use crate::context::OnShare;
use crate::quotas::{bytes_of, is_administrator, uid_of};
use crate::state::open::Open;
use crate::status::{Failure, status_of_quota_change};

/// Sets quotas of users: all that are listed, or none. They are [`QUOTAS_MAX`] at most, as many as a share has.
pub(super) async fn set(ctx: &OnShare<'_>, open: &Open, buffer: &[u8]) -> Result<(), Failure> {
    let _ = open.quotas()?;
    if !is_administrator(ctx) {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    let changes = Quota::list(buffer).map(|quota| change_of(ctx, &quota?));
    let changes = changes.take(QUOTAS_MAX + 1).collect::<Result<Vec<_>, Failure>>()?;
    if changes.len() > QUOTAS_MAX {
        return Err(status_of_quota_change(QuotaChangeError::TooMany).into());
    }
    // 2.1.5.22: "If InputBufferSize is zero, the operation MUST be failed with STATUS_INVALID_PARAMETER."
    if changes.is_empty() {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    change(ctx, changes.into_iter().flatten().collect()).await
}

/// What a client wants of a quota; None for nothing.
fn change_of(ctx: &OnShare<'_>, quota: &Quota) -> Result<Option<QuotaChange>, Failure> {
    if quota.sid == Sid::ADMINISTRATORS {
        // 2.1.5.22: "A quota limit cannot be specified on the administrators account."
        let limits_nothing = quota.limit == NO_LIMIT;
        return if limits_nothing { Ok(None) } else { Err(NtStatus::ACCESS_DENIED.into()) };
    }
    let uid = uid_of(ctx, &quota.sid).ok_or(NtStatus::INVALID_PARAMETER)?;
    if quota.limit == DELETE {
        return Ok(Some(QuotaChange { uid: Some(uid), to: NewLimits::Removed }));
    }
    let (soft, hard) = (bytes_of(quota.threshold)?, bytes_of(quota.limit)?);
    // Without a limit of its own, a user would have that of each user.
    let hard = if soft.is_none() { hard.or(Some(u64::MAX)) } else { hard };
    Ok(Some(QuotaChange { uid: Some(uid), to: NewLimits::Amounts { soft, hard } }))
}

/// Sets what each user may hold that has no quota of its own. The flags say what always is so: there is nothing to switch
/// ([MS-FSCC] 2.5.2 has servers ignore FILE_VC_QUOTA_ENFORCE and FILE_VC_QUOTA_TRACK).
pub(super) async fn set_control(ctx: &OnShare<'_>, open: &Open, buffer: &[u8]) -> Result<(), Failure> {
    let _ = open.quotas()?;
    require(open, AccessMask::WRITE_DATA)?;
    let wanted = Control::decode(buffer).map_err(length_mismatch)?;
    if !is_administrator(ctx) {
        return Err(NtStatus::ACCESS_DENIED.into());
    }
    let soft = bytes_of(wanted.default_quota_threshold.cast_signed())?;
    let hard = bytes_of(wanted.default_quota_limit.cast_signed())?;
    let to = match (soft, hard) {
        (None, None) => NewLimits::Removed,
        _ => NewLimits::Amounts { soft, hard },
    };
    match change(ctx, vec![QuotaChange { uid: None, to }]).await {
        // It is as wanted already.
        Err(failure) if to == NewLimits::Removed && failure.status == NtStatus::NO_MATCH => Ok(()),
        changed => changed,
    }
}

async fn change(ctx: &OnShare<'_>, changes: Vec<QuotaChange>) -> Result<(), Failure> {
    if changes.is_empty() {
        return Ok(());
    }
    let authority = ctx.server.quota_authority().ok_or(QuotaChangeError::NotHere);
    let authority = authority.map_err(status_of_quota_change)?;
    Ok(authority.change(ctx.share, ctx.caller(), changes).await.map_err(status_of_quota_change)?)
}
