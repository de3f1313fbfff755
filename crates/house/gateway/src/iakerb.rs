//! The KDC of the accounts, which clients reach through the server (IAKERB).

use std::time::Duration;

use kdc::Kdc;
use zeroize::Zeroizing;

use crate::kerberos::SERVICES;
use crate::problem::{Cause, Problem, Result};
use crate::settings::Settings;

/// How long a ticket lasts, and so a session until it is renewed: as in domains.
const LIFETIME: Duration = Duration::from_secs(10 * 60 * 60);
/// How much the clocks of clients may differ. RFC 4120 recommends 5 minutes.
const CLOCK_SKEW: Duration = Duration::from_secs(300);

/// A KDC for the realm of the settings; None: none is set. Its keys are new, so nobody has tickets of an earlier one.
///
/// # Errors
/// The system has no random numbers, or the cryptographic library refuses.
pub(crate) fn kdc(settings: &Settings) -> Result<Option<Kdc>> {
    let Some(realm) = settings.kerberos.realm.clone() else { return Ok(None) };
    let mut random = [(); 3].map(|()| Zeroizing::new([0; 32]));
    for key in &mut random {
        getrandom::fill(&mut key[..])
            .map_err(|e| Problem::new(Cause::Serving, format!("no random numbers: {e}"), ""))?;
    }
    let settings = kdc::Settings {
        domain: smb_server::Config::default().server_name,
        services: SERVICES.map(str::to_owned).to_vec(),
        clock_skew: CLOCK_SKEW,
        lifetime: LIFETIME,
        realm,
    };
    Kdc::new(settings, &random).map(Some).map_err(|e| no_kdc(&e))
}

/// The problem of a server without a KDC.
pub(crate) fn no_kdc(error: &dyn std::fmt::Display) -> Problem {
    let what = format!("clients cannot get tickets through this server: {error}");
    Problem::new(Cause::Serving, what, "This is a fault of the program: please report it.")
}
