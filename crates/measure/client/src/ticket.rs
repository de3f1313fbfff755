//! Kerberos tickets of the user, from the credential cache.

use std::time::Duration;

use krb5::ccache::{Credential, CredentialCache};
use krb5::{ContextFlags, Initiator, Randomness, Time};

use crate::{Fault, FaultKind, Result, World};

/// The user's ticket for a service of a host.
pub(crate) fn of_user(world: &impl World, service: &str, host: &str) -> Result<Credential> {
    let not_usable = |why: String| Fault::new(FaultKind::WrongPassword, why);
    let cache =
        CredentialCache::parse(&world.credential_cache()?).map_err(|why| not_usable(why.to_string()))?;
    cache.ticket(service, host, time(world.now())).cloned().ok_or_else(|| {
        not_usable(format!(
            "the credential cache has no ticket for {service}/{host} that is good now: get one with `kinit` and \
             `kvno {service}/{host}`, and name the server as its ticket does"
        ))
    })
}

/// The token that shows a ticket to a server, and what takes the server's answer. No two have the same time.
pub(crate) fn shown(
    world: &impl World,
    ticket: &Credential,
    flags: ContextFlags,
) -> Result<(Initiator, Vec<u8>)> {
    let mut random = Randomness { confounder: [0; 16], subkey: [0; 32].into(), sequence_number: [0; 4] };
    world.random(&mut random.confounder)?;
    world.random(random.subkey.as_mut_slice())?;
    world.random(&mut random.sequence_number)?;
    let now = world.now();
    Initiator::begin(ticket, flags, time(now), now.subsec_micros(), &random)
        .map_err(|error| Fault::new(FaultKind::ThisMachine, error.to_string()))
}

/// The whole seconds of a world's time.
fn time(now: Duration) -> Time {
    Time::from_unix(i64::try_from(now.as_secs()).unwrap_or(i64::MAX))
}
