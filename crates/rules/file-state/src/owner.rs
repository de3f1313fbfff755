//! Who holds state on a file.

/// Identifies an open of any protocol; unique on this server while the open exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpenKey(pub u64);

/// The owner of a byte-range lock. The kind of the owner decides the rules of the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockOwner {
    /// An open (SMB). Locks of an open are mandatory: they also stop reads and writes of others. Each lock is kept as
    /// it was taken, is unlocked by exactly the same range, and ends with the open.
    Open(OpenKey),
    /// An owner that a client named (NFSv4 lock-owner, NLM). The number is unique on this server for the pair of client
    /// and owner. These locks are advisory: they conflict with other locks, and with reads and writes through an
    /// [`Actor::Open`], since SMB clients rely on locks being enforced. They are merged and split as POSIX does, and
    /// end with [`FileState::release_owner`](crate::FileState::release_owner).
    Client(u64),
}

impl LockOwner {
    /// The client of an owner that a client named: the upper half of the number, which is also the upper half in the
    /// client's [`Holder::Delegation`](crate::Holder::Delegation).
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
    /// Through an open that reserved the access, by a protocol whose locks are mandatory (SMB): locks of all other
    /// owners stop the operation.
    Open(OpenKey),
    /// Through an open that reserved the access, by a protocol whose locks are advisory (NFSv4): mandatory locks stop
    /// the operation.
    Advised(OpenKey),
    /// Without an open (NFSv3, and NFSv4's special stateids): also checked against the reservations.
    Stateless,
}
