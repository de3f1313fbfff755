//! Whether an object takes changes.

use file_state::Access;
use storage::ObjectId;

use crate::{Error, Found, Result, Share, Terms};

/// Why an object takes no changes, whoever asks for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadOnly {
    /// The terms of the share ([`Terms::READ_ONLY`]).
    #[error("a read-only share")]
    Share,
    /// The object is of a snapshot.
    #[error("an object of a snapshot")]
    Snapshot,
}

/// Every access that allows changes.
pub(crate) const CHANGES: Access = Access::WRITE_DATA
    .union(Access::APPEND_DATA)
    .union(Access::WRITE_EA)
    .union(Access::DELETE_CHILD)
    .union(Access::WRITE_ATTRIBUTES)
    .union(Access::DELETE)
    .union(Access::WRITE_DAC)
    .union(Access::WRITE_OWNER);

impl Share {
    /// Whether the share refuses all changes. [`Share::read_only`] is the question about one object.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.terms().contains(Terms::READ_ONLY)
    }

    /// Why nobody may change this object, if that is so. For a name that is made, removed or changed, the directory is asked
    /// about as well as the object.
    #[must_use]
    pub fn read_only(&self, object: ObjectId) -> Option<ReadOnly> {
        if self.is_read_only() {
            Some(ReadOnly::Share)
        } else if object.is_live() {
            None
        } else {
            Some(ReadOnly::Snapshot)
        }
    }

    /// Refuses to change an object that nobody may change.
    pub(crate) fn check_writable(&self, object: ObjectId) -> Result<()> {
        self.read_only(object).map_or(Ok(()), |why| Err(Error::ReadOnly(why)))
    }

    /// Why a caller for whom [`Share::maximal_access`] leaves out some of `asked` is refused: to change an object of a snapshot
    /// is not a matter of permission.
    #[must_use]
    pub fn why_refused(&self, found: &Found, asked: Access) -> Error {
        match self.read_only(found.node.id()) {
            Some(why @ ReadOnly::Snapshot) if asked.intersects(CHANGES) => Error::ReadOnly(why),
            _ => Error::AccessDenied,
        }
    }
}
