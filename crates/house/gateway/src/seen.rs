//! What administrators see of the vservers that a gateway serves, beside its own shares and clients.

use std::sync::Arc;

use control::ServedVserver;
use control::clients::Clients;
use nfs_server::NfsServer;
use share::ShareTable;

use crate::vservers::Vservers;

/// A vserver at one moment. Its end waits until this is dropped.
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) smb: Arc<smb_server::Server>,
    pub(crate) nfs: Arc<NfsServer>,
    pub(crate) shares: Arc<ShareTable>,
}

/// The vservers that are served now, with their shares.
pub(crate) fn shares(vservers: &Vservers) -> Vec<ServedVserver> {
    let shares = |Seen { name, shares, .. }: Seen| ServedVserver { name, shares: shares.present() };
    vservers.seen().into_iter().map(shares).collect()
}

/// The clients of the server itself, and those of the vservers that are served now.
pub(crate) fn clients(own: Clients, vservers: &Vservers) -> Clients {
    vservers.seen().iter().fold(own, |all, Seen { name, smb, nfs, shares }| {
        all.with_vserver(name, control::report::clients(smb, nfs, shares))
    })
}
