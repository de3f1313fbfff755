//! Pools: directories, which the configuration declares, in which the server makes the directories of shares itself.

use std::path::{Path, PathBuf};

use storage_local::{Pool, PoolError};

use crate::apart::Apart;
use crate::in_time;
use crate::problem::{Cause, Problem, Result};
use crate::settings::PoolSettings;

/// Checks that no pool overlaps with the state directory, another pool or a share. Returns what is wrong, with the names of the pools.
pub(crate) fn overlaps(pools: &[PoolSettings], apart: &mut Apart) -> Vec<(String, Problem)> {
    let mut wrong = Vec::new();
    for PoolSettings { name, directory, .. } in pools {
        if let Err(problem) = apart.check_pool(name, directory) {
            wrong.push((name.clone(), problem));
        }
        apart.take_pool(name, directory);
    }
    wrong
}

/// The directory of a pool, opened, with its path without symbolic links.
///
/// # Errors
/// It is missing, is not a directory, cannot have a pool, or its storage does not answer.
pub(crate) fn open(name: &str, directory: &Path) -> Result<(PathBuf, Pool)> {
    let given = directory.to_owned();
    let opened = in_time::answer(move || {
        let path = given.canonicalize().map_err(|_| PoolError::Missing)?;
        Pool::open(&path).map(|pool| (path, pool))
    });
    match opened {
        Some(opened) => opened.map_err(|error| problem(name, directory, error)),
        None => {
            let what = format!("the pool {name}: the storage of {} does not answer", directory.display());
            Err(Problem::new(Cause::Silent, what, "Look at what is mounted there, and try again."))
        }
    }
}

/// What is wrong with a pool, and what to do.
pub(crate) fn problem(name: &str, directory: &Path, error: PoolError) -> Problem {
    let place = directory.display();
    let advice = match error {
        PoolError::Missing => format!("Mount its file system, or create it: mkdir -p {place}"),
        PoolError::OtherPool => format!("Mount the file system that belongs at {place}, and try again."),
        PoolError::Unfit(_) => {
            "Declare another directory, or create the share with a directory of yours.".to_owned()
        }
        _ => String::new(),
    };
    Problem::new(Cause::Directory, format!("the pool {name} at {place}: {error}"), advice)
}
