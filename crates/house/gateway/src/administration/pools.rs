//! The pools of [`Administration`]: directories in which the server makes those of shares.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use control::pools::{Pool, Pools, RemovedDirectory};
use control::{Refusal, RefusalKind};
use share::folded_name;
use state::{AbandonedDirectory, PoolDirectory, ShareRecord};
use storage_local::{PoolError, PoolSpace};

use super::{Administration, failed};
use crate::in_time;
use crate::pools;
use crate::problem::{self, Problem};

type Result<T> = std::result::Result<T, Refusal>;

/// The quota that is the size of a share.
const WHOLE: &str = "/";

/// What a share of a pool may hold, in bytes: the hard limit of its quota of `/`.
pub(super) fn size(record: &ShareRecord) -> u64 {
    let rules = record.quotas().unwrap_or_default();
    let whole = rules.iter().find(|rule| rule.subject.to_string() == WHOLE);
    whole.and_then(|rule| rule.limits.hard()).unwrap_or(0)
}

/// What the state database knows of a pool.
#[derive(Debug, Default)]
pub(super) struct Kept {
    name: String,
    /// Of one of its directories: the directory of the pool, and its number.
    place: Option<(PathBuf, String)>,
    shares: u64,
    deleted: u64,
    promised: u64,
    removing: Vec<AbandonedDirectory>,
}

impl Kept {
    fn note(&mut self, directory: &Path, made: &PoolDirectory) {
        self.name.clone_from(&made.pool);
        let above = directory.parent().unwrap_or(directory).to_owned();
        self.place.get_or_insert_with(|| (above, made.pool_mark.clone()));
    }
}

impl Administration {
    pub(super) fn all_pools(&self) -> Result<Pools> {
        if self.serving.is_none() {
            let what = "only a running server knows the pools: its configuration declares them";
            return Err(Refusal::new(RefusalKind::NotFound, what, "Start the server, and try again."));
        }
        let (declared, mut kept) = (self.declared(), self.kept_pools()?);
        let mut told: Vec<Pool> = Vec::new();
        for pool in &declared.pools {
            let of_pool = kept.remove(&folded_name(&pool.name)).unwrap_or_default();
            let space = self.space(&pool.name, &pool.directory, &of_pool);
            let place = pool.directory.to_string_lossy().into_owned();
            let declared_in = Some(declared.pools_in.clone());
            let pool = Pool {
                name: pool.name.clone(),
                overcommit: pool.overcommits,
                declared_in,
                ..Pool::default()
            };
            told.push(tell(Pool { directory: place, ..pool }, of_pool, space));
        }
        for of_pool in kept.into_values() {
            let Some((directory, _)) = of_pool.place.clone() else { continue };
            let (name, place) = (of_pool.name.clone(), directory.to_string_lossy().into_owned());
            let space = self.space(&name, &directory, &of_pool);
            let undeclared = "the configuration does not declare it any more".to_owned();
            let problem = Some(space.as_ref().err().map_or(undeclared, |problem| problem.what.clone()));
            told.push(Pool {
                problem,
                ..tell(Pool { name, directory: place, ..Pool::default() }, of_pool, space)
            });
        }
        told.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Pools { pools: told })
    }

    /// What is known of each pool, by folded name.
    pub(super) fn kept_pools(&self) -> Result<BTreeMap<String, Kept>> {
        let mut pools: BTreeMap<String, Kept> = BTreeMap::new();
        let deleted = self.state.deleted_shares().map_err(failed)?;
        let deleted = deleted.into_iter().map(|deleted| (deleted.share, true));
        let present = self.made_shares()?.into_iter().map(|share| (share, false));
        for (share, is_deleted) in present.chain(deleted) {
            let Some(made) = &share.pool else { continue };
            let pool = pools.entry(folded_name(&made.pool)).or_default();
            pool.note(&share.directory, made);
            if is_deleted {
                pool.deleted += 1
            } else {
                pool.shares += 1
            }
            pool.promised = pool.promised.saturating_add(size(&share));
        }
        for directory in self.state.abandoned_directories().map_err(failed)? {
            let pool = pools.entry(folded_name(&directory.made.pool)).or_default();
            pool.note(&directory.directory, &directory.made);
            pool.removing.push(directory);
        }
        Ok(pools)
    }

    /// The room of a pool, which must be there, and be the one in which its shares are.
    fn space(&self, name: &str, directory: &Path, kept: &Kept) -> problem::Result<PoolSpace> {
        let (path, pool) = pools::open(name, directory)?;
        let mark = kept.place.as_ref().and_then(|(_, mark)| mark.parse().ok());
        let asked = in_time::answer(move || {
            mark.map_or(Ok(()), |mark| pool.check(mark))?;
            Ok(pool.space()?)
        });
        asked.unwrap_or(Err(PoolError::Missing)).map_err(|error| pools::problem(name, &path, error))
    }
}

fn tell(pool: Pool, kept: Kept, space: std::result::Result<PoolSpace, Problem>) -> Pool {
    let Kept { shares, deleted, promised, removing, .. } = kept;
    let (capacity, free, problem) = match space {
        Ok(space) => (Some(space.total), Some(space.free), None),
        Err(problem) => (None, None, Some(problem.what)),
    };
    let removing = removing.into_iter().map(|AbandonedDirectory { share, directory, .. }| RemovedDirectory {
        share,
        directory: directory.to_string_lossy().into_owned(),
        problem: None,
    });
    let removing = removing.collect();
    Pool { shares, deleted_shares: deleted, promised, capacity, free, problem, removing, ..pool }
}
