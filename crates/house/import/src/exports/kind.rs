//! How a line of exports(5) names clients.

use access::Network;

use crate::clients;

/// How a client is named. "the first match from the above list order takes precedence - regardless of the order they appear on
/// the export line"
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Host(Option<Network>),
    Network(Option<Network>),
    Pattern,
    Netgroup,
    Everybody,
    /// Clients with Kerberos, in the old way of writing.
    Kerberos,
}

impl Kind {
    pub(super) fn of(name: &str) -> Self {
        if name.is_empty() || name == "*" {
            return Self::Everybody;
        }
        if name.starts_with("gss/") {
            return Self::Kerberos;
        }
        if name.starts_with('@') {
            return Self::Netgroup;
        }
        match name.chars().find(|c| matches!(c, '*' | '?' | '[' | '/')) {
            Some('/') => Self::Network(clients::network(name)),
            Some(_) => Self::Pattern,
            None => Self::Host(clients::network(name)),
        }
    }

    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Host(_) => 0,
            Self::Network(_) => 1,
            Self::Pattern => 2,
            Self::Netgroup => 3,
            Self::Everybody => 4,
            Self::Kerberos => 5,
        }
    }

    /// The network; else why it cannot be in a client list.
    pub(super) fn network(&self) -> Result<Network, &'static str> {
        match self {
            Self::Host(Some(network)) | Self::Network(Some(network)) => Ok(network.clone()),
            Self::Host(None) => Err("it is neither an address nor the name of a machine"),
            Self::Network(None) => Err("it is no network with a prefix"),
            Self::Pattern => Err("patterns cannot be in client lists: name addresses or networks"),
            Self::Netgroup => Err("netgroups cannot be in client lists: name addresses or networks"),
            Self::Everybody => Ok(Network::Any),
            Self::Kerberos => Err("it stands for clients with Kerberos: see `nfs-security` of a share"),
        }
    }
}
