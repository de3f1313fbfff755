//! The caller of an operation: user and client, and how the user was proved.

use std::net::IpAddr;
use std::sync::Arc;

use access::Role;
use accounting::Client;
use file_state::Holder;
use identity::{Identity, Proof};

use crate::agreement::{Opener, Openers};
use crate::{Error, Result};

/// The user and client of a request. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The user.
    pub identity: Arc<Identity>,
    /// How the user was proved.
    pub proof: Proof,
    /// What the rules of the share let the user do.
    pub role: Role,
    /// The client.
    pub machine: Client,
    /// The address from which the user logged on, where the client has another name.
    pub address: Option<IpAddr>,
    /// The grant under which the caller's client caches any file ([`Caller::of_client`]).
    pub client: Option<Holder>,
    /// The openers that the caller's opens are counted for.
    pub openers: Openers,
}

impl Caller {
    /// Creates a caller whom the rules of the share keep from nothing that permissions allow.
    #[must_use]
    pub fn new(identity: Identity, proof: Proof) -> Self {
        Self {
            identity: Arc::new(identity),
            proof,
            role: Role::Elevated,
            machine: Client::Unknown,
            address: None,
            client: None,
            openers: Openers::default(),
        }
    }

    /// The same caller, with this role in the share.
    #[must_use]
    pub fn in_role(mut self, role: Role) -> Self {
        self.role = role;
        if role == Role::Admin && !self.identity.is_exempt() {
            self.identity = Arc::new(Identity::clone(&self.identity).exempt());
        }
        self
    }

    /// Refuses a caller whose role does not include changes of permissions and owners.
    ///
    /// # Errors
    /// [`Error::AccessDenied`].
    pub(crate) fn check_changes_permissions(&self) -> Result<()> {
        if self.role.changes_permissions() { Ok(()) } else { Err(Error::AccessDenied) }
    }

    /// The same caller, from this client.
    #[must_use]
    pub fn at(mut self, machine: Client) -> Self {
        self.machine = machine;
        self
    }

    /// The same caller, from this address.
    #[must_use]
    pub fn from_address(mut self, address: IpAddr) -> Self {
        self.address = Some(address);
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
