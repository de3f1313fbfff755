//! Files and directories that are restored from snapshots: ordered, looked at, cancelled, gone on with.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use control::restores::{LeftAlone, NewRestore, Restore};
use control::{Refusal, RefusalKind};
use schedule::Utc;
use share::{CannotRestore, Error, RestoreFigures, Share};
use state::{RestoreEnd, RestoreRecord};

use super::snapshots::LIST_ADVICE;
use super::{Administration, failed, invalid};
use crate::snapshots::{Running, asked, order, path, why};
use crate::waiting::wait_for;

type Result<T> = std::result::Result<T, Refusal>;

/// How long the storage may take to say what is at the two paths.
const CHECK_TIME: Duration = Duration::from_secs(60);

impl Administration {
    /// Begins a restore.
    pub(super) fn order_restore(&self, name: &str, new: &NewRestore) -> Result<Restore> {
        let source = path_in(&new.path)?;
        let target = new.to.as_deref().map_or_else(|| Ok(source.clone()), path_in)?;
        let (share, directory) = self.served_with_directory(name)?;
        let snapshot = find_at(&share, &new.from)?;
        let record = RestoreRecord {
            share: share.name().to_owned(),
            directory,
            snapshot: snapshot.name,
            source,
            target,
            replace: new.replace,
            ordered: since_1970(),
            cancelled: false,
            ended: None,
        };
        check(&share, &record, snapshot.id)?;
        // Nobody removes the snapshot before it is known that it is restored from.
        let _turn = self.snapshotting.turn_at(&share)?;
        find_at(&share, &record.snapshot)?;
        self.check_nothing_is_restored(share.name())?;
        self.state.keep_restore(&record).map_err(failed)?;
        tracing::info!(
            share = record.share,
            from = record.snapshot,
            path = record.source,
            to = record.target,
            "a restore begins"
        );
        self.start_restore(&share, record)?;
        self.look_at_restore(share.name())
    }

    fn start_restore(&self, share: &Arc<Share>, record: RestoreRecord) -> Result<()> {
        self.snapshotting.restores.start(&self.state, share, record).map_err(|e| {
            let what = format!("cannot start a thread: {e}");
            Refusal::new(RefusalKind::Failed, what, "It is tried again in some seconds.")
        })
    }

    /// Refuses to begin what a restore of the share stands in the way of.
    pub(super) fn check_nothing_is_restored(&self, name: &str) -> Result<()> {
        let known = self.state.restore_of(name).map_err(failed)?;
        let Some(known) = known.filter(|known| known.ended.is_none()) else { return Ok(()) };
        let what = format!("a restore from {} into the share {} goes on", known.snapshot, known.share);
        Err(Refusal::new(
            RefusalKind::Busy,
            what,
            "Wait for its end, or cancel it: anabranch share restore SHARE --cancel",
        ))
    }

    /// Refuses to remove a snapshot that is being restored from.
    pub(super) fn check_not_restored_from(&self, name: &str, snapshot: &str) -> Result<()> {
        let known = self.state.restore_of(name).map_err(failed)?;
        match known.filter(|known| known.snapshot == snapshot) {
            Some(_) => self.check_nothing_is_restored(name),
            None => Ok(()),
        }
    }

    /// The restore of a share that goes on, or was the last.
    pub(super) fn look_at_restore(&self, name: &str) -> Result<Restore> {
        if let Some(running) = self.snapshotting.restores.of(name) {
            return Ok(tell_running(&running));
        }
        let known = self.state.restore_of(name).map_err(failed)?;
        known.map(|record| tell_record(&record)).ok_or_else(|| {
            let what = format!("nothing was restored into the share {name}");
            Refusal::new(
                RefusalKind::NotFound,
                what,
                "anabranch share restore SHARE --from SNAPSHOT PATH restores something.",
            )
        })
    }

    /// Cancels the restore of a share.
    pub(super) fn stop_restore(&self, name: &str) -> Result<Restore> {
        let remembering = self.snapshotting.restores.remembering();
        if let Some(running) = self.snapshotting.restores.of(name) {
            drop(remembering);
            self.snapshotting.restores.cancel(&self.state, &running).map_err(failed)?;
            return Ok(tell_running(&running));
        }
        let known = self.state.restore_of(name).map_err(failed)?;
        let Some(record) = known.filter(|record| record.ended.is_none()) else {
            let what = format!("nothing is being restored into the share {name}");
            return Err(Refusal::new(RefusalKind::NotFound, what, ""));
        };
        let record = RestoreRecord { ended: Some(cancelled()), ..record };
        self.state.keep_restore(&record).map_err(failed)?;
        Ok(tell_record(&record))
    }

    /// Has restores go on that were interrupted, if their shares are served.
    pub(crate) fn resume_restores(&self) {
        let known = match self.state.restores() {
            Ok(known) => known,
            Err(error) => return tracing::error!("what is to be restored: {}", error.what),
        };
        for record in known.into_iter().filter(|record| record.ended.is_none()) {
            if self.snapshotting.restores.of(&record.share).is_some() {
                continue;
            }
            let name = record.share.clone();
            if let Err(refusal) = self.resume(record) {
                tracing::error!(share = name, "a restore does not go on: {}", refusal.what);
            }
        }
    }

    fn resume(&self, record: RestoreRecord) -> Result<()> {
        let _remembering = self.snapshotting.restores.remembering();
        // It may have ended since it was looked at.
        let known = self.state.restore_of(&record.share).map_err(failed)?;
        if known.as_ref() != Some(&record) {
            return Ok(());
        }
        if record.cancelled {
            let ended = Some(cancelled());
            return self.state.keep_restore(&RestoreRecord { ended, ..record }).map_err(failed);
        }
        let Ok(share) = self.served(&record.share) else { return Ok(()) };
        if self.directory_of(share.name())? != record.directory {
            let problem = Some("the share serves another directory now".to_owned());
            let at = Duration::from_nanos(since_1970()).as_secs();
            let ended = Some(RestoreEnd { at, problem, ..RestoreEnd::default() });
            return self.state.keep_restore(&RestoreRecord { ended, ..record }).map_err(failed);
        }
        tracing::info!(share = record.share, from = record.snapshot, "a restore goes on");
        self.start_restore(&share, record)
    }

    /// Has all restores stop, and waits for them.
    pub(crate) fn stop_restores(&self) {
        self.snapshotting.restores.stop();
    }
}

/// The snapshot with this name, or that was taken at this time.
pub(super) fn find_at(share: &Arc<Share>, given: &str) -> Result<storage::Snapshot> {
    let listed = asked(share, |snapshots, may| snapshots.list(may))?;
    let at = given.parse::<Utc>().ok().filter(|_| given.contains('T')).map(Utc::secs);
    let is_meant = |one: &storage::Snapshot| one.name == given || at == Some(one.taken.secs);
    listed.into_iter().find(is_meant).ok_or_else(|| {
        let what = format!("the share {} has no snapshot {given}", share.name());
        Refusal::new(RefusalKind::NotFound, what, LIST_ADVICE)
    })
}

/// A path as it is kept: names with slashes between them.
fn path_in(given: &str) -> Result<String> {
    let names: Vec<&str> = given.split('/').filter(|name| !name.is_empty()).collect();
    let is_impossible = |name: &&&str| [".", ".."].contains(*name) || name.contains('\0');
    match names.iter().find(is_impossible) {
        None if given.is_empty() => Err(invalid("the path is empty", "`/` is the whole share.")),
        None => Ok(names.join("/")),
        Some(_) => {
            Err(invalid(format!("the path {given:?} is impossible"), "It begins at the root of the share."))
        }
    }
}

fn check(share: &Arc<Share>, record: &RestoreRecord, from: storage::SnapshotId) -> Result<()> {
    let checked = share.check_restoration(order(record, from));
    let answer = wait_for(async { tokio::time::timeout(CHECK_TIME, checked).await })?;
    let name = share.name();
    let RestoreRecord { snapshot, source, target, .. } = record;
    let refuse = |kind, what: String, advice: &str| Err(Refusal::new(kind, what, advice));
    match answer {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(CannotRestore::NoSource)) => refuse(
            RefusalKind::NotFound,
            format!("the snapshot {snapshot} has no /{source}"),
            "The path begins at the root of the share. Symbolic links are not followed.",
        ),
        Ok(Err(CannotRestore::NoPlace)) => refuse(
            RefusalKind::Invalid,
            format!("the directory in which /{target} would be is not there"),
            "Restore that directory, create it, or give another place: --to PATH",
        ),
        Ok(Err(CannotRestore::Exists)) => refuse(
            RefusalKind::NameTaken,
            format!("the share {name} has a /{target} already"),
            "--replace has files take the place of those that are there; --to PATH restores elsewhere.",
        ),
        Ok(Err(CannotRestore::OtherKind)) => refuse(
            RefusalKind::NameTaken,
            format!("/{source} cannot take the place of /{target}: only one of them is a directory"),
            "Rename what is there, or restore elsewhere: --to PATH",
        ),
        Ok(Err(CannotRestore::Failed(Error::ReadOnly(_)))) => {
            refuse(RefusalKind::Invalid, format!("the share {name} is read-only"), "")
        }
        Ok(Err(CannotRestore::Failed(error))) => {
            refuse(RefusalKind::Failed, format!("the share {name}: {error}"), "")
        }
        Err(_) => refuse(RefusalKind::Failed, format!("the storage of the share {name} does not answer"), ""),
    }
}

/// The end of a restore that does not go on.
fn cancelled() -> RestoreEnd {
    let at = Duration::from_nanos(since_1970()).as_secs();
    RestoreEnd { at, cancelled: true, ..RestoreEnd::default() }
}

/// In nanoseconds.
fn since_1970() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

fn tell_running(running: &Running) -> Restore {
    let RestoreFigures { restored, unchanged, left, named, bytes, files_all, bytes_all } =
        running.progress.figures();
    let left_alone =
        named.iter().map(|left| LeftAlone { path: path(&left.path), why: why(left.error) }).collect();
    Restore {
        state: "running".to_owned(),
        restored,
        unchanged,
        left,
        left_alone,
        bytes,
        files_total: files_all,
        bytes_total: bytes_all,
        ..of(&running.record)
    }
}

fn tell_record(record: &RestoreRecord) -> Restore {
    let Some(end) = record.ended.clone() else {
        return Restore { state: "waiting".to_owned(), ..of(record) };
    };
    let state = match &end {
        RestoreEnd { problem: Some(_), .. } => "failed",
        RestoreEnd { cancelled: true, .. } => "cancelled",
        _ => "done",
    };
    Restore {
        state: state.to_owned(),
        ended: Some(end.at),
        restored: end.restored,
        unchanged: end.unchanged,
        left: end.left,
        left_alone: end.named.into_iter().map(|(path, why)| LeftAlone { path, why }).collect(),
        bytes: end.bytes,
        problem: end.problem,
        ..of(record)
    }
}

fn of(record: &RestoreRecord) -> Restore {
    Restore {
        from: record.snapshot.clone(),
        path: format!("/{}", record.source),
        to: format!("/{}", record.target),
        replace: record.replace,
        ordered: Duration::from_nanos(record.ordered).as_secs(),
        ..Restore::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_at_the_root() {
        for (given, kept) in [("/", ""), ("a", "a"), ("/a//b/", "a/b"), ("a b/c", "a b/c")] {
            assert_eq!(path_in(given).as_deref(), Ok(kept), "{given}");
        }
        for bad in ["", "..", "a/../b", "./a", "a/.", "a\0"] {
            assert_eq!(path_in(bad).map_err(|refusal| refusal.kind), Err(RefusalKind::Invalid), "{bad}");
        }
    }

    #[test]
    fn what_has_ended_says_how() {
        let record =
            RestoreRecord { source: "a".to_owned(), ordered: 7_000_000_000, ..RestoreRecord::default() };
        let told = |ended| tell_record(&RestoreRecord { ended, ..record.clone() });
        let waiting = told(None);
        assert_eq!((waiting.state.as_str(), waiting.path.as_str(), waiting.ordered), ("waiting", "/a", 7));
        let done = RestoreEnd { at: 9, restored: 3, ..RestoreEnd::default() };
        assert_eq!(
            (told(Some(done.clone())).state, told(Some(done.clone())).ended),
            ("done".into(), Some(9))
        );
        let cancelled = RestoreEnd { cancelled: true, ..done.clone() };
        assert_eq!(told(Some(cancelled)).state, "cancelled");
        let failed = RestoreEnd { problem: Some("x".to_owned()), ..done };
        assert_eq!(told(Some(failed)).state, "failed");
    }
}
