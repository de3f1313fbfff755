//! Shares that were removed: for some time they can be brought back, then they are forgotten.
//!
//! What a share was is one entry of the state database, and becomes the other in one step: a server that is killed meanwhile has the one
//! or the other when it starts again. Nothing here touches a directory.

use control::deleted_shares::{DeletedShare, DeletedShares, Undelete};
use control::shares::Share;
use control::{Refusal, RefusalKind};
use limits::Plan;
use share::{SHARES_MAX, folded_name};
use state::ShareRecord;

use super::shares::{NAME_ADVICE, check_directory};
use super::{Administration, failed, invalid};
use crate::settings::{check_share_name, written_directory};
use crate::snapshots::now;

type Result<T> = std::result::Result<T, Refusal>;

/// The present time, in seconds of the Unix epoch.
fn present() -> u64 {
    now().secs_since_1970()
}

impl Administration {
    pub(super) fn all_deleted_shares(&self) -> Result<DeletedShares> {
        let deleted = self.state.deleted_shares().map_err(failed)?;
        Ok(DeletedShares { shares: deleted.iter().map(tell).collect() })
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
        let until = self.declared().retention.until(removed);
        match until {
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
        Ok(until)
    }

    /// Brings a share back, and serves it if a server is running. If it cannot be served, the reason is kept.
    pub(super) fn bring_back(&self, id: u32, Undelete { name }: &Undelete) -> Result<Share> {
        let mut idle = self.idle.lock();
        let mut back = self.deleted_share(id)?;
        if let Some(name) = name {
            check_share_name(name)
                .map_err(|why| invalid(format!("the share {name:?}: {why}"), NAME_ADVICE))?;
            back.share.name.clone_from(name);
        }
        self.check_back(&back.share)?;
        if let Err(refusal) = self.check_policy(&back.share.name, &back.share.snapshot_policy) {
            tracing::warn!(
                share = back.share.name,
                "the share comes back without a policy: {}",
                refusal.what
            );
            back.share.snapshot_policy.clear();
        }
        if !self.state.undelete_share(&back).map_err(failed)? {
            let what = format!("the deleted share {id} was changed meanwhile");
            return Err(Refusal::new(RefusalKind::Busy, what, "Look at it, and try again."));
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

    /// Whether there is room for a share that comes back.
    fn check_back(&self, share: &ShareRecord) -> Result<()> {
        let (name, made) = (&share.name, self.made_shares()?);
        self.check_name_is_free(name, &made).map_err(|Refusal { kind, what, .. }| {
            Refusal::new(kind, what, "Bring it back under another name: --as NEW")
        })?;
        if made.len() + self.declared().shares.len() >= SHARES_MAX {
            let what = format!("there are {SHARES_MAX} shares already");
            return Err(Refusal::new(RefusalKind::TooMany, what, "Remove one that nobody needs."));
        }
        check_directory(name, &share.directory, share.terms())?;
        self.check_apart(name, &share.directory, &made).map_err(|Refusal { kind, what, .. }| {
            Refusal::new(kind, what, "Remove that share first: it can be brought back, too.")
        })?;
        self.check_pools(name, &share.provisioned().map_err(failed)?.plan, &made)
    }

    /// Ends the time of a removed share before it is over.
    pub(super) fn purge(&self, id: u32) -> Result<DeletedShare> {
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
        self.forget_deleted(&deleted)?;
        Ok(tell(&deleted))
    }

    fn forget_deleted(&self, deleted: &state::DeletedShare) -> Result<()> {
        self.state.forget_deleted_share(deleted.number).map_err(failed)?;
        let (share, id) = (&deleted.share.name, deleted.number);
        tracing::info!(share, id, "a deleted share was purged; its directory is unchanged");
        Ok(())
    }

    /// The snapshot of a deleted share that is protected for longest, and until when.
    fn protected_longest(&self, deleted: &state::DeletedShare, now: u64) -> Result<Option<(String, u64)>> {
        let protected = self.state.protected_snapshots(&deleted.share.directory).map_err(failed)?;
        let still = protected.into_iter().filter(|snapshot| snapshot.until > now);
        Ok(still.max_by_key(|snapshot| snapshot.until).map(|snapshot| (snapshot.name, snapshot.until)))
    }

    /// Forgets the removed shares whose time is over.
    pub(crate) fn purge_expired(&self, now: u64) {
        let purge = || {
            let _idle = self.idle.lock();
            for deleted in self.state.deleted_shares().map_err(failed)? {
                if deleted.until <= now && self.protected_longest(&deleted, now)?.is_none() {
                    self.forget_deleted(&deleted)?;
                }
            }
            Ok(())
        };
        if let Err(Refusal { what, .. }) = purge() {
            tracing::error!("deleted shares are not purged: {what}");
        }
    }
}

fn tell(deleted: &state::DeletedShare) -> DeletedShare {
    let state::DeletedShare { number, deleted, until, share } = deleted;
    let plan = if share.plan.is_empty() { Plan::Unlimited.to_string() } else { share.plan.clone() };
    let directory = written_directory(&share.directory, share.terms()).to_string_lossy().into_owned();
    DeletedShare { id: *number, name: share.name.clone(), directory, plan, deleted: *deleted, until: *until }
}

#[cfg(test)]
mod tests {
    use control::Administration as _;
    use control::shares::NewShare;
    use state::{ProtectedSnapshot, State};

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
            let directory = directory.to_str().unwrap().to_owned();
            self.here
                .create_share(NewShare { name: name.to_owned(), directory, ..NewShare::default() })
                .unwrap()
        }

        fn deleted(&self) -> Vec<DeletedShare> {
            self.here.deleted_shares().unwrap().shares
        }
    }

    fn named(name: &str) -> Undelete {
        Undelete { name: Some(name.to_owned()) }
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
        let snapshot =
            ProtectedSnapshot { directory: directory.clone().into(), name: "kept".to_owned(), until };
        place.here.state.protect_snapshot(&snapshot).unwrap();
        let refused = place.here.purge_share(deleted.id).unwrap_err();
        assert_eq!(refused.kind, RefusalKind::Protected);
        place.here.purge_expired(deleted.until);
        assert_eq!(place.deleted(), std::slice::from_ref(&deleted));
        // A clock that was set back purges nothing early.
        for early in [0, deleted.deleted - 1, until - 1] {
            place.here.purge_expired(early);
            assert_eq!(place.deleted().len(), 1);
        }
        place.here.purge_expired(until);
        assert_eq!(place.deleted(), []);
        assert!(std::path::Path::new(&directory).is_dir(), "nobody asked for the directory to be removed");
        assert_eq!(place.here.purge_share(deleted.id).unwrap_err().kind, RefusalKind::NotFound);
    }
}
