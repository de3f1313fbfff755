//! Opens that outlive the server: what is stored of them, and how they are restored when the server starts.

use std::sync::Arc;

use file_state::{Access, ByteRange, Caching, LockKind, LockOwner, Sharing};
use storage::{Handle, MayWait, NodeRef, Wait, Want};

use crate::agreement::caching::Admission;
use crate::found::{Epoch, Found};
use crate::schedule::Work;
use crate::{Call, Error, GrantKey, GrantRequest, Open, OpenRequest, Openers, Result, Share};

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

impl Share {
    /// The handle by which the store finds the object again, also after a restart.
    ///
    /// # Errors
    /// [`storage::Error::NotSupported`] for a named stream, the store's.
    pub async fn handle(self: &Arc<Self>, call: &Call, open: &Arc<Open>) -> Result<Handle> {
        if open.file().is_some() {
            return Err(storage::Error::NotSupported.into());
        }
        let node = Arc::clone(open.node());
        self.run(call, Work::Metadata, move |_, _| Ok(node.handle()?)).await
    }

    /// The file number of the object with this handle. Blocks.
    ///
    /// # Errors
    /// [`storage::Error::Stale`] when the object no longer exists, the store's.
    pub fn file_of(&self, handle: &Handle, may: MayWait<'_>) -> Result<storage::ObjectId> {
        Ok(self.store.by_handle(handle, Wait::May(may))?.id())
    }

    /// What an open holds; None if the open is closed.
    #[must_use]
    pub fn holding(&self, open: &Open) -> Option<Holding> {
        let look = |entry: &mut crate::agreement::files::Entry| {
            let state = &entry.state;
            let reservation = state.reservation(open.key())?;
            let own = |lock: &file_state::ByteRangeLock| lock.owner == LockOwner::Open(open.key());
            Some(Holding {
                access: reservation.access,
                sharing: reservation.sharing,
                delete_on_close: reservation.delete_on_close,
                delete_pending: state.is_delete_pending(),
                locks: state.locks().filter(own).map(|lock| (lock.range, lock.kind)).collect(),
                caching: state.granted(open.holder()),
            })
        };
        self.files.with(open.node().id(), look).flatten()
    }

    /// Restores an open from before the server was started, with its access, share mode and locks. The cached state of its
    /// client and a requested deletion follow with [`Share::settle_restored`], once all opens are restored. No client is
    /// told and nothing waits, so no other client may have been admitted yet. Blocks.
    ///
    /// # Errors
    /// [`storage::Error::Stale`] when the file no longer exists, [`Error::SharingViolation`] or [`Error::LockNotGranted`]
    /// when the open conflicts with another one, the store's.
    pub fn restore(
        self: &Arc<Self>,
        handle: &Handle,
        holding: &Holding,
        grant: GrantRequest,
        openers: Openers,
        may: MayWait<'_>,
    ) -> Result<Arc<Open>> {
        let found = self.find_restored(handle, may)?;
        let request = OpenRequest {
            delete_on_close: holding.delete_on_close,
            grant: Some(GrantRequest { wanted: Caching::empty(), ..grant }),
            openers,
            ..OpenRequest::new(holding.access, holding.sharing)
        };
        let entered = self.enter_with(&found, &request, None, None, |state, key| {
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
        self.withdraw(&open);
        Err(Error::LockNotGranted)
    }

    /// Grants a restored open what its client could cache, as far as the other opens allow, and marks its file for deletion
    /// again.
    pub fn settle_restored(&self, open: &Open, key: GrantKey, holding: &Holding) {
        self.files.with(open.node().id(), |entry| {
            entry.grant_again(key.holder(open.key()), holding.caching);
            if holding.delete_pending {
                entry.state.set_delete_pending(true);
                entry.doom(open.key(), open.directory());
            }
        });
    }

    fn find_restored(&self, handle: &Handle, may: MayWait<'_>) -> Result<Found> {
        let node: NodeRef = self.store.by_handle(handle, Wait::May(may))?;
        let attributes = node.attributes(Want::FLAGS, Wait::May(may))?;
        if attributes.links == 0 {
            return Err(storage::Error::Stale.into());
        }
        let location = self.locate(&node, may);
        let (dir, name) = location.map(|at| (at.parent, at.name)).unzip();
        Ok(Found {
            node,
            attributes,
            security: None,
            dir,
            dir_protection: None,
            name: name.unwrap_or_default(),
            stream: None,
            epoch: Epoch::NEVER_GONE,
        })
    }
}
