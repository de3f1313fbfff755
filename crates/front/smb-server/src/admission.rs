//! Whether the rules of a share admit a user: checked at TREE_CONNECT, and again when the rules have changed.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};

use share::{Protocols, Role, Share};

use crate::login::Login;

/// How a user on a client may use a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Admission {
    /// What the user may do. From a client that may only read, no more than reading.
    pub(crate) role: Role,
}

/// How a user on a client may use a share; None if the user may not.
pub(crate) fn admit(share: &Share, client: SocketAddr, login: &Login) -> Option<Admission> {
    let entrance = share.entrance(Protocols::SMB, client.into())?;
    let role = share.role(&login.caller.identity, &login.caller.proof)?;
    Some(Admission { role: if entrance.read_only { Role::Reader } else { role } })
}

/// How a tree connect was admitted.
#[derive(Debug)]
pub(crate) struct TreeAdmission {
    pub(crate) admission: Admission,
    /// The client's address.
    client: IpAddr,
    /// The generation of the share's rules under which the admission was last confirmed.
    generation: AtomicU64,
}

impl TreeAdmission {
    /// An admission under the rules of this generation.
    pub(crate) fn new(admission: Admission, client: SocketAddr, generation: u64) -> Self {
        Self { admission, client: client.ip(), generation: AtomicU64::new(generation) }
    }

    /// An admission for an open that currently has no client.
    pub(crate) fn of_nobody() -> Self {
        Self {
            admission: Admission { role: Role::Elevated },
            client: IpAddr::from([0; 16]),
            generation: AtomicU64::new(0),
        }
    }

    /// Whether a request from this address is covered by the admission of the tree connect.
    pub(crate) fn holds(&self, share: &Share, client: IpAddr, generation: u64) -> bool {
        let comes_so = client == self.client || share.is_for_everybody();
        comes_so && self.generation.load(Ordering::Relaxed) == generation
    }

    /// Whether the current rules of the share admit the user in the same way.
    pub(crate) fn is_let_in(&self, share: &Share, login: &Login) -> bool {
        let generation = share.rules_generation();
        let holds = admit(share, SocketAddr::new(self.client, 0), login) == Some(self.admission);
        if holds {
            self.generation.store(generation, Ordering::Relaxed);
        }
        holds
    }
}
