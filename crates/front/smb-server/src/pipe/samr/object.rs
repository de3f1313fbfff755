//! The objects of the Security Account Manager, and their handles.
//!
//! A handle says which object it stands for, and gives no right: each call is checked for itself, and all calls read. So nothing
//! is kept for a handle, and there is nothing that a client could have too many of.

use smb_wire::dcerpc::fault;
use smb_wire::samr::{Handle, Kind};

use crate::pipe::Fault;

/// What every handle begins with. The first word of an RPC handle is zero.
const PREFIX: [u8; 8] = *b"\0\0\0\0samr";

/// A set of users and groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Domain {
    /// The accounts of this server.
    Accounts,
    /// What every server has: `BUILTIN`.
    Builtin,
}

/// What a handle stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Object {
    Server,
    Domain(Domain),
    Member(Member),
}

/// A user, a group or an alias of a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) domain: Domain,
    pub(super) kind: Kind,
    pub(super) rid: u32,
}

impl Object {
    pub(super) fn handle(self) -> Handle {
        let (kind, domain, rid) = match self {
            Self::Server => (0, 0, 0),
            Self::Domain(domain) => (1, domain.number(), 0),
            Self::Member(Member { domain, kind, rid }) => {
                let kind = match kind {
                    Kind::User => 2,
                    Kind::Group => 3,
                    Kind::Alias => 4,
                };
                (kind, domain.number(), rid)
            }
        };
        let [a, b, c, d] = rid.to_le_bytes();
        let [p, q, r, s, t, u, v, w] = PREFIX;
        Handle([p, q, r, s, t, u, v, w, kind, domain, a, b, c, d, 0, 0, 0, 0, 0, 0])
    }

    /// # Errors
    /// The fault for what is no handle of this server.
    pub(super) fn of(Handle(bytes): Handle) -> Result<Self, Fault> {
        let [p, q, r, s, t, u, v, w, kind, domain, a, b, c, d, rest @ ..] = bytes;
        let domain = match domain {
            0 => Domain::Accounts,
            1 => Domain::Builtin,
            _ => return Err(fault::CONTEXT_MISMATCH),
        };
        let member = |kind| Self::Member(Member { domain, kind, rid: u32::from_le_bytes([a, b, c, d]) });
        let object = match kind {
            0 => Self::Server,
            1 => Self::Domain(domain),
            2 => member(Kind::User),
            3 => member(Kind::Group),
            4 => member(Kind::Alias),
            _ => return Err(fault::CONTEXT_MISMATCH),
        };
        let is_ours = [p, q, r, s, t, u, v, w] == PREFIX && rest == [0; 6];
        if is_ours { Ok(object) } else { Err(fault::CONTEXT_MISMATCH) }
    }

    /// # Errors
    /// The fault for a handle of another object.
    pub(super) fn server(handle: Handle) -> Result<(), Fault> {
        if Self::of(handle)? == Self::Server { Ok(()) } else { Err(fault::CONTEXT_MISMATCH) }
    }

    /// # Errors
    /// The fault for a handle of another object.
    pub(super) fn domain(handle: Handle) -> Result<Domain, Fault> {
        match Self::of(handle)? {
            Self::Domain(domain) => Ok(domain),
            Self::Server | Self::Member(_) => Err(fault::CONTEXT_MISMATCH),
        }
    }

    /// # Errors
    /// The fault for a handle of another object.
    pub(super) fn member(handle: Handle, wanted: Kind) -> Result<Member, Fault> {
        match Self::of(handle)? {
            Self::Member(member) if member.kind == wanted => Ok(member),
            Self::Server | Self::Domain(_) | Self::Member(_) => Err(fault::CONTEXT_MISMATCH),
        }
    }
}

impl Domain {
    fn number(self) -> u8 {
        match self {
            Self::Accounts => 0,
            Self::Builtin => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_stands_for_one_object() {
        let member = |domain, kind, rid| Object::Member(Member { domain, kind, rid });
        for object in [
            Object::Server,
            Object::Domain(Domain::Accounts),
            Object::Domain(Domain::Builtin),
            member(Domain::Accounts, Kind::User, u32::MAX),
            member(Domain::Accounts, Kind::Group, 513),
            member(Domain::Builtin, Kind::Alias, 544),
        ] {
            assert_eq!(Object::of(object.handle()), Ok(object));
            for at in [0, 7, 19] {
                let mut other = object.handle();
                other.0[at] ^= 1;
                assert_eq!(Object::of(other), Err(fault::CONTEXT_MISMATCH));
            }
        }
        assert!(Object::of(Handle::default()).is_err(), "zeros are what a closed handle is");
        let user = member(Domain::Accounts, Kind::User, 1).handle();
        assert!(Object::domain(user).is_err() && Object::server(user).is_err());
        assert!(Object::member(user, Kind::User).is_ok() && Object::member(user, Kind::Alias).is_err());
    }
}
