//! Who a caller is, as stores and access control lists know users, and how that was proved.

use std::sync::Arc;

use acl::Token;

/// A user as the store knows users.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
}

/// How a caller proved who it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Proof {
    /// With the password of the account of this name.
    Password(Arc<str>),
    /// With a Kerberos ticket for the account of this name, or for the domain's user of this name, which has an `@`.
    Ticket(Arc<str>),
    /// Not at all: the client states the user.
    Stated,
    /// Not at all: the caller is a guest, who has no name of its own.
    Guest,
}

impl Identity {
    /// A Unix user: a uid, the primary group, and further groups.
    #[must_use]
    pub fn unix(uid: u32, gid: u32, groups: Vec<u32>) -> Self {
        Self { uid, gid, groups }
    }

    /// The uid.
    #[must_use]
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The primary group, which new objects get.
    #[must_use]
    pub fn gid(&self) -> u32 {
        self.gid
    }

    /// Further groups.
    #[must_use]
    pub fn groups(&self) -> &[u32] {
        &self.groups
    }

    /// Whether the user is exempt from permission bits.
    #[must_use]
    pub fn is_superuser(&self) -> bool {
        self.uid == 0
    }

    /// The user in terms of access control lists.
    #[must_use]
    pub fn token(&self) -> Token<'_> {
        Token { uid: self.uid, gid: self.gid, groups: &self.groups }
    }

    /// Whether the user belongs to a group.
    #[must_use]
    pub fn is_in_group(&self, gid: u32) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }
}
