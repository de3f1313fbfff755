//! The suite that every store passes, on the available file systems.
#![expect(clippy::unwrap_used, reason = "a check that fails panics: that is how it tells")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_storage_local::{HandleRecords, LocalOptions, LocalStore, RecordsInMemory};
use storage::Storage;
use storage::conformance::Subject;
use tempfile::TempDir;

/// A store in its own directory, with its database beside it.
struct Local {
    dir: TempDir,
    native_handles: bool,
    /// They outlive a store, as a database does.
    records: Arc<RecordsInMemory>,
    store: Option<LocalStore>,
}

impl Local {
    fn new(parent: &Path, native_handles: bool) -> Self {
        let dir = tempfile::tempdir_in(parent).unwrap();
        std::fs::create_dir(dir.path().join("root")).unwrap();
        let mut local = Self { dir, native_handles, records: Arc::default(), store: None };
        local.restart();
        local
    }
}

impl Subject for Local {
    fn store(&self) -> &dyn Storage {
        self.store.as_ref().unwrap()
    }

    fn restart(&mut self) {
        self.store = None;
        let handle_records: Arc<dyn HandleRecords> = self.records.clone();
        let options = LocalOptions {
            handle_records: Some(handle_records),
            native_handles: self.native_handles,
            ..LocalOptions::default()
        };
        self.store = Some(LocalStore::open(&self.dir.path().join("root"), options).unwrap());
    }

    fn at_once(&self, jobs: &[&(dyn Fn() + Sync)]) {
        std::thread::scope(|scope| jobs.iter().for_each(|job| _ = scope.spawn(job)));
    }
}

/// tmpfs, where there is one.
fn memory() -> PathBuf {
    let shm = PathBuf::from("/dev/shm");
    if shm.is_dir() { shm } else { std::env::temp_dir() }
}

mod on_tmpfs {
    fn subject() -> super::Local {
        super::Local::new(&super::memory(), true)
    }
    storage::conformance_tests!(subject);
}

mod on_disk {
    fn subject() -> super::Local {
        super::Local::new(&std::env::temp_dir(), true)
    }
    storage::conformance_tests!(subject);
}

mod on_tmpfs_by_index {
    fn subject() -> super::Local {
        super::Local::new(&super::memory(), false)
    }
    storage::conformance_tests!(subject);
}

mod on_disk_by_index {
    fn subject() -> super::Local {
        super::Local::new(&std::env::temp_dir(), false)
    }
    storage::conformance_tests!(subject);
}
