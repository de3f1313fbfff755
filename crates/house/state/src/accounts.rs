//! The passwords of declared accounts: their NT hashes and Kerberos keys, never a password. The records of users who were
//! added by command have their own.

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::records::PasswordKeys;
use crate::state::{ABOUT, State};
use crate::store::{Batch, Form, Table};

/// NT hashes by name of the account in lower case.
pub(crate) const ACCOUNTS: Table = Table { name: "accounts", form: Form::TextToHash };
/// [`AccountKeys`] as JSON, by name of the account in lower case.
const ACCOUNT_KEYS: Table = Table { name: "account-keys", form: Form::TextToBytes };
/// The realm of the accounts.
const REALM: &str = "realm";

/// The keys of an account's password, and which password that is: a program that knows no keys changes the hash alone.
#[derive(Serialize, Deserialize)]
struct AccountKeys {
    nt_hash: [u8; 16],
    keys: PasswordKeys,
}

impl State {
    /// Keeps the NT hash of an account's password, and its keys where they are known.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn set_account(&self, name: &str, nt_hash: [u8; 16], keys: Option<&PasswordKeys>) -> Result<()> {
        let name = name.to_lowercase();
        let mut changes = vec![ACCOUNTS.put(name.as_bytes(), &nt_hash)];
        if let Some(keys) = keys {
            let record = AccountKeys { nt_hash, keys: keys.clone() };
            let json = serde_json::to_vec(&record).map_err(|e| self.trouble(e))?;
            changes.push(ACCOUNT_KEYS.put(name.as_bytes(), &json));
        }
        self.change(changes)
    }

    /// The NT hash that was kept for an account.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn account(&self, name: &str) -> Result<Option<[u8; 16]>> {
        self.read(ACCOUNTS, &name.to_lowercase())?.map(|hash| self.number(hash)).transpose()
    }

    /// The keys that were kept for an account whose password has this NT hash; None: there are none, or they are those of
    /// another password.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn account_keys(&self, name: &str, nt_hash: &[u8; 16]) -> Result<Option<PasswordKeys>> {
        let Some(json) = self.read(ACCOUNT_KEYS, &name.to_lowercase())? else { return Ok(None) };
        let kept: AccountKeys = serde_json::from_slice(&json).map_err(|e| self.trouble(e))?;
        Ok((kept.nt_hash == *nt_hash).then_some(kept.keys))
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
        assert_eq!(state.account_keys("anna", &[7; 16]).unwrap(), None);
        state.set_account("Anna", [7; 16], Some(&keys(1))).unwrap();
        assert_eq!(state.account_keys("aNNA", &[7; 16]).unwrap(), Some(keys(1)));
        // As a program does that knows no keys.
        state.set_account("anna", [8; 16], None).unwrap();
        assert_eq!(state.account_keys("anna", &[8; 16]).unwrap(), None);
        state.set_account("anna", [8; 16], Some(&keys(2))).unwrap();
        assert_eq!(state.account_keys("anna", &[8; 16]).unwrap(), Some(keys(2)));
    }

    #[test]
    fn the_realm_stays_until_another_is_set() {
        let state = state();
        assert_eq!(state.realm(|| "FIRST".to_owned()).unwrap(), "FIRST");
        assert_eq!(state.realm(|| "SECOND".to_owned()).unwrap(), "FIRST");
        state.set_realm("THIRD").unwrap();
        assert_eq!(state.realm(|| "SECOND".to_owned()).unwrap(), "THIRD");
    }
}
