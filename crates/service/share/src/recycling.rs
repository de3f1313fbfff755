//! What a recycle bin takes, how long it keeps that, and when it was looked through.
//!
//! This part knows no other part of a share, and never asks the store: [`crate::recycle`] and [`crate::empty_bin`] do.

mod settings;

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub use self::settings::{RecycleBin, RecycleBinError};

/// The name of the folder, which is that of Samba's module `recycle`.
pub const RECYCLE_FOLDER: &str = ".recycle";
pub(crate) const FOLDER: &[u8] = RECYCLE_FOLDER.as_bytes();
/// How often a bin is looked through.
const INTERVAL: Duration = Duration::from_secs(3600);
/// How often the log is told of a fault that stays.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// Whether deleted files are kept.
///
/// Locks: one guards the settings, one says when the bin was looked through, one when the log was told of a fault. None of these
/// is held while the store is called. `entries` and `making` guard no data: they are there to be held meanwhile, in this order.
#[derive(Debug, Default)]
pub(crate) struct Recycling {
    bin: RwLock<Option<Arc<RecycleBin>>>,
    sweep: Mutex<Sweep>,
    told: Mutex<Option<Instant>>,
    entries: RwLock<()>,
    making: Mutex<()>,
}

/// When the bin was looked through.
#[derive(Debug, Default)]
struct Sweep {
    last: Option<Instant>,
    is_under_way: bool,
}

impl Recycling {
    pub(crate) fn new(bin: Option<RecycleBin>) -> Self {
        Self { bin: RwLock::new(bin.map(Arc::new)), ..Self::default() }
    }

    /// The settings, if there is a bin.
    pub(crate) fn bin(&self) -> Option<Arc<RecycleBin>> {
        self.bin.read().clone()
    }

    pub(crate) fn set_bin(&self, bin: Option<RecycleBin>) {
        *self.bin.write() = bin.map(Arc::new);
    }

    /// Held while an entry moves into the bin, out of it or within it.
    pub(crate) fn moving(&self) -> RwLockReadGuard<'_, ()> {
        self.entries.read()
    }

    /// Held while an entry of the bin is looked at and removed, so that it does not move in between; None while others move some.
    pub(crate) fn removing(&self) -> Option<RwLockWriteGuard<'_, ()>> {
        self.entries.try_write()
    }

    /// Held while a directory of the bin is made: others see it when it is protected.
    pub(crate) fn making(&self) -> MutexGuard<'_, ()> {
        self.making.lock()
    }

    /// Whether the log is to be told of a fault now: once a minute.
    pub(crate) fn tells(&self, now: Instant) -> bool {
        let mut told = self.told.lock();
        let is_due = told.is_none_or(|told| now.saturating_duration_since(told) >= TOLD_EVERY);
        if is_due {
            *told = Some(now);
        }
        is_due
    }

    /// Whether the caller is to look through the bin now. Then [`Recycling::ends_sweep`] must follow.
    pub(crate) fn begins_sweep(&self, now: Instant) -> bool {
        let mut sweep = self.sweep.lock();
        let is_early = sweep.last.is_some_and(|last| now.saturating_duration_since(last) < INTERVAL);
        if sweep.is_under_way || is_early {
            return false;
        }
        *sweep = Sweep { last: Some(now), is_under_way: true };
        true
    }

    pub(crate) fn ends_sweep(&self) {
        self.sweep.lock().is_under_way = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_looks_through_the_bin_and_not_twice_within_an_hour() {
        let (recycling, now) = (Recycling::default(), Instant::now());
        assert!(recycling.begins_sweep(now) && !recycling.begins_sweep(now + INTERVAL));
        recycling.ends_sweep();
        assert!(!recycling.begins_sweep(now + INTERVAL - Duration::from_nanos(1)));
        assert!(recycling.begins_sweep(now + INTERVAL));
    }

    #[test]
    fn the_log_is_told_of_a_fault_once_a_minute() {
        let (recycling, now) = (Recycling::default(), Instant::now());
        assert!(recycling.tells(now) && !recycling.tells(now + Duration::from_secs(59)));
        assert!(recycling.tells(now + TOLD_EVERY));
    }
}
