//! Which opens work under which grant, and the sum of what they do, so that a question about a grant costs the same for
//! one open as for thousands.

use crate::{Holder, OpenKey, SmallMap};

/// What some opens do, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sum {
    /// The number of opens.
    pub(crate) opens: usize,
    /// Opens for more than attributes.
    pub(crate) counting: usize,
    /// Opens that write, or deny reading to others.
    pub(crate) writing: usize,
    /// Byte-range locks that the opens own.
    pub(crate) locks: usize,
}

impl Sum {
    fn add(&mut self, more: Self) {
        self.opens = self.opens.saturating_add(more.opens);
        self.counting = self.counting.saturating_add(more.counting);
        self.writing = self.writing.saturating_add(more.writing);
        self.locks = self.locks.saturating_add(more.locks);
    }

    fn take(&mut self, less: Self) {
        self.opens = self.opens.saturating_sub(less.opens);
        self.counting = self.counting.saturating_sub(less.counting);
        self.writing = self.writing.saturating_sub(less.writing);
        self.locks = self.locks.saturating_sub(less.locks);
    }
}

/// The opens of one file that work under a grant that several opens may share. (An oplock belongs to one open.)
#[derive(Debug, Clone, Default)]
pub(crate) struct Under {
    holders: SmallMap<OpenKey, Holder>,
    sums: SmallMap<Holder, Sum>,
}

impl Under {
    /// The grant that an open works under.
    pub(crate) fn holder(&self, open: OpenKey) -> Holder {
        self.holders.get(&open).copied().unwrap_or(Holder::Oplock(open))
    }

    /// The sum of the opens under a grant; None for an oplock.
    pub(crate) fn sum(&self, holder: Holder) -> Option<Sum> {
        match holder {
            Holder::Oplock(_) => None,
            Holder::Lease { .. } | Holder::Delegation(_) => {
                Some(self.sums.get(&holder).copied().unwrap_or_default())
            }
        }
    }

    /// From now on the open works under a grant. `what` is the open's part of the sum.
    pub(crate) fn enter(&mut self, open: OpenKey, holder: Holder, what: Sum) {
        if !matches!(holder, Holder::Oplock(_)) && self.holders.get(&open).is_none() {
            self.holders.insert(open, holder);
            match self.sums.get_mut(&holder) {
                Some(sum) => sum.add(what),
                None => drop(self.sums.insert(holder, what)),
            }
        }
    }

    /// The open's part of the sum changes from `before` to `after`.
    pub(crate) fn change(&mut self, open: OpenKey, before: Sum, after: Sum) {
        if before != after
            && let Some(sum) = self.holders.get(&open).and_then(|holder| self.sums.get_mut(holder))
        {
            sum.take(before);
            sum.add(after);
        }
    }

    /// The open has ended. `what` was its part of the sum.
    pub(crate) fn leave(&mut self, open: OpenKey, what: Sum) {
        let Some(holder) = self.holders.remove(&open) else { return };
        if let Some(sum) = self.sums.get_mut(&holder) {
            sum.take(what);
            if sum.opens == 0 {
                self.sums.remove(&holder);
            }
        }
    }
}
