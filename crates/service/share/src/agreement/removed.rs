//! Names removed by the close of their last open. An object that was looked up before cannot be opened any more.

use std::collections::VecDeque;

use storage::ObjectId;

use crate::found::Epoch;

/// Removed objects that are remembered: more than are removed between a lookup and its open.
const REMOVED_MAX: usize = 32;

/// The objects whose names were removed last.
#[derive(Debug, Default)]
pub(super) struct Removed {
    last: VecDeque<(Epoch, ObjectId)>,
    /// When the last object that is no longer remembered was removed.
    forgotten: Epoch,
}

impl Removed {
    pub(super) fn add(&mut self, when: Epoch, id: ObjectId) {
        // When names are created and removed repeatedly, the objects get the same number again.
        self.last.retain(|(_, earlier)| *earlier != id);
        if self.last.len() == REMOVED_MAX
            && let Some((when, _)) = self.last.pop_front()
        {
            self.forgotten = when;
        }
        self.last.push_back((when, id));
    }

    /// Whether an object that was looked up then may have been removed since.
    pub(super) fn may_have(&self, id: ObjectId, epoch: Epoch) -> bool {
        let mut since = self.last.iter().rev().take_while(|(when, _)| *when > epoch);
        since.any(|(_, removed)| *removed == id) || self.forgotten > epoch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_removed_since_it_was_looked_for_is_known_or_supposed() {
        let (mut removed, one, other) = (Removed::default(), ObjectId::live(1), ObjectId::live(2));
        removed.add(Epoch(1), one);
        assert!(removed.may_have(one, Epoch(0)));
        // Looked for afterwards, it is another object of the same number.
        assert!(!removed.may_have(one, Epoch(1)));
        assert!(!removed.may_have(other, Epoch(0)));
        for when in 2..=100 {
            removed.add(Epoch(when), ObjectId::live(3));
        }
        for when in 101..=99 + REMOVED_MAX as u64 - 1 {
            removed.add(Epoch(when), ObjectId::live(when));
        }
        assert!(removed.may_have(one, Epoch(0)));
        assert!(!removed.may_have(other, Epoch(0)));
        // The first removal is forgotten: it may have been that of any object that was looked for before it.
        removed.add(Epoch(1000), ObjectId::live(1000));
        assert!(removed.may_have(other, Epoch(0)));
        assert!(!removed.may_have(other, Epoch(1)));
        assert!(!removed.may_have(one, Epoch::NEVER_GONE));
    }
}
