//! The lock-owners of one client (RFC 8881 9.1.1).

use std::collections::HashMap;

use super::stateid::FileKey;

/// Lock-owners by the name that the client gave them, and by the number under which `file-state` knows them. An owner
/// is kept as long as it has a set of locks, or is about to lock a range.
#[derive(Debug)]
pub struct LockOwners {
    /// The upper half of the numbers, which makes them unique on this server.
    client: u32,
    next: u32,
    by_name: HashMap<Box<[u8]>, u64>,
    by_number: HashMap<u64, Owner>,
    /// How many sets of locks each owner has on a file.
    sets: HashMap<(FileKey, u64), usize>,
}

#[derive(Debug)]
struct Owner {
    name: Box<[u8]>,
    uses: usize,
}

impl LockOwners {
    pub(super) fn new(client: u32) -> Self {
        Self { client, next: 0, by_name: HashMap::new(), by_number: HashMap::new(), sets: HashMap::new() }
    }

    /// The number of the client to which a lock-owner belongs.
    #[must_use]
    pub fn client_of(number: u64) -> u32 {
        u32::try_from(number >> 32).unwrap_or(0)
    }

    /// The number of a known lock-owner.
    #[must_use]
    pub fn number(&self, name: &[u8]) -> Option<u64> {
        self.by_name.get(name).copied()
    }

    /// The name of a known lock-owner.
    #[must_use]
    pub fn name(&self, number: u64) -> Option<&[u8]> {
        self.by_number.get(&number).map(|owner| &*owner.name)
    }

    /// The number of a lock-owner, which keeps it until this use ends.
    pub(super) fn take(&mut self, name: &[u8]) -> u64 {
        let number = self.number(name).unwrap_or_else(|| self.unused());
        self.by_name.entry(name.into()).or_insert(number);
        let owner = self.by_number.entry(number).or_insert_with(|| Owner { name: name.into(), uses: 0 });
        owner.uses = owner.uses.saturating_add(1);
        number
    }

    fn unused(&mut self) -> u64 {
        loop {
            self.next = self.next.wrapping_add(1);
            let number = (u64::from(self.client) << 32) | u64::from(self.next);
            if !self.by_number.contains_key(&number) {
                return number;
            }
        }
    }

    /// A use has ended.
    pub(super) fn drop(&mut self, number: u64) {
        let Some(owner) = self.by_number.get_mut(&number) else { return };
        debug_assert!(owner.uses > 0, "an owner that nobody uses is forgotten");
        owner.uses = owner.uses.saturating_sub(1);
        if owner.uses == 0
            && let Some(owner) = self.by_number.remove(&number)
        {
            self.by_name.remove(&owner.name);
        }
    }

    /// The owner has another set of locks on a file.
    pub(super) fn enter(&mut self, file: FileKey, number: u64) {
        if let Some(owner) = self.by_number.get_mut(&number) {
            owner.uses = owner.uses.saturating_add(1);
        }
        let sets = self.sets.entry((file, number)).or_default();
        *sets = sets.saturating_add(1);
    }

    /// A set of locks has ended. Returns whether it was the owner's last one on the file.
    pub(super) fn leave(&mut self, file: FileKey, number: u64) -> bool {
        self.drop(number);
        let Some(sets) = self.sets.get_mut(&(file, number)) else { return true };
        debug_assert!(*sets > 0, "a file without sets of locks is forgotten");
        *sets = sets.saturating_sub(1);
        let last = *sets == 0;
        if last {
            self.sets.remove(&(file, number));
        }
        last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_keeps_its_number_as_long_as_it_is_of_use() {
        let mut owners = LockOwners::new(7);
        let file = FileKey::live(1, 2);
        let a = owners.take(b"a");
        let b = owners.take(b"b");
        assert_eq!((owners.take(b"a"), LockOwners::client_of(a)), (a, 7));
        assert_ne!(a, b);
        owners.enter(file, a);
        owners.drop(a);
        owners.drop(a);
        assert_eq!((owners.number(b"a"), owners.name(a)), (Some(a), Some(&b"a"[..])));
        owners.enter(file, a);
        assert!(!owners.leave(file, a), "it has another set of this file");
        assert!(owners.leave(file, a));
        assert_eq!((owners.number(b"a"), owners.name(a)), (None, None));
        owners.drop(b);
        assert!(owners.by_name.is_empty() && owners.by_number.is_empty() && owners.sets.is_empty());
    }
}
