//! Opens that outlive the server: what is stored of them, and how they are restored when the server starts.

use std::sync::Arc;

use storage::{Handle, MayWait, NodeRef, Wait, Want};

use crate::found::{Epoch, Found};
use crate::schedule::Work;
use crate::{Call, GrantRequest, Holding, Open, Openers, Result, Share};

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
        Ok(self.store.storage().by_handle(handle, Wait::May(may))?.id())
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
        self.check_delete_on_close(&found, holding.delete_on_close)?;
        self.agreement.restore(&found, holding, grant, openers, |of_object, of_share| {
            self.budget.check_opens(&found.node, of_object, of_share)
        })
    }

    fn find_restored(&self, handle: &Handle, may: MayWait<'_>) -> Result<Found> {
        let node: NodeRef = self.store.storage().by_handle(handle, Wait::May(may))?;
        let attributes = node.attributes(Want::FLAGS, Wait::May(may))?;
        if attributes.links == 0 {
            return Err(storage::Error::Stale.into());
        }
        let location = self.namespace.locate(&node, may);
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
