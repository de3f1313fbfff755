//! The snapshots of shares, and the policies that take and remove them.
//!
//! [`runner`] does what the policy of a share wants at a moment; [`keeper`] is the thread that asks it. What became of that is in
//! [`notes`], where metrics and health read it. [`restores`] has what is being restored from them. Of all snapshots, one at a time is taken or removed, by policies and by commands:
//! two shares may lie in one file system.

mod at_alarms;
mod calls;
mod guard;
mod hook;
mod keeper;
mod kept;
mod notes;
mod restores;
mod runner;

use std::sync::Arc;

use control::{Refusal, RefusalKind};
use parking_lot::{Mutex, MutexGuard};

pub(crate) use self::at_alarms::{AtAlarm, AtAlarms};
pub(crate) use self::calls::{asked, asked_to_the_end, glance, now, of_policy};
pub(crate) use self::guard::Guard;
pub(crate) use self::keeper::Keeper;
pub(crate) use self::kept::Kept;
pub(crate) use self::notes::Notes;
pub(crate) use self::restores::{Restores, Running, order, path, why};
pub(crate) use self::runner::{OnShare, Runner};

/// What all who take and remove snapshots have in common.
#[derive(Debug, Default)]
pub(crate) struct Snapshotting {
    /// Held while a snapshot is taken or removed. It guards no data.
    turn: Mutex<()>,
    pub(crate) notes: Notes,
    pub(crate) restores: Arc<Restores>,
    pub(crate) at_alarms: AtAlarms,
}

impl Snapshotting {
    /// The turn to take or remove a snapshot.
    ///
    /// # Errors
    /// Another one takes too long.
    pub(crate) fn turn(&self) -> Result<MutexGuard<'_, ()>, Refusal> {
        self.turn.try_lock_for(calls::CALL_TIME).ok_or_else(|| {
            let what = "another snapshot is being taken or removed, and takes long";
            Refusal::new(RefusalKind::Busy, what, "Try again later.")
        })
    }
}
