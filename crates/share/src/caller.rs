//! Who is asking.

use std::sync::Arc;

use acl::Token;
use file_state::Holder;

/// The protocol that a request came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// SMB 2 and 3.
    Smb,
    /// NFS version 3 and MOUNT.
    Nfs3,
    /// NFS version 4.1 and 4.2.
    Nfs4,
}

impl Protocol {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Smb, Self::Nfs3, Self::Nfs4];

    /// Its name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Smb => "smb",
            Self::Nfs3 => "nfs3",
            Self::Nfs4 => "nfs4",
        }
    }
}

/// A user in the terms of the store.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identity {
    /// User.
    pub uid: u32,
    /// Primary group: new objects get it.
    pub gid: u32,
    /// Further groups.
    pub groups: Vec<u32>,
}

impl Identity {
    /// Whether permission bits do not bind this user.
    #[must_use]
    pub fn is_superuser(&self) -> bool {
        self.uid == 0
    }

    /// In the terms of access control lists.
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

/// Who is asking, and by which protocol. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Caller {
    /// How the request came.
    pub protocol: Protocol,
    /// The user.
    pub identity: Arc<Identity>,
    /// The caching grant on a directory under which the caller changes its entries, if any ([`Caller::under`]).
    pub directory: Option<Holder>,
    /// The grant under which the caller's client caches any file ([`Caller::of_client`]).
    pub client: Option<Holder>,
}

impl Caller {
    /// A caller.
    #[must_use]
    pub fn new(protocol: Protocol, identity: Identity) -> Self {
        Self { protocol, identity: Arc::new(identity), directory: None, client: None }
    }
}
