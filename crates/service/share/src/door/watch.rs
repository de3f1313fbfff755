//! Watches ([`crate::watch`]).

use std::sync::Arc;

use storage::NodeRef;

use crate::{Caller, ChangeKinds, Changes, Result, Share, Watch};

impl Share {
    /// The changes in the share, for watches.
    #[must_use]
    pub fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Watches a directory that the caller may list, or the whole tree below it, for changes of these kinds. In a tree the
    /// caller sees what it could find by listing: changes in directories that it may reach and list.
    ///
    /// # Errors
    /// [`Error::LimitReached`](crate::Error::LimitReached).
    pub fn watch(
        self: &Arc<Self>,
        caller: &Caller,
        dir: &NodeRef,
        recursive: bool,
        kinds: ChangeKinds,
    ) -> Result<Watch> {
        self.changes.watch(caller, dir, recursive, kinds)
    }
}
