//! One server: who it is to its clients, its shares, its two protocols, and where they listen. A process has one or several, which share
//! its shards and what it lends them ([`crate::lent`]).

use std::net::{IpAddr, TcpListener};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use net::{Listener, Listeners};
use share::{Share, ShareTable};
use state::{ServerRecords, burst_credits};

use crate::lent::Lent;
use crate::problem::{Cause, Problem, Result, serving};
use crate::servers::Servers;
use crate::ticket_keys::ServerKeys;

/// How long connections may take to end, and then the closing of the opens of disconnected clients.
const CLEAN_UP: Duration = Duration::from_secs(20);
/// How often to look whether a share is in use.
const LOOK: Duration = Duration::from_millis(1);

/// What tells one server of a process from the others.
#[derive(Debug)]
pub(crate) struct Own {
    /// What SMB clients know it by in NTLM and in share listings.
    pub(crate) name: String,
    pub(crate) records: ServerRecords,
    pub(crate) shares: Arc<ShareTable>,
    /// Where it listens.
    pub(crate) smb: Vec<IpAddr>,
    pub(crate) nfs: Vec<IpAddr>,
    /// Whether clients of NFSv3 may lock.
    pub(crate) has_network_locks: bool,
    /// Whether other gateways may serve it, at which accounts of the same names have other SIDs.
    pub(crate) has_own_sids: bool,
    /// With which keys it accepts tickets.
    pub(crate) keys: ServerKeys,
}

/// See the module. What clients may reclaim is in the records, until others have it from there.
#[derive(Debug)]
pub(crate) struct Vserver {
    pub(crate) records: ServerRecords,
    pub(crate) shares: Arc<ShareTable>,
    pub(crate) servers: Servers,
    pub(crate) listeners: Listeners,
    /// Shares that were withdrawn while requests in them were under way.
    pub(crate) leaving: Vec<Weak<Share>>,
    lent: Arc<Lent>,
    /// With which keys it accepts tickets, and as of which change of the gateway's.
    keys: (ServerKeys, u64),
}

impl Vserver {
    /// A server that has read its records, and does not listen yet.
    ///
    /// # Errors
    /// The records cannot be read, or the system has no random numbers.
    pub(crate) fn new(lent: &Arc<Lent>, own: Own, listeners: Listeners) -> Result<Self> {
        let servers = Servers::new(lent, &own)?;
        let Own { records, shares, keys, .. } = own;
        let given = lent.given_keys(&keys.of);
        let keys = (keys, given.changes);
        servers.use_keys(given);
        let (lent, leaving) = (Arc::clone(lent), Vec::new());
        let vserver = Self { records, shares, servers, listeners, leaving, lent, keys };
        vserver.keep_credits(burst_credits::RESERVE)?;
        Ok(vserver)
    }

    /// # Errors
    /// A socket cannot be used.
    pub(crate) fn listen(&self, smb: Vec<Listener>, nfs: Vec<TcpListener>) -> Result<()> {
        self.servers.listen(&self.listeners, smb, nfs)
    }

    /// As of which change of its keytab it accepts tickets, and as of which change of the gateway's.
    pub(crate) fn keys_as_of(&self) -> (Option<u64>, u64) {
        (self.keys.0.change, self.keys.1)
    }

    /// Accepts tickets with these keys from now on, or with those that it has, if those of the gateway were replaced. Who has logged on
    /// goes on.
    pub(crate) fn use_keys(&mut self, keys: Option<ServerKeys>) {
        let keys = keys.unwrap_or_else(|| self.keys.0.clone());
        let given = self.lent.given_keys(&keys.of);
        self.keys = (keys, given.changes);
        self.servers.use_keys(given);
    }

    /// Writes down the burst credits that are left at least after `reserve`.
    ///
    /// # Errors
    /// The records cannot be written.
    pub(crate) fn keep_credits(&self, reserve: Duration) -> Result<()> {
        Ok(burst_credits::keep(&self.shares.present(), &self.records, reserve)?)
    }

    /// Ends connections, finishes what clients have changed, and closes what they cannot reclaim. If this succeeds, the server does
    /// nothing any more: another process may go on with its records.
    ///
    /// # Errors
    /// A storage does not answer, or the records cannot be written.
    pub(crate) fn end(self) -> Result<()> {
        let Self { records, shares, servers, listeners, leaving, .. } = self;
        if !listeners.end(CLEAN_UP) {
            return Err(unfinished("clients have changes under way"));
        }
        let present = shares.present();
        let left: Vec<_> = present.iter().map(Arc::downgrade).chain(leaving).collect();
        drop(present);
        close(&records, &shares, servers)?;
        drop(shares);
        if are_gone(&left) { Ok(()) } else { Err(unfinished("a share is in use")) }
    }

    /// Ends connections and shares, and waits for nothing: what clients have stays in the records as it was.
    pub(crate) fn abandon(self) {
        let Self { shares, listeners, .. } = self;
        drop(listeners);
        withdraw(&shares);
    }

    /// The same, and waits until connections have ended: the server can listen at the same addresses again. False: some do not end.
    #[must_use]
    pub(crate) fn give_up(self) -> bool {
        let Self { shares, listeners, .. } = self;
        let is_over = listeners.end(CLEAN_UP);
        withdraw(&shares);
        is_over
    }

    /// The same as [`Vserver::end`], when the shards have ended.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn close(self) -> Result<()> {
        let Self { records, shares, servers, .. } = self;
        close(&records, &shares, servers)
    }
}

fn close(records: &ServerRecords, shares: &ShareTable, servers: Servers) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(serving("cannot start a runtime"))?;
    let closed = async { tokio::time::timeout(CLEAN_UP, servers.smb.close_disconnected()).await };
    let closed = runtime.block_on(closed).map_err(|_| unfinished("opens of clients that are away stay open"));
    let kept = burst_credits::keep(&shares.present(), records, Duration::ZERO);
    // Other gateways may serve from now on what lies in CephFS.
    drop(servers);
    withdraw(shares);
    kept?;
    closed
}

fn withdraw(shares: &ShareTable) {
    for share in shares.present().in_order() {
        shares.withdraw(share.id());
    }
}

/// Waits until nothing uses these shares. False: that takes too long.
#[must_use]
pub(crate) fn are_gone(shares: &[Weak<Share>]) -> bool {
    let deadline = Instant::now() + CLEAN_UP;
    while shares.iter().any(|share| share.strong_count() > 0) {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}

fn unfinished(what: &str) -> Problem {
    Problem::new(Cause::Silent, format!("{what}: a storage does not answer"), "")
}
