//! What is served at one moment: the shares of the server itself, and those of vservers of a cluster.

use std::sync::Arc;

use share::Shares;

/// A vserver that this gateway serves, at one moment. Whoever holds it holds up the end of the vserver.
#[derive(Debug, Clone)]
pub struct ServedVserver {
    /// The name of the vserver.
    pub name: String,
    /// Its shares.
    pub shares: Arc<Shares>,
}

/// All shares that are served at one moment.
#[derive(Debug, Clone)]
pub struct ServedShares {
    /// Those of the server itself.
    pub own: Arc<Shares>,
    /// Those of vservers, by the names of these.
    pub vservers: Vec<ServedVserver>,
}

impl From<Arc<Shares>> for ServedShares {
    fn from(own: Arc<Shares>) -> Self {
        Self { own, vservers: Vec::new() }
    }
}

impl ServedShares {
    /// The shares of the server itself (None), and those of each vserver.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (Option<&str>, &Shares)> {
        let vservers = self.vservers.iter().map(|vserver| (Some(vserver.name.as_str()), &*vserver.shares));
        std::iter::once((None, &*self.own)).chain(vservers)
    }
}

/// A share, for people: names of shares of different vservers may be the same.
pub(crate) fn called(vserver: Option<&str>, share: &str) -> String {
    match vserver {
        None => share.to_owned(),
        Some(vserver) => format!("{share} of the vserver {vserver}"),
    }
}
