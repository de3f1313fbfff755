//! Calls to the snapshots of shares.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use control::{Refusal, RefusalKind};
use schedule::{Period, Utc};
use share::Share;
use storage::{MayWait, Snapshot, SnapshotName, Snapshots};

use crate::waiting::wait_for;

/// How long a storage may take for a call on its snapshots. One that hangs holds up nobody else.
pub(super) const CALL_TIME: Duration = Duration::from_secs(60);
/// The same, where the snapshots are only to be shown.
const GLANCE_TIME: Duration = Duration::from_secs(5);

/// Makes a call to the snapshots of a share, and waits for it, but not for ever.
pub(crate) fn asked<T: Send + 'static>(
    share: &Arc<Share>,
    call: impl FnOnce(&dyn Snapshots, MayWait<'_>) -> storage::Result<T> + Send + 'static,
) -> Result<T, Refusal> {
    asked_within(CALL_TIME, share, call)
}

/// Makes a call after which nothing can be as before, and waits until it has ended, however long that takes.
pub(crate) fn asked_to_the_end<T: Send + 'static>(
    share: &Arc<Share>,
    call: impl FnOnce(&dyn Snapshots, MayWait<'_>) -> storage::Result<T> + Send + 'static,
) -> Result<T, Refusal> {
    asked_within(Duration::MAX, share, call)
}

/// What snapshots a share has, for those who only want to show it, and do not wait long.
pub(crate) fn glance(share: &Arc<Share>) -> Result<Vec<Snapshot>, Refusal> {
    asked_within(GLANCE_TIME, share, |snapshots, may| snapshots.list(may))
}

fn asked_within<T: Send + 'static>(
    time: Duration,
    share: &Arc<Share>,
    call: impl FnOnce(&dyn Snapshots, MayWait<'_>) -> storage::Result<T> + Send + 'static,
) -> Result<T, Refusal> {
    let name = share.name();
    let answer = wait_for(async { tokio::time::timeout(time, share.with_snapshots(call)).await })?;
    let refuse = |kind, what: String, advice: &str| Err(Refusal::new(kind, what, advice));
    match answer {
        Ok(Ok(Ok(answer))) => Ok(answer),
        Ok(Ok(Err(why))) => {
            let what = format!("the share {name} has no snapshots");
            refuse(RefusalKind::NoSnapshots, what, &why.to_string())
        }
        Ok(Err(e)) => Err(refusal(name, &e)),
        Err(_) => {
            let what = format!("the storage of the share {name} does not answer");
            refuse(RefusalKind::Failed, what, "The request may still be carried out once it responds.")
        }
    }
}

/// What is said of a call that has failed.
fn refusal(share: &str, error: &share::Error) -> Refusal {
    match error {
        share::Error::Storage(storage::Error::NoSpace) => Refusal::new(
            RefusalKind::Failed,
            format!("the file system of the share {share} is full"),
            "Remove something there: files, or snapshots that nobody needs.",
        ),
        share::Error::Storage(storage::Error::SnapshotLimit(most)) => Refusal::new(
            RefusalKind::TooMany,
            format!("the share {share} has {most} snapshots, and CephFS keeps no more of a directory"),
            "Remove one that nobody needs; those of other programs count, too. Who administers the cluster can raise the limit: \
             ceph config set mds mds_max_snaps_per_dir NUMBER",
        ),
        share::Error::Storage(storage::Error::NotPermitted) => Refusal::new(
            RefusalKind::Failed,
            format!("the server may not do that to snapshots of the share {share}"),
            "In CephFS, its user needs the right s, and a part of a subvolume has no snapshots of its own (docs/cephfs.md). On Btrfs, a \
             server that is not root can remove them if the file system is mounted with user_subvol_rm_allowed.",
        ),
        error => {
            Refusal::new(RefusalKind::Failed, format!("the snapshots of the share {share}: {error}"), "")
        }
    }
}

/// The policy and the rule that took a snapshot, by its name.
pub(crate) fn of_policy(name: &str) -> Option<(String, Period)> {
    let name = SnapshotName::parse(name)?;
    schedule::of_label(name.label()).map(|(policy, period)| (policy.to_owned(), period))
}

/// The present moment.
pub(crate) fn now() -> Utc {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Utc::from_secs(i64::try_from(since).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use share::{Settings, ShareId};
    use storage::memory::MemoryStore;

    use super::*;

    #[test]
    fn a_call_that_takes_long_is_given_up_or_waited_for() {
        let share = Share::new(ShareId(1), Settings::new("data"), Arc::new(MemoryStore::new()));
        let (go_on, may_go_on) = mpsc::channel();
        let slow = move |_: &dyn Snapshots, _: MayWait<'_>| Ok(may_go_on.recv().unwrap_or(0));
        let refusal = asked_within(Duration::from_millis(1), &share, slow).unwrap_err();
        assert_eq!(refusal.what, "the storage of the share data does not answer");
        go_on.send(1).unwrap();
        let (go_on, may_go_on) = mpsc::channel();
        let slow = move |_: &dyn Snapshots, _: MayWait<'_>| Ok(may_go_on.recv().unwrap_or(0));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| asked_to_the_end(&share, slow));
            go_on.send(7).unwrap();
            assert_eq!(waiting.join().unwrap(), Ok(7));
        });
    }
}
