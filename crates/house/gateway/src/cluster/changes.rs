//! What a gateway does with one vserver of the register: each waits as long as a storage takes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use state::cluster::{Register, VserverRecord};

use super::attempts::AGAIN;
use super::{Seat, definition, keytabs, troubles, went};
use crate::problem::{Cause, Problem, Result};
use crate::settings::MovedShare;
use crate::vserver_commands::Given;
use crate::vserver_shares::VserverShare;

/// An attempt that has taken so long has waited for a storage already, and is repeated sooner.
const LONG: Duration = Duration::from_secs(9);
const AGAIN_AFTER_LONG: Duration = Duration::from_secs(1);

/// Begins a vserver, and says in the register why that fails. How long to wait until it is tried again; None: it is served.
pub(super) fn serve(seat: &Arc<Seat>, register: &Arc<Register>, record: &VserverRecord) -> Option<Duration> {
    let start = Instant::now();
    let begun = definition::definition(record)
        .map_err(|why| Problem::new(Cause::Settings, why, ""))
        .and_then(|new| seat.host.serve_vserver(new, || given(seat, register, record)));
    match begun {
        Ok(()) => {
            troubles::write(register, &record.name, None);
            seat.tell(register);
            None
        }
        Err(problem) => {
            tracing::error!(vserver = record.name, "the vserver cannot be served here: {problem}");
            troubles::write(register, &record.name, Some((seat.name(), &problem)));
            Some(if start.elapsed() >= LONG { AGAIN_AFTER_LONG } else { AGAIN })
        }
    }
}

/// What a vserver of the cluster is served with: the accounts of the cluster, and its own keys.
///
/// # Errors
/// The accounts are not known, because the place under which they were was lost.
fn given(seat: &Seat, register: &Register, record: &VserverRecord) -> Result<Given> {
    let keys = keytabs::at_the_beginning(register, record);
    let not_known = || Problem::new(Cause::Silent, "the users of the cluster are not known yet", "");
    let lent = seat.host.of_cluster.lent().ok_or_else(not_known)?;
    let shares = shares_now(seat, register, &record.name)?;
    Ok(Given { lent, keys, shares: Some(shares) })
}

/// The shares of a vserver that is owned, and those that have gone to others. Before it was, others could change them, and tell that they had done their part.
///
/// # Errors
/// It is not to be served here any more, or the store does not answer.
fn shares_now(
    seat: &Seat,
    register: &Register,
    vserver: &str,
) -> Result<(Vec<VserverShare>, Vec<MovedShare>)> {
    let seen = register.vserver(vserver).map_err(|error| seat.failed(&error))?;
    let own = seen.map(|seen| seen.record).filter(|record| record.gateway == seat.name());
    let gone = || Problem::new(Cause::Silent, format!("the vserver {vserver} is not to be served here"), "");
    let record = own.ok_or_else(gone)?;
    let new = definition::definition(&record).map_err(|why| Problem::new(Cause::Settings, why, ""))?;
    let gone = went::shares(register, &record).map_err(|error| seat.failed(&error))?;
    Ok((new.shares, gone))
}

/// Ends a vserver, so that another gateway may have it, and says in the register why that fails. How long to wait until it is tried again;
/// None: it is not served any more.
pub(super) fn end(seat: &Arc<Seat>, register: &Arc<Register>, vserver: &str) -> Option<Duration> {
    match seat.host.end_vserver(vserver) {
        Ok(_) => {
            seat.tell(register);
            None
        }
        Err(problem) => {
            tracing::error!("{problem}");
            troubles::write(register, vserver, Some((seat.name(), &problem)));
            Some(AGAIN)
        }
    }
}

/// Lets any gateway have a vserver that was given up here. How long to wait until it is tried again; None: that is done.
pub(super) fn let_go(seat: &Arc<Seat>, register: &Arc<Register>, vserver: &str) -> Option<Duration> {
    match seat.host.let_go_given_up(vserver) {
        Ok(true) => {
            seat.tell(register);
            None
        }
        Ok(false) => None,
        Err(problem) => {
            tracing::warn!("{problem}");
            Some(AGAIN)
        }
    }
}
