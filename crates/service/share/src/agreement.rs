//! What the clients of a share must agree on: who has which file open and how, who has locked which bytes, who may cache what.
//!
//! This part knows no other part of a share, and never waits for a store. What follows from an open that ends (a name to
//! delete, watchers to tell) it returns to its caller.

mod caching;
mod courtesy;
mod file;
mod files;
mod lock;
mod open;
mod openers;
mod reclaims;
mod removed;
mod restore;
#[cfg(test)]
mod tests;
mod within;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use storage::{NodeRef, ObjectId};

use self::courtesy::Courtesies;
use self::files::Files;
use self::openers::OpenCount;
use self::reclaims::Reclaims;
use crate::found::{Epoch, Location};
use crate::{Call, Error, Result, Settings, ShareId};

pub use self::caching::{Admission, Answering, GrantCounts, GrantHolder, GrantKey, GrantRequest, Granted};
pub use self::caching::{Asked, Unwritten};
pub use self::courtesy::Courtesy;
pub use self::file::File;
pub(crate) use self::files::Doomed;
pub use self::lock::{ClientLock, LockWait};
pub(crate) use self::open::Ended;
pub use self::open::{Open, OpenRequest};
pub use self::openers::{Opener, Openers};
pub use self::restore::Holding;

/// What the clients of a share have agreed on.
///
/// Locks: a table of open files ([`Files`]) has a lock of its own, and under it no other lock is taken, but for what a client
/// takes to say whether it is late ([`GrantHolder::is_late`]). [`Reclaims`], [`OpenCount`] and [`Courtesies`] say what their
/// locks guard; each is taken alone. No lock is held across an await, a call to the store or a message to a client.
pub(crate) struct Agreement {
    share: ShareId,
    /// The name of the share, for the log.
    name: String,
    /// Clients may cache.
    caching: bool,
    break_timeout: Duration,
    retry_after: Duration,
    files: Files,
    grants: GrantCounts,
    reclaims: Reclaims,
    /// Holds back byte-range locks and nothing else.
    lock_reclaims: Reclaims,
    opens: Arc<OpenCount>,
    courtesies: Arc<Courtesies>,
    next_open: Arc<AtomicU64>,
}

impl Agreement {
    /// The agreement of the clients of a share that was just made: nothing is open.
    pub(crate) fn new(share: ShareId, settings: &Settings) -> Self {
        Self {
            share,
            name: settings.name.clone(),
            caching: settings.caching,
            break_timeout: settings.break_timeout,
            retry_after: settings.retry_after,
            files: Files::default(),
            grants: GrantCounts::default(),
            reclaims: Reclaims::default(),
            lock_reclaims: Reclaims::default(),
            opens: Arc::new(OpenCount::new(settings.opens_max)),
            courtesies: Arc::default(),
            next_open: Arc::new(AtomicU64::new(1)),
        }
    }

    /// The agreement of the clients of a view of the share. Its opens have numbers that no open of the share has, and count
    /// together with them.
    pub(crate) fn beside(&self, settings: &Settings) -> Self {
        Self {
            opens: Arc::clone(&self.opens),
            courtesies: Arc::clone(&self.courtesies),
            next_open: Arc::clone(&self.next_open),
            ..Self::new(self.share, settings)
        }
    }

    /// The number of opens, and the most that there may be.
    pub(crate) fn open_count(&self) -> (usize, usize) {
        self.opens.now()
    }

    /// Sets the most opens. Existing opens stay, even if there are more.
    pub(crate) fn set_opens_max(&self, opens_max: usize) {
        self.opens.set_most(opens_max);
    }

    /// Holds back clients that do not reclaim, at the latest until `until` ([`Share::hold_back`](crate::Share::hold_back)).
    pub(crate) fn hold_back(&self, until: Instant) {
        self.reclaims.hold_back(until);
    }

    /// Holds back byte-range locks that are not reclaimed ([`Share::hold_back_locks`](crate::Share::hold_back_locks)).
    pub(crate) fn hold_back_locks(&self, until: Instant) {
        self.lock_reclaims.hold_back(until);
    }

    /// Everything has been reclaimed: admits all clients.
    pub(crate) fn let_in(&self) {
        self.reclaims.let_in();
    }

    /// Refuses operations that must be retried while clients reclaim.
    ///
    /// # Errors
    /// [`Error::Delayed`].
    pub(crate) fn check_let_in(&self) -> Result<()> {
        if self.reclaims.held_back().is_some() { Err(Error::Delayed) } else { Ok(()) }
    }

    /// Registers a server whose clients are about to open files.
    pub(crate) fn open_by_courtesy_of<C: Courtesy + 'static>(&self, host: &Arc<C>) {
        self.courtesies.of(host);
    }

    /// Whether these openers may have one more open. Returns what to wait for before asking again, if anything.
    ///
    /// # Errors
    /// [`Error::LimitReached`].
    pub(crate) fn room_for_open(&self, openers: Openers) -> Result<Option<Answering>> {
        if self.opens.has_room(openers) { Ok(None) } else { self.take_back_opens().map(Some) }
    }

    /// Waits until the caller may have one more open, as long as the call's front waits.
    ///
    /// # Errors
    /// [`Error::LimitReached`], [`Error::Delayed`].
    pub(crate) async fn wait_for_open(&self, call: &Call) -> Result<()> {
        self.settled(call, || Ok(((), self.room_for_open(call.caller.openers)?))).await
    }

    /// There is no room for one more open. Returns what to wait for before trying again.
    fn take_back_opens(&self) -> Result<Answering> {
        self.courtesies.take_back(self.share, self.break_timeout)
    }

    /// When an object is looked up now. Ask before looking the object up.
    pub(crate) fn now(&self) -> Epoch {
        self.files.now()
    }

    /// Whether the object itself is open.
    pub(crate) fn has_opens(&self, id: ObjectId) -> bool {
        self.files.with(id, |_| ()).is_some()
    }

    /// Whether a named stream of the object is open.
    pub(crate) fn has_open_streams(&self, node: &NodeRef) -> bool {
        self.files.with(node.id(), |entry| entry.state.has_stream_opens()).unwrap_or(false)
    }

    /// Follows a rename of an object: its opens know it by the new name.
    pub(crate) fn moved(&self, id: ObjectId, from: &Location, to: &Location) {
        self.files.with(id, |entry| entry.moved(from, to));
    }

    /// A location by which the object was opened.
    pub(crate) fn location_of(&self, id: ObjectId) -> Option<Location> {
        self.files.with(id, |entry| entry.locations.values().next().cloned()).flatten()
    }

    /// The location by which an open was made, or where the object is after it was renamed.
    pub(crate) fn location(&self, open: &Open) -> Option<Location> {
        self.files.with(open.node().id(), |entry| entry.location(open.key()).cloned()).flatten()
    }

    /// Drops the state of a file that is not open, and wakes calls that wait for its name to be removed.
    pub(crate) fn forget_unused(&self, id: ObjectId) {
        self.files.forget_unused(id);
    }
}
