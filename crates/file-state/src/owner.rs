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
    /// pair of client and owner. Such locks are advisory among those whose locks are: they conflict with locks, and with
    /// what is read and written through an [`Actor::Open`], who counts on locks being kept. They are merged
    /// and split as POSIX does; they end with [`FileState::release_owner`](crate::FileState::release_owner).
    Client(u64),
}

impl LockOwner {
    /// The client of an owner that a client named: the upper half of the number, which is also that of the client's
    /// [`Holder::Delegation`](crate::Holder::Delegation).
    #[must_use]
    pub fn client(self) -> Option<u64> {
        match self {
            Self::Open(_) => None,
            Self::Client(number) => Some(number >> 32),
        }
    }

    /// Whether this owner's locks also stop reads and writes of all others.
    #[must_use]
    pub fn is_mandatory(self) -> bool {
        matches!(self, Self::Open(_))
    }
}

/// Who reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Actor {
    /// Through an open that reserved what it does, by a protocol whose locks are mandatory (SMB): the locks of all others
    /// stop it.
    Open(OpenKey),
    /// Through an open that reserved what it does, by a protocol whose locks are advisory (NFSv4): mandatory locks stop it.
    Advised(OpenKey),
    /// Without any open (NFSv3, and NFSv4's special stateids): checked against the reservations too.
    Stateless,
}
