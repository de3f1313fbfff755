//! A state without NT hashes: none is kept, and none is left in the files.
//!
//! A database does not overwrite what it removes: the bytes stay in pages that are free until something else is written there.
//! So the tables are copied into a new file, which takes the place of the old one, and the last good copy is made anew.

use std::borrow::Borrow;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use redb::{
    Database, Key, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, TableHandle, Value,
    WriteTransaction,
};
use storage_local::HandleKey;

use crate::account_domain::RIDS;
use crate::accounts::{ACCOUNT_KEYS, ACCOUNTS, AccountKeys, DOMAIN_SLICES};
use crate::handles::{self, OnDisk};
use crate::records::UserRecord;
use crate::server_records::{ABOUT, CREDITS, SHARES};
use crate::state::{self, ADDED_USERS, FILE, MADE_SHARES, State, TOKENS};
use crate::store::{Change, Form, StoreError, Table};
use crate::{Error, Result, copies, lock_hosts, nfs_clients, persistent_opens};

/// What became of the NT hashes: [`LEAVING`] or [`NONE`]; not there: they are kept.
const NT_HASHES: &str = "nt-hashes";
/// They are in no record any more, and may be in the files.
const LEAVING: &[u8] = b"leaving";
/// There are none, and none is kept.
const NONE: &[u8] = b"none";
/// How long the old database may take to be closed.
const CLOSING: Duration = Duration::from_secs(10);
/// All tables but those of handles.
const TABLES: [Table; 13] = [
    ABOUT,
    SHARES,
    CREDITS,
    MADE_SHARES,
    ADDED_USERS,
    TOKENS,
    ACCOUNTS,
    ACCOUNT_KEYS,
    RIDS,
    DOMAIN_SLICES,
    persistent_opens::OPENS,
    nfs_clients::CLIENTS,
    lock_hosts::HOSTS,
];

impl State {
    /// Whether NT hashes of passwords are kept.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn keeps_nt_hashes(&self) -> Result<bool> {
        Ok(self.read(ABOUT, NT_HASHES)?.is_none())
    }

    /// Keeps NT hashes of the passwords that are set from now on.
    ///
    /// # Errors
    /// The database cannot be used.
    pub fn keep_nt_hashes(&self) -> Result<()> {
        if self.keeps_nt_hashes()? {
            return Ok(());
        }
        self.change(vec![ABOUT.remove(NT_HASHES.as_bytes())])
    }

    /// The state without any NT hash, in a file of its own that has never held one. None is kept from now on. Nobody else may
    /// have this database open.
    ///
    /// # Errors
    /// The database cannot be used or written anew, or has a table that this program does not know.
    pub fn without_nt_hashes(self) -> Result<Self> {
        if self.read(ABOUT, NT_HASHES)?.as_deref() == Some(NONE) {
            return Ok(self);
        }
        self.drop_from_records()?;
        let directory = self.directory().to_owned();
        let new = state::new_file(&directory);
        copy(&self.database, &state::create(&new)?).map_err(|e| self.trouble(e))?;
        fs::rename(&new, state::file(&directory)).map_err(|e| self.trouble(e))?;
        let closed = self.closed();
        drop(self);
        if !closed.within(CLOSING) {
            let what = format!("the state database in {} is still in use", directory.display());
            return Err(Error::new(what, "Start the server again."));
        }
        let state = Self::open(&directory)?;
        state.replace_copy()?;
        state.change(vec![ABOUT.put(NT_HASHES.as_bytes(), NONE)])?;
        tracing::info!("NT hashes: all were dropped, the state database was written anew");
        for kept in replaced(&directory)? {
            tracing::warn!(
                "{} is from before: it may hold NT hashes of passwords. Delete it when it is not needed any more",
                kept.display()
            );
        }
        Ok(state)
    }

    /// Takes the hashes out of all records, at once.
    fn drop_from_records(&self) -> Result<()> {
        let scan = |table| self.store().scan(table).map_err(|e| self.trouble(e));
        let mut changes = vec![ABOUT.put(NT_HASHES.as_bytes(), LEAVING)];
        for (name, _) in scan(ACCOUNTS)? {
            let name = String::from_utf8(name).map_err(|e| self.trouble(e))?;
            let keys = self.account(&name)?.and_then(|secrets| secrets.keys);
            let record = AccountKeys { nt_hash: None, keys };
            changes.push(ACCOUNTS.remove(name.as_bytes()));
            changes.push(self.json(ACCOUNT_KEYS, name.as_bytes(), &record)?);
        }
        for (name, json) in scan(ADDED_USERS)? {
            let user: UserRecord = serde_json::from_slice(&json).map_err(|e| self.trouble(e))?;
            changes.push(self.json(ADDED_USERS, &name, &UserRecord { nt_hash: None, ..user })?);
        }
        self.change(changes)
    }

    fn json(&self, table: Table, key: &[u8], record: &impl serde::Serialize) -> Result<Change> {
        Ok(table.put(key, &serde_json::to_vec(record).map_err(|e| self.trouble(e))?))
    }

    /// Makes the last good copy anew; what cannot be copied has no copy any more.
    fn replace_copy(&self) -> Result<()> {
        let copy = copies::path(self.directory());
        let Err(problem) = self.copy() else { return Ok(()) };
        tracing::warn!("no copy of the state database: {}", problem.what);
        match fs::remove_file(&copy) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(self.trouble(e)),
            _ => Ok(()),
        }
    }
}

/// The databases that were replaced by a copy, and are kept.
fn replaced(directory: &std::path::Path) -> Result<Vec<PathBuf>> {
    let refuse = |e: std::io::Error| Error::new(format!("{}: {e}", directory.display()), "");
    let prefix = format!("{FILE}.replaced-");
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(refuse)? {
        let entry = entry.map_err(refuse)?;
        if entry.file_name().to_string_lossy().starts_with(&prefix) {
            found.push(entry.path());
        }
    }
    Ok(found)
}

/// Copies all tables. What is written is on stable storage.
fn copy(from: &Database, to: &Database) -> std::result::Result<(), StoreError> {
    let (from, to) = (from.begin_read()?, to.begin_write()?);
    let names: Vec<String> = from.list_tables()?.map(|table| table.name().to_owned()).collect();
    for name in &names {
        copy_table(&from, &to, name)?;
    }
    to.commit()?;
    Ok(())
}

fn copy_table(
    from: &ReadTransaction,
    to: &WriteTransaction,
    name: &str,
) -> std::result::Result<(), StoreError> {
    if name == handles::KEYS.name() {
        return copy_typed::<&str, HandleKey>(from, to, name);
    }
    if handles::is_names_table(name) {
        return copy_typed::<u64, OnDisk<'static>>(from, to, name);
    }
    let known = TABLES.iter().find(|table| table.name == name);
    match known.ok_or_else(|| format!("the table {name} is not one that this program knows"))?.form {
        Form::TextToBytes => copy_typed::<&str, &[u8]>(from, to, name),
        Form::TextToU32 => copy_typed::<&str, u32>(from, to, name),
        Form::TextToU64 => copy_typed::<&str, u64>(from, to, name),
        Form::TextToHash => copy_typed::<&str, [u8; 16]>(from, to, name),
        Form::NumberToBytes => copy_typed::<u64, &[u8]>(from, to, name),
        Form::BytesToNothing => copy_typed::<&[u8], ()>(from, to, name),
    }
}

fn copy_typed<K: Key + 'static, V: Value + 'static>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    name: &str,
) -> std::result::Result<(), StoreError> {
    let definition = TableDefinition::<K, V>::new(name);
    let source = from.open_table(definition)?;
    let mut target = to.open_table(definition)?;
    for entry in source.iter()? {
        let (key, value) = entry?;
        target.insert(key.value().borrow(), value.value().borrow())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use storage_local::NameRecord;

    use super::*;
    use crate::records::{PasswordKeys, Secrets};

    const HASHES: [[u8; 16]; 3] = [*b"hash of anna 123", *b"hash of otto 456", *b"hash of zoe 7890"];

    /// Whether a file of the directory has one of the hashes, as bytes or in JSON.
    fn has_hashes(directory: &Path) -> bool {
        let written = |hash: &[u8; 16]| hash.map(|byte| byte.to_string()).join(",").into_bytes();
        let forms: Vec<Vec<u8>> = HASHES.iter().flat_map(|hash| [hash.to_vec(), written(hash)]).collect();
        let has = |bytes: &[u8]| forms.iter().any(|form| bytes.windows(form.len()).any(|part| part == form));
        fs::read_dir(directory).unwrap().any(|entry| has(&fs::read(entry.unwrap().path()).unwrap()))
    }

    fn user(keys: Option<PasswordKeys>) -> UserRecord {
        UserRecord { name: "Zoe".to_owned(), nt_hash: Some(HASHES[2]), keys, ..UserRecord::default() }
    }

    /// A state that has had hashes in many places.
    fn with_hashes(directory: &Path) -> State {
        let state = State::open(directory).unwrap();
        let keys = PasswordKeys { salt: "Ranna".to_owned(), ..PasswordKeys::of_bytes(3) };
        let anna = Secrets { nt_hash: Some(HASHES[0]), keys: Some(keys) };
        state.set_account("anna", &anna).unwrap();
        state.set_account("otto", &Secrets { nt_hash: Some(HASHES[1]), keys: None }).unwrap();
        state.keep_user(&user(Some(PasswordKeys::of_bytes(4)))).unwrap();
        let record =
            NameRecord { generation: 1, directory: 2, directory_generation: 3, name: b"name".to_vec() };
        let records: Vec<_> = (0..500).map(|object| (object, record.clone())).collect();
        state.handle_records("data").key([9; 16]).unwrap();
        state.handle_records("data").enter(&records).unwrap();
        state.server().share_id("data").unwrap();
        state.server().keep_credits(&[("data".to_owned(), Some(1))]).unwrap();
        state.keep_copy();
        state
    }

    #[test]
    fn nothing_is_left_of_the_hashes_and_all_else_stays() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("state");
        let state = with_hashes(&directory);
        let guid = state.server().server_guid().unwrap();
        assert!(has_hashes(&directory) && state.keeps_nt_hashes().unwrap());

        let state = state.without_nt_hashes().unwrap();
        assert!(!has_hashes(&directory) && !state.keeps_nt_hashes().unwrap());
        assert_eq!(state.server().server_guid().unwrap(), guid);
        let anna = state.account("Anna").unwrap().unwrap();
        assert_eq!((anna.nt_hash, anna.keys.unwrap().salt.as_str()), (None, "Ranna"));
        // It had a password once, which is not known any more.
        assert_eq!(state.account("otto").unwrap(), Some(Secrets::default()));
        assert_eq!(
            state.added_users().unwrap(),
            [UserRecord { nt_hash: None, ..user(Some(PasswordKeys::of_bytes(4))) }]
        );
        let records = state.handle_records("data");
        assert_eq!(records.key([8; 16]).unwrap(), [9; 16]);
        assert!(
            records
                .names(&[0, 499])
                .unwrap()
                .iter()
                .all(|name| name.as_ref().is_some_and(|name| name.name == b"name"))
        );
        assert_eq!(
            (state.server().credits("data").unwrap(), state.server().share_id("data").unwrap()),
            (Some(1), 1)
        );
        drop((records, state));

        // Once is enough; and from then on they are kept again.
        let state = State::open(&directory).unwrap().without_nt_hashes().unwrap();
        state.keep_nt_hashes().unwrap();
        assert!(state.keeps_nt_hashes().unwrap());
        let new = Secrets { nt_hash: Some(HASHES[0]), keys: None };
        state.set_account("anna", &new).unwrap();
        assert_eq!(state.account("anna").unwrap(), Some(new));
    }

    #[test]
    fn what_was_interrupted_is_finished_at_the_next_start() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("state");
        let state = with_hashes(&directory);
        // The records are without, the pages that held them are not.
        state.drop_from_records().unwrap();
        drop(state);
        assert!(has_hashes(&directory));
        let state = State::open(&directory).unwrap();
        assert!(!state.keeps_nt_hashes().unwrap());
        drop(state.without_nt_hashes().unwrap());
        assert!(!has_hashes(&directory));
    }

    #[test]
    fn a_table_of_another_program_is_not_lost() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path().join("state");
        let state = with_hashes(&directory);
        let transaction = state.database.begin_write().unwrap();
        transaction.open_table(TableDefinition::<u64, u64>::new("later")).unwrap().insert(1, 2).unwrap();
        transaction.commit().unwrap();
        let refused = state.without_nt_hashes().unwrap_err();
        assert!(refused.what.contains("the table later"), "{}", refused.what);
        let state = State::open(&directory).unwrap();
        assert!(
            state
                .database
                .begin_read()
                .unwrap()
                .open_table(TableDefinition::<u64, u64>::new("later"))
                .is_ok()
        );
    }
}
