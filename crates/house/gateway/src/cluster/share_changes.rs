//! What the gateway that serves a vserver does when the shares of the vserver change: it opens, changes and withdraws shares, and tells what
//! it has made of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use state::cluster::{Coming, Register, Seen, SharesServed, VserverRecord, VserverShareRecord, last_owner};
use state::store::StoreError;

use super::attempts::AGAIN;
use super::{Seat, definition, went};
use crate::problem::{Cause, Problem};
use crate::vserver_commands::Host;
use crate::vserver_share_changes::Wanted;

/// How soon to look again for what needs nothing but others.
const SOON: Duration = Duration::from_millis(500);
/// How often a record is changed that others change at the same time, before that is left to the next time.
const CHANGES_MAX: usize = 8;

/// Whether the shares of a vserver that is served here are not yet what its record says.
pub(super) fn is_due(host: &Host, record: &VserverRecord) -> bool {
    let seen = host.vservers.with(&record.name, |served| served.share_changes);
    let has_all = record.shares.iter().all(|share| share.coming.is_none());
    seen.is_some_and(|seen| seen != Some(record.share_changes) || !has_all)
}

/// Makes the shares of a vserver that is served here what its record says. How long to wait until it is tried again; None: it is done.
pub(super) fn make(seat: &Arc<Seat>, register: &Arc<Register>, vserver: &str) -> Option<Duration> {
    match made(seat, register, vserver) {
        Ok(again) => again,
        Err(error) => {
            tracing::error!("the shares of {}", seat.failed(&error).of_vserver(vserver));
            Some(AGAIN)
        }
    }
}

fn made(seat: &Arc<Seat>, register: &Arc<Register>, vserver: &str) -> Result<Option<Duration>, StoreError> {
    // In another epoch, what is read now may be old.
    let epoch = seat.host.vservers.with(vserver, |served| served.ownership.owner().epoch);
    let Some(epoch) = epoch else { return Ok(None) };
    // It is the newest that counts: what the keeper has read may be older than what another gateway has told meanwhile.
    let Some(Seen { record, .. }) = register.vserver(vserver)? else { return Ok(None) };
    if record.gateway != seat.name() {
        return Ok(None);
    }
    let (wanted, mut problems, later) = wanted(register, &record)?;
    let Some(failed) = seat.host.use_shares(vserver, epoch, &wanted) else {
        return Ok(seat.host.vservers.is_served(vserver).then_some(SOON));
    };
    let is_withdrawn = !failed.contains_key("");
    for (share, problem) in &failed {
        tracing::error!(vserver, share, "{problem}");
    }
    let passes = |problem: &Problem| problem.cause == Cause::Silent;
    let passing =
        failed.iter().filter(|(_, problem)| passes(problem)).map(|(share, _)| share.clone()).collect();
    problems.extend(failed.iter().map(|(share, problem)| (share.clone(), told(share, problem))));
    if is_withdrawn {
        let is_open = |share: &VserverShareRecord| {
            let name = &share.share.name;
            wanted.shares.iter().any(|open| open.name == *name) && !problems.contains_key(name)
        };
        let has_settled = settle(register, &record, is_open)?;
        let told = SharesServed { epoch, changes: record.share_changes, problems, passing };
        let is_new = register.shares_served(vserver)?.as_ref() != Some(&told);
        if is_new && !register.set_shares_served(vserver, &told)? {
            return Ok(Some(SOON));
        }
        seat.host.vservers.with(vserver, |served| {
            // One that has begun meanwhile has told nothing yet.
            if served.ownership.owner().epoch == epoch {
                served.share_changes = Some(record.share_changes);
            }
        });
        if has_settled || is_new {
            seat.tell(register);
        }
    }
    Ok(match (failed.is_empty(), later) {
        (false, _) => Some(AGAIN),
        (true, true) => Some(SOON),
        (true, false) => None,
    })
}

type Waiting = (Wanted, BTreeMap<String, String>, bool);

/// The shares that may be served now, why others may not, and whether some wait for another vserver.
fn wanted(register: &Register, record: &VserverRecord) -> Result<Waiting, StoreError> {
    let (mut wanted, mut problems, mut waits) = (Wanted::default(), BTreeMap::new(), false);
    // By the number of a share that has gone, its clients are told where to.
    wanted.later.extend(record.went.keys().cloned());
    wanted.gone = went::shares(register, record)?;
    for VserverShareRecord { share, coming } in &record.shares {
        if let Some(Coming::From { vserver, change }) = coming
            && !has_let_go(register, vserver, *change)?
        {
            wanted.later.push(share.name.clone());
            waits = true;
            continue;
        }
        match definition::served(share) {
            Ok(served) => wanted.shares.push(served),
            Err(why) => {
                wanted.later.push(share.name.clone());
                problems.insert(share.name.clone(), why);
            }
        }
    }
    Ok((wanted, problems, waits))
}

/// Whether no gateway serves any more what has gone from a vserver with this change: the owner of the vserver has said so, or there is none.
/// Whoever takes the vserver reads its record after that, and does not open what has gone.
fn has_let_go(register: &Register, vserver: &str, change: u64) -> Result<bool, StoreError> {
    if register.shares_served(vserver)?.is_some_and(|served| served.changes >= change) {
        return Ok(true);
    }
    let last = last_owner(&**register.store(), vserver)?;
    Ok(last.is_none_or(|last| last.holder.is_none()))
}

/// Writes down that the shares have come that are open. False: none has.
fn settle(
    register: &Register,
    record: &VserverRecord,
    is_open: impl Fn(&VserverShareRecord) -> bool,
) -> Result<bool, StoreError> {
    let came = record.shares.iter().filter(|share| share.coming.is_some() && is_open(share));
    let came: Vec<_> = came.cloned().collect();
    if came.is_empty() {
        return Ok(false);
    }
    for _ in 0..CHANGES_MAX {
        let Some(seen) = register.vserver(&record.name)? else { break };
        let mut settled = seen.record.clone();
        for share in settled.shares.iter_mut().filter(|share| came.contains(share)) {
            share.coming = None;
        }
        if settled == seen.record || register.change_vserver(&seen, Some(&settled))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The problem of a share in one line, without the name of the share.
fn told(share: &str, problem: &Problem) -> String {
    let why = [&problem.what, &problem.advice].map(String::as_str).join(". ");
    let why = why.trim_end_matches([' ', '.']);
    why.strip_prefix(&format!("share {share}: ")).unwrap_or(why).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_told_in_one_line_and_names_the_share_once() {
        let problem = Problem::new(Cause::Directory, "share data: no such directory", "Make it.");
        assert_eq!(told("data", &problem), "no such directory. Make it");
        assert_eq!(told("more", &problem), "share data: no such directory. Make it");
        assert_eq!(told("data", &Problem { advice: String::new(), ..problem }), "no such directory");
    }
}
