//! The snapshots of shares, and the policies that take and remove them.
//!
//! [`runner`] does what the policy of a share wants at a moment, on a thread of the [`crew`]; [`keeper`] is the thread that asks it. What became of that is in
//! [`notes`], where metrics and health read it. [`restores`] has what is being restored from them. Of the snapshots of one file system, one at
//! a time is taken or removed, by policies and by commands ([`turns`]): several shares may lie in it.

mod at_alarms;
mod calls;
mod crew;
mod guard;
mod hook;
mod keeper;
mod kept;
mod notes;
mod restores;
mod runner;
mod runners;
mod turns;

use std::sync::Arc;

use control::{Refusal, RefusalKind};
use share::Share;
use storage::Snapshots;

pub(crate) use self::at_alarms::{AtAlarm, AtAlarms};
pub(crate) use self::calls::{asked, asked_to_the_end, glance, now, of_policy};
pub(crate) use self::crew::Crew;
pub(crate) use self::guard::Guard;
pub(crate) use self::keeper::Keeper;
pub(crate) use self::kept::{Kept, protected_until, protection};
pub(crate) use self::notes::Notes;
pub(crate) use self::restores::{Restores, Running, order, path, why};
pub(crate) use self::runner::{OnShare, Runner};
pub(crate) use self::runners::Runners;
pub(crate) use self::turns::Turn;

/// What all who take and remove snapshots have in common.
#[derive(Debug, Default)]
pub(crate) struct Snapshotting {
    turns: turns::Turns,
    pub(crate) notes: Notes,
    pub(crate) restores: Arc<Restores>,
    pub(crate) at_alarms: AtAlarms,
}

impl Snapshotting {
    /// The turn to take or remove one of these snapshots: of one file system, one at a time is taken or removed.
    ///
    /// # Errors
    /// Another one takes too long.
    pub(crate) fn turn(&self, snapshots: &dyn Snapshots) -> Result<Turn<'_>, Refusal> {
        self.turn_on(snapshots.file_system())
    }

    /// The same, for the snapshots of a share. One without snapshots fails later.
    pub(crate) fn turn_at(&self, share: &Share) -> Result<Turn<'_>, Refusal> {
        let provider = share.snapshot_provider();
        self.turn_on(provider.map_or_else(|_| Vec::new(), |snapshots| snapshots.file_system()))
    }

    fn turn_on(&self, file_system: Vec<u8>) -> Result<Turn<'_>, Refusal> {
        self.turns.take(file_system, calls::CALL_TIME).ok_or_else(|| {
            let what = "another snapshot is being taken or removed, and takes long";
            Refusal::new(RefusalKind::Busy, what, "Try again later.")
        })
    }
}
