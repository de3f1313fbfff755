//! Callers who were permitted to read a file, so that the next read need not look at the file's attributes first.
//!
//! A permission holds as long as the file's change time stays the same: whatever decides about it (mode, owner, descriptor)
//! sets the change time. It is entered only if any later change certainly sets another one. A file of which the attributes
//! were read *behind* the data, and that still has this change time, was permitted to be read all the while.

use std::sync::Arc;
use std::time::Duration;

use identity::Identity;
use parking_lot::Mutex;
use storage::{Attributes, ObjectId, QuickMap, Timestamp};

/// Tables, each with its own lock.
const TABLES: usize = 16;
/// Files in one table.
const FILES_MAX: usize = 1024;

/// The caller who was the last to be permitted to read a file.
#[derive(Debug)]
struct Permit {
    identity: Arc<Identity>,
    ctime: Timestamp,
}

/// For each file, who was the last to be permitted to read it. Each lock guards its table.
#[derive(Debug, Default)]
pub(crate) struct ReadPermits([Mutex<QuickMap<ObjectId, Permit>>; TABLES]);

impl ReadPermits {
    fn table(&self, id: ObjectId) -> &Mutex<QuickMap<ObjectId, Permit>> {
        &self.0[usize::try_from(id.number % TABLES as u64).unwrap_or(0)]
    }

    /// The change time as of which this user may read the file.
    pub(crate) fn of(&self, id: ObjectId, identity: &Arc<Identity>) -> Option<Timestamp> {
        let table = self.table(id).lock();
        let permit = table.get(&id)?;
        let is_same = Arc::ptr_eq(&permit.identity, identity) || permit.identity == *identity;
        is_same.then_some(permit.ctime)
    }

    /// Enters that this user may read the file, by attributes that were read after `asked` (of the system's clock).
    pub(crate) fn enter(&self, identity: &Arc<Identity>, attributes: &Attributes, asked: Duration) {
        if !attributes.ctime.is_settled_at(asked) {
            return;
        }
        let mut table = self.table(attributes.id).lock();
        if table.len() >= FILES_MAX && !table.contains_key(&attributes.id) {
            table.clear();
        }
        table.insert(attributes.id, Permit { identity: Arc::clone(identity), ctime: attributes.ctime });
    }
}

#[cfg(test)]
mod tests {
    use storage::conformance::MAY;
    use storage::memory::MemoryStore;
    use storage::{Storage, Wait, Want};

    use super::*;

    fn user(uid: u32) -> Arc<Identity> {
        Arc::new(Identity::unix(uid, 7, vec![8]))
    }

    fn attributes(number: u64, ctime: Timestamp) -> Attributes {
        let attributes = MemoryStore::new().root().attributes(Want::empty(), Wait::May(MAY)).unwrap();
        Attributes { id: ObjectId::live(number), ctime, ..attributes }
    }

    #[test]
    fn a_permit_is_for_one_user_and_one_change_time() {
        let permits = ReadPermits::default();
        let (secs, asked) = (1_000, Duration::from_secs(1_001));
        let file = attributes(3, Timestamp { secs, nanos: 5 });
        permits.enter(&user(1), &file, asked);
        assert_eq!(permits.of(file.id, &user(1)), Some(file.ctime), "whichever connection asks");
        assert_eq!(permits.of(file.id, &user(2)), None);
        assert_eq!(permits.of(ObjectId::live(4), &user(1)), None);
        permits.enter(&user(2), &file, asked);
        assert_eq!((permits.of(file.id, &user(1)), permits.of(file.id, &user(2))), (None, Some(file.ctime)));
    }

    #[test]
    fn nobody_relies_on_a_change_time_that_another_change_may_share() {
        let permits = ReadPermits::default();
        let file = attributes(3, Timestamp { secs: 1_000, nanos: 0 });
        for asked in [Duration::from_secs(999), Duration::from_secs(1_000), Duration::from_millis(1_000_020)]
        {
            permits.enter(&user(1), &file, asked);
            assert_eq!(permits.of(file.id, &user(1)), None, "asked at {asked:?}");
        }
        permits.enter(&user(1), &file, Duration::from_millis(1_000_021));
        assert!(permits.of(file.id, &user(1)).is_some());
    }

    #[test]
    fn a_full_table_starts_over() {
        let permits = ReadPermits::default();
        let of_one_table = |n: usize| attributes((n * TABLES) as u64, Timestamp { secs: 1_000, nanos: 0 });
        let user = user(1);
        for n in 0..=FILES_MAX {
            permits.enter(&user, &of_one_table(n), Duration::from_secs(2_000));
        }
        assert_eq!(permits.of(of_one_table(0).id, &user), None);
        assert!(permits.of(of_one_table(FILES_MAX).id, &user).is_some());
    }
}
