//! Removes directories that the server made in pools and that belong to no share any more.

mod remover;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use state::AbandonedDirectory;
use storage_local::{PoolError, Removal};

use crate::apart::mounted_below;
use crate::in_time::Silent;
use crate::pools;

pub(crate) use self::remover::Remover;

/// How often that is tried again which does not succeed.
const AGAIN: Duration = Duration::from_secs(30);

/// What is known of the directories that are to be removed.
#[derive(Debug, Default)]
pub(crate) struct Abandoned {
    /// Guards what stands against the removal of each, by the number of its mark.
    problems: Mutex<HashMap<String, String>>,
    /// Guards whether there may be a new one.
    is_new: Mutex<bool>,
    changed: Condvar,
}

/// What has become of a directory.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It is gone, or was never made.
    Gone,
    /// What is there stays, and is not looked at again; why.
    Stays(&'static str),
    /// It goes on with the next start.
    Stopped,
    /// It is tried again.
    Failed(String),
}

impl Abandoned {
    /// What stands against the removal of a directory.
    pub(crate) fn problem(&self, mark: &str) -> Option<String> {
        self.problems.lock().get(mark).cloned()
    }

    /// Has the directories looked at: there may be a new one.
    pub(crate) fn wake(&self) {
        *self.is_new.lock() = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let mut is_new = self.is_new.lock();
        if !*is_new {
            let _ = self.changed.wait_for(&mut is_new, AGAIN);
        }
        *is_new = false;
    }

    /// Removes a directory. Whether it is to be forgotten.
    fn remove(&self, directory: &AbandonedDirectory, silent: &Arc<Silent>, stop: &AtomicBool) -> bool {
        let (share, mark) = (&directory.share, &directory.made.mark);
        let path = directory.directory.display();
        match removed(directory, silent, stop) {
            Outcome::Gone => tracing::info!(share, directory = %path, "the directory of a share is gone"),
            Outcome::Stays(why) => tracing::warn!(share, "{path} stays as it is: {why}"),
            Outcome::Stopped => return false,
            Outcome::Failed(why) => {
                let known = self.problems.lock().insert(mark.clone(), why.clone());
                if known.as_ref() != Some(&why) {
                    tracing::error!(share, "{path} is not removed yet: {why}");
                }
                return false;
            }
        }
        self.problems.lock().remove(mark);
        true
    }
}

/// Removes a directory in steps, of which each may take some seconds.
fn removed(directory: &AbandonedDirectory, silent: &Arc<Silent>, stop: &AtomicBool) -> Outcome {
    let no_answer = || Outcome::Failed("its storage does not answer".to_owned());
    let (storage, _) = pools::place_of(&directory.directory);
    let begin = directory.clone();
    let begun = match silent.answer(storage, move || begin_removal(&begin)) {
        Some(Ok(begun)) => begun,
        Some(Err(PoolError::NotMade)) => return Outcome::Stays("it is not what the server made there"),
        Some(Err(error)) => return Outcome::Failed(error.to_string()),
        None => return no_answer(),
    };
    let (mut removal, hidden) = match begun {
        Begun::Gone => return Outcome::Gone,
        Begun::InUse => {
            return Outcome::Stays("it has files, although it was made for a share that never was");
        }
        Begun::Removal(removal, hidden) => (removal, hidden),
    };
    while !stop.load(Ordering::Relaxed) {
        let at = hidden.clone();
        let step = move || {
            let done = if mounted_below(&at) { Err(PoolError::Mounted) } else { removal.step() };
            (removal, done)
        };
        match silent.answer(storage, step) {
            Some((_, Ok(true))) => return Outcome::Gone,
            Some((goes_on, Ok(false))) => removal = goes_on,
            Some((_, Err(error))) => return Outcome::Failed(error.to_string()),
            None => return no_answer(),
        }
    }
    Outcome::Stopped
}

/// How a removal begins.
enum Begun {
    /// It is gone, or was never made.
    Gone,
    /// No share ever had it, and there is something in it.
    InUse,
    /// It goes in steps, and has this path meanwhile.
    Removal(Removal, PathBuf),
}

fn begin_removal(
    AbandonedDirectory { directory, made, is_new, .. }: &AbandonedDirectory,
) -> Result<Begun, PoolError> {
    let (place, name) = pools::place_of(directory);
    let pool = pools::open_made(made, place)?;
    if mounted_below(directory) {
        return Err(PoolError::Mounted);
    }
    let mark = made.mark.parse().map_err(|_| PoolError::NotMade)?;
    if *is_new {
        return pool.unmake(&name, mark).map(|is_gone| if is_gone { Begun::Gone } else { Begun::InUse });
    }
    Ok(match Removal::begin(pool, &name, mark)? {
        None => Begun::Gone,
        Some(removal) => {
            let hidden = place.join(removal.hidden_name());
            Begun::Removal(removal, hidden)
        }
    })
}
