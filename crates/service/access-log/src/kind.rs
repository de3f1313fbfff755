//! The kinds of operations.

use std::fmt;
use std::str::FromStr;

/// A kind of operation. Its name is what the log and the configuration call it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A client proves who its user is.
    Logon,
    /// A user's session ends.
    Logoff,
    /// A client enters a share.
    Mount,
    /// An object is opened.
    Open,
    /// An object, or a further name of one, is created.
    Create,
    /// A name is removed.
    Delete,
    /// An object gets another name.
    Rename,
    /// The owner, the mode or the access control list of an object is set.
    Permission,
    /// Data is read.
    Read,
    /// Data is written.
    Write,
    /// The server is administered.
    Administration,
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kinds(u16);

/// There is no kind with this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no kind of operation {0:?}")]
pub struct UnknownKind(pub String);

impl Kind {
    /// All kinds, in the order of the documentation.
    pub const ALL: [Self; 11] = [
        Self::Logon,
        Self::Logoff,
        Self::Mount,
        Self::Open,
        Self::Create,
        Self::Delete,
        Self::Rename,
        Self::Permission,
        Self::Read,
        Self::Write,
        Self::Administration,
    ];

    /// The name of the kind.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Logon => "logon",
            Self::Logoff => "logoff",
            Self::Mount => "mount",
            Self::Open => "open",
            Self::Create => "create",
            Self::Delete => "delete",
            Self::Rename => "rename",
            Self::Permission => "permission",
            Self::Read => "read",
            Self::Write => "write",
            Self::Administration => "administration",
        }
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        Self::ALL.into_iter().find(|kind| kind.name() == text).ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

impl Kinds {
    /// No kind.
    pub const NONE: Self = Self(0);
    /// What is written unless the configuration says otherwise: all but reads and writes.
    pub const USUAL: Self = Self(((1 << Kind::ALL.len()) - 1) & !Kind::Read.bit() & !Kind::Write.bit());

    /// Whether a kind is in the set.
    #[must_use]
    #[inline]
    pub const fn contains(self, kind: Kind) -> bool {
        self.0 & kind.bit() != 0
    }

    pub(crate) const fn bits(self) -> u16 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |bits, kind| bits | kind.bit()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_known_by_its_name_and_has_a_bit_of_its_own() {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.bit(), 1 << place);
        }
        assert_eq!("OPEN".parse::<Kind>(), Err(UnknownKind("OPEN".to_owned())));
    }

    #[test]
    fn reads_and_writes_are_written_only_if_they_are_asked_for() {
        let usual: Vec<_> = Kind::ALL.into_iter().filter(|kind| !Kinds::USUAL.contains(*kind)).collect();
        assert_eq!(usual, [Kind::Read, Kind::Write]);
        let asked: Kinds = [Kind::Read].into_iter().collect();
        assert!(asked.contains(Kind::Read) && !asked.contains(Kind::Open));
        assert_eq!(Kinds::NONE, [].into_iter().collect());
    }
}
