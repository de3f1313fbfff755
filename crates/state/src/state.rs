//! The state database: one file under the state directory.
//!
//! Holds what must be the same after a restart: who the server is, the key of NFS file handles, the
//! number of each share, its burst credits, and the accounts (their NT hashes, never a password).

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, TableDefinition, TableHandle};

use crate::lock::{Holder, Lock};
use crate::records::{ShareRecord, TokenRecord, UserRecord};
use crate::{Error, Result, copies, directory, image};

/// Single values by name.
const ABOUT: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("about");
/// Numbers of shares by name in lower case.
const SHARES: TableDefinition<'_, &str, u32> = TableDefinition::new("shares");
/// NT hashes by name of the account in lower case.
const ACCOUNTS: TableDefinition<'_, &str, [u8; 16]> = TableDefinition::new("accounts");

/// Burst credits that shares have left, by name in lower case.
const CREDITS: TableDefinition<'_, &str, u64> = TableDefinition::new("burst-credits");

/// The shares that were made by command, as JSON, by name in lower case.
const MADE_SHARES: Records = TableDefinition::new("made-shares");
/// The users who were added by command, as JSON, by folded name.
const ADDED_USERS: Records = TableDefinition::new("added-users");
/// The tokens of the control address that were made by command, as JSON, by name in lower case.
const TOKENS: Records = TableDefinition::new("tokens");
/// The highest number that a share was given.
const LAST_SHARE: &str = "last-share";

/// The version of what the tables hold; a database of another version is refused.
const FORMAT: u32 = 1;
pub(crate) const FILE: &str = "anabranch.redb";
/// Largest database that is looked at as a whole before it is used, and copied: it is in memory meanwhile.
const CHECKED_BYTES_MAX: u64 = 256 << 20;
/// How long a server waits for commands that have the directory.
const PATIENCE: Duration = Duration::from_secs(1);

/// The open state database. One process at a time has it.
pub struct State {
    database: Arc<Database>,
    file: PathBuf,
    /// None: it is in memory.
    _lock: Option<Lock>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("file", &self.file).finish_non_exhaustive()
    }
}

fn trouble(file: &Path, error: impl std::fmt::Display) -> Error {
    Error::new(format!("the state database {}: {error}", file.display()), "")
}

impl State {
    /// Opens the database below `directory`; makes both where they are missing, for their owner only.
    ///
    /// # Errors
    /// The directory cannot be made or written, another server has it, the database is damaged or of another version.
    pub fn open(directory: &Path) -> Result<Self> {
        Self::open_within(PATIENCE, directory)?.map_err(|holder| {
            Error::new(
                format!("the state directory {} is in use by another server: {holder}", directory.display()),
                "Stop that one, or pass another directory: --state DIR",
            )
        })
    }

    /// The same, without a wait for who has it; inside: another process has it.
    ///
    /// # Errors
    /// As above.
    pub fn open_unless_in_use(directory: &Path) -> Result<std::result::Result<Self, Holder>> {
        Self::open_within(Duration::ZERO, directory)
    }

    fn open_within(patience: Duration, directory: &Path) -> Result<std::result::Result<Self, Holder>> {
        directory::prepare(directory)?;
        let file = directory.join(FILE);
        let lock = match Lock::take(directory, patience).map_err(|e| trouble(&file, e))? {
            Ok(lock) => lock,
            Err(holder) => return Ok(Err(holder)),
        };
        match fs::metadata(&file) {
            Ok(found) => check_sound(directory, &file, found.len())?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => make(directory, &file)?,
            Err(e) => return Err(trouble(&file, e)),
        }
        let opened = image::quietly(|| match Database::open(&file) {
            Err(DatabaseError::DatabaseAlreadyOpen) => Ok(None),
            other => other.map(Some).map_err(|e| e.to_string()),
        });
        // Another server, of a version that takes no lock.
        let Some(database) = opened.map_err(|why| damaged(directory, &file, &why))? else {
            return Ok(Err(Holder::UNKNOWN));
        };
        let state = Self { database: Arc::new(database), file, _lock: Some(lock) };
        state.check_format()?;
        Ok(Ok(state))
    }

    /// A database that is only looked at.
    pub fn in_memory(database: Database) -> Self {
        Self { database: Arc::new(database), file: PathBuf::from(FILE), _lock: None }
    }

    /// Makes the last good copy anew. What is no good does not take the place of the one before.
    pub fn keep_copy(&self) {
        match self.copy() {
            Ok(()) => tracing::debug!("a copy of the state database is made"),
            Err(problem) => tracing::error!("no copy of the state database: {}", problem.what),
        }
    }

    fn copy(&self) -> Result<()> {
        let length = fs::metadata(&self.file).map_err(|e| self.trouble(e))?.len();
        if length > CHECKED_BYTES_MAX {
            let what = format!("of {length} bytes is too large to be copied while a server runs");
            let advice = "Copy it while none does: anabranch state backup FILE";
            return Err(Error::new(format!("{} {what}", self.file.display()), advice));
        }
        // Nothing is committed meanwhile.
        let transaction = self.database.begin_write().map_err(|e| self.trouble(e))?;
        let bytes = image::read(&self.file);
        transaction.abort().map_err(|e| self.trouble(e))?;
        let bytes = bytes.map_err(|e| self.trouble(e))?;
        let sound = image::checked(bytes).map_err(|damage| self.trouble(damage.0))?;
        let copy = copies::path(self.directory());
        copies::write(&copy, &sound).map_err(|e| trouble(&copy, e))
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        self.file.parent().unwrap_or(&self.file)
    }

    fn trouble(&self, error: impl std::fmt::Display) -> Error {
        trouble(&self.file, error)
    }

    fn check_format(&self) -> Result<()> {
        let found = self.lasting("format", || Ok(FORMAT.to_le_bytes()))?;
        if found == FORMAT.to_le_bytes() {
            return Ok(());
        }
        Err(Error::new(
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
    pub fn server_guid(&self) -> Result<[u8; 16]> {
        self.lasting("server-guid", || self.random())
    }

    /// The key that NFS file handles are signed with.
    pub fn nfs_handle_key(&self) -> Result<[u8; 16]> {
        self.lasting("nfs-handle-key", || self.random())
    }

    /// The number of a share: the same whenever a share of this name is served.
    pub fn share_id(&self, name: &str) -> Result<u32> {
        let name = name.to_lowercase();
        let transaction = self.database.begin_write().map_err(|e| self.trouble(e))?;
        let id = {
            let mut shares = transaction.open_table(SHARES).map_err(|e| self.trouble(e))?;
            let found = shares.get(name.as_str()).map_err(|e| self.trouble(e))?.map(|id| id.value());
            match found {
                Some(id) => id,
                None => {
                    // Also above those of shares that are gone: clients may have filehandles of them.
                    let mut about = transaction.open_table(ABOUT).map_err(|e| self.trouble(e))?;
                    let mut last = last_share(&about).map_err(|e| self.trouble(e))?;
                    for entry in shares.iter().map_err(|e| self.trouble(e))? {
                        last = last.max(entry.map_err(|e| self.trouble(e))?.1.value());
                    }
                    let id = last.checked_add(1).ok_or_else(|| self.trouble("no more numbers for shares"))?;
                    shares.insert(name.as_str(), id).map_err(|e| self.trouble(e))?;
                    about.insert(LAST_SHARE, id.to_le_bytes().as_slice()).map_err(|e| self.trouble(e))?;
                    id
                }
            }
        };
        transaction.commit().map_err(|e| self.trouble(e))?;
        Ok(id)
    }

    /// Keeps the NT hash of an account's password.
    pub fn set_account(&self, name: &str, nt_hash: [u8; 16]) -> Result<()> {
        let transaction = self.database.begin_write().map_err(|e| self.trouble(e))?;
        transaction
            .open_table(ACCOUNTS)
            .map_err(|e| self.trouble(e))?
            .insert(name.to_lowercase().as_str(), nt_hash)
            .map_err(|e| self.trouble(e))?;
        transaction.commit().map_err(|e| self.trouble(e))
    }

    /// The NT hash that was kept for an account.
    pub fn account(&self, name: &str) -> Result<Option<[u8; 16]>> {
        let transaction = self.database.begin_read().map_err(|e| self.trouble(e))?;
        let accounts = match transaction.open_table(ACCOUNTS) {
            Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
            other => other.map_err(|e| self.trouble(e))?,
        };
        Ok(accounts.get(name.to_lowercase().as_str()).map_err(|e| self.trouble(e))?.map(|hash| hash.value()))
    }

    /// The shares that were made by command.
    pub fn made_shares(&self) -> Result<Vec<ShareRecord>> {
        self.records(MADE_SHARES)
    }

    /// Keeps a share that was made by command.
    pub fn keep_share(&self, share: &ShareRecord) -> Result<()> {
        self.keep(MADE_SHARES, &share.name.to_lowercase(), share)
    }

    /// Forgets a share that was made by command, its number and what its store knew. The number is not given again.
    pub fn forget_share(&self, name: &str) -> Result<()> {
        self.forget_of_share(name, true)
    }

    /// Forgets the number of a share and what its store knew: another directory comes in its place.
    pub fn forget_share_number(&self, name: &str) -> Result<()> {
        self.forget_of_share(name, false)
    }

    fn forget_of_share(&self, name: &str, is_removed: bool) -> Result<()> {
        let name = name.to_lowercase();
        let forget = || -> std::result::Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            if is_removed {
                transaction.open_table(MADE_SHARES)?.remove(name.as_str())?;
            }
            transaction.open_table(SHARES)?.remove(name.as_str())?;
            transaction.open_table(CREDITS)?.remove(name.as_str())?;
            let of_store: Vec<_> = transaction
                .list_tables()?
                .filter(|table| table.name().strip_prefix(&store_tables(&name)).is_some())
                .collect();
            for table in of_store {
                transaction.delete_table(table)?;
            }
            Ok(transaction.commit()?)
        };
        forget().map_err(|e| self.trouble(e))
    }

    /// The burst credits that were written down for a share.
    pub fn credits(&self, name: &str) -> Result<Option<u64>> {
        let read = || -> std::result::Result<Option<u64>, redb::Error> {
            let transaction = self.database.begin_read()?;
            let credits = match transaction.open_table(CREDITS) {
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
                other => other?,
            };
            Ok(credits.get(name.to_lowercase().as_str())?.map(|left| left.value()))
        };
        read().map_err(|e| self.trouble(e))
    }

    /// Writes down the burst credits of shares; None: the share has no bursts. A share that is forgotten has none either.
    pub fn keep_credits(&self, shares: &[(String, Option<u64>)]) -> Result<()> {
        let keep = || -> std::result::Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            {
                let known = transaction.open_table(SHARES)?;
                let mut credits = transaction.open_table(CREDITS)?;
                for (name, left) in shares {
                    let name = name.to_lowercase();
                    match left.filter(|_| matches!(known.get(name.as_str()), Ok(Some(_)))) {
                        Some(left) => credits.insert(name.as_str(), left)?,
                        None => credits.remove(name.as_str())?,
                    };
                }
            }
            Ok(transaction.commit()?)
        };
        keep().map_err(|e| self.trouble(e))
    }

    /// The users who were added by command.
    pub fn added_users(&self) -> Result<Vec<UserRecord>> {
        self.records(ADDED_USERS)
    }

    /// Keeps a user who was added by command.
    pub fn keep_user(&self, user: &UserRecord) -> Result<()> {
        self.keep(ADDED_USERS, &auth::folded_name(&user.name), user)
    }

    /// Forgets a user who was added by command.
    pub fn forget_user(&self, name: &str) -> Result<()> {
        let forget = || -> std::result::Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            transaction.open_table(ADDED_USERS)?.remove(auth::folded_name(name).as_str())?;
            Ok(transaction.commit()?)
        };
        forget().map_err(|e| self.trouble(e))
    }

    /// The tokens that were made by command.
    pub fn made_tokens(&self) -> Result<Vec<TokenRecord>> {
        self.records(TOKENS)
    }

    /// Keeps a token that was made by command.
    pub fn keep_token(&self, token: &TokenRecord) -> Result<()> {
        self.keep(TOKENS, &token.name.to_ascii_lowercase(), token)
    }

    /// Forgets a token that was made by command.
    pub fn forget_token(&self, name: &str) -> Result<()> {
        let forget = || -> std::result::Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            transaction.open_table(TOKENS)?.remove(name.to_ascii_lowercase().as_str())?;
            Ok(transaction.commit()?)
        };
        forget().map_err(|e| self.trouble(e))
    }

    fn keep(&self, table: Records, key: &str, record: &impl serde::Serialize) -> Result<()> {
        let json = serde_json::to_vec(record).map_err(|e| self.trouble(e))?;
        let keep = || -> std::result::Result<(), redb::Error> {
            let transaction = self.database.begin_write()?;
            transaction.open_table(table)?.insert(key, json.as_slice())?;
            Ok(transaction.commit()?)
        };
        keep().map_err(|e| self.trouble(e))
    }

    fn records<T: serde::de::DeserializeOwned>(&self, table: Records) -> Result<Vec<T>> {
        let read = || -> std::result::Result<Vec<Vec<u8>>, redb::Error> {
            let transaction = self.database.begin_read()?;
            let table = match transaction.open_table(table) {
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
                other => other?,
            };
            let entries = table.iter()?;
            entries.map(|entry| Ok(entry?.1.value().to_vec())).collect()
        };
        let records = read().map_err(|e| self.trouble(e))?;
        let parse = |json: &Vec<u8>| serde_json::from_slice(json).map_err(|e| self.trouble(e));
        records.iter().map(parse).collect()
    }

    /// The database itself, for the crates that keep tables of their own in it.
    pub fn database(&self) -> Arc<Database> {
        Arc::clone(&self.database)
    }
}

type Records = TableDefinition<'static, &'static str, &'static [u8]>;

fn last_share(
    about: &impl ReadableTable<&'static str, &'static [u8]>,
) -> std::result::Result<u32, redb::StorageError> {
    let last = about.get(LAST_SHARE)?.and_then(|last| last.value().try_into().ok());
    Ok(last.map_or(0, u32::from_le_bytes))
}

/// How the names of the tables begin that the store of a share keeps.
fn store_tables(name: &str) -> String {
    format!("storage-local.{name}.")
}

/// Where the state database of a directory is.
pub fn file(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// Whether a state database is there.
pub fn exists(directory: &Path) -> bool {
    file(directory).exists()
}

/// Looks at a database before it is used.
fn check_sound(directory: &Path, file: &Path, length: u64) -> Result<()> {
    if length > CHECKED_BYTES_MAX {
        tracing::debug!("{} is too large to be looked at before it is used", file.display());
        return Ok(());
    }
    let bytes = image::read(file).map_err(|e| trouble(file, e))?;
    image::checked(bytes).map(drop).map_err(|damage| damaged(directory, file, &damage.0))
}

fn damaged(directory: &Path, file: &Path, why: &str) -> Error {
    let what = format!("the state database {} is damaged: {why}", file.display());
    Error::new(what, copies::advice(directory))
}

/// Makes a database, which is there whole or not at all.
fn make(directory: &Path, file: &Path) -> Result<()> {
    let copy = copies::path(directory);
    if copy.exists() {
        let what = format!("{} is gone, while {} is there", file.display(), copy.display());
        return Err(Error::new(what, copies::advice(directory)));
    }
    let refuse = |e: &dyn std::fmt::Display| trouble(file, e);
    let new = directory.join(format!("{FILE}.new"));
    match fs::remove_file(&new) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(refuse(&e)),
        _ => {}
    }
    // Made here and not by redb: nobody else is to read it at any time.
    OpenOptions::new().create_new(true).append(true).mode(0o600).open(&new).map_err(|e| refuse(&e))?;
    drop(Database::create(&new).map_err(|e| refuse(&e))?);
    fs::rename(&new, file).map_err(|e| refuse(&e))?;
    tracing::info!(
        "the state directory {} is new: so is this server to its clients, and nothing was made by command yet",
        directory.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

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
    fn the_number_of_a_share_that_is_gone_is_not_given_again() {
        let directory = tempfile::tempdir().unwrap();
        let state = open(&directory);
        assert_eq!((state.share_id("a").unwrap(), state.share_id("b").unwrap()), (1, 2));
        state.forget_share("B").unwrap();
        drop(state);
        let state = open(&directory);
        assert_eq!(state.share_id("b").unwrap(), 3);
        assert_eq!(state.share_id("a").unwrap(), 1);
    }

    #[test]
    fn what_was_made_by_command_is_there_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let state = open(&directory);
        assert_eq!((state.made_shares().unwrap(), state.added_users().unwrap()), (vec![], vec![]));
        let share =
            ShareRecord { name: "Data".to_owned(), directory: "/srv".into(), ..ShareRecord::default() };
        let user = UserRecord { name: "Anna".to_owned(), uid: Some(7), ..UserRecord::default() };
        state.keep_share(&share).unwrap();
        state.keep_user(&user).unwrap();
        drop(state);
        let state = open(&directory);
        assert_eq!((state.made_shares().unwrap(), state.added_users().unwrap()), (vec![share], vec![user]));
        state.forget_share("dATA").unwrap();
        state.forget_user("aNNA").unwrap();
        assert_eq!((state.made_shares().unwrap(), state.added_users().unwrap()), (vec![], vec![]));
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
        assert!(State::open(file.path()).unwrap_err().what.contains("cannot use the state directory"));
    }

    #[test]
    fn a_damaged_database_is_refused_and_stays_as_it_is() {
        let temporary = tempfile::tempdir().unwrap();
        let place = temporary.path().join("state");
        directory::prepare(&place).unwrap();
        let file = place.join(FILE);
        for bytes in [vec![b'x'; 8192], Vec::new()] {
            fs::write(&file, &bytes).unwrap();
            let problem = State::open(&place).unwrap_err();
            assert!(problem.what.contains("is damaged"), "{problem}");
            assert!(problem.advice.contains("no copy"), "{problem}");
            assert_eq!(fs::read(&file).unwrap(), bytes);
        }
    }

    #[test]
    fn the_last_good_copy_is_what_is_there_now_and_the_advice_names_it() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("state");
        let state = open(&directory);
        state.set_account("anna", [7; 16]).unwrap();
        state.keep_copy();
        state.set_account("anna", [8; 16]).unwrap();
        state.keep_copy();
        drop(state);
        let copy = State::in_memory(image::database(fs::read(copies::path(&place)).unwrap()).unwrap());
        assert_eq!(copy.account("anna").unwrap(), Some([8; 16]));
        fs::write(place.join(FILE), "").unwrap();
        let problem = State::open(&place).unwrap_err();
        assert!(problem.what.contains("it is empty") && problem.advice.contains("redb.good"), "{problem}");
        fs::remove_file(place.join(FILE)).unwrap();
        let problem = State::open(&place).unwrap_err();
        assert!(problem.what.contains("is gone") && problem.advice.contains("state restore"), "{problem}");
    }
}
