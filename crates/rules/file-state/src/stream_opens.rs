//! Opens of a file's named streams, as far as they concern the file itself.

use std::collections::BTreeSet;

use crate::{Access, OpenKey, Sharing};

/// The opens of all named streams of one file. Each holds the file open. What an open shares of the stream is kept in
/// the stream's own state.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamOpens {
    all: BTreeSet<OpenKey>,
    /// The opens that deny deletion of the file.
    denying: BTreeSet<OpenKey>,
}

/// Whether an open of a named stream denies deletion of the file: it does if it accesses data and does not share
/// deletion ([MS-FSA] 2.1.5.1.2.1).
pub(crate) fn denies_deletion(access: Access, sharing: Sharing) -> bool {
    !access.needs().is_empty() && !sharing.contains(Sharing::DELETE)
}

impl StreamOpens {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// An open that denies deletion of the file.
    pub(crate) fn against_deletion(&self) -> Option<OpenKey> {
        self.denying.first().copied()
    }

    /// Adds an open that was not there.
    pub(crate) fn insert(&mut self, open: OpenKey, denies_deletion: bool) {
        self.all.insert(open);
        if denies_deletion {
            self.denying.insert(open);
        }
    }

    /// Removes an open. Returns whether it was there.
    pub(crate) fn remove(&mut self, open: OpenKey) -> bool {
        self.denying.remove(&open);
        self.all.remove(&open)
    }
}
