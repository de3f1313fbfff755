//! Why an object takes no changes.

use file_state::Access;

/// Why an object takes no changes, whoever asks for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ReadOnly {
    /// The terms of the share ([`Terms::READ_ONLY`](super::Terms::READ_ONLY)), or its store, which cannot change anything.
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
    .union(PERMISSION_CHANGES);

/// Every access that allows changes of permissions and owners.
pub(crate) const PERMISSION_CHANGES: Access = Access::WRITE_DAC.union(Access::WRITE_OWNER);
