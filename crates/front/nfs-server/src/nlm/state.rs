//! What the hosts of NLM hold, with the locks around it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use net::{Origin, Outgoing};
use nfs_proto::nlm::hosts::{Freed, HostNumber, Hosts, TooMany};
use nfs_proto::v4::stateid::FileKey;
use nfs_wire::nlm::Status;
use parking_lot::Mutex;
use share::{Open, Peer, Protocols, Share, ShareId};
use tokio::sync::oneshot;

use super::callback::Callbacks;
use super::locking::NetworkLocks;
use super::recovery::Recovery;
use crate::config::Config;

/// An open of a share, which a host has by its locks or as a reservation.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    pub(crate) share: Arc<Share>,
    pub(crate) open: Arc<Open>,
    /// The address of the host when it was opened.
    pub(crate) client: SocketAddr,
    /// The names in its certificate.
    pub(crate) certificate_names: Arc<[String]>,
    /// The user for whom it was opened.
    pub(crate) uid: u32,
}

/// Why a wait for a lock ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The host does not want the lock any more.
    GivenUp,
    /// The host has asked again, and got the lock.
    Granted,
}

pub(super) type Waits = oneshot::Sender<Stop>;
type Table = Hosts<Origin, Held, Waits>;

/// The state of NLM.
#[derive(Debug)]
pub(crate) struct NlmState {
    /// Guards the hosts and what they hold. No call to a share is made while it is held.
    hosts: Mutex<Table>,
    pub(super) recovery: Recovery,
    pub(super) callbacks: Callbacks,
}

impl NlmState {
    pub(crate) fn new(config: &Config, locks: &NetworkLocks, now: Instant) -> Self {
        Self {
            hosts: Mutex::new(Hosts::new(locks.limits)),
            recovery: Recovery::begin(config, locks, now),
            callbacks: Callbacks::new(Arc::new(Outgoing::default())),
        }
    }

    /// Reads or changes what hosts hold.
    pub(super) fn with<T>(&self, look: impl FnOnce(&mut Table) -> T) -> T {
        look(&mut self.hosts.lock())
    }

    /// The host of a call that takes a lock. What it held before a restart that the server did not hear of ends.
    pub(super) async fn enter(&self, from: IpAddr, name: &[u8], state: u32) -> Result<HostNumber, Status> {
        let entered = self.with(|hosts| hosts.enter(&from.into(), name, state, Instant::now()));
        let (host, freed) = entered.map_err(|TooMany(what)| {
            tracing::debug!(%from, "a lock is refused: too many {what}");
            Status::DeniedNoLocks
        })?;
        if let Some(freed) = freed {
            tracing::info!(%from, host = shown(name), "a host has restarted: its locks are released");
            end(freed).await;
        }
        Ok(host)
    }

    /// A host says that it has restarted.
    pub(crate) async fn restarted(&self, from: IpAddr, name: &[u8], state: u32) {
        let origin = Origin::from(from);
        let freed = self.with(|hosts| {
            // The name may be with or without a domain, or an address.
            let names = hosts.names_at(&origin);
            let meant = names.into_iter().filter(|known| is_same_host(known, name, from));
            meant.filter_map(|known| hosts.restarted(&origin, &known, state)).collect::<Vec<_>>()
        });
        for freed in freed {
            tracing::info!(%from, host = shown(name), "a host has restarted: its locks are released");
            end(freed).await;
        }
        self.recovery.forget(|record| {
            Origin::from(record.address) == origin && is_same_host(&record.name, name, from)
        });
    }

    /// Ends what the hosts at an address hold. Returns the number of hosts.
    pub(crate) async fn end_hosts_at(&self, address: IpAddr) -> usize {
        let freed = self.with(|hosts| {
            let meant: Vec<_> = hosts
                .report()
                .into_iter()
                .filter(|host| host.held.iter().any(|held| held.client.ip().to_canonical() == address))
                .collect();
            meant.iter().filter_map(|host| hosts.remove(host.number)).collect::<Vec<_>>()
        });
        let count = freed.len();
        for freed in freed {
            end(freed).await;
        }
        self.recovery.forget(|record| record.address == address);
        count
    }

    /// Ends what hosts hold in a share that was withdrawn.
    pub(crate) async fn end_share(&self, share: ShareId) {
        self.end_files(|held| held.share.id() == share).await;
    }

    /// Ends what hosts hold in a share that its rules no longer serve to them.
    pub(crate) async fn reconsider(&self, share: &Share) {
        self.end_files(|held| {
            let Held { client, certificate_names, .. } = held;
            let peer = Peer { address: *client, certificate_names };
            held.share.id() == share.id() && share.entrance(Protocols::NFS, peer).is_none()
        })
        .await;
    }

    /// Ends such files and reservations. Returns their number.
    pub(super) async fn end_files(&self, is_lost: impl Fn(&Held) -> bool) -> usize {
        let lost = self.with(|hosts| hosts.take_files(is_lost));
        for (held, owners) in &lost {
            held.end(owners).await;
        }
        lost.len()
    }

    /// The state of the status monitor.
    pub(crate) fn monitor_state(&self) -> u32 {
        self.recovery.state
    }

    /// A use of a file has ended. Closes the file if nothing of the host is left there.
    pub(super) async fn leave_file(&self, host: HostNumber, file: FileKey) {
        if let Some(held) = self.with(|hosts| hosts.leave_file(host, file)) {
            held.end(&[]).await;
        }
    }
}

impl Held {
    /// Releases the locks of these owners and closes the file.
    pub(super) async fn end(&self, owners: &[u64]) {
        for owner in owners {
            self.share.release_locks(self.open.node().id(), *owner);
        }
        if let Err(error) = self.share.close_unasked(&self.open).await {
            tracing::debug!("a file that was to be deleted stays: {error}");
        }
    }
}

/// Ends everything that a host held.
async fn end(freed: Freed<Held, Waits>) {
    drop(freed.waits);
    for (held, owners) in freed.files {
        held.end(&owners).await;
    }
    for held in freed.reservations {
        held.end(&[]).await;
    }
}

/// Whether both names may be those of one host: equal regardless of case, or with and without a domain, or the address
/// from which the message came.
fn is_same_host(known: &[u8], said: &[u8], from: IpAddr) -> bool {
    fn first(name: &[u8]) -> &[u8] {
        name.split(|byte| *byte == b'.').next().unwrap_or_default()
    }
    let address = std::str::from_utf8(said).ok().and_then(|said| said.parse::<IpAddr>().ok());
    if let Some(address) = address {
        return address.to_canonical() == from.to_canonical();
    }
    let has_one_domain = known.contains(&b'.') != said.contains(&b'.');
    known.eq_ignore_ascii_case(said) || has_one_domain && first(known).eq_ignore_ascii_case(first(said))
}

/// A host's name for the log. The host chooses it, so it is cut to a length that fits a line.
pub(super) fn shown(name: &[u8]) -> String {
    const SHOWN_BYTES_MAX: usize = 64;
    match name.get(..SHOWN_BYTES_MAX) {
        Some(begin) => format!("{}...", begin.escape_ascii()),
        None => name.escape_ascii().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_known_with_and_without_its_domain_and_by_its_address() {
        let from = IpAddr::from([10, 0, 0, 7]);
        let same = |known: &[u8], said: &[u8]| is_same_host(known, said, from);
        assert!(same(b"a", b"a") && same(b"A.example.org", b"a.example.ORG"));
        assert!(same(b"a", b"a.example.org") && same(b"a.example.org", b"a"));
        assert!(!same(b"a.example.org", b"a.example.net") && !same(b"a", b"b") && !same(b"a", b"ab"));
        assert!(same(b"a", b"10.0.0.7") && !same(b"a", b"10.0.0.8") && same(b"a", b"::ffff:10.0.0.7"));
    }
}
