//! What opens hold, to be stored, and opens from before the server was started.

use std::sync::Arc;

use file_state::{Access, ByteRange, ByteRangeLock, Caching, LockKind, LockOwner, Sharing};

use super::Agreement;
use super::caching::{Admission, GrantKey, GrantRequest};
use super::files::OpenFile;
use super::open::{Ended, Open, OpenRequest};
use super::openers::Openers;
use crate::found::Found;
use crate::{Error, Result};

/// What an open holds against other opens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// The access that the open has.
    pub access: Access,
    /// The access that the open lets others have.
    pub sharing: Sharing,
    /// Delete the file when this open is closed.
    pub delete_on_close: bool,
    /// The file is deleted when its last open is closed.
    pub delete_pending: bool,
    /// The byte ranges that the open has locked.
    pub locks: Vec<(ByteRange, LockKind)>,
    /// What the client may cache.
    pub caching: Caching,
}

impl Agreement {
    /// What an open holds; None if the open is closed.
    pub(crate) fn holding(&self, open: &Open) -> Option<Holding> {
        let own = |lock: &ByteRangeLock| lock.owner == LockOwner::Open(open.key());
        self.holding_with(open, |entry| {
            entry.state.locks().filter(own).map(|lock| (lock.range, lock.kind)).collect()
        })
    }

    /// What an open holds beside locks, for lists of all opens: a file may have as many locks as opens.
    pub(crate) fn holding_without_locks(&self, open: &Open) -> Option<Holding> {
        self.holding_with(open, |_| Vec::new())
    }

    fn holding_with(
        &self,
        open: &Open,
        locks: impl FnOnce(&OpenFile) -> Vec<(ByteRange, LockKind)>,
    ) -> Option<Holding> {
        let look = |entry: &mut OpenFile| {
            let state = &entry.state;
            let reservation = state.reservation(open.key())?;
            Some(Holding {
                access: reservation.access,
                sharing: reservation.sharing,
                delete_on_close: reservation.delete_on_close,
                delete_pending: state.is_delete_pending(),
                locks: locks(entry),
                caching: state.granted(open.holder()),
            })
        };
        self.files.with(open.node().id(), look).flatten()
    }

    /// Enters an open from before the server was started, with its access, share mode and locks. It caches nothing yet.
    ///
    /// # Errors
    /// [`Error::SharingViolation`] or [`Error::LockNotGranted`] when the open conflicts with another one, those of
    /// `may_open`.
    pub(crate) fn restore(
        &self,
        found: &Found,
        holding: &Holding,
        grant: GrantRequest,
        openers: Openers,
        may_open: impl FnOnce(usize, usize) -> Result<()>,
    ) -> Result<Arc<Open>> {
        let request = OpenRequest {
            delete_on_close: holding.delete_on_close,
            grant: Some(GrantRequest { wanted: Caching::empty(), ..grant }),
            openers,
            ..OpenRequest::new(holding.access, holding.sharing)
        };
        let entered = self.enter_with(found, &request, None, None, may_open, |state, key| {
            state.reserve(key, holding.access, holding.sharing)?;
            state.set_delete_on_close(key, holding.delete_on_close);
            Ok(())
        })?;
        let Admission::Done(open) = entered else { return Err(Error::SharingViolation) };
        let locked = self.files.with(open.node().id(), |entry| {
            let owner = LockOwner::Open(open.key());
            holding.locks.iter().all(|(range, kind)| entry.state.lock(owner, *range, *kind).is_ok())
        });
        if locked == Some(true) {
            return Ok(open);
        }
        self.keep_on_close(&open);
        if let Ended::Deleting(_) = self.release(&open) {
            self.forget_unused(open.node().id());
        }
        Err(Error::LockNotGranted)
    }

    /// Grants a restored open what its client could cache, as far as the other opens allow, and marks its file for deletion
    /// again.
    pub(crate) fn settle_restored(&self, open: &Open, key: GrantKey, holding: &Holding) {
        self.files.with(open.node().id(), |entry| {
            entry.grant_again(key.holder(open.key()), holding.caching);
            if holding.delete_pending {
                entry.state.set_delete_pending(true);
                entry.doom(open.key(), open.directory());
            }
        });
    }
}
