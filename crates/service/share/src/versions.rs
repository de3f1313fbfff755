//! What is remembered of the snapshots of a share: which there are, in which of them a path leads to something, and the views
//! that are open.
//!
//! This part knows no other part of a share, and never asks the store: [`crate::snapshots`] does.

mod paths;
mod views;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use storage::{Snapshot, SnapshotId};

use self::paths::KnownPaths;
use self::views::Views;

pub use self::views::{IDLE_VIEWS_MAX, VIEWS_MAX};

/// Of more snapshots, only the latest are told to clients.
pub const VERSIONS_MAX: usize = 255;
/// How long a list of snapshots is believed.
const LISTED_FOR: Duration = Duration::from_secs(1);

/// The last list of snapshots. Its lock guards it alone.
#[derive(Default)]
struct Listed {
    /// And when it was asked for.
    last: Option<(Instant, Arc<[Snapshot]>)>,
    /// What was asked for until then is not believed.
    forgotten: Option<Instant>,
}

/// What is remembered of the snapshots of a share whose views are `V`.
///
/// Locks: [`Views`] and [`KnownPaths`] say what theirs guard. Each is taken alone, and none is held while the store is called. That
/// of the listing is the exception: it is there to be held.
pub(crate) struct Versions<V> {
    /// Held while the store is asked for its snapshots, so that one call asks at a time. It guards no data.
    listing: tokio::sync::Mutex<()>,
    listed: Mutex<Listed>,
    pub(crate) views: Views<V>,
    pub(crate) paths: KnownPaths,
}

impl<V> Default for Versions<V> {
    fn default() -> Self {
        Self {
            listing: tokio::sync::Mutex::default(),
            listed: Mutex::default(),
            views: Views::default(),
            paths: KnownPaths::default(),
        }
    }
}

impl<V> Versions<V> {
    /// The turn to ask for a list.
    pub(crate) async fn listing(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.listing.lock().await
    }

    /// The last list, unless it is too old.
    pub(crate) fn listed(&self, now: Instant) -> Option<Arc<[Snapshot]>> {
        let listed = self.listed.lock();
        let (at, list) = listed.last.as_ref()?;
        (now.saturating_duration_since(*at) < LISTED_FOR).then(|| Arc::clone(list))
    }

    /// Remembers a list that was asked for at this time. Oldest first; only the latest [`VERSIONS_MAX`] are kept.
    pub(crate) fn set_listed(&self, asked: Instant, list: &[Snapshot]) -> Arc<[Snapshot]> {
        let list: Arc<[Snapshot]> =
            list.get(list.len().saturating_sub(VERSIONS_MAX)..).unwrap_or(list).into();
        let mut listed = self.listed.lock();
        if listed.forgotten.is_none_or(|forgotten| asked > forgotten) {
            listed.last = Some((asked, Arc::clone(&list)));
        }
        list
    }

    /// Forgets the last list, and what others are asking for now: the server has taken or removed snapshots itself.
    pub(crate) fn forget_listed(&self, now: Instant) {
        *self.listed.lock() = Listed { last: None, forgotten: Some(now) };
    }
}

/// Whether the list has this snapshot.
pub(crate) fn has(list: &[Snapshot], id: SnapshotId) -> bool {
    list.iter().any(|snapshot| snapshot.id == id)
}

#[cfg(test)]
mod tests {
    use storage::Timestamp;

    use super::*;

    #[test]
    fn a_list_is_believed_for_a_second_and_has_the_latest() {
        let versions = Versions::<()>::default();
        let now = Instant::now();
        assert_eq!(versions.listed(now), None);
        let snapshot = |id: u32| Snapshot {
            id: SnapshotId(id),
            name: id.to_string(),
            taken: Timestamp { secs: id.into(), nanos: 0 },
            is_own: true,
            uuid: None,
        };
        let all: Vec<_> = (1..=256).map(snapshot).collect();
        let kept = versions.set_listed(now, &all);
        assert_eq!(kept[..], all[1..]);
        assert!(has(&kept, SnapshotId(256)) && !has(&kept, SnapshotId(1)));
        let just = Duration::from_millis(999);
        assert_eq!(versions.listed(now + just), Some(kept));
        assert_eq!(versions.listed(now + LISTED_FOR), None);
        assert_eq!(versions.set_listed(now, &all[..1])[..], all[..1]);
        // A list that was asked for before the server removed a snapshot is of no use to others.
        versions.forget_listed(now);
        assert_eq!(versions.listed(now), None);
        assert_eq!(versions.set_listed(now, &all[..1])[..], all[..1]);
        assert_eq!(versions.listed(now), None);
        versions.set_listed(now + just, &all[..2]);
        assert_eq!(versions.listed(now + just).as_deref(), Some(&all[..2]));
    }
}
