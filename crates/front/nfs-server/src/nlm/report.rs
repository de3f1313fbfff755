//! What hosts hold by NLM, for administrators.

use std::net::IpAddr;

use net::Origin;
use nfs_proto::nlm::hosts::{HostNumber, HostReport};
use share::{OpenKey, ShareId};

use crate::front::{NFS3, NFS4};
use crate::server::ServerState;
use crate::v4::open_files::OpenFile;

use super::state::{Held, shown};

/// A host that holds NFSv3 locks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHost {
    /// The name by which the host calls itself.
    pub name: String,
    /// Its address.
    pub address: IpAddr,
    /// Files in which it holds locks or share reservations.
    pub files: usize,
}

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

    /// The hosts that hold locks or reservations.
    pub(crate) fn lock_hosts(&self) -> Vec<LockHost> {
        let Some(nlm) = &self.nlm else { return Vec::new() };
        let hosts = nlm.with(|hosts| hosts.report());
        let told = |host: HostReport<Origin, Held>| {
            let address = host.held.first()?.client.ip().to_canonical();
            Some(LockHost { name: shown(&host.name), address, files: host.held.len() })
        };
        let mut told: Vec<_> = hosts.into_iter().filter_map(told).collect();
        told.sort_unstable_by(|one, other| (one.address, &one.name).cmp(&(other.address, &other.name)));
        told
    }

    /// The files in which hosts hold locks or reservations.
    pub(crate) fn files_of_hosts(&self) -> Vec<OpenFile> {
        let Some(nlm) = &self.nlm else { return Vec::new() };
        let hosts = nlm.with(|hosts| hosts.report());
        let connected = self.connections.report();
        let of_host = |host: HostReport<Origin, Held>| {
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
                user: None,
                share: held.share,
                open: held.open,
                is_delegation: false,
            }
        })
        .collect()
    }
}
