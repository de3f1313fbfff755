//! The caller of an operation: user and client.

use std::sync::Arc;

use accounting::Client;
use acl::Token;
use file_state::Holder;

use crate::openers::{Opener, Openers};

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

/// The user and client of a request. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user.
    pub identity: Arc<Identity>,
    /// The client.
    pub machine: Client,
    /// The grant under which the caller's client caches any file ([`Caller::of_client`]).
    pub client: Option<Holder>,
    /// The openers that the caller's opens are counted for.
    pub openers: Openers,
}

impl Caller {
    /// Creates a caller.
    #[must_use]
    pub fn new(identity: Identity) -> Self {
        Self {
            identity: Arc::new(identity),
            machine: Client::Unknown,
            client: None,
            openers: Openers::default(),
        }
    }

    /// The same caller, from this client.
    #[must_use]
    pub fn at(mut self, machine: Client) -> Self {
        self.machine = machine;
        self
    }

    /// The same caller, with its opens counted for this client or address.
    #[must_use]
    pub fn counted_for(mut self, client: Opener) -> Self {
        let [_, user] = self.openers;
        self.openers = [Some(client), user];
        self
    }

    /// The same caller, with its opens also counted for this user.
    #[must_use]
    pub fn counted_for_user(mut self, user: Opener) -> Self {
        let [client, _] = self.openers;
        self.openers = [client, Some(user)];
        self
    }
}
