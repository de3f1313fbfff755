//! The state of one connection.

use std::cell::{Cell, OnceCell};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use net::{Outbox, Peer, Secured, turn_clock};
use share::{Accounts, Protocols, ShareView};
use storage::Moment;

use crate::credentials::CallerCache;
use crate::gss::security::Channel;
use crate::server::ServerState;
use crate::traffic::Traffic;
use crate::v4;

/// A client that no share admits is looked at again after this time.
const REFUSED_FOR: Duration = Duration::from_secs(1);

/// Whether any share admits the client of a connection.
#[derive(Debug, Default, Clone, Copy)]
enum Admission {
    /// Nobody has asked yet.
    #[default]
    Unknown,
    Admitted,
    /// None did at this time.
    Refused(Instant),
}

/// The state of one connection.
#[derive(Debug)]
pub struct Connection {
    pub(crate) server: Arc<ServerState>,
    pub(crate) client: IpAddr,
    /// The server's address that the client has connected to.
    pub(crate) local: IpAddr,
    pub(crate) callers: CallerCache,
    /// What the connection counts for each share.
    pub(crate) accounts: Accounts,
    /// As of when directories are read for the call that is being polled.
    pub(crate) moment: Rc<Moment>,
    /// The current shares.
    pub(crate) shares: ShareView,
    pub(crate) v4: v4::connection::Connection,
    pub(crate) outbox: Outbox,
    /// Whether the client has sent a call.
    pub(crate) has_called: Cell<bool>,
    /// Whether a call of NFSv3 has succeeded with a filehandle of a share that this client may use.
    pub(crate) has_used_share: Cell<bool>,
    admission: Cell<Admission>,
    pub(crate) traffic: Arc<Traffic>,
    /// What the TLS handshake has shown; nothing while the connection is not encrypted.
    pub(crate) secured: OnceCell<Secured>,
}

impl Connection {
    /// The client's end, with an IPv4 address that a socket of IPv6 has received as what it is.
    pub(crate) fn peer(&self) -> SocketAddr {
        let peer = self.callers.address();
        if self.client.is_ipv4() { SocketAddr::new(self.client, peer.port()) } else { peer }
    }

    /// Whether a share admits the client, or did on this connection. Anybody can begin a session of NFSv4, which shows no
    /// more than that.
    pub(crate) fn is_admitted(&self) -> bool {
        let now = turn_clock::now();
        match self.admission.get() {
            Admission::Admitted => return true,
            Admission::Refused(at) if now.saturating_duration_since(at) < REFUSED_FOR => return false,
            Admission::Refused(_) | Admission::Unknown => {}
        }
        let certificate_names = &*self.callers.certificate_names();
        let peer = share::Peer { address: self.callers.address(), certificate_names };
        let shares = self.server.exports.in_order();
        let is_admitted = shares.iter().any(|share| share.entrance(Protocols::NFS, peer).is_some());
        self.admission.set(if is_admitted { Admission::Admitted } else { Admission::Refused(now) });
        is_admitted
    }

    /// What carries the calls.
    pub(crate) fn channel(&self) -> Channel {
        if self.secured.get().is_some() { Channel::Encrypted } else { Channel::Plain }
    }

    /// Whether calls of this connection are refused because they are not encrypted.
    pub(crate) fn lacks_tls(&self) -> bool {
        self.channel() == Channel::Plain && self.server.tls.as_ref().is_some_and(|tls| tls.is_required())
    }

    pub(crate) fn new(server: Arc<ServerState>, peer: Peer, outbox: &Outbox) -> Self {
        let v4 = v4::connection::Connection::new(&server.v4, outbox);
        let traffic =
            server.connections.enter(peer, v4.link.number.0, (outbox.round_trip().clone(), outbox.mailbox()));
        let client = peer.address.ip().to_canonical();
        Self {
            shares: ShareView::new(&server.exports.shares),
            v4,
            outbox: outbox.clone(),
            server,
            client,
            local: peer.local.ip().to_canonical(),
            callers: CallerCache::new(peer.address),
            accounts: Accounts::default(),
            moment: Rc::default(),
            has_called: Cell::new(false),
            has_used_share: Cell::new(false),
            admission: Cell::default(),
            traffic,
            secured: OnceCell::new(),
        }
    }
}
