//! The state database: one file under the state directory.
//!
//! Holds what must be the same after a restart: who the server is, the key of NFS file handles, the
//! number of each share, and the accounts (their NT hashes, never a password).

use std::fs::{self, DirBuilder, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition};

use crate::problem::{Cause, Problem, Result};

/// Single values by name.
const ABOUT: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("about");
/// Numbers of shares by name in lower case.
const SHARES: TableDefinition<'_, &str, u32> = TableDefinition::new("shares");
/// NT hashes by name of the account in lower case.
const ACCOUNTS: TableDefinition<'_, &str, [u8; 16]> = TableDefinition::new("accounts");

/// The version of what the tables hold; a database of another version is refused.
const FORMAT: u32 = 1;
const FILE: &str = "anabranch.redb";

/// The open state database. One process at a time has it.
pub(crate) struct State {
    database: Arc<Database>,
    file: PathBuf,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("file", &self.file).finish_non_exhaustive()
    }
}

fn trouble(file: &Path, error: impl std::fmt::Display) -> Problem {
    Problem::new(Cause::State, format!("the state database {}: {error}", file.display()), "")
}

impl State {
    /// Opens the database below `directory`; makes both where they are missing, for their owner only.
    ///
    /// # Errors
    /// The directory cannot be made or written, another server has it, or it is of another version.
    pub(crate) fn open(directory: &Path) -> Result<Self> {
        prepare_directory(directory)?;
        let file = directory.join(FILE);
        // Made here and not by redb: nobody else is to read it at any time.
        OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&file)
            .map_err(|e| trouble(&file, e))?;
        let database = Database::create(&file).map_err(|e| match e {
            DatabaseError::DatabaseAlreadyOpen => Problem::new(
                Cause::State,
                format!("the state directory {} is in use by another server", directory.display()),
                "Stop that one, or pass another directory: --state DIR",
            ),
            e => trouble(&file, e),
        })?;
        let state = Self { database: Arc::new(database), file };
        state.check_format()?;
        Ok(state)
    }

    fn trouble(&self, error: impl std::fmt::Display) -> Problem {
        trouble(&self.file, error)
    }

    fn check_format(&self) -> Result<()> {
        let found = self.lasting("format", || Ok(FORMAT.to_le_bytes()))?;
        if found == FORMAT.to_le_bytes() {
            return Ok(());
        }
        Err(Problem::new(
            Cause::State,
            format!(
                "{} is of version {}, this program reads version {FORMAT}",
                self.file.display(),
                u32::from_le_bytes(found)
            ),
            "Use the program that wrote it, or another directory: --state DIR",
        ))
    }

    /// The value of this name; the first time what `make` says, kept from then on.
    fn lasting<const N: usize>(&self, name: &str, make: impl FnOnce() -> Result<[u8; N]>) -> Result<[u8; N]> {
        let transaction = self.database.begin_write().map_err(|e| self.trouble(e))?;
        let value = {
            let mut about = transaction.open_table(ABOUT).map_err(|e| self.trouble(e))?;
            let found = about.get(name).map_err(|e| self.trouble(e))?.map(|v| v.value().to_vec());
            match found {
                Some(found) => found
                    .try_into()
                    .map_err(|_| self.trouble(format!("{name} has the wrong length: the file is damaged")))?,
                None => {
                    let value = make()?;
                    about.insert(name, value.as_slice()).map_err(|e| self.trouble(e))?;
                    value
                }
            }
        };
        transaction.commit().map_err(|e| self.trouble(e))?;
        Ok(value)
    }

    fn random(&self) -> Result<[u8; 16]> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|e| self.trouble(format!("no random numbers: {e}")))?;
        Ok(bytes)
    }

    /// Who this server is to SMB clients, for as long as its state lives.
    pub(crate) fn server_guid(&self) -> Result<[u8; 16]> {
        self.lasting("server-guid", || self.random())
    }

    /// The key that NFS file handles are signed with.
    pub(crate) fn nfs_handle_key(&self) -> Result<[u8; 16]> {
        self.lasting("nfs-handle-key", || self.random())
    }

    /// The number of a share: the same whenever a share of this name is served.
    pub(crate) fn share_id(&self, name: &str) -> Result<u32> {
        let name = name.to_lowercase();
        let transaction = self.database.begin_write().map_err(|e| self.trouble(e))?;
        let id = {
            let mut shares = transaction.open_table(SHARES).map_err(|e| self.trouble(e))?;
            let found = shares.get(name.as_str()).map_err(|e| self.trouble(e))?.map(|id| id.value());
            match found {
                Some(id) => id,
                None => {
                    let mut last = 0;
                    for entry in shares.iter().map_err(|e| self.trouble(e))? {
                        last = last.max(entry.map_err(|e| self.trouble(e))?.1.value());
                    }
                    let id = last.checked_add(1).ok_or_else(|| self.trouble("no more numbers for shares"))?;
                    shares.insert(name.as_str(), id).map_err(|e| self.trouble(e))?;
                    id
                }
            }
        };
        transaction.commit().map_err(|e| self.trouble(e))?;
        Ok(id)
    }

    /// Keeps the NT hash of an account's password.
    pub(crate) fn set_account(&self, name: &str, nt_hash: [u8; 16]) -> Result<()> {
        let transaction = self.database.begin_write().map_err(|e| self.trouble(e))?;
        transaction
            .open_table(ACCOUNTS)
            .map_err(|e| self.trouble(e))?
            .insert(name.to_lowercase().as_str(), nt_hash)
            .map_err(|e| self.trouble(e))?;
        transaction.commit().map_err(|e| self.trouble(e))
    }

    /// The NT hash that was kept for an account.
    pub(crate) fn account(&self, name: &str) -> Result<Option<[u8; 16]>> {
        let transaction = self.database.begin_read().map_err(|e| self.trouble(e))?;
        let accounts = match transaction.open_table(ACCOUNTS) {
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
            other => other.map_err(|e| self.trouble(e))?,
        };
        Ok(accounts.get(name.to_lowercase().as_str()).map_err(|e| self.trouble(e))?.map(|hash| hash.value()))
    }

    /// The database itself, for the crates that keep tables of their own in it.
    pub(crate) fn database(&self) -> Arc<Database> {
        Arc::clone(&self.database)
    }
}

fn prepare_directory(directory: &Path) -> Result<()> {
    let refuse = |e: std::io::Error| {
        Problem::new(
            Cause::State,
            format!("cannot use the state directory {}: {e}", directory.display()),
            "Pass a directory that this user may write: --state DIR",
        )
    };
    match fs::metadata(directory) {
        Ok(found) if !found.is_dir() => return Err(refuse(std::io::ErrorKind::NotADirectory.into())),
        Ok(_) => {}
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(refuse)?;
        }
        Err(e) => return Err(refuse(e)),
    }
    let mode = fs::metadata(directory).map_err(refuse)?.permissions().mode();
    if mode & 0o077 != 0 {
        tracing::warn!(
            "others may look into the state directory {} (mode {:o})",
            directory.display(),
            mode & 0o777
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(directory: &tempfile::TempDir) -> State {
        State::open(&directory.path().join("state")).unwrap()
    }

    #[test]
    fn what_must_last_is_the_same_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let state = open(&directory);
        let before = (state.server_guid().unwrap(), state.nfs_handle_key().unwrap());
        assert_ne!(before.0, before.1);
        assert_eq!((state.share_id("a").unwrap(), state.share_id("B").unwrap()), (1, 2));
        state.set_account("Anna", [7; 16]).unwrap();
        drop(state);
        let state = open(&directory);
        assert_eq!((state.server_guid().unwrap(), state.nfs_handle_key().unwrap()), before);
        assert_eq!((state.share_id("b").unwrap(), state.share_id("A").unwrap()), (2, 1));
        assert_eq!(state.share_id("c").unwrap(), 3);
        assert_eq!(state.account("anna").unwrap(), Some([7; 16]));
        assert_eq!(state.account("otto").unwrap(), None);
    }

    #[test]
    fn only_the_owner_can_look_into_it() {
        let directory = tempfile::tempdir().unwrap();
        drop(open(&directory));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&directory.path().join("state")), 0o700);
        assert_eq!(mode(&directory.path().join("state").join(FILE)), 0o600);
    }

    #[test]
    fn a_second_server_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let _first = open(&directory);
        let problem = State::open(&directory.path().join("state")).unwrap_err();
        assert_eq!(problem.cause, Cause::State);
        assert!(problem.what.contains("in use by another server"), "{problem}");
    }

    #[test]
    fn another_version_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let state = open(&directory);
        let transaction = state.database.begin_write().unwrap();
        transaction.open_table(ABOUT).unwrap().insert("format", 2_u32.to_le_bytes().as_slice()).unwrap();
        transaction.commit().unwrap();
        drop(state);
        let problem = State::open(&directory.path().join("state")).unwrap_err();
        assert!(problem.what.contains("version 2"), "{problem}");
    }

    #[test]
    fn a_file_in_its_place_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(State::open(file.path()).unwrap_err().cause, Cause::State);
    }

    #[test]
    fn a_damaged_database_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(FILE), vec![b'x'; 8192]).unwrap();
        assert_eq!(State::open(directory.path()).unwrap_err().cause, Cause::State);
    }
}
