//! Exclusive byte-range locks that clients of all protocols hold.

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

/// The holder of a lock: the client, and one of its opens or lock owners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockOwner {
    pub(crate) client: u32,
    pub(crate) open: u64,
}

#[derive(Debug)]
struct Held {
    owner: LockOwner,
    file: usize,
    range: Range<u64>,
    /// Whether the holder can still count on the lock: it was not released, and the connection stands.
    certain: bool,
    /// Whether another client has been granted the range while the holder could not count on the lock.
    given_away: bool,
}

/// All locks.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    held: Vec<Held>,
    /// Until when each client whose locks depend on a lease can count on them.
    leases: HashMap<u32, Duration>,
}

impl Locks {
    /// Notes that the server has granted a lock.
    pub(crate) fn granted(
        &mut self,
        owner: LockOwner,
        file: usize,
        range: Range<u64>,
        now: Duration,
    ) -> Result<(), String> {
        for held in self.held.iter_mut().filter(|held| held.owner != owner && held.overlaps(file, &range)) {
            let has_lease = self.leases.get(&held.owner.client).is_none_or(|until| *until > now);
            if held.certain && has_lease {
                return Err(format!("{owner:?} was given {range:?} of file {file}, which {held:?} has"));
            }
            held.given_away = true;
        }
        self.held.push(Held { owner, file, range, certain: true, given_away: false });
        Ok(())
    }

    /// Notes that the client has renewed its lease until the given time.
    pub(crate) fn renewed(&mut self, client: u32, until: Duration) {
        self.leases.insert(client, until);
    }

    /// Notes that the holder releases a lock. From now on the holder does not count on it, whatever the reply is.
    pub(crate) fn given_back(&mut self, owner: LockOwner, file: usize, range: &Range<u64>) {
        self.held.retain(|held| held.owner != owner || held.file != file || held.range != *range);
    }

    /// Notes that an open and its locks are gone.
    pub(crate) fn closed(&mut self, owner: LockOwner) {
        self.held.retain(|held| held.owner != owner);
    }

    /// Notes that the client has lost its connection. It cannot count on its locks until it has its opens again.
    pub(crate) fn uncertain(&mut self, client: u32) {
        self.held.iter_mut().filter(|held| held.owner.client == client).for_each(|held| held.certain = false);
    }

    /// Notes that the servers have stopped: no client can count on its locks.
    pub(crate) fn all_uncertain(&mut self) {
        self.held.iter_mut().for_each(|held| held.certain = false);
    }

    /// Notes that the server has returned an open to its client, with the locks of the open.
    pub(crate) fn certain_again(&mut self, owner: LockOwner) -> Result<(), String> {
        for held in self.held.iter_mut().filter(|held| held.owner == owner) {
            if held.given_away {
                return Err(format!("an open was given back, and of its locks {held:?} had gone to another"));
            }
            held.certain = true;
        }
        Ok(())
    }
}

impl Held {
    fn overlaps(&self, file: usize, range: &Range<u64>) -> bool {
        self.file == file && self.range.start < range.end && range.start < self.range.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1);

    #[test]
    fn a_lock_excludes_others_while_its_holder_counts_on_it() {
        let (one, other) = (LockOwner { client: 1, open: 1 }, LockOwner { client: 2, open: 1 });
        let mut locks = Locks::default();
        locks.granted(one, 0, 0..10, NOW).unwrap();
        locks.granted(other, 0, 10..20, NOW).unwrap();
        locks.granted(other, 1, 0..10, NOW).unwrap();
        assert!(locks.granted(other, 0, 5..6, NOW).is_err());
        locks.uncertain(1);
        locks.certain_again(one).unwrap();
        assert!(locks.granted(other, 0, 5..6, NOW).is_err());
        locks.uncertain(1);
        locks.granted(other, 0, 5..6, NOW).unwrap();
        assert!(locks.certain_again(one).is_err());
        locks.given_back(other, 0, &(5..6));
        locks.closed(one);
        locks.granted(one, 0, 0..10, NOW).unwrap();
        locks.renewed(1, NOW);
        locks.granted(other, 0, 5..6, NOW).unwrap();
    }
}
