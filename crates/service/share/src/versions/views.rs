//! The views of a share that are open: each has descriptors, a thread and caches of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use storage::SnapshotId;

use crate::{Error, Result};

/// Views that stay open although nobody uses them.
pub const IDLE_VIEWS_MAX: usize = 16;
/// All views.
pub const VIEWS_MAX: usize = 255;
/// A view that nobody uses is closed after this time.
const IDLE: Duration = Duration::from_secs(60);

/// The open views. A view is in use while anyone else refers to it.
pub(crate) struct Views<V> {
    /// Guards the views, and when each was last asked for. A view that is in use is never removed.
    open: Mutex<BTreeMap<SnapshotId, (Arc<V>, Instant)>>,
}

impl<V> Default for Views<V> {
    fn default() -> Self {
        Self { open: Mutex::default() }
    }
}

impl<V> Views<V> {
    /// The view at a snapshot, if it is open.
    pub(crate) fn find(&self, id: SnapshotId, now: Instant) -> Option<Arc<V>> {
        let mut open = self.open.lock();
        let (view, used) = open.get_mut(&id)?;
        *used = now;
        Some(Arc::clone(view))
    }

    /// Whether there is a view at a snapshot.
    pub(crate) fn is_open(&self, id: SnapshotId) -> bool {
        self.open.lock().contains_key(&id)
    }

    /// Enters a view that was just opened, unless there is one: there is one view at a snapshot, in which all its clients meet.
    /// Returns the one to use, and views that are to be closed.
    ///
    /// # Errors
    /// [`Error::LimitReached`].
    pub(crate) fn enter(&self, id: SnapshotId, view: Arc<V>, now: Instant) -> Result<(Arc<V>, Vec<Arc<V>>)> {
        let mut open = self.open.lock();
        if let Some((other, used)) = open.get_mut(&id) {
            *used = now;
            return Ok((Arc::clone(other), vec![view]));
        }
        let mut idle: Vec<_> =
            open.iter().filter(|(_, (view, _))| is_idle(view)).map(|(id, (_, used))| (*used, *id)).collect();
        idle.sort_unstable();
        let surplus = idle.into_iter().rev().skip(IDLE_VIEWS_MAX - 1);
        let closed = surplus.filter_map(|(_, id)| open.remove(&id)).map(|(view, _)| view).collect();
        if open.len() >= VIEWS_MAX {
            return Err(Error::LimitReached("snapshots in use"));
        }
        open.insert(id, (Arc::clone(&view), now));
        Ok((view, closed))
    }

    /// Takes out the views that nobody uses and that were not asked for lately, or whose snapshot is gone.
    pub(crate) fn take_idle(&self, now: Instant, is_gone: impl Fn(SnapshotId) -> bool) -> Vec<Arc<V>> {
        let is_old = |used: Instant| now.saturating_duration_since(used) >= IDLE;
        self.open
            .lock()
            .extract_if(.., |id, (view, used)| is_idle(view) && (is_old(*used) || is_gone(*id)))
            .map(|(_, (view, _))| view)
            .collect()
    }

    /// All open views.
    pub(crate) fn all(&self) -> Vec<Arc<V>> {
        self.open.lock().values().map(|(view, _)| Arc::clone(view)).collect()
    }
}

/// Whether only the table refers to a view. Others get at it through the table, whose lock is held.
fn is_idle<V>(view: &Arc<V>) -> bool {
    Arc::strong_count(view) == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enter(views: &Views<u32>, number: u32, now: Instant) -> Arc<u32> {
        views.enter(SnapshotId(number), Arc::new(number), now).unwrap().0
    }

    #[test]
    fn there_is_one_view_at_a_snapshot() {
        let (views, now) = (Views::default(), Instant::now());
        assert_eq!(views.find(SnapshotId(1), now), None);
        let first = enter(&views, 1, now);
        let (used, closed) = views.enter(SnapshotId(1), Arc::new(100), now).unwrap();
        assert!(Arc::ptr_eq(&used, &first));
        assert_eq!(closed, [Arc::new(100)]);
        assert_eq!(views.find(SnapshotId(1), now), Some(first));
    }

    #[test]
    fn views_are_closed_when_nobody_uses_them() {
        let (views, now) = (Views::default(), Instant::now());
        let held = enter(&views, 1, now);
        let none_is_gone = |_| false;
        enter(&views, 2, now);
        enter(&views, 3, now + IDLE / 2);
        assert_eq!(views.take_idle(now + IDLE, none_is_gone), [Arc::new(2)]);
        assert_eq!(views.take_idle(now + IDLE, |id| id == SnapshotId(3)), [Arc::new(3)]);
        assert_eq!(views.take_idle(now + IDLE, |_| true), [], "it is in use");
        drop(held);
        assert_eq!(views.take_idle(now + IDLE, none_is_gone), [Arc::new(1)]);
        assert_eq!(views.all(), []);
    }

    #[test]
    fn few_idle_views_stay_and_there_is_an_end_to_those_in_use() {
        let (views, now) = (Views::default(), Instant::now());
        for number in 1..=IDLE_VIEWS_MAX + 3 {
            let at = now + Duration::from_millis(number as u64);
            enter(&views, u32::try_from(number).unwrap(), at);
        }
        assert_eq!(views.all().len(), IDLE_VIEWS_MAX);
        assert_eq!(views.find(SnapshotId(3), now), None, "used before all others");
        let first = 1000..1000 + u32::try_from(VIEWS_MAX).unwrap();
        let mut held = Vec::new();
        let refused = first.into_iter().find_map(|number| {
            match views.enter(SnapshotId(number), Arc::new(number), now) {
                Ok((view, _)) => {
                    held.push(view);
                    None
                }
                Err(error) => Some(error),
            }
        });
        assert_eq!(refused, Some(Error::LimitReached("snapshots in use")));
        held.truncate(10);
        enter(&views, 5000, now);
        assert!(views.all().len() < 10 + IDLE_VIEWS_MAX + 1);
    }
}
