//! Shares that were removed: for some time they can be brought back, then they are forgotten.
//!
//! What a share was is one entry of the state database, and becomes the other in one step: a server that is killed meanwhile has the one
//! or the other when it starts again. Nothing here touches a directory: one that the server made in a pool is abandoned in the same step,
//! and removed by [`crate::abandoned`].

use std::path::Path;

use control::deleted_shares::{DeletedShare, DeletedShares, Purge, Undelete};
use control::shares::Share;
use control::{Refusal, RefusalKind};
use limits::Plan;
use share::{SHARES_MAX, folded_name};
use state::{AbandonedDirectory, PoolDirectory, ShareRecord};
use storage_local::PoolError;

use super::shares::{NAME_ADVICE, check_directory};
use super::{Administration, failed, invalid};
use crate::declared::Declared;
use crate::pools;
use crate::retention::Retention;
use crate::settings::{check_share_name, written_directory};
use crate::snapshots::now;

const KEEP_FILES: &str =
    "Mend that, or forget the share and keep what is there: share purge NAME --keep-files";

type Result<T> = std::result::Result<T, Refusal>;

/// The present time, in seconds of the Unix epoch.
fn present() -> u64 {
    now().secs_since_1970()
}

impl Administration {
    pub(super) fn all_deleted_shares(&self) -> Result<DeletedShares> {
        let deleted = self.state.deleted_shares().map_err(failed)?;
        let declared = self.declared();
        Ok(DeletedShares { shares: deleted.iter().map(|one| tell(&declared, one)).collect() })
    }

    fn deleted_share(&self, id: u32) -> Result<state::DeletedShare> {
        let deleted = self.state.deleted_shares().map_err(failed)?;
        deleted.into_iter().find(|deleted| deleted.number == id).ok_or_else(|| {
            let what = format!("there is no deleted share with the number {id}");
            Refusal::new(RefusalKind::NotFound, what, "`anabranch share list --deleted` lists them.")
        })
    }

    /// Takes a share off those that were created by command. Returns until when it can be brought back.
    pub(super) fn take_off(&self, record: &ShareRecord) -> Result<Option<u64>> {
        let removed = present();
        let retention = self.declared().retention;
        // With the record of a share of a pool, its files go.
        let with_files = || record.pool.as_ref().and_then(|_| Retention::LEAST.until(removed));
        let restorable_until = retention.until(removed).or_else(with_files);
        match restorable_until {
            Some(until) => {
                let deleted = self.state.delete_share(record, removed, until).map_err(failed)?;
                tracing::info!(
                    share = record.name,
                    id = deleted.number,
                    until,
                    "the share can be brought back"
                );
            }
            None => self.state.forget_share(&record.name).map_err(failed)?,
        }
        Ok(restorable_until)
    }

    /// Brings a share back, and serves it if a server is running. If it cannot be served, the reason is kept.
    pub(super) fn bring_back(&self, id: u32, Undelete { name, restored }: &Undelete) -> Result<Share> {
        let mut idle = self.idle.lock();
        let mut back = self.deleted_share(id)?;
        if let Some(name) = name {
            check_share_name(name)
                .map_err(|why| invalid(format!("the share {name:?}: {why}"), NAME_ADVICE))?;
            back.share.name.clone_from(name);
        }
        self.check_back(&back.share, *restored)?;
        if let Err(refusal) = self.check_policy(&back.share.name, &back.share.snapshot_policy) {
            tracing::warn!(
                share = back.share.name,
                "the share comes back without a policy: {}",
                refusal.what
            );
            back.share.snapshot_policy.clear();
        }
        if let Some(made) = back.share.pool.as_ref().filter(|_| *restored) {
            // The mark may come late, or the server be killed after it: what was restored must not go because the share's time is over.
            if !self.state.spare_deleted_share(id).map_err(failed)? {
                return Err(changed_meanwhile(id));
            }
            self.adopt(&back.share.name, &back.share.directory, made)?;
        }
        if !self.state.undelete_share(&back).map_err(failed)? {
            return Err(changed_meanwhile(id));
        }
        let share = &back.share;
        if let Err(refusal) = self.use_share(share, &mut idle) {
            tracing::warn!("the share {} is not served: {}", share.name, refusal.what);
            idle.insert(folded_name(&share.name), refusal.what);
        }
        drop(idle);
        tracing::info!(share = share.name, id, directory = %share.directory.display(), "a share was brought back");
        Ok(self.tell_made(share))
    }

    /// Whether there is room for a share that comes back. `restored`: the directory was restored from a backup.
    fn check_back(&self, share: &ShareRecord, restored: bool) -> Result<()> {
        let (name, made) = (&share.name, self.made_shares()?);
        self.check_name_is_free(name, &made).map_err(|Refusal { kind, what, .. }| {
            Refusal::new(kind, what, "Bring it back under another name: --as NEW")
        })?;
        if made.len() + self.declared().shares.len() >= SHARES_MAX {
            let what = format!("there are {SHARES_MAX} shares already");
            return Err(Refusal::new(RefusalKind::TooMany, what, "Remove one that nobody needs."));
        }
        check_directory(name, &share.directory, share.terms())?;
        match &share.pool {
            Some(_) if restored => {}
            Some(made) => self.check_is_there(&share.directory, made)?,
            None if restored => {
                let what = format!("the directory of the share {name} is of no pool, and has no mark");
                return Err(invalid(what, "Bring the share back without --restored."));
            }
            None => {
                self.check_outside_pools(name, &share.directory)?;
                self.check_stays(name, &share.directory)?;
            }
        }
        self.check_apart(name, &share.directory, &made).map_err(|Refusal { kind, what, .. }| {
            Refusal::new(kind, what, "Remove that share first: it can be brought back, too.")
        })?;
        self.check_pools(name, &share.provisioned().map_err(failed)?.plan, &made)
    }

    /// Ends the time of a removed share before it is over.
    pub(super) fn purge(&self, id: u32, Purge { keep_files }: Purge) -> Result<DeletedShare> {
        let _idle = self.idle.lock();
        let deleted = self.deleted_share(id)?;
        if let Some((snapshot, until)) = self.protected_longest(&deleted, present())? {
            let until = schedule::Utc::from_secs(i64::try_from(until).unwrap_or(i64::MAX));
            let what = format!(
                "the deleted share {} has the snapshot {snapshot}, which is protected until {until}",
                deleted.share.name
            );
            return Err(Refusal::new(RefusalKind::Protected, what, "Nobody can shorten that."));
        }
        match &deleted.share.pool {
            Some(made) if !keep_files => {
                let is_there = self.check_is_removable(&deleted.share.directory, made)?;
                self.abandon(&deleted, made, is_there)?;
            }
            _ => self.forget_deleted(&deleted)?,
        }
        Ok(tell(&self.declared(), &deleted))
    }

    /// Forgets a share with the directory that the server made, which is removed from now on if it is there.
    pub(super) fn abandon(
        &self,
        deleted: &state::DeletedShare,
        made: &PoolDirectory,
        is_there: bool,
    ) -> Result<()> {
        if !is_there {
            return self.forget_deleted(deleted);
        }
        let (share, id) = (&deleted.share.name, deleted.number);
        let directory = deleted.share.directory.clone();
        if let Some(other) = self.apart_of_shares()?.share_at(&directory) {
            let what =
                format!("the directory {} is not removed: the share {other} serves it", directory.display());
            return Err(Refusal::new(RefusalKind::Overlap, what, KEEP_FILES));
        }
        let size = super::pools::size(&deleted.share);
        let abandoned =
            AbandonedDirectory { share: share.clone(), directory, made: made.clone(), size, is_new: false };
        self.state.abandon_deleted_share(id, &abandoned).map_err(failed)?;
        tracing::info!(share, id, directory = %abandoned.directory.display(), "a deleted share was purged; its directory is being removed");
        self.abandoned.wake();
        Ok(())
    }

    /// Whether a directory is there that the server made, and that can be removed as a whole.
    pub(super) fn check_is_removable(&self, directory: &Path, made: &PoolDirectory) -> Result<bool> {
        let why = match self.ask_pool(directory, made) {
            Some(Ok(is_there)) => return Ok(is_there),
            Some(Err(error)) => error.to_string(),
            None => "its storage does not answer".to_owned(),
        };
        let what = format!("the directory {} is not removed: {why}", directory.display());
        Err(Refusal::new(RefusalKind::Directory, what, KEEP_FILES))
    }

    fn ask_pool(
        &self,
        directory: &Path,
        made: &PoolDirectory,
    ) -> Option<std::result::Result<bool, PoolError>> {
        let (place, _) = pools::place_of(directory);
        let asked = (directory.to_owned(), made.clone());
        self.silent.answer(place, move || pools::check_removable(&asked.1, &asked.0))
    }

    /// Refuses a directory that is not what the server made.
    fn check_is_there(&self, directory: &Path, made: &PoolDirectory) -> Result<()> {
        let why = match self.ask_pool(directory, made) {
            // What keeps it from being removed does not keep it from being served.
            Some(Ok(true) | Err(PoolError::Mounted | PoolError::Subvolume)) => return Ok(()),
            Some(Ok(false)) => "it is gone".to_owned(),
            Some(Err(error)) => error.to_string(),
            None => "its storage does not answer".to_owned(),
        };
        let what = format!("the directory {} cannot be served: {why}", directory.display());
        let advice = "Put the directory back that the server made. If this one was restored from a backup: share undelete NAME --restored";
        Err(Refusal::new(RefusalKind::Directory, what, advice))
    }

    /// Takes the directory of a share for the one that the server made, because it was restored from a backup.
    fn adopt(&self, share: &str, directory: &Path, made: &PoolDirectory) -> Result<()> {
        let (place, _) = pools::place_of(directory);
        let asked = (directory.to_owned(), made.clone());
        let why = match self.silent.answer(place, move || pools::adopt(&asked.1, &asked.0)) {
            Some(Ok(())) => {
                tracing::info!(share, directory = %directory.display(), "a directory that was restored is that of a share of a pool");
                return Ok(());
            }
            Some(Err(PoolError::NotMade)) => "it is no directory, or that of another share".to_owned(),
            Some(Err(error)) => error.to_string(),
            None => "its storage does not answer".to_owned(),
        };
        let what = format!("the directory {} is not taken for a restored one: {why}", directory.display());
        Err(Refusal::new(RefusalKind::Directory, what, "Restore the directory in its place, and try again."))
    }

    /// The directories in pools that are to be removed. Nobody makes one meanwhile.
    pub(crate) fn abandoned_directories(&self) -> Vec<AbandonedDirectory> {
        let _idle = self.idle.lock();
        let abandoned = self.state.abandoned_directories().map_err(failed);
        abandoned.unwrap_or_default()
    }

    /// Forgets a directory that is gone.
    pub(crate) fn forget_abandoned(&self, directory: &AbandonedDirectory) {
        // It is looked for again otherwise.
        let _ = self.state.forget_abandoned_directory(&directory.made.mark).map_err(failed);
    }

    pub(super) fn forget_deleted(&self, deleted: &state::DeletedShare) -> Result<()> {
        self.state.forget_deleted_share(deleted.number).map_err(failed)?;
        let (share, id) = (&deleted.share.name, deleted.number);
        tracing::info!(share, id, "a deleted share was purged; its directory is unchanged");
        Ok(())
    }

    /// The snapshot of a deleted share that is protected for longest, and until when.
    pub(super) fn protected_longest(
        &self,
        deleted: &state::DeletedShare,
        now: u64,
    ) -> Result<Option<(String, u64)>> {
        let directory = &deleted.share.directory;
        let protected = self.state.protected_snapshots(directory).map_err(failed)?;
        let still =
            protected.into_iter().filter(|snapshot| snapshot.until > now && snapshot.directory == *directory);
        Ok(still.max_by_key(|snapshot| snapshot.until).map(|snapshot| (snapshot.name, snapshot.until)))
    }
}

fn changed_meanwhile(id: u32) -> Refusal {
    let what = format!("the deleted share {id} was changed meanwhile");
    Refusal::new(RefusalKind::Busy, what, "Look at it, and try again.")
}

fn tell(declared: &Declared, deleted: &state::DeletedShare) -> DeletedShare {
    let state::DeletedShare { number, deleted, until, is_of_copy, share } = deleted;
    let plan = if share.plan.is_empty() { Plan::Unlimited.to_string() } else { share.plan.clone() };
    let directory = written_directory(&share.directory, share.terms()).to_string_lossy().into_owned();
    let pool = share.pool.as_ref().map(|made| declared.pool_name(&share.directory, made));
    let (deleted, until, by_command_only) = (*deleted, *until, *is_of_copy && pool.is_some());
    DeletedShare {
        id: *number,
        name: share.name.clone(),
        directory,
        plan,
        pool,
        deleted,
        until,
        by_command_only,
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use control::Administration as _;
    use control::shares::NewShare;
    use state::{ProtectedSnapshot, State};
    use storage_local::{Pool, PoolMark, PoolOwner};

    use super::*;

    struct Place {
        directory: tempfile::TempDir,
        here: Administration,
    }

    impl Place {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let state = State::open(&directory.path().join("state")).unwrap();
            Self { directory, here: Administration::of_state(state) }
        }

        fn create(&self, name: &str, directory: &str) -> Share {
            let directory = self.directory.path().join(directory);
            std::fs::create_dir_all(&directory).unwrap();
            self.create_at(name, &directory).unwrap()
        }

        fn create_at(&self, name: &str, directory: &Path) -> Result<Share> {
            let (name, directory) = (name.to_owned(), directory.to_str().unwrap().to_owned());
            self.here.create_share(NewShare { name, directory, ..NewShare::default() })
        }

        fn deleted(&self) -> Vec<DeletedShare> {
            self.here.deleted_shares().unwrap().shares
        }
    }

    fn named(name: &str) -> Undelete {
        Undelete { name: Some(name.to_owned()), ..Undelete::default() }
    }

    #[test]
    fn a_name_or_a_directory_in_use_keeps_a_share_from_coming_back() {
        let place = Place::new();
        place.create("data", "one");
        let gone = place.here.remove_share("data").unwrap();
        let [deleted] = &place.deleted()[..] else { panic!("one is deleted") };
        assert_eq!(gone.restorable_until, Some(deleted.until));
        assert_eq!(deleted.until - deleted.deleted, 7 * 24 * 3600);
        place.create("Data", "two");
        let refused = place.here.undelete_share(deleted.id, &Undelete::default()).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::NameTaken);
        assert!(refused.advice.contains("--as"), "{refused:?}");
        let refused = place.here.undelete_share(deleted.id, &named("a/b")).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Invalid);
        place.create("below", "one/below");
        let refused = place.here.undelete_share(deleted.id, &named("old")).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Overlap);
        place.here.remove_share("below").unwrap();
        let back = place.here.undelete_share(deleted.id, &named("old")).unwrap();
        assert_eq!((back.name.as_str(), back.directory.ends_with("/one")), ("old", true));
        let refused = place.here.undelete_share(deleted.id, &named("older")).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::NotFound);
    }

    #[test]
    fn a_directory_that_is_gone_keeps_a_share_deleted() {
        let place = Place::new();
        place.create("data", "one");
        place.here.remove_share("data").unwrap();
        std::fs::remove_dir(place.directory.path().join("one")).unwrap();
        let refused = place.here.undelete_share(place.deleted()[0].id, &Undelete::default()).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Directory);
        assert_eq!(place.deleted().len(), 1);
    }

    #[test]
    fn what_is_protected_is_not_purged_and_the_rest_when_its_time_is_over() {
        let place = Place::new();
        let directory = place.create("data", "one").directory;
        place.here.remove_share("data").unwrap();
        let deleted = place.deleted().remove(0);
        let until = deleted.until + 100;
        let snapshot = ProtectedSnapshot {
            directory: directory.clone().into(),
            name: "kept".to_owned(),
            until,
            identity: Some("number:7".to_owned()),
        };
        place.here.state.protect_snapshot(&snapshot).unwrap();
        let refused = place.here.purge_share(deleted.id, Purge::default()).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Protected);
        let at = Instant::now();
        place.here.purge_expired(deleted.until, at);
        assert_eq!(place.deleted(), std::slice::from_ref(&deleted));
        // A clock that was set back purges nothing early.
        for early in [0, deleted.deleted - 1, until - 1] {
            place.here.purge_expired(early, at);
            assert_eq!(place.deleted().len(), 1);
        }
        place.here.purge_expired(until, at);
        assert_eq!(place.deleted(), []);
        assert!(Path::new(&directory).is_dir(), "nobody asked for the directory to be removed");
        assert_eq!(
            place.here.purge_share(deleted.id, Purge::default()).unwrap_err().kind,
            RefusalKind::NotFound
        );
    }

    #[test]
    fn a_share_of_a_pool_whose_time_is_over_goes_with_what_the_server_made() {
        if !rustix::process::geteuid().is_root() {
            println!("not tested: shares of a pool whose time is over: only root makes the marks of pools");
            return;
        }
        let place = Place::new();
        let (here, above) = (&place.here, place.directory.path().join("pool"));
        std::fs::create_dir(&above).unwrap();
        let pool = Pool::open(&above).unwrap();
        let (pool_mark, mark) = (pool.mark().unwrap().to_string(), PoolMark::random().unwrap());
        pool.make("one", mark, PoolOwner::default()).unwrap();
        let made = PoolDirectory { pool: "fast".to_owned(), pool_mark, mark: mark.to_string() };
        let (name, directory) = ("one".to_owned(), above.join("one"));
        let record = ShareRecord { name, directory, pool: Some(made), ..ShareRecord::default() };
        here.state.keep_share(&record).unwrap();
        here.remove_share("one").unwrap();
        let until = place.deleted()[0].until;
        let hour = Duration::from_secs(3600);
        let begun = Instant::now();
        here.purge_expired(until, begun);
        here.purge_expired(until, begun + hour - Duration::from_secs(1));
        assert_eq!(place.deleted().len(), 1, "the clock may be wrong");
        let mut at = begun + hour;
        let mut purge = |after: u64| {
            at += Duration::from_secs(after);
            here.purge_expired(until, at);
            (place.deleted().len(), here.abandoned_directories().len())
        };
        // Another directory in its place: the share stays deleted, and is looked at again later.
        std::fs::rename(&record.directory, above.join("away")).unwrap();
        std::fs::create_dir(&record.directory).unwrap();
        assert_eq!(purge(0), (1, 0));
        std::fs::remove_dir(&record.directory).unwrap();
        std::fs::rename(above.join("away"), &record.directory).unwrap();
        assert_eq!(purge(59), (1, 0), "not at every turn");
        // Somebody serves it meanwhile.
        let docs = ShareRecord {
            name: "docs".to_owned(),
            directory: record.directory.clone(),
            ..ShareRecord::default()
        };
        here.state.keep_share(&docs).unwrap();
        assert_eq!(purge(1), (1, 0));
        here.state.forget_share("docs").unwrap();
        // A database that was restored from a copy.
        here.state.note_deleted_shares_of_copy().unwrap();
        assert_eq!(purge(60), (1, 0));
        let [of_copy] = &place.deleted()[..] else { panic!("one is deleted") };
        assert!(of_copy.by_command_only);
        here.undelete_share(of_copy.id, &Undelete::default()).unwrap();
        here.remove_share("one").unwrap();
        let removed = place.deleted()[0].until;
        std::fs::create_dir(record.directory.join("below")).unwrap();
        let refused = place.create_at("docs", &record.directory.join("below")).unwrap_err();
        assert!(refused.what.contains("of the deleted share one"), "{refused:?}");
        here.purge_expired(removed, at);
        here.purge_expired(removed, at + hour);
        assert_eq!((place.deleted().len(), here.abandoned_directories().len()), (0, 1));
        let refused = place.create_at("docs", &record.directory).unwrap_err();
        assert!(refused.what.contains("of the deleted share one"), "{refused:?}");
        assert!(record.directory.is_dir(), "a server removes it");
    }

    #[test]
    fn what_was_to_be_taken_for_restored_is_removed_by_command_only() {
        if !rustix::process::geteuid().is_root() {
            println!("not tested: a restored directory of a pool: only root makes the marks of pools");
            return;
        }
        let place = Place::new();
        let (here, above) = (&place.here, place.directory.path().join("pool"));
        std::fs::create_dir(&above).unwrap();
        let pool = Pool::open(&above).unwrap();
        let (pool_mark, mark) = (pool.mark().unwrap().to_string(), PoolMark::random().unwrap());
        let made = PoolDirectory { pool: "fast".to_owned(), pool_mark, mark: mark.to_string() };
        let (name, directory) = ("one".to_owned(), above.join("one"));
        let record = ShareRecord {
            name,
            directory: directory.clone(),
            pool: Some(made.clone()),
            ..ShareRecord::default()
        };
        here.state.keep_share(&record).unwrap();
        here.remove_share("one").unwrap();
        let deleted = place.deleted().remove(0);
        let restored = Undelete { restored: true, ..Undelete::default() };
        pool.make("one", PoolMark::random().unwrap(), PoolOwner::default()).unwrap();
        let refused = here.undelete_share(deleted.id, &restored).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Directory, "it is that of another share");
        // As if the mark had come after whoever waited for it gave up.
        std::fs::remove_dir(&directory).unwrap();
        std::fs::create_dir(&directory).unwrap();
        pools::adopt(&made, &directory).unwrap();
        let begun = Instant::now();
        for hours in 0..3 {
            here.purge_expired(deleted.until, begun + Duration::from_secs(hours * 3600));
        }
        assert_eq!((place.deleted().len(), here.abandoned_directories().len()), (1, 0));
        assert!(place.deleted()[0].by_command_only);
        here.undelete_share(deleted.id, &restored).unwrap();
        here.remove_share("one").unwrap();
        assert!(!place.deleted()[0].by_command_only, "its time begins anew");
    }
}
