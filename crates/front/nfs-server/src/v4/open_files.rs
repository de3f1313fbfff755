//! What NFSv4 clients have open, for administrators, and its end on their order.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use nfs_proto::v4::holdings::Through;
use share::{ByteRangeLock, Open, OpenKey, Share, ShareId};
use storage::ObjectId;

use super::files::{Delegated, Held};
use super::revocation::addresses_of;
use super::state::Client;
use crate::server::ServerState;

/// A file that an NFSv4 client has open, or a delegation that it holds.
#[derive(Debug, Clone)]
pub struct OpenFile {
    /// The number of the client, as in the numbers of its lock-owners.
    pub client_number: u64,
    /// The name by which the client calls itself.
    pub client: String,
    /// The address from which the client is connected; the address from which it opened the file, if it is not.
    pub address: IpAddr,
    /// Whether the client is connected.
    pub is_connected: bool,
    /// The uid of the user who opened the file, in this share.
    pub uid: u32,
    /// The name of that user, if a ticket has proved it.
    pub user: Option<Arc<str>>,
    /// The share.
    pub share: Arc<Share>,
    /// The open.
    pub open: Arc<Open>,
    /// Whether this is a delegation.
    pub is_delegation: bool,
}

impl OpenFile {
    /// The client's locks on the file, under whatever open they were taken.
    #[must_use]
    pub fn locks(&self) -> Vec<ByteRangeLock> {
        let mut locks = self.share.locks(self.open.node().id());
        locks.retain(|lock| lock.owner.client() == Some(self.client_number));
        locks
    }

    /// The client and the file: entries for which they are equal have the same locks.
    #[must_use]
    pub fn of_client(&self) -> (u64, ShareId, ObjectId) {
        (self.client_number, self.share.id(), self.open.node().id())
    }
}

impl ServerState {
    /// What the NFSv4 clients have open, and their delegations.
    pub(crate) fn open_files(&self) -> Vec<OpenFile> {
        let addresses = self.connections.addresses();
        let shares = self.exports.shares.present();
        let mut files = Vec::new();
        for client in self.v4.clients() {
            for share in shares.iter() {
                files.extend(open_files(&client, share.id(), &addresses));
            }
        }
        files
    }

    /// Revokes an open or a delegation (NFS4ERR_ADMIN_REVOKED), with all other opens of the same open-owner for the file and
    /// the locks under them. Returns false if no client has such an open.
    pub(crate) async fn revoke_open(&self, share: ShareId, key: OpenKey) -> bool {
        let Some(share) = self.exports.shares.present().by_id(share).cloned() else { return false };
        for client in self.v4.clients() {
            if client.revoke(&share, |held, _| held_of(&held).open.key() == key).await.is_some() {
                return true;
            }
        }
        false
    }

    /// Ends what the NFSv4 clients hold that are connected from this address, and their sessions. Returns their number.
    pub(crate) async fn expire_clients_at(&self, address: IpAddr) -> usize {
        let addresses = self.connections.addresses();
        let mut expired = 0;
        for client in self.v4.clients() {
            let is_there = |at: &SocketAddr| at.ip().to_canonical() == address;
            if addresses_of(&client, &addresses).iter().any(is_there) {
                self.v4.expire_client(client.id).leave(&self.v4.recovery).await;
                expired += 1;
            }
        }
        expired
    }
}

fn open_files(client: &Client, share: ShareId, addresses: &HashMap<u64, SocketAddr>) -> Vec<OpenFile> {
    let connected = addresses_of(client, addresses);
    client.files.with(|holdings| {
        let held = holdings.of_share(share.0).map(|(held, _)| {
            let is_delegation = matches!(held, Through::Delegation(_));
            let held = held_of(&held);
            OpenFile {
                client_number: client.files.number().into(),
                client: client.shown(),
                address: connected
                    .first()
                    .copied()
                    .unwrap_or_else(|| held.claimant.client())
                    .ip()
                    .to_canonical(),
                is_connected: !connected.is_empty(),
                uid: held.identity.uid(),
                user: held.claimant.user(),
                share: Arc::clone(&held.share),
                open: Arc::clone(&held.open),
                is_delegation,
            }
        });
        held.collect()
    })
}

pub(super) fn held_of<'a>(held: &Through<'a, Held, Delegated>) -> &'a Held {
    match held {
        Through::Open(held) => held,
        Through::Delegation(delegated) => &delegated.held,
    }
}
