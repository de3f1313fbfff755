//! The file of the state database with the lock on its directory: the directory is free when the database is closed, which is
//! when the last of those that share the database has dropped it.

use std::fs::File;
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use redb::backends::FileBackend;
use redb::{BackendError, StorageBackend};

use crate::lock::Lock;

/// The file. It keeps the directory locked until redb closes it.
#[derive(Debug)]
pub(crate) struct StateFile {
    file: FileBackend,
    lock: Mutex<Option<Lock>>,
    closed: Closed,
}

/// Becomes true when the database is closed.
#[derive(Debug, Clone, Default)]
pub struct Closed(Arc<(Mutex<bool>, Condvar)>);

impl StateFile {
    /// A file, in a directory that this process has.
    pub(crate) fn new(file: File, lock: Lock) -> Result<Self, redb::DatabaseError> {
        let lock = Mutex::new(Some(lock));
        Ok(Self { file: FileBackend::new(file)?, lock, closed: Closed::default() })
    }

    /// Tells when it is closed.
    pub(crate) fn closed(&self) -> Closed {
        self.closed.clone()
    }
}

impl Closed {
    /// Waits until the database is closed, and its directory is free. False: it is still open after this time.
    pub fn within(&self, patience: Duration) -> bool {
        let (is_closed, changed) = &*self.0;
        let mut is_closed = is_closed.lock();
        let deadline = Instant::now() + patience;
        changed.wait_while_until(&mut is_closed, |is_closed| !*is_closed, deadline);
        *is_closed
    }

    fn tell(&self) {
        let (is_closed, changed) = &*self.0;
        *is_closed.lock() = true;
        changed.notify_all();
    }
}

impl StorageBackend for StateFile {
    fn close(&self) -> io::Result<()> {
        let closed = self.file.close();
        drop(self.lock.lock().take());
        self.closed.tell();
        closed
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)
    }

    fn try_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_range(start, end)
    }

    fn try_lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.try_lock_shared_range(start, end)
    }

    fn lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_range(start, end)
    }

    fn lock_shared_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.lock_shared_range(start, end)
    }

    fn unlock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<(), BackendError> {
        self.file.unlock_range(start, end)
    }

    fn query_lock_range(&self, start: Bound<u64>, end: Bound<u64>) -> Result<bool, BackendError> {
        self.file.query_lock_range(start, end)
    }
}
