//! Which opens work under which grant, and what they do together: so that it costs the same to know it of one open and of
//! thousands.

use std::collections::HashMap;

use crate::{Holder, OpenKey};

/// What some opens do, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sum {
    /// Opens.
    pub(crate) opens: usize,
    /// Those that are for more than attributes.
    pub(crate) counting: usize,
    /// Those that write, or do not let others read.
    pub(crate) writing: usize,
    /// Byte-range locks that they own.
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

/// The opens of one file that work under a grant which others of them may share. (An oplock is that of one open.)
#[derive(Debug, Clone, Default)]
pub(crate) struct Under {
    holders: HashMap<OpenKey, Holder>,
    sums: HashMap<Holder, Sum>,
}

impl Under {
    /// The grant that an open works under.
    pub(crate) fn holder(&self, open: OpenKey) -> Holder {
        self.holders.get(&open).copied().unwrap_or(Holder::Oplock(open))
    }

    /// What the opens under a grant do together; None for an oplock.
    pub(crate) fn sum(&self, holder: Holder) -> Option<Sum> {
        match holder {
            Holder::Oplock(_) => None,
            Holder::Lease { .. } | Holder::Delegation(_) => {
                Some(self.sums.get(&holder).copied().unwrap_or_default())
            }
        }
    }

    /// From now on an open that does `what` works under a grant.
    pub(crate) fn enter(&mut self, open: OpenKey, holder: Holder, what: Sum) {
        if !matches!(holder, Holder::Oplock(_)) && !self.holders.contains_key(&open) {
            self.holders.insert(open, holder);
            self.sums.entry(holder).or_default().add(what);
        }
    }

    /// What an open does was this, and is that now.
    pub(crate) fn change(&mut self, open: OpenKey, before: Sum, after: Sum) {
        if before != after
            && let Some(sum) = self.holders.get(&open).and_then(|holder| self.sums.get_mut(holder))
        {
            sum.take(before);
            sum.add(after);
        }
    }

    /// An open that does `what` is there no more.
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
