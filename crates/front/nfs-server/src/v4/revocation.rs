//! Revocation when a share's rules change: the opens, locks and delegations of clients that the rules no longer admit
//! (RFC 8881 8.5, 15.1.5.1).

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

use nfs_proto::v4::holdings::Through;
use nfs_proto::v4::open_state::ShareAccess;
use share::Share;
use storage::SnapshotId;

use super::files::{Delegated, Held, give_up};
use super::open_files::held_of;
use super::state::Client;
use crate::credentials::Claimant;
use crate::server::ServerState;
use crate::standing::Standing;

impl ServerState {
    /// Revokes what clients hold in a share and may no longer use, including clients whose lease has expired.
    pub(crate) async fn reconsider(&self, share: &Share) {
        let addresses = self.connections.addresses();
        for client in self.v4.clients() {
            self.reconsider_from(&client, share, &addresses).await;
        }
    }

    /// Like [`Self::reconsider`], for one client.
    pub(crate) async fn reconsider_client(&self, client: &Client, share: &Share) {
        self.reconsider_from(client, share, &self.connections.addresses()).await;
    }

    async fn reconsider_from(&self, client: &Client, share: &Share, addresses: &HashMap<u64, SocketAddr>) {
        let of_share = share.id().0;
        let claimants: HashSet<Arc<Claimant>> = client.files.with(|holdings| {
            holdings.of_share(of_share).map(|(held, _)| Arc::clone(claimant(&held))).collect()
        });
        if claimants.is_empty() {
            return;
        }
        let at = addresses_of(client, addresses);
        let rights: HashMap<Arc<Claimant>, Rights> = claimants
            .into_iter()
            .map(|claimant| {
                let rights = self.rights(&claimant, share, &at);
                (claimant, rights)
            })
            .collect();
        // A claimant that is missing from `rights` has just come, and its OPEN checks it.
        let is_lost = |held: Through<'_, Held, Delegated>, access: ShareAccess| {
            rights.get(claimant(&held)).is_some_and(|rights| !rights.allow(access))
        };
        if let Some(Lost { opens, delegations }) = client.revoke(share, is_lost).await {
            tracing::info!(
                client = client.shown(),
                share = share.name(),
                opens,
                delegations,
                "an NFSv4 client loses what the rules of the share do not let it have any more"
            );
        }
    }

    /// Revokes what clients hold in a snapshot of a share that is not there any more: its files have no valid filehandles, with which clients
    /// could give it back.
    pub(super) async fn end_snapshot(&self, share: &Share, id: SnapshotId) {
        let is_of_it = |held: Through<'_, Held, Delegated>, _: ShareAccess| {
            held_of(&held).share.snapshot().is_some_and(|snapshot| snapshot.id == id)
        };
        for client in self.v4.clients() {
            if client.revoke(share, is_of_it).await.is_some() {
                let (client, share) = (client.shown(), share.name());
                tracing::info!(
                    client,
                    share,
                    "an NFSv4 client loses what it had open in a snapshot that was removed"
                );
            }
        }
    }

    /// Whether this user of a client may still make changes in a share.
    pub(super) fn may_write(&self, client: &Client, claimant: &Claimant, share: &Share) -> bool {
        let at = addresses_of(client, &self.connections.addresses());
        self.rights(claimant, share, &at).allow(ShareAccess::WRITE)
    }

    /// The rights of a claimant in a share, from the addresses where the client is now. Without any connection, from
    /// the address from which the file was opened.
    fn rights(&self, claimant: &Claimant, share: &Share, at: &[SocketAddr]) -> Rights {
        if !claimant.security().suffices(self.terms_of(share)) {
            return Rights::default();
        }
        let then = [claimant.client()];
        let at = if at.is_empty() { &then } else { at };
        let standings = at.iter().map(|address| claimant.standing(share, *address, &self.squashing));
        standings.fold(Rights::default(), Rights::or)
    }
}

/// The number of opens and delegations that a client has lost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lost {
    pub(super) opens: usize,
    pub(super) delegations: usize,
}

impl Client {
    /// Revokes the opens and delegations of a share that `is_lost` selects ([`Holdings::revoke_of_share`]). None if there are
    /// none.
    ///
    /// [`Holdings::revoke_of_share`]: nfs_proto::v4::holdings::Holdings::revoke_of_share
    pub(super) async fn revoke(
        &self,
        share: &Share,
        is_lost: impl Fn(Through<'_, Held, Delegated>, ShareAccess) -> bool,
    ) -> Option<Lost> {
        let all = self.files.with(|holdings| {
            let all = holdings.revoke_of_share(share.id().0, is_lost);
            self.tell_revoked(holdings.revoked());
            all
        });
        let lost = Lost { opens: all.opens.len(), delegations: all.delegations.len() };
        if lost.opens + lost.delegations == 0 {
            return None;
        }
        for delegated in &all.delegations {
            // The file may be of a view of the share, which has numbers and grants of its own.
            delegated.held.share.give_up(delegated.held.open.node().id(), self.files.holder());
        }
        give_up(all).await;
        Some(lost)
    }
}

/// The addresses where a client is now.
pub(super) fn addresses_of(client: &Client, addresses: &HashMap<u64, SocketAddr>) -> Vec<SocketAddr> {
    client.connections().iter().filter_map(|connection| addresses.get(&connection.0).copied()).collect()
}

/// The rights of a claimant in a share.
#[derive(Debug, Clone, Copy, Default)]
struct Rights {
    reads: bool,
    writes: bool,
}

impl Rights {
    fn or(self, standing: Standing) -> Self {
        Self { reads: self.reads || standing.is_member(), writes: self.writes || !standing.is_read_only() }
    }

    fn allow(self, access: ShareAccess) -> bool {
        self.reads && (self.writes || !access.contains(ShareAccess::WRITE))
    }
}

fn claimant<'a>(held: &Through<'a, Held, Delegated>) -> &'a Arc<Claimant> {
    match held {
        Through::Open(held) => &held.claimant,
        Through::Delegation(delegated) => &delegated.held.claimant,
    }
}
