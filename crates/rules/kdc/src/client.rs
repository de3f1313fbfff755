//! What a KDC knows of its clients.

use std::fmt;
use std::sync::Arc;

use acl::Sid;
use krb5::{Enctype, Key};

/// A client with a password.
#[derive(Clone)]
pub struct Client {
    /// The client's name, of one component, as the account is called
    pub name: String,
    /// Who the client is, whatever the name
    pub sid: Sid,
    /// The keys of its password
    pub keys: Arc<ClientKeys>,
    /// Whether it gets no tickets, even with the right password
    pub is_disabled: bool,
}

/// The keys of a password. They are as good as the password, and are never shown.
#[derive(Clone)]
pub struct ClientKeys {
    /// What was mixed with the password. RFC 4120 4
    pub salt: String,
    /// One key for each encryption type
    pub keys: Vec<Key>,
}

/// Where clients are looked up.
pub trait Clients {
    /// The client of this name, if it has keys.
    fn client(&self, name: &str) -> Option<Client>;
}

impl PartialEq for ClientKeys {
    fn eq(&self, other: &Self) -> bool {
        let key = |key: &Key| (key.enctype(), key.as_bytes().to_vec());
        self.salt == other.salt && self.keys.iter().map(key).eq(other.keys.iter().map(key))
    }
}

impl Eq for ClientKeys {}

impl ClientKeys {
    /// The key of this type.
    pub(crate) fn of_type(&self, enctype: Enctype) -> Option<&Key> {
        self.keys.iter().find(|key| key.enctype() == enctype)
    }
}

impl fmt::Debug for ClientKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientKeys").field("salt", &self.salt).finish_non_exhaustive()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("name", &self.name).field("sid", &self.sid).finish_non_exhaustive()
    }
}
