//! What is kept of a password: its NT hash for NTLM, and its Kerberos keys. Never the password.

use auth::nt_hash;
use kdc::ClientKeys;
use krb5::{Enctype, Key, string_to_key};
use rustix::system::uname;
use state::{PasswordKeys, Secrets, State};
use zeroize::Zeroizing;

use crate::kerberos::check_realm;
use crate::problem::{Cause, Problem, Result};

/// The realm of a machine that has no name.
const NAMELESS: &str = "ANABRANCH";

/// The realm in which the accounts of a server have their keys: the name of the machine in upper case when the first password
/// was set, unless another is configured. RFC 4120 6.1: realms in the style of domains are in upper case.
///
/// # Errors
/// The state database cannot be used.
pub(crate) fn realm(state: &State) -> Result<String> {
    Ok(state.realm(|| of_machine(uname().nodename().to_str().unwrap_or_default()))?)
}

fn of_machine(name: &str) -> String {
    let name = name.to_ascii_uppercase();
    if check_realm(&name).is_ok() { name } else { NAMELESS.to_owned() }
}

/// What is to be kept of the password of an account: an NT hash unless the server keeps none, and Kerberos keys, those of `kept`
/// if they are of this password. They are made once: a start with many users need not wait for them.
///
/// # Errors
/// The cryptographic library refuses, or the state database cannot be used.
pub(crate) fn secrets(name: &str, password: &str, kept: Option<&Secrets>, state: &State) -> Result<Secrets> {
    let hash = nt_hash(password);
    let is_same = |kept: &Secrets| match (kept.nt_hash, &kept.keys) {
        (Some(kept), _) => kept == hash,
        (None, Some(keys)) => is_of(keys, password),
        (None, None) => false,
    };
    let known = kept.filter(|kept| is_same(kept)).and_then(|kept| kept.keys.clone());
    let keys = match known {
        Some(keys) => keys,
        None => keys(&realm(state)?, name, password)?,
    };
    Ok(Secrets { nt_hash: state.keeps_nt_hashes()?.then_some(hash), keys: Some(keys) })
}

/// The keys as the server's own KDC needs them.
pub(crate) fn for_kdc(keys: &PasswordKeys) -> Option<ClientKeys> {
    let sha384 = Key::new(Enctype::Aes256Sha384, &keys.aes256_sha384[..]).ok()?;
    let sha1 = Key::new(Enctype::Aes256Sha1, &keys.aes256_sha1[..]).ok()?;
    Some(ClientKeys { salt: keys.salt.clone(), keys: vec![sha384, sha1] })
}

/// Whether these are keys of this password. It takes some 2 ms.
fn is_of(keys: &PasswordKeys, password: &str) -> bool {
    let made = string_to_key(Enctype::Aes256Sha1, password, keys.salt.as_bytes());
    made.is_ok_and(|made| made.as_bytes() == &keys.aes256_sha1[..])
}

/// The Kerberos keys of the password of an account. It takes some 20 ms of a core, so no shard may do it.
///
/// # Errors
/// The cryptographic library refuses.
pub(crate) fn keys(realm: &str, name: &str, password: &str) -> Result<PasswordKeys> {
    // RFC 4120 4: "The default salt string, if none is provided via pre-authentication data, is the concatenation of the
    // principal's realm and name components".
    let salt = format!("{realm}{name}");
    let key = |enctype| {
        let key = string_to_key(enctype, password, salt.as_bytes()).map_err(|e| no_keys(name, &e))?;
        let bytes = key.as_bytes().try_into().map_err(|e| no_keys(name, &e))?;
        Ok::<_, Problem>(Zeroizing::new(bytes))
    };
    let (aes256_sha384, aes256_sha1) = (key(Enctype::Aes256Sha384)?, key(Enctype::Aes256Sha1)?);
    Ok(PasswordKeys { realm: realm.to_owned(), salt, aes256_sha384, aes256_sha1 })
}

fn no_keys(name: &str, error: &dyn std::fmt::Display) -> Problem {
    let what = format!("no Kerberos keys can be made of the password of the user {name}: {error}");
    Problem::new(Cause::State, what, "This is a fault of the program: please report it.")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The vectors of `krb5` have the keys; here the salt is realm and name, and the types are not mixed up.
    #[test]
    fn keys_are_those_of_realm_and_name() {
        let keys = keys("ATHENA.MIT.EDU", "raeburn", "password").unwrap();
        assert_eq!((&*keys.realm, &*keys.salt), ("ATHENA.MIT.EDU", "ATHENA.MIT.EDUraeburn"));
        let expected = |enctype| string_to_key(enctype, "password", b"ATHENA.MIT.EDUraeburn").unwrap();
        assert_eq!(&keys.aes256_sha1[..], expected(Enctype::Aes256Sha1).as_bytes());
        assert_eq!(&keys.aes256_sha384[..], expected(Enctype::Aes256Sha384).as_bytes());
    }

    #[test]
    fn a_machine_without_a_name_has_a_realm() {
        assert_eq!(of_machine("nas.example.org"), "NAS.EXAMPLE.ORG");
        assert_eq!((of_machine(""), of_machine("(none)")), (NAMELESS.to_owned(), NAMELESS.to_owned()));
    }
}
