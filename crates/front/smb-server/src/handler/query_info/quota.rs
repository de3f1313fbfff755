//! Queries of quotas. [MS-SMB2] 3.3.5.20.4, [MS-FSA] 2.1.5.21.

use share::UserQuota;
use smb_wire::fscc::quota::{self, NO_LIMIT, Quota};
use smb_wire::query_quota::{Of, QueryQuota};
use smb_wire::{FileTime, NtStatus};

use acl::Sid;

use crate::context::OnShare;
use crate::quotas::{is_administrator, limit_of, sid_of, status, uid_of};
use crate::state::open::{Open, QuotaCursor};
use crate::status::Failure;

/// The longest list of SIDs, in bytes. It is looked through at one go.
pub const QUOTA_LIST_BYTES_MAX: usize = 64 << 10;
/// The most quotas in a reply: as many as a list can have SIDs of 8 bytes.
pub const QUOTA_ROWS_MAX: usize = QUOTA_LIST_BYTES_MAX / 16;

/// The quotas that the client asks for, in a list of at most `limit` bytes. Users who administer nothing are told of their own.
pub(super) async fn query(
    ctx: &OnShare<'_>,
    open: &Open,
    input: &[u8],
    limit: usize,
) -> Result<Vec<u8>, Failure> {
    let cursor = open.quotas()?;
    let asked = QueryQuota::decode(input)?;
    let most = if asked.return_single { 1 } else { QUOTA_ROWS_MAX };
    if let Of::Listed(list) = asked.of {
        let quotas = listed(ctx, list, most).await?;
        return answer(&mut quotas.into_iter(), limit).map(|(data, _)| data);
    }
    let first = match asked.of {
        Of::From(sid) => Start::At(uid_of(ctx, &sid).ok_or(NtStatus::INVALID_PARAMETER)?),
        Of::Next => cursor.lock().last.map_or(Start::Beginning, Start::After),
        Of::First | Of::Listed(_) => Start::Beginning,
    };
    let visible = visible(ctx).await?;
    if let Start::At(uid) = first
        && visible.iter().all(|user| user.uid != uid)
    {
        // 2.1.5.21: "If StartSid is not found ... the operation MUST be failed with STATUS_INVALID_PARAMETER."
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    let rest: Vec<_> = visible.into_iter().filter(|user| first.includes(user.uid)).take(most).collect();
    let mut quotas = rest.iter().map(|user| shown(sid_of(ctx.share, user.uid), user));
    let (data, count) = answer(&mut quotas, limit)?;
    if let Some(last) = count.checked_sub(1).and_then(|last| rest.get(last)) {
        *cursor.lock() = QuotaCursor { last: Some(last.uid) };
    }
    Ok(data)
}

/// Where a list of all quotas begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Beginning,
    At(u32),
    After(u32),
}

impl Start {
    fn includes(self, uid: u32) -> bool {
        match self {
            Self::Beginning => true,
            Self::At(first) => uid >= first,
            Self::After(last) => uid > last,
        }
    }
}

/// The users whom the caller is told of.
async fn visible(ctx: &OnShare<'_>) -> Result<Vec<UserQuota>, Failure> {
    if is_administrator(ctx) {
        return Ok(status(ctx.share).await?.users());
    }
    let own = ctx.share.user_quotas(vec![ctx.caller().identity.uid()]).await?;
    Ok(own.into_iter().flatten().collect())
}

/// The quotas of the users in a list.
async fn listed(ctx: &OnShare<'_>, list: &[u8], most: usize) -> Result<Vec<Quota>, Failure> {
    if list.len() > QUOTA_LIST_BYTES_MAX {
        return Err(NtStatus::INVALID_PARAMETER.into());
    }
    let (is_administrator, own) = (is_administrator(ctx), ctx.caller().identity.uid());
    let mut users = Vec::new();
    for sid in quota::sids(list).take(most) {
        let sid = sid?;
        let uid = uid_of(ctx, &sid);
        if !is_administrator && uid != Some(own) {
            return Err(NtStatus::ACCESS_DENIED.into());
        }
        users.push((sid, uid));
    }
    let known = ctx.share.user_quotas(users.iter().filter_map(|(_, uid)| *uid).collect()).await?;
    let mut known = known.into_iter();
    let row = |(sid, uid): (Sid, Option<u32>)| {
        let user = uid.and_then(|_| known.next().flatten());
        // 3.3.5.20.4: for an unknown one, "ChangeTime, QuotaUsed, QuotaThreshold, and QuotaLimit" are zero.
        let unknown = || Quota { change_time: FileTime::UNSET, used: 0, threshold: 0, limit: 0, sid };
        user.map_or_else(unknown, |user| shown(sid, &user))
    };
    Ok(users.into_iter().map(row).collect())
}

/// A quota as clients see it.
fn shown(sid: Sid, user: &UserQuota) -> Quota {
    let limits = user.limits;
    Quota {
        // Nobody keeps when quotas were changed.
        change_time: FileTime::UNSET,
        used: i64::try_from(user.used).unwrap_or(i64::MAX),
        threshold: limits.map_or(NO_LIMIT, |limits| limit_of(limits.soft())),
        limit: limits.map_or(NO_LIMIT, |limits| limit_of(limits.hard())),
        sid,
    }
}

/// As many quotas as fit, and how many these are.
fn answer(quotas: &mut dyn Iterator<Item = Quota>, limit: usize) -> Result<(Vec<u8>, usize), Failure> {
    let (mut data, mut count) = (Vec::new(), 0);
    let mut list = quota::writer(&mut data, limit);
    for quota in quotas {
        if quota.push(&mut list).is_err() {
            if count == 0 {
                return Err(NtStatus::BUFFER_TOO_SMALL.into());
            }
            break;
        }
        count += 1;
    }
    if count == 0 { Err(NtStatus::NO_MORE_ENTRIES.into()) } else { Ok((data, count)) }
}
