//! Quotas for the command `quota` of NFS clients: the program of `rquotad`, over TCP and UDP. Answered from what is known without
//! a call to the storage.

use std::net::SocketAddr;
use std::time::SystemTime;

use nfs_wire::rpc::{AcceptStatus, Call};
use nfs_wire::rquota::{Args, Kind, PROGRAM, Procedure, Quota, Res, UserArgs, VERSION_1, VERSION_2};
use nfs_wire::xdr::{Decode, Encode, Reader};
use share::{Caller, QuotaAccount as Account, Share, Standing as Held};

use crate::credentials::{self, CallerCache};
use crate::gss::Flavor;
use crate::gss::security::{Channel, Security};
use crate::server::ServerState;
use crate::standing::Standing;

/// The smallest block in which amounts are told.
const BLOCK_BYTES_MIN: u32 = 1024;

/// The versions that are answered.
pub(crate) const VERSIONS: (u32, u32) = (VERSION_1, VERSION_2);

/// Who asks, in a share, and with what standing.
pub(crate) type Asker<'a> = &'a dyn Fn(&Share) -> (Caller, Standing);

/// Answers a call over UDP. Its sender is whom the datagram states.
///
/// # Errors
/// Why the procedure did not run.
pub(crate) fn answer_datagram(
    server: &ServerState,
    from: SocketAddr,
    call: &Call<'_>,
    arguments: Reader<'_>,
) -> Result<Vec<u8>, AcceptStatus> {
    let (low, high) = VERSIONS;
    if !(low..=high).contains(&call.version) {
        return Err(AcceptStatus::ProgramMismatch { low, high });
    }
    let callers = CallerCache::new(from);
    let security = Security { channel: Channel::Plain, flavor: Flavor::Sys };
    let Ok(sender) = credentials::stated(&call.credential) else {
        return Ok(Res::NotPermitted.encode_to_vec());
    };
    let needs_tls = server.tls.as_ref().is_some_and(|tls| tls.is_required());
    let asker = |share: &Share| {
        let (caller, standing) = callers.caller(share, &server.squashing, &call.credential, (&sender, None));
        let suffices = !needs_tls && security.suffices(server.terms_of(share));
        (caller, if suffices { standing } else { Standing::Refused })
    };
    answer(server, &asker, call, arguments)
}

/// The result of a procedure.
///
/// # Errors
/// Why the procedure did not run.
pub(crate) fn answer(
    server: &ServerState,
    asker: Asker<'_>,
    call: &Call<'_>,
    mut arguments: Reader<'_>,
) -> Result<Vec<u8>, AcceptStatus> {
    let procedure = Procedure::try_from(call.procedure).map_err(|_| AcceptStatus::ProcedureUnavailable)?;
    if procedure == Procedure::Null {
        return Ok(Vec::new());
    }
    let asked = decode(call.version, &mut arguments).and_then(|asked| arguments.finish().map(|()| asked));
    let asked = asked.map_err(|_| AcceptStatus::GarbageArgs)?;
    Ok(quota_of(server, asker, procedure, &asked).encode_to_vec())
}

fn decode<'a>(version: u32, arguments: &mut Reader<'a>) -> Result<Args<'a>, nfs_wire::xdr::XdrError> {
    if version == VERSION_1 {
        let UserArgs { path, uid } = UserArgs::decode(arguments)?;
        return Ok(Args { path, kind: Kind::User, id: uid });
    }
    Args::decode(arguments)
}

fn quota_of(
    server: &ServerState,
    asker: Asker<'_>,
    procedure: Procedure,
    Args { path, kind, id }: &Args<'_>,
) -> Res {
    let mut parts = path.0.split(|byte| *byte == b'/').filter(|part| !matches!(*part, b"" | b"."));
    let Some(share) = parts.next().and_then(|name| server.exports.by_name(name)) else { return Res::None };
    let (caller, standing) = asker(&share);
    if !standing.is_member() {
        return Res::NotPermitted;
    }
    let who = &caller.identity;
    let (account, is_own) = match kind {
        Kind::User => (Account::User(*id), who.uid() == *id),
        Kind::Group => (Account::Group(*id), who.is_in_group(*id)),
    };
    if !is_own && !who.is_exempt() {
        return Res::NotPermitted;
    }
    let Some(standing) = share.quota_standing(account) else { return Res::None };
    let held = told(&standing, SystemTime::now());
    let active = share.quotas_counted().is_some();
    let asked = held.filter(|_| active || procedure != Procedure::GetActiveQuota);
    asked.map_or(Res::None, |quota| Res::Quota(Quota { active, ..quota }))
}

/// A quota in blocks that are large enough to count everything in 32 bits; None if nothing is limited.
fn told(held: &Held, now: SystemTime) -> Option<Quota> {
    let limits = held.limits?;
    let (soft, hard) = (limits.soft(), limits.hard().filter(|hard| *hard < u64::MAX));
    let largest = [soft, hard].into_iter().flatten().chain([held.used]).max().unwrap_or(0);
    let mut block_bytes = BLOCK_BYTES_MIN;
    while largest.div_ceil(block_bytes.into()) > u32::MAX.into() && block_bytes < 1 << 30 {
        block_bytes *= 2;
    }
    let blocks = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    // 0 blocks would be no limit.
    let limit = |bytes: Option<u64>| bytes.map_or(0, |bytes| blocks(bytes / u64::from(block_bytes)).max(1));
    let seconds_left = held.over_since.map_or(0, |since| {
        let over = now.duration_since(since).map_or(0, |over| over.as_secs());
        let left = i64::try_from(limits.grace().as_secs()).unwrap_or(i64::MAX).saturating_sub_unsigned(over);
        // The grace that is over is told by a number below 0.
        let left = if left == 0 { -1 } else { left };
        i32::try_from(left).unwrap_or(if left < 0 { i32::MIN } else { i32::MAX }).cast_unsigned()
    });
    Some(Quota {
        block_bytes,
        active: true,
        hard: limit(hard),
        soft: limit(soft),
        used: blocks(held.used.div_ceil(block_bytes.into())),
        files_hard: 0,
        files_soft: 0,
        files: 0,
        seconds_left,
        files_seconds_left: 0,
    })
}

/// Whether a datagram is for this program.
pub(crate) fn is_meant(call: &Call<'_>) -> bool {
    call.program == PROGRAM
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use share::{QuotaAccount, QuotaLimits};

    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn held(used: u64, soft: Option<u64>, hard: Option<u64>) -> Held {
        let limits = QuotaLimits::new(soft, hard, Duration::from_secs(100)).ok();
        Held { account: QuotaAccount::User(7), used, limits, is_default: false, over_since: None }
    }

    #[test]
    fn amounts_are_told_in_blocks_that_are_large_enough() {
        let blocks =
            |held: &Held| told(held, NOW).map(|told| (told.block_bytes, told.used, told.soft, told.hard));
        assert_eq!(blocks(&held(1, None, Some(4096))), Some((1024, 1, 0, 4)));
        assert_eq!(blocks(&held(2049, Some(1023), Some(5119))), Some((1024, 3, 1, 4)), "0 would be no limit");
        assert_eq!(blocks(&held(0, None, Some(0))), Some((1024, 0, 0, 1)));
        assert_eq!(blocks(&held(5, None, Some(u64::MAX))), Some((1024, 1, 0, 0)), "that is no limit");
        let most = 1024 * u64::from(u32::MAX);
        assert_eq!(blocks(&held(0, None, Some(most))), Some((1024, 0, 0, u32::MAX)));
        assert_eq!(blocks(&held(0, None, Some(most + 1))), Some((2048, 0, 0, u32::MAX / 2)));
        assert_eq!(blocks(&held(u64::MAX, None, Some(1))).map(|told| told.0), Some(1 << 30));
        assert_eq!(told(&held(7, None, None), NOW), None);
    }

    #[test]
    fn the_grace_that_is_left_is_told_and_below_0_once_it_is_over() {
        let left = |over: u64| {
            let held = Held { over_since: Some(NOW), ..held(9, Some(1), None) };
            told(&held, NOW + Duration::from_secs(over)).unwrap().seconds_left.cast_signed()
        };
        assert_eq!([left(0), left(99), left(100), left(130), left(1 << 60)], [100, 1, -1, -30, i32::MIN]);
        assert_eq!(told(&held(9, Some(1), None), NOW).unwrap().seconds_left, 0);
    }
}
