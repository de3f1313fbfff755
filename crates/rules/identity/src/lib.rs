//! Who a caller is, as stores and access control lists know users.

use acl::Token;

/// A user as the store knows users.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The uid.
    pub uid: u32,
    /// The primary group, which new objects get.
    pub gid: u32,
    /// Further groups.
    pub groups: Vec<u32>,
}

impl Identity {
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
