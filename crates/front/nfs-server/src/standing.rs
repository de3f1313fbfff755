//! What a caller may do in a share under the share's rules, before any file is consulted.

use share::{Role, Share};
use storage::FileKind;

/// The set-user-id and the set-group-id bit.
const SET_ID: u32 = 0o6000;

/// A caller's standing in a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The share is not served to this client.
    Refused,
    /// The share is served to the client, but not by calls that are secured like this one: it can only be mounted.
    TooWeak,
    /// The share is served to the client, but not over connections without TLS.
    Unencrypted,
    /// The share is served to the client, but not to this user: it can only be mounted.
    Visitor,
    /// The share is served to the caller.
    Member(Terms),
}

/// The terms that a share's rules give to a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    /// What the user may do. From a client that may only read, no more than reading.
    pub(crate) role: Role,
    /// Whether the client's superuser may create device nodes.
    pub(crate) devices: bool,
    /// Whether the client's superuser may set the set-user-id and set-group-id bits of files.
    pub(crate) set_id: bool,
    /// The generation of the rules.
    pub(crate) generation: u64,
}

impl Standing {
    pub(crate) fn is_refused(self) -> bool {
        matches!(self, Self::Refused | Self::Unencrypted)
    }

    pub(crate) fn is_member(self) -> bool {
        matches!(self, Self::Member(_))
    }

    pub(crate) fn is_read_only(self) -> bool {
        self.role() < Role::Contributor
    }

    /// What the caller may do in the share. Who is not served there changes nothing, either.
    pub(crate) fn role(self) -> Role {
        self.terms().map_or(Role::Reader, |terms| terms.role)
    }

    /// Whether the share's rules have not changed since.
    pub(crate) fn is_present(self, share: &Share) -> bool {
        self.terms().is_some_and(|terms| terms.generation == share.rules_generation())
    }

    /// Whether the superuser may create an object of this kind.
    pub(crate) fn admits_kind(self, kind: FileKind) -> bool {
        let is_device = matches!(kind, FileKind::BlockDevice | FileKind::CharDevice);
        !is_device || self.terms().is_some_and(|terms| terms.devices)
    }

    /// Whether the superuser may give an object of this kind these permission bits. On directories, the special bits
    /// only decide who owns objects that are created there.
    pub(crate) fn admits_mode(self, kind: FileKind, mode: u32) -> bool {
        let is_privileged = kind != FileKind::Directory && mode & SET_ID != 0;
        !is_privileged || self.terms().is_some_and(|terms| terms.set_id)
    }

    fn terms(self) -> Option<Terms> {
        match self {
            Self::Refused | Self::TooWeak | Self::Unencrypted | Self::Visitor => None,
            Self::Member(terms) => Some(terms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_and_set_id_bits_are_allowed_apart() {
        let standing = |devices, set_id| {
            Standing::Member(Terms { role: Role::Elevated, devices, set_id, generation: 1 })
        };
        let (none, all) = (standing(false, false), standing(true, true));
        for kind in [FileKind::BlockDevice, FileKind::CharDevice] {
            assert!(!none.admits_kind(kind) && all.admits_kind(kind));
            assert!(!standing(false, true).admits_kind(kind) && !Standing::Refused.admits_kind(kind));
        }
        assert!(none.admits_kind(FileKind::Fifo) && none.admits_kind(FileKind::Socket));
        for mode in [0o4755, 0o2755, 0o6000] {
            assert!(!none.admits_mode(FileKind::Regular, mode) && all.admits_mode(FileKind::Regular, mode));
            assert!(!standing(true, false).admits_mode(FileKind::Regular, mode));
            assert!(none.admits_mode(FileKind::Directory, mode));
        }
        assert!(none.admits_mode(FileKind::Regular, 0o1777));
    }
}
