//! Pools: directories, which the configuration declares, in which the server makes the directories of shares itself.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use state::{PoolDirectory, ShareRecord, State};
use storage_local::{Pool, PoolError, PoolSpace};

use crate::apart::{Apart, mounted_below};
use crate::directories;
use crate::in_time::{self, Silent};
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

/// The declared pools, with the paths of their directories without symbolic links: the directories of shares are remembered so. One
/// that is missing, or whose storage does not answer, has the path as it is written.
pub(crate) fn resolved(pools: &[PoolSettings]) -> Vec<PoolSettings> {
    let found = in_time::answers(pools.to_vec(), |pool| pool.directory.canonicalize().ok());
    let with = |(pool, found): (&PoolSettings, Option<Option<PathBuf>>)| {
        let directory = found.flatten().unwrap_or_else(|| pool.directory.clone());
        PoolSettings { directory, ..pool.clone() }
    };
    pools.iter().zip(found).map(with).collect()
}

/// Adds what the server removes from pools, and what it will remove: the directories of deleted shares.
///
/// # Errors
/// The state database cannot be read.
pub(crate) fn take_doomed(apart: &mut Apart, state: &State) -> state::Result<()> {
    for deleted in state.deleted_shares()?.iter().filter(|deleted| deleted.share.pool.is_some()) {
        apart.take_doomed(&deleted.share.name, &deleted.share.directory);
    }
    for directory in state.abandoned_directories()? {
        apart.take_doomed(&directory.share, &directory.directory);
    }
    Ok(())
}

/// The directory of a pool, opened, with its path without symbolic links.
///
/// # Errors
/// It is missing, is not a directory, cannot have a pool, or its storage does not answer.
pub(crate) fn open(name: &str, directory: &Path, silent: &Arc<Silent>) -> Result<(PathBuf, Pool)> {
    let given = directory.to_owned();
    let opened = silent.answer(directory, move || {
        let path = given.canonicalize().map_err(|_| PoolError::Missing)?;
        Pool::open(&path).map(|pool| (path, pool))
    });
    opened.ok_or_else(|| no_answer(name, directory))?.map_err(|error| problem(name, directory, error))
}

/// The directory of a share: as [`directories::check`], and if the server made it in a pool, it must lie there. A pool whose file system
/// is not mounted has another directory in its place.
///
/// # Errors
/// Those of [`directories::check`], or the pool is not there.
pub(crate) fn find(record: &ShareRecord) -> Result<PathBuf> {
    if let Some(made) = &record.pool {
        let (place, _) = place_of(&record.directory);
        open_made(made, place).map_err(|error| problem(&made.pool, place, error))?;
    }
    directories::check(&record.name, &record.directory, record.terms())
}

/// The pool in which a directory was made, however long its storage takes to answer.
pub(crate) fn open_made(made: &PoolDirectory, place: &Path) -> std::result::Result<Pool, PoolError> {
    let pool = Pool::open(place)?;
    pool.check(made.pool_mark.parse().map_err(|_| PoolError::OtherPool)?)?;
    Ok(pool)
}

/// What the file system of a pool holds, however long it takes to answer. `mark`: the number of the pool, if that is known.
pub(crate) fn space(directory: &Path, mark: Option<&str>) -> std::result::Result<PoolSpace, PoolError> {
    let pool = Pool::open(&directory.canonicalize().map_err(|_| PoolError::Missing)?)?;
    if let Some(mark) = mark {
        pool.check(mark.parse().map_err(|_| PoolError::OtherPool)?)?;
    }
    Ok(pool.space()?)
}

/// The directory of a pool and a name in it.
pub(crate) fn place_of(directory: &Path) -> (&Path, String) {
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    (directory.parent().unwrap_or(directory), name)
}

/// Checks that a directory is the one that the server made, and that nothing in it keeps it from being removed. False: nothing has its
/// name any more.
///
/// # Errors
/// What stands against it.
pub(crate) fn check_removable(
    made: &PoolDirectory,
    directory: &Path,
) -> std::result::Result<bool, PoolError> {
    let (place, name) = place_of(directory);
    let pool = open_made(made, place)?;
    if mounted_below(directory) {
        return Err(PoolError::Mounted);
    }
    match pool.check_removable(&name, made.mark.parse().map_err(|_| PoolError::NotMade)?) {
        Err(PoolError::Missing) => Ok(false),
        checked => checked.map(|()| true),
    }
}

/// Takes what was restored from a backup for the directory that the server made, and the directory above for that of the pool.
///
/// # Errors
/// What stands against it.
pub(crate) fn adopt(made: &PoolDirectory, directory: &Path) -> std::result::Result<(), PoolError> {
    let (place, name) = place_of(directory);
    let pool = made.pool_mark.parse().map_err(|_| PoolError::OtherPool)?;
    let mark = made.mark.parse().map_err(|_| PoolError::NotMade)?;
    Pool::open(place)?.adopt(&name, pool, mark)
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

/// The problem of a pool whose storage does not answer.
pub(crate) fn no_answer(name: &str, directory: &Path) -> Problem {
    let what = format!("the pool {name}: the storage of {} does not answer", directory.display());
    Problem::new(Cause::Silent, what, "Look at what is mounted there, and try again.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_where_its_symbolic_link_leads() {
        let above = tempfile::tempdir().unwrap();
        let above = above.path().canonicalize().unwrap();
        std::fs::create_dir(above.join("disk")).unwrap();
        std::os::unix::fs::symlink(above.join("disk"), above.join("link")).unwrap();
        let pool = |directory| PoolSettings { name: "fast".to_owned(), directory, overcommits: false };
        let written = [pool(above.join("link")), pool(above.join("missing"))];
        assert_eq!(resolved(&written), [pool(above.join("disk")), pool(above.join("missing"))]);
    }
}
