//! The passwords of declared accounts: their NT hashes and Kerberos keys, never a password. The records of users who were
//! added by command have their own.

use acl::Sid;
use serde::{Deserialize, Serialize};

use crate::Result;
use crate::account_domain::AccountDomain;
use crate::records::{PasswordKeys, Secrets};
use crate::server_records::ABOUT;
use crate::state::State;
use crate::store::{Batch, Form, Table};

/// NT hashes by name of the account in lower case.
pub(crate) const ACCOUNTS: Table = Table { name: "accounts", form: Form::TextToHash };
/// [`AccountKeys`] as JSON, by name of the account in lower case.
pub(crate) const ACCOUNT_KEYS: Table = Table { name: "account-keys", form: Form::TextToBytes };
/// The places of domains by their SIDs.
pub(crate) const DOMAIN_SLICES: Table = Table { name: "domain-slices", form: Form::TextToU32 };
/// The highest place that a domain was given.
const LAST_SLICE: &str = "last-domain-slice";
/// The realm of the accounts.
const REALM: &str = "realm";

/// The keys of an account's password, and which password that is: a program that knows no keys changes the hash alone.
#[derive(Serialize, Deserialize)]
pub(crate) struct AccountKeys {
    /// None: no hash is kept of this password.
    pub(crate) nt_hash: Option<[u8; 16]>,
    /// None: the hash was all that was kept, and it was dropped.
    pub(crate) keys: Option<PasswordKeys>,
}

impl State {
    /// Keeps what is known of the password of a declared account, in place of what was kept before.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn set_account(&self, name: &str, secrets: &Secrets) -> Result<()> {
        let name = name.to_lowercase();
        let Secrets { nt_hash, keys } = secrets.clone();
        let json = serde_json::to_vec(&AccountKeys { nt_hash, keys }).map_err(|e| self.trouble(e))?;
        let hash = match nt_hash {
            Some(hash) => ACCOUNTS.put(name.as_bytes(), &hash),
            None => ACCOUNTS.remove(name.as_bytes()),
        };
        self.change(vec![hash, ACCOUNT_KEYS.put(name.as_bytes(), &json)])
    }

    /// What was kept of the password of a declared account; None: it never had one.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn account(&self, name: &str) -> Result<Option<Secrets>> {
        let name = name.to_lowercase();
        let nt_hash = self.read(ACCOUNTS, &name)?.map(|hash| self.number(hash)).transpose()?;
        let kept = self.read(ACCOUNT_KEYS, &name)?;
        let kept = kept.map(|json| serde_json::from_slice::<AccountKeys>(&json)).transpose();
        // Those of another password do not count.
        let kept = kept.map_err(|e| self.trouble(e))?.filter(|kept| kept.nt_hash == nt_hash);
        let is_known = nt_hash.is_some() || kept.is_some();
        Ok(is_known.then(|| Secrets { nt_hash, keys: kept.and_then(|kept| kept.keys) }))
    }

    /// The domain of the accounts of this machine.
    pub fn account_domain(&self) -> AccountDomain {
        AccountDomain::new(self.server().clone())
    }

    /// The place of a domain among the slices of numbers: 0 for the first that was ever asked for, and the same ever after.
    ///
    /// # Errors
    /// The database cannot be used.
    pub fn domain_slice(&self, domain: &Sid) -> Result<u32> {
        let key = domain.to_string();
        loop {
            if let Some(found) = self.read(DOMAIN_SLICES, &key)? {
                return Ok(u32::from_le_bytes(self.number(found)?));
            }
            let slices = self.store().scan(DOMAIN_SLICES).map_err(|e| self.trouble(e))?;
            let next = u32::try_from(slices.len()).map_err(|e| self.trouble(e))?;
            // Nobody forgets a slice, so that as many as there are is the next one, unless another has just got it.
            let last = ABOUT.expect(
                LAST_SLICE.as_bytes(),
                next.checked_sub(1).map(u32::to_le_bytes).as_ref().map(|last| &last[..]),
            );
            let batch = Batch {
                expected: vec![DOMAIN_SLICES.expect(key.as_bytes(), None), last],
                changes: vec![
                    DOMAIN_SLICES.put(key.as_bytes(), &next.to_le_bytes()),
                    ABOUT.put(LAST_SLICE.as_bytes(), &next.to_le_bytes()),
                ],
            };
            if self.write(&batch)? {
                return Ok(next);
            }
        }
    }

    /// The Kerberos realm in which the accounts of this server have their keys; the first time what `make` says, kept from
    /// then on.
    ///
    /// # Errors
    /// The database cannot be used.
    pub fn realm(&self, make: impl Fn() -> String) -> Result<String> {
        loop {
            if let Some(found) = self.read(ABOUT, REALM)? {
                return String::from_utf8(found).map_err(|e| self.trouble(e));
            }
            let made = make();
            let batch = Batch {
                expected: vec![ABOUT.expect(REALM.as_bytes(), None)],
                changes: vec![ABOUT.put(REALM.as_bytes(), made.as_bytes())],
            };
            if self.write(&batch)? {
                return Ok(made);
            }
        }
    }

    /// Makes this the realm of the accounts. Keys that exist stay as they are: they have their salt with them.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn set_realm(&self, realm: &str) -> Result<()> {
        self.change(vec![ABOUT.put(REALM.as_bytes(), realm.as_bytes())])
    }
}

#[cfg(test)]
mod tests {
    use redb::Database;

    use super::*;

    fn state() -> State {
        let backend = redb::backends::InMemoryBackend::new();
        State::in_memory(Database::builder().create_with_backend(backend).unwrap())
    }

    fn keys(byte: u8) -> PasswordKeys {
        PasswordKeys { realm: "R".to_owned(), salt: "Ranna".to_owned(), ..PasswordKeys::of_bytes(byte) }
    }

    #[test]
    fn keys_are_those_of_the_password_with_this_hash() {
        let state = state();
        let secrets = |hash: u8, keys| Secrets { nt_hash: Some([hash; 16]), keys };
        assert_eq!(state.account("anna").unwrap(), None);
        state.set_account("Anna", &secrets(7, Some(keys(1)))).unwrap();
        assert_eq!(state.account("aNNA").unwrap(), Some(secrets(7, Some(keys(1)))));
        // As a program does that knows no keys.
        state.change(vec![ACCOUNTS.put(b"anna", &[8; 16])]).unwrap();
        assert_eq!(state.account("anna").unwrap(), Some(secrets(8, None)));
        state.set_account("anna", &secrets(8, Some(keys(2)))).unwrap();
        assert_eq!(state.account("anna").unwrap(), Some(secrets(8, Some(keys(2)))));
    }

    #[test]
    fn the_realm_stays_until_another_is_set() {
        let state = state();
        assert_eq!(state.realm(|| "FIRST".to_owned()).unwrap(), "FIRST");
        assert_eq!(state.realm(|| "SECOND".to_owned()).unwrap(), "FIRST");
        state.set_realm("THIRD").unwrap();
        assert_eq!(state.realm(|| "SECOND".to_owned()).unwrap(), "THIRD");
    }

    #[test]
    fn domains_have_slices_in_the_order_in_which_they_come() {
        let state = state();
        let slice = |domain: &str| state.domain_slice(&domain.parse().unwrap()).unwrap();
        let (one, two, three) = ("S-1-5-21-9-2-3", "S-1-5-21-1-2-3", "S-1-5-21-5-2-3");
        assert_eq!((slice(one), slice(two), slice(one), slice(three), slice(two)), (0, 1, 0, 2, 1));
    }
}
