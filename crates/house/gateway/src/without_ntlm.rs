//! A server without NTLM: who could not log on any more, and the end of the NT hashes.

use auth::Ntlm;
use share::Terms;
use state::{Secrets, State};

use crate::problem::{Cause, Problem, Result};
use crate::settings::Settings;

/// What a server without NTLM says of shares for guests.
const NO_GUESTS: &str = "guests come by NTLM, which is off: none is admitted";
/// What it says if nothing else is left.
const NO_WAY: &str = "ntlm is off, and there are no Kerberos keys and no realm: nobody can log on over SMB. Set `realm`, so that accounts \
     log on by IAKERB (docs/without-ntlm.md), or import a keytab (anabranch domain import, docs/kerberos.md)";

/// The state as the settings want it: with NT hashes from now on, or without any.
///
/// # Errors
/// An account would be left without a password, or the state database cannot be used.
pub(crate) fn apply(settings: &Settings, state: State) -> Result<State> {
    if settings.ntlm == Ntlm::On {
        state.keep_nt_hashes()?;
        return Ok(state);
    }
    check(settings, &state)?;
    Ok(state.without_nt_hashes()?)
}

/// Checks that no account loses its only password, unless that is wanted.
///
/// # Errors
/// An account does; the problem names all of them.
pub(crate) fn check(settings: &Settings, state: &State) -> Result<()> {
    let names = left_without(settings, state)?;
    if settings.drop_passwords {
        for name in &names {
            tracing::warn!("nobody can log on as {name} until its password is set: it had an NT hash only");
        }
        return Ok(());
    }
    refused(&names).map_or(Ok(()), Err)
}

/// The problem of these accounts, which have an NT hash and no Kerberos keys; None: there are no such accounts.
pub(crate) fn refused(names: &[String]) -> Option<Problem> {
    if names.is_empty() {
        return None;
    }
    let what = format!(
        "ntlm is off, but of these accounts there is an NT hash and no Kerberos key: {}",
        names.join(", ")
    );
    let advice = "Set their passwords once more while NTLM is on (anabranch user set NAME --password; password or password-file in place of \
                  nt-hash), or start with --force: nobody can log on with these accounts then until their passwords are set";
    Some(Problem::new(Cause::Settings, what, advice))
}

/// The accounts that have an NT hash and nothing else.
///
/// # Errors
/// The state database cannot be read.
pub(crate) fn left_without(settings: &Settings, state: &State) -> state::Result<Vec<String>> {
    let has_hash_alone = |secrets: &Secrets| secrets.nt_hash.is_some() && secrets.keys.is_none();
    let added = state.added_users()?;
    let declared = |name: &str| settings.users.iter().any(|user| auth::same_name(&user.name, name));
    let mut names: Vec<String> = added
        .iter()
        .filter(|user| !declared(&user.name) && has_hash_alone(&user.secrets()))
        .map(|user| user.name.clone())
        .collect();
    for user in settings.users.iter().filter(|user| user.password.is_none()) {
        let added = added.iter().find(|record| auth::same_name(&record.name, &user.name));
        let kept = state.account(&user.name)?.or_else(|| added.map(state::UserRecord::secrets));
        if user.nt_hash.is_some() || kept.as_ref().is_some_and(has_hash_alone) {
            names.push(user.name.clone());
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// What is to be known of a server without NTLM. `has_keys`: it accepts tickets.
pub(crate) fn warnings(settings: &Settings, has_keys: bool) -> Vec<&'static str> {
    if settings.ntlm == Ntlm::On {
        return Vec::new();
    }
    let has_guests = settings.shares.iter().any(|share| share.terms.contains(Terms::GUESTS));
    let guests = has_guests.then_some(NO_GUESTS);
    let has_way = has_keys || settings.kerberos.realm.is_some();
    guests.into_iter().chain((!has_way).then_some(NO_WAY)).collect()
}
