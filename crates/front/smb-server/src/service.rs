//! The server as a service for a listener.

use std::rc::Rc;
use std::sync::Arc;

use net::{ConnectionLimits, Outbox, Peer};
use smb_proto::credits::CREDITS_MAX;

use crate::{Connection, Server};

/// Serves SMB on the connections of a listener.
#[derive(Debug, Clone)]
pub struct Service(Arc<Server>);

impl Service {
    /// The service of a server.
    #[must_use]
    pub fn new(server: Arc<Server>) -> Self {
        Self(server)
    }
}

impl net::Service for Service {
    type Connection = Connection;

    fn connected(&self, peer: Peer, outbox: Outbox) -> Rc<Connection> {
        Rc::new(Connection::new(Arc::clone(&self.0), peer, outbox))
    }

    fn limits(&self) -> net::Limits {
        // Requests that wait for long are refused beyond their own limit, and the others need credits. So a CANCEL or a
        // CLOSE is always read, whatever requests wait.
        let waiting = self.0.config.limits.pending_requests_max;
        net::Limits { pending_frames: waiting.saturating_add(CREDITS_MAX.into()), ..net::Limits::default() }
    }

    fn connections(&self) -> ConnectionLimits {
        let limits = &self.0.config.limits;
        ConnectionLimits { max: limits.connections_max, of_one_address: limits.connections_per_address }
    }

    fn name(&self) -> &'static str {
        "smb"
    }
}
