//! Alarms: problems of a store that an administrator must solve.
//!
//! A failed call raises an alarm. The alarm ends when the store says that the reason is gone and no call has failed for a
//! while. So a disk that is nearly full, where the last bytes come and go, causes one alarm, and two lines in the log.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use storage::{Error as StoreError, MayWait, Space, Storage};

/// An alarm ends at the earliest this long after the last failed call.
const QUIET: Duration = Duration::from_secs(10);
/// A store has room again when a hundredth of it is free, or this many bytes.
const ROOM: u64 = 64 << 20;

/// A problem of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Alarm {
    /// The store has no room left for what clients write (ENOSPC). An exhausted plan is not an alarm.
    Full,
    /// The store accepts no changes any more (EROFS), although the share is not declared read-only.
    ReadOnly,
    /// The path of the share leads to another directory, or nowhere: the directory was renamed or replaced. Clients still
    /// use the directory that was opened.
    Moved,
}

impl Alarm {
    /// All alarms.
    pub const ALL: [Self; 3] = [Self::Full, Self::ReadOnly, Self::Moved];

    /// The name for metrics and the API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::ReadOnly => "read-only",
            Self::Moved => "moved",
        }
    }

    fn among<T>(self, all: &mut [T; 3]) -> &mut T {
        let [full, read_only, moved] = all;
        match self {
            Self::Full => full,
            Self::ReadOnly => read_only,
            Self::Moved => moved,
        }
    }

    fn of(error: StoreError) -> Option<Self> {
        match error {
            StoreError::NoSpace => Some(Self::Full),
            StoreError::ReadOnly => Some(Self::ReadOnly),
            _ => None,
        }
    }
}

/// The alarms of a share.
pub(super) struct Alarms {
    /// The name of the share, for the log.
    name: String,
    storage: Arc<dyn Storage>,
    /// Guards, for each of [`Alarm::ALL`], when a call last failed for this reason, while the alarm lasts.
    failed: Mutex<[Option<Instant>; 3]>,
    /// Whether the store is being asked if the alarms are over.
    is_asking: AtomicBool,
}

impl Alarms {
    /// Records a failed call. Returns whether the alarm is new.
    fn raise(&self, alarm: Alarm, now: Instant) -> bool {
        alarm.among(&mut self.failed.lock()).replace(now).is_none()
    }

    /// Records that the reason is gone. Returns whether the alarm ends.
    fn end(&self, alarm: Alarm, now: Instant) -> bool {
        let mut all = self.failed.lock();
        let failed = alarm.among(&mut all);
        let is_over = failed.is_some_and(|last| now.saturating_duration_since(last) >= QUIET);
        is_over && failed.take().is_some()
    }

    pub(super) fn present(&self) -> impl Iterator<Item = Alarm> + use<> {
        let failed = *self.failed.lock();
        Alarm::ALL.into_iter().zip(failed).filter_map(|(alarm, last)| last.map(|_| alarm))
    }
}

/// Whether there is a useful amount of room.
fn has_room(space: &Space) -> bool {
    let names = space.files == 0 || space.files_free > 0;
    names && space.available >= ROOM.min(space.total / 100).max(1)
}

impl Alarms {
    /// No alarms, of the store of the share with this name.
    pub(super) fn new(name: &str, storage: &Arc<dyn Storage>) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            storage: Arc::clone(storage),
            failed: Mutex::default(),
            is_asking: AtomicBool::new(false),
        })
    }

    /// Records a failed call to the store. The share may be declared read-only.
    pub(super) fn heed(&self, error: StoreError, is_declared_read_only: impl FnOnce() -> bool) {
        let Some(alarm) = Alarm::of(error) else { return };
        if alarm != Alarm::ReadOnly || !is_declared_read_only() {
            self.tell(alarm);
        }
    }

    fn tell(&self, alarm: Alarm) {
        if !self.raise(alarm, Instant::now()) {
            return;
        }
        let share = &*self.name;
        match alarm {
            Alarm::Full => tracing::error!(share, "the storage is full: writing fails"),
            Alarm::ReadOnly => tracing::error!(share, "the storage has become read-only: changes fail"),
            Alarm::Moved => tracing::error!(
                share,
                "the directory of the share was renamed or replaced: clients still use the one that was served at \
                 first. Put it back, or serve the other one: start the server again"
            ),
        }
    }

    /// Whether a review may begin: none is under way. [`Alarms::review`] ends it.
    pub(super) fn begin_review(&self) -> bool {
        !self.is_asking.swap(true, Ordering::Relaxed)
    }

    /// Asks the store whether its path still leads to it and whether alarms are over.
    pub(super) fn review(&self, is_declared_read_only: bool, may: MayWait<'_>) {
        if self.storage.is_in_place(may) == Ok(false) {
            self.tell(Alarm::Moved);
        }
        let share = &*self.name;
        for alarm in self.present() {
            if self.is_over(alarm, is_declared_read_only, may) && self.end(alarm, Instant::now()) {
                match alarm {
                    Alarm::Moved => tracing::info!(share, "the directory of the share is in its place again"),
                    _ => tracing::info!(share, "the storage is no longer {}", alarm.name()),
                }
            }
        }
        self.is_asking.store(false, Ordering::Relaxed);
    }

    fn is_over(&self, alarm: Alarm, is_declared_read_only: bool, may: MayWait<'_>) -> bool {
        match alarm {
            Alarm::Full => self.storage.space(may).is_ok_and(|space| has_room(&space)),
            Alarm::ReadOnly => is_declared_read_only || self.storage.is_read_only(may) == Ok(false),
            Alarm::Moved => self.storage.is_in_place(may) == Ok(true),
        }
    }
}

#[cfg(test)]
mod tests {
    use storage::memory::MemoryStore;

    use super::*;

    fn alarms() -> Arc<Alarms> {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStore::new());
        Alarms::new("data", &storage)
    }

    #[test]
    fn an_alarm_is_raised_once_and_over_after_a_while() {
        let (alarms, begun) = (alarms(), Instant::now());
        let at = |seconds| begun + Duration::from_secs(seconds);
        assert!(alarms.raise(Alarm::Full, at(0)));
        assert!(!alarms.raise(Alarm::Full, at(5)), "that is known");
        assert!(alarms.raise(Alarm::ReadOnly, at(5)));
        assert_eq!(alarms.present().collect::<Vec<_>>(), [Alarm::Full, Alarm::ReadOnly]);
        assert!(!alarms.end(Alarm::Full, at(14)), "a call has failed 9 seconds ago");
        assert!(alarms.end(Alarm::Full, at(15)) && !alarms.end(Alarm::Full, at(16)));
        assert_eq!(alarms.present().collect::<Vec<_>>(), [Alarm::ReadOnly]);
        assert!(alarms.raise(Alarm::Full, at(16)), "it is news again");
    }

    #[test]
    fn room_is_a_hundredth() {
        let space = |total, available| Space { total, available, free: available, ..Space::default() };
        assert!(!has_room(&space(1 << 20, 10_000)) && has_room(&space(1 << 20, 20_000)));
        assert!(has_room(&space(1 << 50, ROOM)) && !has_room(&space(1 << 50, ROOM - 1)));
        assert!(!has_room(&space(0, 0)));
        let names = Space { files: 10, files_free: 0, ..space(1 << 20, 1 << 20) };
        assert!(!has_room(&names), "no file can be made");
    }
}
