//! The state database: one file under the state directory.
//!
//! Holds what must be the same after a restart: who the server is, the key of NFS filehandles, the
//! number of each share, its burst credits, and the accounts (hashes and keys of passwords, never a password).

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use redb::{Database, DatabaseError};
use storage_local::HandleRecords;

use crate::account_domain::RIDS;
use crate::handles::HandleTables;
use crate::lock::{Holder, Lock};
use crate::records::{ShareRecord, TokenRecord, UserRecord};
use crate::redb_store::RedbStore;
use crate::server_records::ServerRecords;
use crate::state_file::{Closed, StateFile};
use crate::store::{Batch, Change, Form, Store, Table};
use crate::{Error, Result, copies, directory, image};

/// The shares that were created by command, as JSON, by name in lower case.
pub(crate) const MADE_SHARES: Table = Table { name: "made-shares", form: Form::TextToBytes };
/// The users who were added by command, as JSON, by folded name.
pub(crate) const ADDED_USERS: Table = Table { name: "added-users", form: Form::TextToBytes };
/// The tokens of the control address that were created by command, as JSON, by name in lower case.
pub(crate) const TOKENS: Table = Table { name: "tokens", form: Form::TextToBytes };

/// The version of what the tables hold; a database of another version is refused.
const FORMAT: u32 = 1;
pub(crate) const FILE: &str = "anabranch.redb";
/// Largest database that is looked at as a whole before it is used, and copied: it is in memory meanwhile.
const CHECKED_BYTES_MAX: u64 = 256 << 20;
/// How long a server waits for commands that have the directory.
const PATIENCE: Duration = Duration::from_secs(1);

/// The open state database. One process at a time has it, until all that share the database have dropped it.
pub struct State {
    server: ServerRecords,
    /// What its store is, and what local directories keep their handles in.
    pub(crate) database: Arc<Database>,
    file: PathBuf,
    closed: Closed,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("file", &self.file).finish_non_exhaustive()
    }
}

fn trouble(file: &Path, error: impl std::fmt::Display) -> Error {
    Error::new(format!("the state database {}: {error}", file.display()), "")
}

fn in_use(directory: &Path, holder: &Holder) -> Error {
    Error::new(
        format!("the state directory {} is in use by another server: {holder}", directory.display()),
        "Stop that server, wait for it with --wait-for-state, or pass another directory: --state DIR",
    )
}

impl State {
    /// Opens the database below `directory`; makes both where they are missing, for their owner only.
    ///
    /// # Errors
    /// The directory cannot be made or written, another server has it, the database is damaged or of another version.
    pub fn open(directory: &Path) -> Result<Self> {
        Self::open_within(PATIENCE, directory)?.map_err(|holder| in_use(directory, &holder))
    }

    /// The same, without a wait for who has it; inside: another process has it.
    ///
    /// # Errors
    /// As above.
    pub fn open_unless_in_use(directory: &Path) -> Result<std::result::Result<Self, Holder>> {
        Self::open_within(Duration::ZERO, directory)
    }

    /// Opens the database below `directory`, on which this process has the lock already.
    ///
    /// # Errors
    /// As above.
    pub fn open_locked(lock: Lock, directory: &Path) -> Result<Self> {
        directory::check(directory)?;
        Self::open_under(lock, directory)?.map_err(|holder| in_use(directory, &holder))
    }

    fn open_within(patience: Duration, directory: &Path) -> Result<std::result::Result<Self, Holder>> {
        directory::prepare(directory)?;
        let taken = Lock::take(directory, patience).map_err(|e| trouble(&directory.join(FILE), e))?;
        match taken {
            Ok(lock) => Self::open_under(lock, directory),
            Err(holder) => Ok(Err(holder)),
        }
    }

    fn open_under(lock: Lock, directory: &Path) -> Result<std::result::Result<Self, Holder>> {
        let file = directory.join(FILE);
        match fs::metadata(&file) {
            Ok(found) => check_sound(directory, &file, found.len())?,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => make(directory, &file)?,
            Err(e) => return Err(trouble(&file, e)),
        }
        let opened = OpenOptions::new().read(true).write(true).open(&file);
        let opened =
            StateFile::new(opened.map_err(|e| trouble(&file, e))?, lock).map_err(|e| trouble(&file, e))?;
        let closed = opened.closed();
        let opened = image::quietly(|| match Database::builder().create_with_backend(opened) {
            Err(DatabaseError::DatabaseAlreadyOpen) => Ok(None),
            other => other.map(Some).map_err(|e| e.to_string()),
        });
        // Another server, of a version that takes no lock.
        let Some(database) = opened.map_err(|why| damaged(directory, &file, &why))? else {
            return Ok(Err(Holder::UNKNOWN));
        };
        let state = Self::of(database, file, closed);
        state.check_format()?;
        Ok(Ok(state))
    }

    /// A database that is only looked at.
    pub fn in_memory(database: Database) -> Self {
        Self::of(database, PathBuf::from(FILE), Closed::default())
    }

    fn of(database: Database, file: PathBuf, closed: Closed) -> Self {
        let database = Arc::new(database);
        let store = Arc::new(RedbStore(Arc::clone(&database)));
        let server = ServerRecords::new(store, format!("the state database {}", file.display()));
        Self { server, database, file, closed }
    }

    /// Tells when the directory is free: when all that share the database have dropped it. One that is in memory never tells.
    pub fn closed(&self) -> Closed {
        self.closed.clone()
    }

    /// Makes the last good copy anew. What is no good does not take the place of the one before.
    pub fn keep_copy(&self) {
        match self.copy() {
            Ok(()) => tracing::debug!("the state database was copied"),
            Err(problem) => tracing::error!("no copy of the state database: {}", problem.what),
        }
    }

    pub(crate) fn copy(&self) -> Result<()> {
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

    pub(crate) fn trouble(&self, error: impl std::fmt::Display) -> Error {
        self.server.trouble(error)
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

    /// What this machine remembers as a server.
    pub fn server(&self) -> &ServerRecords {
        &self.server
    }

    pub(crate) fn lasting<const N: usize>(
        &self,
        name: &str,
        make: impl Fn() -> Result<[u8; N]>,
    ) -> Result<[u8; N]> {
        self.server.lasting(name, make)
    }

    pub(crate) fn read(&self, table: Table, key: &str) -> Result<Option<Vec<u8>>> {
        self.server.read(table, key)
    }

    pub(crate) fn write(&self, batch: &Batch) -> Result<bool> {
        self.server.write(batch)
    }

    pub(crate) fn number<const N: usize>(&self, bytes: Vec<u8>) -> Result<[u8; N]> {
        self.server.number(bytes)
    }

    /// Writes whatever there is.
    pub(crate) fn change(&self, changes: Vec<Change>) -> Result<()> {
        self.write(&changes.into()).map(drop)
    }

    /// The shares that were created by command.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn made_shares(&self) -> Result<Vec<ShareRecord>> {
        Ok(self.records(MADE_SHARES)?.into_iter().map(ShareRecord::of_kept).collect())
    }

    /// Keeps a share that was created by command.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn keep_share(&self, share: &ShareRecord) -> Result<()> {
        self.keep(MADE_SHARES, &share.name.to_lowercase(), &share.kept())
    }

    /// Forgets a share that was created by command, its number and what its store knew. The number is not given again.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn forget_share(&self, name: &str) -> Result<()> {
        self.forget_of_share(name, true)
    }

    /// Forgets the number of a share and what its store knew: another directory comes in its place.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn forget_share_number(&self, name: &str) -> Result<()> {
        self.forget_of_share(name, false)
    }

    fn forget_of_share(&self, name: &str, is_removed: bool) -> Result<()> {
        self.change(Self::without_share(name, is_removed))
    }

    /// The users who were added by command.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn added_users(&self) -> Result<Vec<UserRecord>> {
        self.records(ADDED_USERS)
    }

    /// Keeps a user who was added by command.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn keep_user(&self, user: &UserRecord) -> Result<()> {
        self.keep(ADDED_USERS, &auth::folded_name(&user.name), user)
    }

    /// Forgets a user who was added by command, and the RID: the next user of that name is another.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn forget_user(&self, name: &str) -> Result<()> {
        let name = auth::folded_name(name);
        self.change(vec![ADDED_USERS.remove(name.as_bytes()), RIDS.remove(name.as_bytes())])
    }

    /// The tokens that were created by command.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn made_tokens(&self) -> Result<Vec<TokenRecord>> {
        self.records(TOKENS)
    }

    /// Keeps a token that was created by command.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn keep_token(&self, token: &TokenRecord) -> Result<()> {
        self.keep(TOKENS, &token.name.to_ascii_lowercase(), token)
    }

    /// Forgets a token that was created by command.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn forget_token(&self, name: &str) -> Result<()> {
        self.change(vec![TOKENS.remove(name.to_ascii_lowercase().as_bytes())])
    }

    pub(crate) fn keep(&self, table: Table, key: &str, record: &impl serde::Serialize) -> Result<()> {
        let json = serde_json::to_vec(record).map_err(|e| self.trouble(e))?;
        self.change(vec![table.put(key.as_bytes(), &json)])
    }

    pub(crate) fn records<T: serde::de::DeserializeOwned>(&self, table: Table) -> Result<Vec<T>> {
        let records = self.server.store().scan(table).map_err(|e| self.trouble(e))?;
        records.iter().map(|(_, json)| serde_json::from_slice(json).map_err(|e| self.trouble(e))).collect()
    }

    /// The store itself, for tables that others have in it.
    pub fn store(&self) -> Arc<dyn Store> {
        self.server.store()
    }

    /// The records of the handles of a local directory, by the name of its share in lower case. They belong to this machine,
    /// wherever the rest is kept.
    pub fn handle_records(&self, share: &str) -> Arc<dyn HandleRecords> {
        Arc::new(HandleTables::new(Arc::clone(&self.database), share.to_owned()))
    }
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

/// Where a database is made that is to take the place of another.
pub(crate) fn new_file(directory: &Path) -> PathBuf {
    directory.join(format!("{FILE}.new"))
}

/// Makes a database in this file, in place of one that was not finished.
pub(crate) fn create(new: &Path) -> Result<Database> {
    let refuse = |e: &dyn std::fmt::Display| trouble(new, e);
    match fs::remove_file(new) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(refuse(&e)),
        _ => {}
    }
    // Made here and not by redb: nobody else is to read it at any time.
    OpenOptions::new().create_new(true).append(true).mode(0o600).open(new).map_err(|e| refuse(&e))?;
    Database::create(new).map_err(|e| refuse(&e))
}

/// Makes a database, which is there whole or not at all.
fn make(directory: &Path, file: &Path) -> Result<()> {
    let copy = copies::path(directory);
    if copy.exists() {
        let what = format!("{} is gone, while {} is there", file.display(), copy.display());
        return Err(Error::new(what, copies::advice(directory)));
    }
    let refuse = |e: &dyn std::fmt::Display| trouble(file, e);
    let new = new_file(directory);
    drop(create(&new)?);
    fs::rename(&new, file).map_err(|e| refuse(&e))?;
    tracing::info!(
        "the state directory {} is new: clients see a new server, and nothing has been created by command yet",
        directory.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::accounts::ACCOUNTS;
    use crate::records::Secrets;
    use crate::server_records::{ABOUT, SHARES};

    fn open(directory: &tempfile::TempDir) -> State {
        State::open(&directory.path().join("state")).unwrap()
    }

    #[test]
    fn what_must_last_is_the_same_after_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let state = open(&directory);
        let before = (state.server().server_guid().unwrap(), state.server().nfs_handle_key().unwrap());
        assert_ne!(before.0, before.1);
        assert_eq!((state.server().share_id("a").unwrap(), state.server().share_id("B").unwrap()), (1, 2));
        state.set_account("Anna", &Secrets::of_hash(7)).unwrap();
        drop(state);
        let state = open(&directory);
        assert_eq!((state.server().server_guid().unwrap(), state.server().nfs_handle_key().unwrap()), before);
        assert_eq!((state.server().share_id("b").unwrap(), state.server().share_id("A").unwrap()), (2, 1));
        assert_eq!(state.server().share_id("c").unwrap(), 3);
        assert_eq!(state.account("anna").unwrap(), Some(Secrets::of_hash(7)));
        assert_eq!(state.account("otto").unwrap(), None);
    }

    #[test]
    fn the_number_of_a_share_that_is_gone_is_not_given_again() {
        let directory = tempfile::tempdir().unwrap();
        let state = open(&directory);
        assert_eq!((state.server().share_id("a").unwrap(), state.server().share_id("b").unwrap()), (1, 2));
        state.forget_share("B").unwrap();
        drop(state);
        let state = open(&directory);
        assert_eq!(state.server().share_id("b").unwrap(), 3);
        assert_eq!(state.server().share_id("a").unwrap(), 1);
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
    fn the_directory_is_free_when_the_last_who_shares_the_database_has_dropped_it() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("state");
        let state = open(&directory);
        let (shared, closed) = (state.handle_records("data"), state.closed());
        drop(state);
        assert!(State::open_unless_in_use(&place).unwrap().is_err() && !closed.within(Duration::ZERO));
        drop(shared);
        assert!(closed.within(Duration::ZERO));
        State::open_unless_in_use(&place).unwrap().unwrap();
    }

    #[test]
    fn another_version_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let state = open(&directory);
        state.change(vec![ABOUT.put(b"format", &2_u32.to_le_bytes())]).unwrap();
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
        state.set_account("anna", &Secrets::of_hash(7)).unwrap();
        state.keep_copy();
        state.set_account("anna", &Secrets::of_hash(8)).unwrap();
        state.keep_copy();
        drop(state);
        let copy = State::in_memory(image::database(fs::read(copies::path(&place)).unwrap()).unwrap());
        assert_eq!(copy.account("anna").unwrap(), Some(Secrets::of_hash(8)));
        fs::write(place.join(FILE), "").unwrap();
        let problem = State::open(&place).unwrap_err();
        assert!(problem.what.contains("it is empty") && problem.advice.contains("redb.good"), "{problem}");
        fs::remove_file(place.join(FILE)).unwrap();
        let problem = State::open(&place).unwrap_err();
        assert!(problem.what.contains("is gone") && problem.advice.contains("state restore"), "{problem}");
    }

    #[test]
    fn what_a_table_cannot_hold_is_refused() {
        let state = open_in_memory();
        for wrong in [SHARES.put(b"a", &[1]), SHARES.put(&[255], &[0; 4]), ACCOUNTS.put(b"a", &[0; 15])] {
            let problem = state.change(vec![wrong]).unwrap_err();
            assert!(problem.what.contains("holds no such thing"), "{problem}");
        }
    }

    fn open_in_memory() -> State {
        let backend = redb::backends::InMemoryBackend::new();
        State::in_memory(Database::builder().create_with_backend(backend).unwrap())
    }
}
