//! Share reservations: what each open does and what it lets others do.

use crate::caching::is_for_attributes;
use crate::under::Sum;
use crate::{Access, OpenKey, Sharing, SmallMap};

/// One open's reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// The open that holds the reservation.
    pub open: OpenKey,
    /// What the open may do.
    pub access: Access,
    /// What the open lets others do.
    pub sharing: Sharing,
    /// Whether the file is to be deleted when this open closes ([MS-SMB2] 2.2.13 FILE_DELETE_ON_CLOSE).
    pub delete_on_close: bool,
}

/// Why an open was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReserveError {
    /// Another open does not share the access that this open needs, or has access that this open does not share
    /// (STATUS_SHARING_VIOLATION, NFS4ERR_SHARE_DENIED).
    #[error("another open does not share the file")]
    Sharing {
        /// One conflicting open.
        holder: OpenKey,
    },
    /// The file will be deleted when its last open closes (STATUS_DELETE_PENDING).
    #[error("the file is about to be deleted")]
    DeletePending,
    /// [`FileLimits::reservations_max`](crate::FileLimits::reservations_max) is reached.
    #[error("the file has too many opens")]
    TooMany,
}

/// The reservations of one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reservations {
    list: SmallMap<OpenKey, Reservation>,
    /// How many reservations need each bit of [`Sharing`].
    needing: [usize; 3],
    /// How many reservations deny each bit, among those that need any.
    denying: [usize; 3],
    /// The sum of all reservations.
    counting: usize,
    writing: usize,
}

impl Reservation {
    /// What the reservation adds to the sum of the opens under its grant.
    pub(crate) fn sum(&self) -> Sum {
        Sum {
            opens: 1,
            counting: usize::from(!is_for_attributes(self.access)),
            writing: usize::from(self.writes()),
            locks: 0,
        }
    }

    /// Whether the open writes, or denies reading to others.
    fn writes(&self) -> bool {
        let needs = self.access.needs();
        needs.contains(Sharing::WRITE) || (!needs.is_empty() && !self.sharing.contains(Sharing::READ))
    }
}

const BITS: [Sharing; 3] = [Sharing::READ, Sharing::WRITE, Sharing::DELETE];

/// Whether two opens exclude each other ([MS-FSA] 2.1.5.1.2.2).
fn conflict(a: (Sharing, Sharing), b: (Sharing, Sharing)) -> bool {
    let ((a_needs, a_shares), (b_needs, b_shares)) = (a, b);
    !a_needs.is_empty() && !b_needs.is_empty() && (!b_shares.contains(a_needs) || !a_shares.contains(b_needs))
}

impl Reservations {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Reservation> {
        self.list.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    pub(crate) fn find(&self, open: OpenKey) -> Option<&Reservation> {
        self.list.get(&open)
    }

    pub(crate) fn find_mut(&mut self, open: OpenKey) -> Option<&mut Reservation> {
        self.list.get_mut(&open)
    }

    /// The sum of all reservations.
    pub(crate) fn sum(&self) -> Sum {
        Sum { opens: self.list.len(), counting: self.counting, writing: self.writing, locks: 0 }
    }

    /// An open with [`Access::DELETE`], if there is one. Usually the count is 0 and no list is searched.
    pub(crate) fn deleting(&self) -> Option<OpenKey> {
        let [_, _, deleting] = self.needing;
        let deletes = |r: &&Reservation| r.access.contains(Access::DELETE);
        (deleting > 0).then(|| self.list.values().find(deletes).map(|r| r.open)).flatten()
    }

    /// An open that excludes an open of this access and sharing.
    pub(crate) fn holder_against(&self, access: Access, sharing: Sharing) -> Option<OpenKey> {
        let needs = access.needs();
        // In the ordinary case the counts show at once that nothing conflicts.
        let mut counts = BITS.iter().zip(&self.needing).zip(&self.denying);
        let possible = counts.any(|((&bit, &needing), &denying)| {
            (needs.contains(bit) && denying > 0) || (!sharing.contains(bit) && needing > 0)
        });
        if needs.is_empty() || !possible {
            return None;
        }
        let new = (needs, sharing);
        self.list.values().find(|r| conflict(new, (r.access.needs(), r.sharing))).map(|r| r.open)
    }

    /// Adds the reservation, or replaces the one with the same key.
    pub(crate) fn put(&mut self, new: Reservation) {
        if let Some(old) = self.list.insert(new.open, new) {
            self.count(&old, false);
        }
        self.count(&new, true);
    }

    pub(crate) fn remove(&mut self, open: OpenKey) -> Option<Reservation> {
        let old = self.list.remove(&open)?;
        self.count(&old, false);
        Some(old)
    }

    fn count(&mut self, of: &Reservation, add: bool) {
        let step = |n: &mut usize| {
            debug_assert!(add || *n > 0, "a reservation that ends was counted");
            *n = if add { n.saturating_add(1) } else { n.saturating_sub(1) };
        };
        if !is_for_attributes(of.access) {
            step(&mut self.counting);
        }
        if of.writes() {
            step(&mut self.writing);
        }
        let needs = of.access.needs();
        if needs.is_empty() {
            return;
        }
        for ((&bit, needing), denying) in BITS.iter().zip(&mut self.needing).zip(&mut self.denying) {
            if needs.contains(bit) {
                step(needing);
            }
            if !of.sharing.contains(bit) {
                step(denying);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_follow_every_change() {
        let open = OpenKey(1);
        let with = |access, sharing| Reservation { open, access, sharing, delete_on_close: false };
        let mut reservations = Reservations::default();
        reservations.put(with(Access::READ_DATA | Access::DELETE, Sharing::READ));
        assert_eq!((reservations.needing, reservations.denying), ([1, 0, 1], [0, 1, 1]));
        reservations.put(with(Access::APPEND_DATA, Sharing::all()));
        assert_eq!((reservations.needing, reservations.denying), ([0, 1, 0], [0, 0, 0]));
        // An open that needs nothing denies nothing.
        reservations.put(with(Access::READ_ATTRIBUTES, Sharing::empty()));
        assert_eq!((reservations.needing, reservations.denying), ([0; 3], [0; 3]));
        reservations.put(with(Access::EXECUTE, Sharing::empty()));
        assert!(reservations.remove(open).is_some());
        assert!(reservations.remove(open).is_none());
        assert_eq!((reservations.needing, reservations.denying), ([0; 3], [0; 3]));
    }
}
