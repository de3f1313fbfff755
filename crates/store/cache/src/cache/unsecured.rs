//! Files that certainly have no security descriptor.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use storage::{Attributes, ObjectId, QuickMap, Timestamp};

use crate::clock;

/// Tables, each with its own lock.
const STRIPES: usize = 16;
/// Files in one table.
const FILES_MAX: usize = 1024;
/// How long a new file is assumed to have no descriptor although a change may have the same change time, as
/// `storage-local` does. During this time, only another server on the same directory could set a descriptor.
const BELIEVED_FOR: Duration = Duration::from_millis(100);

/// A file that had no descriptor when it was last changed.
#[derive(Debug, Clone, Copy)]
struct UnsecuredFile {
    ctime: Timestamp,
    /// None: any later change has another change time.
    made: Option<Instant>,
}

/// Files without a security descriptor, each valid while its change time is the same.
#[derive(Debug, Default)]
pub(super) struct Unsecured {
    /// How often a descriptor was stored through this cache.
    stored: AtomicU64,
    /// Each lock guards its table.
    tables: [Mutex<QuickMap<ObjectId, UnsecuredFile>>; STRIPES],
}

impl Unsecured {
    fn table(&self, id: ObjectId) -> &Mutex<QuickMap<ObjectId, UnsecuredFile>> {
        &self.tables[usize::try_from(id.number % STRIPES as u64).unwrap_or(0)]
    }

    /// The count to pass when a file is entered: taken before the file is read or created.
    pub(super) fn as_of(&self) -> u64 {
        self.stored.load(Ordering::Acquire)
    }

    /// Whether a file certainly has no descriptor.
    pub(super) fn has(&self, attributes: &Attributes) -> bool {
        let known = self.table(attributes.id).lock().get(&attributes.id).copied();
        known.is_some_and(|known| {
            known.ctime == attributes.ctime && known.made.is_none_or(|made| made.elapsed() < BELIEVED_FOR)
        })
    }

    /// Enters a file that was read and has no descriptor.
    pub(super) fn read(&self, attributes: &Attributes, as_of: u64) {
        if attributes.ctime.is_settled_at(clock::now()) {
            self.enter(attributes, None, as_of);
        }
    }

    /// Enters a file that was just created.
    pub(super) fn made(&self, attributes: &Attributes, as_of: u64) {
        self.enter(attributes, Some(Instant::now()), as_of);
    }

    fn enter(&self, attributes: &Attributes, made: Option<Instant>, as_of: u64) {
        let mut table = self.table(attributes.id).lock();
        if self.as_of() != as_of {
            return;
        }
        if table.len() >= FILES_MAX {
            table.clear();
        }
        table.insert(attributes.id, UnsecuredFile { ctime: attributes.ctime, made });
    }

    /// Records that a descriptor was stored with a file.
    pub(super) fn stored(&self, id: ObjectId) {
        let mut table = self.table(id).lock();
        // Under the lock: a caller that read the file earlier enters it before this, or not at all.
        self.stored.fetch_add(1, Ordering::AcqRel);
        table.remove(&id);
    }
}
