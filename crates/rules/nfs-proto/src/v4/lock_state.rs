//! The locks of one lock-owner on one file under one open (RFC 8881 9.1, 18.10).

use super::stateid::Other;

/// The byte-range locks themselves are kept by `file-state`, under [`LockState::owner`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockState {
    /// The open under which the locks were taken.
    pub(super) open: Other,
    /// The number of the lock-owner, unique on this server.
    pub owner: u64,
}

impl LockState {
    /// The open under which the locks were taken.
    #[must_use]
    pub fn open(self) -> Other {
        self.open
    }
}
