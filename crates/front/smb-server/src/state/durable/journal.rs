//! Persistent opens on stable storage: what is recorded of them and when.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use smb_wire::NtStatus;
use tokio::sync::oneshot;

use crate::status::Failure;

/// The store in which persistent opens are recorded. Its calls block.
pub trait PersistentOpens: Send + Sync + std::fmt::Debug {
    /// Carries out the changes in order, all or none. They are on stable storage when this returns.
    ///
    /// # Errors
    /// It is not certain that the changes are stored.
    fn write(&self, changes: &[Change]) -> io::Result<()>;

    /// All records.
    ///
    /// # Errors
    /// The records cannot be read.
    fn all(&self) -> io::Result<Vec<PersistentOpen>>;
}

/// A change of the records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Records this state of the open, in place of any earlier record of it.
    Keep(Box<PersistentOpen>),
    /// Removes the record of the open with this identifier.
    Forget(u64),
}

/// Everything that is needed to return an open to its client after a restart of this server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentOpen {
    /// Open.DurableFileId
    pub id: u64,
    /// The number of the share.
    pub share: u32,
    /// The storage's handle of the file.
    pub handle: Vec<u8>,
    /// The access that the open has to the file, as the share sees it.
    pub access: u32,
    /// The access that others may have.
    pub sharing: u8,
    /// Whether the file is to be deleted when the open is closed.
    pub delete_on_close: bool,
    /// Whether the file is to be deleted when its last open is closed.
    pub delete_pending: bool,
    /// Locked ranges.
    pub locks: Vec<PersistentLock>,
    /// The bits of the caching grant.
    pub caching: u8,
    /// Open.Lease; if there is none, the client caches under an oplock.
    pub lease: Option<PersistentLease>,
    /// Open.DurableOpenTimeout, in milliseconds.
    pub timeout_ms: u64,
    /// Open.FileName
    pub path: String,
    /// Open.GrantedAccess
    pub granted_access: u32,
    /// Open.CreateOptions
    pub create_options: u32,
    /// Open.DesiredAccess
    pub desired_access: u32,
    /// Open.ShareAccess
    pub share_access: u32,
    /// CreateAction of the response.
    pub action: u32,
    /// Open.CreateGuid
    pub create_guid: [u8; 16],
    /// Open.ClientGuid
    pub client_guid: [u8; 16],
    /// Open.DurableOwner: the name
    pub owner: String,
    /// Open.DurableOwner: the SID; none in what a version before 0.2.0 has written down
    #[serde(default)]
    pub owner_sid: Option<String>,
    /// Open.AppInstanceId
    pub app_instance: Option<[u8; 16]>,
    /// Open.ApplicationInstanceVersionHigh and Low
    pub app_instance_version: Option<(u64, u64)>,
    /// Open.LockSequenceArray
    pub lock_sequence: Vec<Option<u8>>,
}

/// A byte-range lock of a persistent open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentLock {
    /// Offset of the first byte.
    pub offset: u64,
    /// The number of bytes.
    pub length: u64,
    /// Whether no other open may read the range.
    pub exclusive: bool,
}

/// A lease of a persistent open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersistentLease {
    /// Lease.LeaseKey
    pub key: [u8; 16],
    /// Lease.Version
    pub version: u8,
    /// Lease.Epoch
    pub epoch: u16,
    /// Lease.ParentLeaseKey
    pub parent_key: Option<[u8; 16]>,
}

/// Records changes in order. Changes that arrive together are written as one, so that a caller does not wait for each
/// of the others.
#[derive(Debug)]
pub(crate) struct Journal {
    store: Arc<dyn PersistentOpens>,
    /// Guards the changes that are to be written next. A change may read its open while this is held.
    queue: Mutex<Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    changes: Vec<Change>,
    /// The callers that wait for these changes.
    waiting: Vec<oneshot::Sender<bool>>,
    /// A caller is writing, and will write these changes next.
    is_writing: bool,
}

impl Journal {
    /// A journal that writes to this store.
    pub(crate) fn new(store: Arc<dyn PersistentOpens>) -> Arc<Self> {
        Arc::new(Self { store, queue: Mutex::default() })
    }

    /// The store to which the journal writes.
    pub(crate) fn store(&self) -> &dyn PersistentOpens {
        &*self.store
    }

    /// Records a change, and returns when it is on stable storage. `make` is called in its turn to produce the change,
    /// so that a later state is never overwritten by an earlier one. It may find that there is nothing to write.
    ///
    /// # Errors
    /// STATUS_UNEXPECTED_IO_ERROR when it is not certain that the change is stored.
    pub(crate) async fn write(
        self: &Arc<Self>,
        make: impl FnOnce() -> Option<Change>,
    ) -> Result<(), Failure> {
        let (done, written) = oneshot::channel();
        let begins = {
            let mut queue = self.queue.lock();
            let Some(change) = make() else { return Ok(()) };
            queue.changes.push(change);
            queue.waiting.push(done);
            !std::mem::replace(&mut queue.is_writing, true)
        };
        if begins {
            let journal = Arc::clone(self);
            tokio::task::spawn_blocking(move || journal.write_queue());
        }
        match written.await {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(NtStatus::UNEXPECTED_IO_ERROR.into()),
        }
    }

    fn write_queue(&self) {
        let _fault = ResetOnPanic(self);
        loop {
            let (changes, waiting) = {
                let mut queue = self.queue.lock();
                if queue.changes.is_empty() {
                    queue.is_writing = false;
                    return;
                }
                (std::mem::take(&mut queue.changes), std::mem::take(&mut queue.waiting))
            };
            let outcome = self.store.write(&changes);
            if let Err(error) = &outcome {
                tracing::error!("persistent opens cannot be written down: {error}");
            }
            for one in waiting {
                let _ = one.send(outcome.is_ok());
            }
        }
    }
}

/// Keeps a store that panics from blocking the callers that come later.
struct ResetOnPanic<'a>(&'a Journal);

impl Drop for ResetOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            *self.0.queue.lock() = Queue::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Store {
        writes: Mutex<Vec<Vec<Change>>>,
        fails: bool,
    }

    impl PersistentOpens for Store {
        fn write(&self, changes: &[Change]) -> io::Result<()> {
            self.writes.lock().push(changes.to_vec());
            if self.fails { Err(io::Error::other("full")) } else { Ok(()) }
        }

        fn all(&self) -> io::Result<Vec<PersistentOpen>> {
            Ok(Vec::new())
        }
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn changes_are_written_in_their_order_and_together() {
        let store = Arc::new(Store::default());
        let journal = Journal::new(Arc::clone(&store) as _);
        run(async {
            let one = journal.write(|| Some(Change::Forget(1)));
            let two = journal.write(|| Some(Change::Forget(2)));
            let nothing = journal.write(|| None);
            let (one, two, nothing) = tokio::join!(one, two, nothing);
            assert!(one.is_ok() && two.is_ok() && nothing.is_ok());
        });
        let written: Vec<Change> = store.writes.lock().concat();
        assert_eq!(written, [Change::Forget(1), Change::Forget(2)]);
    }

    #[test]
    fn who_waits_hears_of_a_failure() {
        let store = Arc::new(Store { fails: true, ..Store::default() });
        let journal = Journal::new(Arc::clone(&store) as _);
        let failure = run(journal.write(|| Some(Change::Forget(1)))).unwrap_err();
        assert_eq!(failure.status, NtStatus::UNEXPECTED_IO_ERROR);
        // The journal tries again with the next change.
        assert!(run(journal.write(|| Some(Change::Forget(1)))).is_err());
        assert_eq!(store.writes.lock().len(), 2);
    }
}
