//! The snapshots of [`Administration`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use control::snapshots::{NewSnapshot, Snapshot, SnapshotChange, SnapshotSummary, Snapshots};
use control::{Refusal, RefusalKind};
use schedule::Utc;
use share::Share;
use state::ProtectedSnapshot;
use storage::SnapshotName;

use super::{Administration, Serving, failed, invalid};
use crate::replication::LABEL;
use crate::snapshots::{Kept, Turn, asked, glance, now, of_policy, protected_until, protection};

type Result<T> = std::result::Result<T, Refusal>;

/// The most snapshots of a share that were taken by command, or by going back to one.
const BY_COMMAND_MAX: usize = 255;
/// For how long a snapshot can be protected: nobody can take that back.
const PROTECTED_SECS_MAX: u64 = 3660 * 24 * 3600;
/// How long a command waits for a change of shares.
const CHANGE_TIME: Duration = Duration::from_secs(60);
/// The label of a snapshot that was given none.
const MANUAL: &str = "manual";

pub(super) const LIST_ADVICE: &str = "`anabranch snapshot list SHARE` lists the snapshots.";

impl Administration {
    pub(super) fn all_snapshots(&self, share: &str) -> Result<Snapshots> {
        let share = self.served(share)?;
        let protected = self.protected(&self.directory_of(share.name())?)?;
        let listed = asked(&share, |snapshots, may| snapshots.list(may))?;
        Ok(Snapshots { snapshots: listed.into_iter().map(|snapshot| tell(snapshot, &protected)).collect() })
    }

    pub(super) fn enter_snapshot(&self, share: &str, new: &NewSnapshot) -> Result<Snapshot> {
        let label = new.label.as_deref().unwrap_or(MANUAL);
        check_label(label)?;
        let until = wanted_until(new, now())?;
        let _turn = self.turn_of(share)?;
        let (share, directory) = self.served_with_directory(share)?;
        let listed = asked(&share, |snapshots, may| snapshots.list(may))?;
        let by_command =
            listed.iter().filter(|snapshot| snapshot.is_own && of_policy(&snapshot.name).is_none());
        if by_command.count() >= BY_COMMAND_MAX {
            let what = format!(
                "{BY_COMMAND_MAX} snapshots of the share {} were taken by command already",
                share.name()
            );
            return Err(Refusal::new(RefusalKind::TooMany, what, "Remove one that nobody needs."));
        }
        let taken = take(&share, label)?;
        if let Some(until) = until {
            self.protect(&directory, &taken, until)?;
        }
        tracing::info!(share = share.name(), snapshot = taken.name, "a snapshot was taken");
        Ok(tell(taken, &self.protected(&directory)?))
    }

    pub(super) fn set_snapshot(&self, share: &str, name: &str, change: &SnapshotChange) -> Result<Snapshot> {
        let until = change.protected_until;
        check_until(until, now())?;
        let _turn = self.turn_of(share)?;
        let (share, directory) = self.served_with_directory(share)?;
        let found = find(&share, name)?;
        if !found.is_own {
            let what = format!("another program made the snapshot {name}, so it cannot be protected here");
            return Err(invalid(what, "It is removed by whoever made it, whatever this server says."));
        }
        let known = tell(found.clone(), &self.protected(&directory)?).protected_until;
        if let Some(known) = known.filter(|known| *known > until) {
            let what = format!("the snapshot {name} is protected until {}, which is later", written(known));
            return Err(Refusal::new(RefusalKind::Protected, what, "A protection can only be extended."));
        }
        self.protect(&directory, &found, until)?;
        tracing::info!(
            share = share.name(),
            snapshot = name,
            until = written(until),
            "a snapshot is protected"
        );
        Ok(tell(found, &self.protected(&directory)?))
    }

    pub(super) fn end_snapshot(&self, share: &str, name: &str) -> Result<Snapshot> {
        let _turn = self.turn_of(share)?;
        let (share, directory) = self.served_with_directory(share)?;
        let found = find(&share, name)?;
        if !found.is_own {
            let what = format!("another program made the snapshot {name}, so it is not removed here");
            return Err(invalid(what, "Remove it with the program that made it."));
        }
        let told = tell(found.clone(), &self.protected(&directory)?);
        if let Some(until) = told.protected_until.filter(|until| *until > now().secs_since_1970()) {
            let what = format!("the snapshot {name} is protected until {}", written(until));
            return Err(Refusal::new(
                RefusalKind::Protected,
                what,
                "Nobody can remove it before, nor shorten that.",
            ));
        }
        self.check_not_restored_from(share.name(), name)?;
        self.check_not_replicated(share.name(), name)?;
        let id = found.id;
        asked(&share, move |snapshots, may| snapshots.remove(id, may))?;
        let kept = Kept::of(&self.state, share.name(), &directory, now()).map_err(failed)?;
        kept.forget(&self.state, &found);
        tracing::info!(share = share.name(), snapshot = name, "a snapshot was removed");
        Ok(told)
    }

    /// The turn to take or remove a snapshot of a share that is served, and is the same when the turn comes.
    pub(super) fn turn_of(&self, share: &str) -> Result<Turn<'_>> {
        let share = self.served(share)?;
        let turn = self.snapshotting.turn_at(&share)?;
        self.check_is_unchanged(&share)?;
        Ok(turn)
    }

    /// What there is to say of the snapshots of a share. None: it is not served, or its storage does not answer.
    pub(super) fn summary(&self, share: &str) -> Option<SnapshotSummary> {
        let share = self.serving.as_ref()?.shares.present().by_name(share).cloned()?;
        if share.store_health().is_stuck {
            return None;
        }
        match glance(&share) {
            Ok(listed) => Some(SnapshotSummary {
                count: listed.len() as u64,
                newest: listed.last().map(|snapshot| snapshot.taken.secs),
                unsupported: None,
            }),
            Err(Refusal { kind: RefusalKind::NoSnapshots, advice, .. }) => {
                Some(SnapshotSummary { unsupported: Some(advice), ..SnapshotSummary::default() })
            }
            Err(_) => None,
        }
    }

    pub(super) fn serving(&self) -> Result<&Serving> {
        self.serving.as_ref().ok_or_else(|| {
            let what = "no server is running, and only a running one has the snapshots of shares";
            Refusal::new(RefusalKind::NotFound, what, "Start it: anabranch serve")
        })
    }

    /// A share that is served.
    pub(crate) fn served(&self, name: &str) -> Result<Arc<Share>> {
        self.serving()?.shares.present().by_name(name).cloned().ok_or_else(|| {
            let what = format!("no share {name} is served");
            Refusal::new(RefusalKind::NotFound, what, "`anabranch share list` lists the shares.")
        })
    }

    /// The directory of a share, as shares are declared or created now.
    pub(super) fn directory_of(&self, share: &str) -> Result<PathBuf> {
        if let Some(declared) = self.declared().share(share) {
            return Ok(declared.directory.clone());
        }
        Ok(self.made_share(share)?.directory)
    }

    /// A share that is served, with the directory that it serves, so that its snapshots and their protections are those of one directory.
    /// Who removes something asks in their turn: the share may be another one afterwards.
    ///
    /// # Errors
    /// It is not served, or the shares are being changed, which takes long.
    pub(super) fn served_with_directory(&self, name: &str) -> Result<(Arc<Share>, PathBuf)> {
        let Some(_unchanged) = self.idle.try_lock_for(CHANGE_TIME) else {
            let what = "the shares are being changed, and that takes long";
            return Err(Refusal::new(RefusalKind::Busy, what, "Try again later."));
        };
        let share = self.served(name)?;
        let directory = self.directory_of(share.name())?;
        Ok((share, directory))
    }

    fn protected(&self, directory: &Path) -> Result<Vec<ProtectedSnapshot>> {
        self.state.protected_snapshots(directory).map_err(failed)
    }

    fn protect(&self, directory: &Path, snapshot: &storage::Snapshot, until: u64) -> Result<()> {
        self.state.protect_snapshot(&protection(directory, snapshot, until)).map_err(failed)
    }
}

/// Refuses a snapshot policy for a share that has no snapshots. A storage that does not answer now may have them.
pub(super) fn check_has_snapshots(share: &Arc<Share>, policy: &str) -> Result<()> {
    if policy.is_empty() {
        return Ok(());
    }
    match asked(share, |_, _| Ok(())) {
        Err(refusal) if refusal.kind == RefusalKind::NoSnapshots => Err(refusal),
        _ => Ok(()),
    }
}

/// Takes a snapshot.
fn take(share: &Arc<Share>, label: &str) -> Result<storage::Snapshot> {
    let label = label.to_owned();
    asked(share, move |snapshots, may| snapshots.take(&label, may))
}

pub(super) fn find(share: &Arc<Share>, name: &str) -> Result<storage::Snapshot> {
    let listed = asked(share, |snapshots, may| snapshots.list(may))?;
    listed.into_iter().find(|snapshot| snapshot.name == name).ok_or_else(|| {
        let what = format!("the share {} has no snapshot {name}", share.name());
        Refusal::new(RefusalKind::NotFound, what, LIST_ADVICE)
    })
}

pub(super) fn tell(snapshot: storage::Snapshot, protected: &[ProtectedSnapshot]) -> Snapshot {
    let protected_until = protected_until(protected, &snapshot);
    let policy = of_policy(&snapshot.name).filter(|_| snapshot.is_own);
    Snapshot {
        taken: snapshot.taken.secs,
        own: snapshot.is_own,
        policy: policy.as_ref().map(|(policy, _)| policy.clone()),
        period: policy.map(|(_, period)| period.name().to_owned()),
        protected_until,
        name: snapshot.name,
    }
}

fn check_label(label: &str) -> Result<()> {
    if SnapshotName::new(label, 0).is_none() {
        let what = format!("{label:?} cannot be the label of a snapshot");
        return Err(invalid(what, "A label has 1 to 64 letters, digits, hyphens and underscores."));
    }
    let is_for_replication = label == LABEL || label.starts_with(&format!("{LABEL}-"));
    if schedule::is_reserved(label) || label == storage::BEFORE_REVERT || is_for_replication {
        let what = format!("the label {label} is one that the server gives by itself");
        return Err(invalid(what, "Choose another: policies count their snapshots by such labels."));
    }
    Ok(())
}

/// Until when a new snapshot is protected; None: not at all.
fn wanted_until(new: &NewSnapshot, now: Utc) -> Result<Option<u64>> {
    let until = match (new.protect_for_seconds, new.protected_until) {
        (None, None) => return Ok(None),
        (Some(seconds), None) => now.secs_since_1970().saturating_add(seconds),
        (None, Some(until)) => until,
        (Some(_), Some(_)) => {
            let what = "protect_for_seconds and protected_until do not go together";
            return Err(invalid(what, "Give one of them."));
        }
    };
    check_until(until, now)?;
    Ok(Some(until))
}

fn check_until(until: u64, now: Utc) -> Result<()> {
    let now = now.secs_since_1970();
    if until <= now {
        return Err(invalid(format!("{} is in the past", written(until)), "Give a time in the future."));
    }
    if until > now.saturating_add(PROTECTED_SECS_MAX) {
        let what =
            format!("a snapshot cannot be protected until {}: that is more than ten years", written(until));
        return Err(invalid(what, "Give an earlier time, and extend it when it comes."));
    }
    Ok(())
}

fn written(secs: u64) -> String {
    Utc::from_secs(i64::try_from(secs).unwrap_or(i64::MAX)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(protect_for_seconds: Option<u64>, protected_until: Option<u64>) -> NewSnapshot {
        NewSnapshot { label: None, protect_for_seconds, protected_until }
    }

    #[test]
    fn a_protection_ends_in_time_to_come_and_not_too_late() {
        let now = Utc::from_secs(1000);
        let until = |seconds, at| wanted_until(&new(seconds, at), now).map_err(|refusal| refusal.kind);
        assert_eq!(until(None, None), Ok(None));
        assert_eq!(until(Some(1), None), Ok(Some(1001)));
        assert_eq!(until(None, Some(1001)), Ok(Some(1001)));
        assert_eq!(until(Some(PROTECTED_SECS_MAX), None), Ok(Some(1000 + PROTECTED_SECS_MAX)));
        for bad in [
            until(Some(0), None),
            until(None, Some(1000)),
            until(Some(PROTECTED_SECS_MAX + 1), None),
            until(Some(u64::MAX), None),
            until(None, Some(u64::MAX)),
            until(Some(1), Some(1001)),
        ] {
            assert_eq!(bad, Err(RefusalKind::Invalid));
        }
    }

    #[test]
    fn labels_that_the_server_gives_are_reserved() {
        for label in ["manual", "before_update", "hourly", "replicas", &"x".repeat(64)] {
            assert!(check_label(label).is_ok(), "{label}");
        }
        for label in [
            "",
            "a.b",
            "a/b",
            "hourly-office",
            "monthly-x",
            "before-revert",
            "replica",
            "replica-a",
            &"x".repeat(65),
        ] {
            assert!(check_label(label).is_err(), "{label}");
        }
    }

    #[test]
    fn only_own_snapshots_are_those_of_policies_and_protected() {
        let snapshot = |name: &str, is_own| storage::Snapshot {
            id: storage::SnapshotId(7),
            name: name.to_owned(),
            taken: storage::Timestamp { secs: 5, nanos: 0 },
            is_own,
            uuid: None,
        };
        let name = "anabranch.daily-office.2026-11-23T01:10:00Z";
        let protected = [protection(Path::new("/srv"), &snapshot(name, true), 9)];
        let told = tell(snapshot(name, true), &protected);
        assert_eq!((told.policy.as_deref(), told.period.as_deref()), (Some("office"), Some("daily")));
        assert_eq!(told.protected_until, Some(9));
        let told = tell(snapshot(name, false), &protected);
        assert_eq!((told.policy, told.period, told.protected_until), (None, None, None));
    }
}
