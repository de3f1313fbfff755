//! What hosts hold by NLM, for administrators.

use nfs_proto::nlm::hosts::HostNumber;
use share::{OpenKey, ShareId};

use crate::front::{NFS3, NFS4};
use crate::server::ServerState;
use crate::v4::open_files::OpenFile;

use super::state::shown;

impl OpenFile {
    /// The name of the protocol by which the client holds it, as in metrics.
    #[must_use]
    pub fn protocol(&self) -> &'static str {
        HostNumber::of_owner(self.client_number << 32).map_or(NFS4.name, |_| NFS3.name)
    }
}

impl ServerState {
    /// Closes a file of a host, with its locks there. Returns false if no host has such an open.
    pub(crate) async fn close_file_of_host(&self, share: ShareId, key: OpenKey) -> bool {
        match &self.nlm {
            Some(nlm) => nlm.end_files(|held| held.share.id() == share && held.open.key() == key).await > 0,
            None => false,
        }
    }

    /// The files in which hosts hold locks or reservations.
    pub(crate) fn files_of_hosts(&self) -> Vec<OpenFile> {
        let Some(nlm) = &self.nlm else { return Vec::new() };
        let hosts = nlm.with(|hosts| hosts.report());
        let connected = self.connections.report();
        let of_host = |host: nfs_proto::nlm::hosts::HostReport<_, super::state::Held>| {
            let (number, name) = (host.number.get(), shown(&host.name));
            host.held.into_iter().map(move |held| (number, name.clone(), held)).collect::<Vec<_>>()
        };
        let held = hosts.into_iter().flat_map(of_host);
        held.map(|(number, client, held)| {
            let address = held.client.ip().to_canonical();
            OpenFile {
                client_number: number.into(),
                client,
                address,
                is_connected: connected.iter().any(|one| one.client.ip().to_canonical() == address),
                uid: held.uid,
                share: held.share,
                open: held.open,
                is_delegation: false,
            }
        })
        .collect()
    }
}
