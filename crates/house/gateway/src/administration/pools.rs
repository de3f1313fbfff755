//! The pools of [`Administration`]: directories in which the server makes those of shares.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use control::pools::{Pool as Told, Pools, RemovedDirectory};
use control::shares::NewShare;
use control::{Refusal, RefusalKind};
use limits::show_size;
use share::{GRACE, QuotaFor, QuotaLimits, QuotaRule, QuotaSubject, folded_name};
use state::{AbandonedDirectory, PoolDirectory, ShareRecord};
use storage_local::{Pool, PoolError, PoolMark, PoolOwner, PoolSpace};

use super::{Administration, failed, invalid};
use crate::apart::Apart;
use crate::pool_spaces::Answer;
use crate::problem::{self, Problem};
use crate::settings::{PoolSettings, check_ids, same_share_name};
use crate::{in_time, pools};

type Result<T> = std::result::Result<T, Refusal>;

/// The quota that is the size of a share.
const WHOLE: &str = "/";

const FORM: &str = "docs/pools.md has the form.";

/// What a share of a pool may hold, in bytes: the hard limit of its quota of `/`.
pub(super) fn size(record: &ShareRecord) -> u64 {
    let rules = record.quotas().unwrap_or_default();
    let whole = rules.iter().find(|rule| is_size(&rule.subject));
    whole.and_then(|rule| rule.limits.hard()).unwrap_or(0)
}

/// Whether a quota is the size of a share, if that is one of a pool.
pub(super) fn is_size(subject: &QuotaFor) -> bool {
    subject.to_string() == WHOLE
}

/// The same as the state database has it.
pub(super) fn written_size(bytes: u64) -> String {
    format!("{WHOLE} hard={}", show_size(bytes))
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
    fn note(&mut self, name: String, directory: &Path, made: &PoolDirectory) {
        self.name = name;
        let above = directory.parent().unwrap_or(directory).to_owned();
        self.place.get_or_insert_with(|| (above, made.pool_mark.clone()));
    }
}

/// The place of a new directory in a pool.
pub(super) struct Place {
    pub(super) directory: PathBuf,
    pub(super) size: u64,
    pub(super) made: PoolDirectory,
    pool: Pool,
    mark: PoolMark,
    owner: PoolOwner,
}

impl Administration {
    pub(super) fn all_pools(&self) -> Result<Pools> {
        self.check_knows_pools()?;
        let space = |name: &str, directory: &Path, kept: &Kept| {
            let looked = self.look_at_pool(name, directory, kept);
            Some(looked.map(|(_, space)| space).map_err(|problem| problem.what))
        };
        Ok(Pools { pools: self.tell_pools(space)? })
    }

    /// The same for metrics, which wait for no storage.
    pub(super) fn all_pool_figures(&self) -> Vec<Told> {
        if self.serving.is_none() {
            return Vec::new();
        }
        let space = |_: &str, directory: &Path, kept: &Kept| {
            let (at, mark) = (directory.to_owned(), kept.place.as_ref().map(|(_, mark)| mark.clone()));
            let ask = move || pools::space(&at, mark.as_deref()).map_err(|error| error.to_string());
            self.pool_spaces.look(directory, ask)
        };
        self.tell_pools(space).unwrap_or_default()
    }

    /// All pools, by name, each with what this says of its file system.
    fn tell_pools(&self, space: impl Fn(&str, &Path, &Kept) -> Option<Answer>) -> Result<Vec<Told>> {
        let (declared, mut kept) = (self.declared(), self.kept_pools()?);
        let mut told = Vec::new();
        for pool in &declared.pools {
            let of_pool = kept.remove(&folded_name(&pool.name)).unwrap_or_default();
            let space = space(&pool.name, &pool.directory, &of_pool);
            let declared_in = Some(declared.pools_in.clone());
            let told_so = Told {
                name: pool.name.clone(),
                overcommit: pool.overcommits,
                declared_in,
                ..Told::default()
            };
            told.push(self.tell_pool(told_so, &pool.directory, of_pool, space));
        }
        for of_pool in kept.into_values() {
            let Some((directory, _)) = of_pool.place.clone() else { continue };
            let told_so = Told { name: of_pool.name.clone(), ..Told::default() };
            let space = space(&of_pool.name, &directory, &of_pool);
            let told_so = self.tell_pool(told_so, &directory, of_pool, space);
            let undeclared = || Some("the configuration does not declare it any more".to_owned());
            told.push(Told { problem: told_so.problem.clone().or_else(undeclared), ..told_so });
        }
        told.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(told)
    }

    fn tell_pool(&self, pool: Told, directory: &Path, kept: Kept, space: Option<Answer>) -> Told {
        let Kept { shares, deleted, promised, removing, .. } = kept;
        let (capacity, free, problem) = match space {
            Some(Ok(space)) => (Some(space.total), Some(space.free), None),
            Some(Err(problem)) => (None, None, Some(problem)),
            None => (None, None, None),
        };
        let removing = removing.into_iter().map(|AbandonedDirectory { share, directory, made, .. }| {
            let directory = directory.to_string_lossy().into_owned();
            RemovedDirectory { share, directory, problem: self.abandoned.problem(&made.mark) }
        });
        let (directory, removing) = (directory.to_string_lossy().into_owned(), removing.collect());
        Told {
            directory,
            shares,
            deleted_shares: deleted,
            promised,
            capacity,
            free,
            problem,
            removing,
            ..pool
        }
    }

    fn check_knows_pools(&self) -> Result<()> {
        if self.serving.is_some() {
            return Ok(());
        }
        let what = "only a running server knows the pools: its configuration declares them";
        Err(Refusal::new(RefusalKind::NotFound, what, "Start the server, and try again."))
    }

    /// What is known of each pool, by folded name.
    fn kept_pools(&self) -> Result<BTreeMap<String, Kept>> {
        let declared = self.declared();
        let mut pools: BTreeMap<String, Kept> = BTreeMap::new();
        let deleted = self.state.deleted_shares().map_err(failed)?;
        let deleted = deleted.into_iter().map(|deleted| (deleted.share, true));
        let present = self.made_shares()?.into_iter().map(|share| (share, false));
        for (share, is_deleted) in present.chain(deleted) {
            let Some(made) = &share.pool else { continue };
            let name = declared.pool_name(&share.directory, made);
            let pool = pools.entry(folded_name(&name)).or_default();
            pool.note(name, &share.directory, made);
            let count = if is_deleted { &mut pool.deleted } else { &mut pool.shares };
            *count = count.saturating_add(1);
            pool.promised = pool.promised.saturating_add(size(&share));
        }
        for directory in self.state.abandoned_directories().map_err(failed)? {
            let name = declared.pool_name(&directory.directory, &directory.made);
            let pool = pools.entry(folded_name(&name)).or_default();
            pool.note(name, &directory.directory, &directory.made);
            pool.promised = pool.promised.saturating_add(directory.size);
            pool.removing.push(directory);
        }
        Ok(pools)
    }

    /// Opens the directory of a pool, which must be the one in which its shares are, and overlap with no other share.
    fn look_at_pool(
        &self,
        name: &str,
        directory: &Path,
        kept: &Kept,
    ) -> problem::Result<((PathBuf, Pool), PoolSpace)> {
        let (path, pool) = pools::open(name, directory, &self.silent)?;
        let mut apart = Apart::from_state(self.state.directory());
        let declared = self.declared();
        for share in &declared.shares {
            apart.take_unseen(&share.given.name, &share.directory);
        }
        let is_of_it = |share: &ShareRecord| {
            let name_of = |made: &PoolDirectory| declared.pool_name(&share.directory, made);
            share.pool.as_ref().is_some_and(|made| same_share_name(&name_of(made), name))
        };
        for share in self.state.made_shares()?.iter().filter(|share| !is_of_it(share)) {
            apart.take_unseen(&share.name, &share.directory);
        }
        apart.check_pool(name, &path)?;
        let mark = kept.place.as_ref().map(|(_, mark)| mark.parse().map_err(|_| PoolError::OtherPool));
        let asked = self.silent.answer(directory, move || {
            if let Some(mark) = mark {
                pool.check(mark?)?;
            }
            let space = pool.space()?;
            Ok((pool, space))
        });
        let asked = asked.ok_or_else(|| pools::no_answer(name, &path))?;
        let (pool, space) = asked.map_err(|error| pools::problem(name, &path, error))?;
        Ok(((path, pool), space))
    }

    /// Where the directory of a new share is to be made. None: the share has a directory of its own.
    pub(super) fn place_in_pool(&self, new: &NewShare) -> Result<Option<Place>> {
        let refuse = |what: &str| Err(invalid(format!("the share {}: {what}", new.name), FORM));
        let Some(pool) = &new.pool else {
            let is_of_pool = new.size.is_some() || new.uid.is_some() || new.gid.is_some();
            return match new.directory.is_empty() {
                true => refuse("it has no directory, and is of no pool"),
                false if is_of_pool => refuse("only a share of a pool has a size and an owner"),
                false => Ok(None),
            };
        };
        if !new.directory.is_empty() || new.from.is_some() {
            return refuse("the server makes the directory of a share of a pool, and makes it empty");
        }
        if new.name.starts_with('.') {
            return refuse("the name of a share of a pool does not begin with a dot");
        }
        let Some(size) = new.size.filter(|size| *size > 0) else {
            return refuse("a share of a pool has a size, which is larger than nothing");
        };
        let owner = PoolOwner { uid: new.uid.unwrap_or(0), gid: new.gid.unwrap_or(0) };
        if let Err(why) = check_ids(&new.name, [owner.uid, owner.gid].into_iter()) {
            return refuse(&why);
        }
        self.check_knows_pools()?;
        let declared = self.declared();
        let Some(declared) = declared.pool(pool) else {
            let what = format!("there is no pool {pool}");
            return Err(Refusal::new(RefusalKind::NotFound, what, "`anabranch pool list` lists the pools."));
        };
        let kept = self.kept_pools()?.remove(&folded_name(pool)).unwrap_or_default();
        let ((path, pool), space) =
            self.look_at_pool(&declared.name, &declared.directory, &kept).map_err(of_pool)?;
        check_promise(declared, space, kept.promised.saturating_add(size))?;
        place(&new.name, &declared.name, (path, pool), (size, owner)).map(Some)
    }

    /// Makes the directory of a new share. It is one to be removed until the share is kept.
    pub(super) fn make_in_pool(&self, name: &str, place: Place) -> Result<()> {
        let Place { directory, size, made, pool, mark, owner } = place;
        let (share, at) = (name.to_owned(), directory.clone());
        let abandoned = AbandonedDirectory { share, directory: at, made, size, is_new: true };
        self.state.abandon_directory(&abandoned).map_err(failed)?;
        let (_, in_pool) = pools::place_of(&directory);
        let made = in_time::answer(move || pool.make(&in_pool, mark, owner));
        let why = match made {
            Some(Ok(())) => {
                tracing::info!(share = name, directory = %directory.display(), "a directory was made in a pool");
                return Ok(());
            }
            Some(Err(error)) => error.to_string(),
            None => "its storage does not answer".to_owned(),
        };
        let what = format!("share {name}: {} cannot be made: {why}", directory.display());
        Err(Refusal::new(RefusalKind::Directory, what, ""))
    }

    /// Checks a change of a quota that is the size of a share of a pool. `to`: what the share may hold then, in bytes.
    pub(super) fn check_size(&self, record: &ShareRecord, subject: &QuotaFor, to: Option<u64>) -> Result<()> {
        let Some(made) = record.pool.as_ref().filter(|_| is_size(subject)) else { return Ok(()) };
        let Some(to) = to.filter(|to| *to > 0) else {
            let what = format!("the quota of {WHOLE} is the size of the share {}", record.name);
            return Err(invalid(what, "A share of a pool has a size: give the quota another hard limit."));
        };
        let (before, declared) = (size(record), self.declared());
        let (Some(declared), true) = (declared.pool_of(&record.directory, made), to > before) else {
            return Ok(());
        };
        let kept = self.kept_pools()?.remove(&folded_name(&declared.name)).unwrap_or_default();
        let (_, space) = self.look_at_pool(&declared.name, &declared.directory, &kept).map_err(of_pool)?;
        check_promise(declared, space, kept.promised.saturating_sub(before).saturating_add(to))
    }
}

impl Administration {
    /// What a share of a pool holds, if it is to have less than it has; None: nobody needs to know. The storage is waited for.
    pub(super) fn held_if_smaller(&self, share: &str, to: Option<u64>) -> Result<Option<u64>> {
        let record = self.made_share(share)?;
        if record.pool.is_none() || to.is_none_or(|to| to >= size(&record)) {
            return Ok(None);
        }
        let unknown = |why: &str| {
            let what = format!("nobody knows what the share {} holds: {why}", record.name);
            Refusal::new(
                RefusalKind::Busy,
                what,
                "It can be made larger, but not smaller, until that is known.",
            )
        };
        let status = self.quota_status(&record.name)?.ok_or_else(|| unknown("it is not served"))?;
        if status.counted.is_none() {
            return Err(unknown("its files are being counted"));
        }
        let whole = QuotaSubject::Directory(Vec::new());
        Ok(Some(status.by_subject().get(&whole).map_or(0, |standing| standing.used)))
    }

    /// The quotas of a share of a pool that is to have this size. `held`: what it holds, if that is to be checked.
    pub(super) fn resized(&self, record: &ShareRecord, to: u64, held: Option<u64>) -> Result<Vec<QuotaRule>> {
        if record.pool.is_none() {
            let what = format!("the share {} is of no pool, and has no size", record.name);
            return Err(invalid(
                what,
                "A plan limits it (--plan), or a quota: anabranch quota set NAME / --hard SIZE",
            ));
        }
        self.check_knows_pools()?;
        let whole = QuotaFor::Known(QuotaSubject::Directory(Vec::new()));
        self.check_size(record, &whole, Some(to))?;
        if let Some(held) = held.filter(|held| *held > to) {
            let (held, to) = (show_size(held), show_size(to));
            let what = format!("the share {} holds {held}, which is more than {to}", record.name);
            return Err(Refusal::new(RefusalKind::Invalid, what, "Remove files first, or give it more."));
        }
        let limits = QuotaLimits::new(None, Some(to), GRACE).map_err(|e| invalid(e.to_string(), FORM))?;
        let mut rules = record.quotas().map_err(failed)?;
        match rules.iter_mut().find(|rule| is_size(&rule.subject)) {
            Some(rule) => rule.limits = limits,
            None => rules.push(QuotaRule { subject: whole, limits }),
        }
        Ok(rules)
    }
}

fn of_pool(Problem { what, advice, .. }: Problem) -> Refusal {
    Refusal::new(RefusalKind::Directory, what, advice)
}

/// Refuses to promise the shares of a pool more than it has.
fn check_promise(pool: &PoolSettings, space: PoolSpace, promised: u64) -> Result<()> {
    if pool.overcommits || promised <= space.total {
        return Ok(());
    }
    let (name, promised, total) = (&pool.name, show_size(promised), show_size(space.total));
    let what = format!(
        "the shares of the pool {name} would be {promised} together, and its file system has {total}"
    );
    let advice =
        "Give it less, purge shares that nobody needs, or declare the pool with overcommit = \"yes\".";
    Err(Refusal::new(RefusalKind::PoolFull, what, advice))
}

/// A directory that has the name of its share, or one like it if that is taken.
fn place(
    share: &str,
    name: &str,
    (path, pool): (PathBuf, Pool),
    (size, owner): (u64, PoolOwner),
) -> Result<Place> {
    let problem = |error: PoolError| of_pool(pools::problem(name, &path, error));
    let of_share = share.to_owned();
    let asked = in_time::answer(move || {
        let (pool_mark, mark) = (pool.mark()?, PoolMark::random()?);
        let written = mark.to_string();
        let beside = format!("{of_share}-{}", written.get(..8).unwrap_or_default());
        let in_pool = if pool.is_free(&of_share)? { of_share } else { beside };
        Ok((pool, pool_mark, mark, in_pool))
    });
    let asked = asked.ok_or_else(|| of_pool(pools::no_answer(name, &path)))?;
    let (pool, pool_mark, mark, in_pool) = asked.map_err(problem)?;
    let made =
        PoolDirectory { pool: name.to_owned(), pool_mark: pool_mark.to_string(), mark: mark.to_string() };
    Ok(Place { directory: path.join(in_pool), size, made, pool, mark, owner })
}
