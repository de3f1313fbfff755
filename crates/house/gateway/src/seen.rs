//! What administrators see of the vservers that a gateway serves, beside its own shares.

use std::sync::Arc;

use control::ServedVserver;
use share::ShareTable;

use crate::vservers::Vservers;

/// A vserver at one moment. Its end waits until this is dropped.
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) shares: Arc<ShareTable>,
}

/// The vservers that are served now, with their shares.
pub(crate) fn shares(vservers: &Vservers) -> Vec<ServedVserver> {
    let shares = |Seen { name, shares }: Seen| ServedVserver { name, shares: shares.present() };
    vservers.seen().into_iter().map(shares).collect()
}
