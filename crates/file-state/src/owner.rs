//! Who holds state on a file.

/// Names an open of any protocol; unique on this server while the open exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpenKey(pub u64);

/// Who owns a byte-range lock. The kind of owner decides the rules of the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockOwner {
    /// An open (SMB). Such locks are mandatory: they also stop reads and writes of others. Each lock is
    /// kept as it was taken and is unlocked by the same range; they end with the open.
    Open(OpenKey),
    /// An owner that a client named (NFSv4 lock-owner, NLM); the number is unique on this server for the
    /// pair of client and owner. Such locks are advisory: they conflict with locks only. They are merged
    /// and split as POSIX does; they end with [`FileState::release_owner`](crate::FileState::release_owner).
    Client(u64),
}

impl LockOwner {
    /// Whether this owner's locks also stop reads and writes of others.
    #[must_use]
    pub fn is_mandatory(self) -> bool {
        matches!(self, Self::Open(_))
    }
}

/// Who reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Actor {
    /// Through an open that reserved what it does.
    Open(OpenKey),
    /// Without any open (NFSv3, and NFSv4's special stateids): checked against the reservations too.
    Stateless,
}
