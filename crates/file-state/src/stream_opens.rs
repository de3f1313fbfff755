//! Opens of a file's named streams, as far as the file itself is concerned.

use crate::{Access, OpenKey, Sharing};

/// An open of a named stream holds the file; what it lets others do with the stream is the stream's affair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct StreamOpen {
    open: OpenKey,
    /// It does not let the file be deleted.
    denies_deletion: bool,
}

/// The opens of all named streams of one file.
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamOpens {
    /// In the order of their keys.
    list: Vec<StreamOpen>,
}

/// Whether an open of a named stream denies deleting the file: one that works with data, and does not share deletion
/// ([MS-FSA] 2.1.5.1.2.1).
pub(crate) fn denies_deletion(access: Access, sharing: Sharing) -> bool {
    !access.needs().is_empty() && !sharing.contains(Sharing::DELETE)
}

impl StreamOpens {
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// An open that does not let the file be deleted.
    pub(crate) fn against_deletion(&self) -> Option<OpenKey> {
        self.list.iter().find(|one| one.denies_deletion).map(|one| one.open)
    }

    /// Adds an open that is not there.
    pub(crate) fn insert(&mut self, open: OpenKey, denies_deletion: bool) {
        let at = self.list.partition_point(|one| one.open < open);
        self.list.insert(at, StreamOpen { open, denies_deletion });
    }

    /// Removes an open; whether it was there.
    pub(crate) fn remove(&mut self, open: OpenKey) -> bool {
        let found = self.list.binary_search_by_key(&open, |one| one.open);
        found.is_ok_and(|at| self.list.remove(at).open == open)
    }
}
