//! A snapshot as a store.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use storage::{Capabilities, Handle, MayWait, NodeRef, Result, SnapshotId, Space, Storage, Wait};

use crate::handle_records::{HandleRecords, RecordsInMemory};
use crate::store::{Access, LocalOptions, LocalStore, Shared};

/// How many nodes of a snapshot stay cached: many may be open at a time.
const NODES_MAX: usize = 1024;

/// A local store that never changes: there is nothing to observe, and nothing to take a snapshot of.
pub(crate) struct SnapshotStore(LocalStore);

impl SnapshotStore {
    /// Opens the snapshot with this top directory. Its handles have a key of their own, which is made of the key of the store
    /// of which it is a snapshot: so that store's handles are none of the snapshot.
    pub(crate) fn open(top: OwnedFd, of: &Shared, id: SnapshotId) -> Result<Self> {
        let records = RecordsInMemory::default();
        let key = of.handles.key_for(id);
        if let Some(key) = key {
            // The first key is kept. In memory this does not fail.
            let _ = records.key(key);
        }
        let options = LocalOptions {
            handle_records: Some(Arc::new(records)),
            nodes_max: Some(NODES_MAX),
            native_handles: key.is_some(),
            reserved_names: of.reserved.given().to_vec(),
        };
        LocalStore::on(top, PathBuf::new(), options, Access::ReadOnly).map(Self)
    }
}

impl Storage for SnapshotStore {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn root(&self) -> NodeRef {
        self.0.root()
    }

    fn by_handle(&self, handle: &Handle, wait: Wait<'_>) -> Result<NodeRef> {
        self.0.by_handle(handle, wait)
    }

    fn space(&self, may: MayWait<'_>) -> Result<Space> {
        self.0.space(may)
    }
}
