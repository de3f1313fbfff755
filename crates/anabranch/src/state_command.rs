//! `anabranch state`: whether the state database is sound, and copies of it.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use state::lock::Lock;
use state::{State, copies, image};

use crate::cli::StateCommand;
use crate::print::{counted, duration, print};
use crate::problem::{Cause, Problem, Result};

/// Carries out the command.
///
/// # Errors
/// The database or the copy is damaged, a server has the directory, or a file cannot be read or written.
pub(crate) fn run(command: &StateCommand) -> Result<()> {
    match command {
        StateCommand::Check(place) => check(&place.directory()),
        StateCommand::Backup { file, place } => backup(&place.directory(), file),
        StateCommand::Restore { file, place } => restore(&place.directory(), file.as_deref()),
    }
}

fn check(directory: &Path) -> Result<()> {
    let file = state::file(directory);
    let sound = sound(&file).map_err(|problem| Problem { advice: copies::advice(directory), ..problem })?;
    let state = State::in_memory(image::database(sound).map_err(|damage| damaged(&file, &damage.0))?);
    let (shares, users, tokens) = (state.made_shares()?, state.added_users()?, state.made_tokens()?);
    let mut text = format!(
        "{} is sound: {}, {} and {} created by command.\n",
        file.display(),
        counted(shares.len(), "share"),
        counted(users.len(), "user"),
        counted(tokens.len(), "token")
    );
    let copy = copies::path(directory);
    text += &match copies::age(&copy) {
        None => "There is no copy of the database beside it: a server makes one when it starts.\n".to_owned(),
        Some(age) => {
            let is = if self::sound(&copy).is_ok() { "is sound" } else { "is damaged" };
            format!("Its last good copy {is}: {}, made {} ago.\n", copy.display(), duration(age.as_secs()))
        }
    };
    print(&text)
}

fn backup(directory: &Path, file: &Path) -> Result<()> {
    let database = state::file(directory);
    let sound =
        sound(&database).map_err(|problem| Problem { advice: copies::advice(directory), ..problem })?;
    let trouble = |e: std::io::Error| {
        let what = format!("cannot write {}: {e}", file.display());
        let advice = if e.kind() == ErrorKind::AlreadyExists { "Name a new file." } else { "" };
        Problem::new(Cause::Refused, what, advice)
    };
    let mut open = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).map_err(trouble)?;
    open.write_all(&sound).and_then(|()| open.sync_all()).map_err(trouble)?;
    print(&format!(
        "{} was copied to {}. Keep the copy secret: it holds keys and password hashes.\n",
        database.display(),
        file.display()
    ))
}

fn restore(directory: &Path, file: Option<&Path>) -> Result<()> {
    let copy = file.map_or_else(|| copies::path(directory), Path::to_owned);
    state::directory::prepare(directory)?;
    let trouble = |e: std::io::Error| {
        let what = format!("cannot restore into the state directory {}: {e}", directory.display());
        Problem::new(Cause::State, what, "")
    };
    let lock = Lock::take(directory, Duration::ZERO).map_err(trouble)?.map_err(|holder| {
        let what = format!("the state directory {} is in use by {holder}", directory.display());
        Problem::new(Cause::Refused, what, "Stop that server first.")
    })?;
    let sound = sound(&copy)?;
    let kept = copies::put_in_place(directory, &sound).map_err(trouble)?;
    State::open_locked(lock, directory)?.note_deleted_shares_of_copy()?;
    let mut text = format!("{} was restored into {}.\n", copy.display(), directory.display());
    if let Some(kept) = kept {
        text += &format!("The previous database is kept: {}\n", kept.display());
    }
    print(&text)
}

/// A database that is sound, closed cleanly.
fn sound(file: &Path) -> Result<Vec<u8>> {
    let bytes = image::read(file).map_err(|e| {
        let what = format!("cannot read {}: {e}", file.display());
        Problem::new(Cause::State, what, "Name the state directory of the server: --state DIR")
    })?;
    image::checked(bytes).map_err(|damage| damaged(file, &damage.0))
}

fn damaged(file: &Path, why: &str) -> Problem {
    Problem::new(Cause::State, format!("{} is damaged: {why}", file.display()), "Take another copy.")
}
