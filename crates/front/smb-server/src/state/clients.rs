//! The connections of each client: ConnectionList of [MS-SMB2] 3.3.1.5, by Connection.ClientGuid.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use smb_wire::Guid;
use smb_wire::oplock_break::Notification;

use crate::endpoint::Endpoint;
use crate::state::notification::{self, NoChannel};

/// The connections over which each client can be reached, whatever session is concerned. A connection is entered only
/// when a user has logged on over it: a GUID alone proves nothing, and must not let strangers receive another client's
/// notifications. The lock guards all connections; it is taken only for this and for breaks.
#[derive(Debug, Default)]
pub(crate) struct Clients(Mutex<HashMap<Guid, Vec<Arc<Endpoint>>>>);

impl Clients {
    /// Notes that a session of this client has a channel on the connection. The connection may be entered already.
    pub(crate) fn enter(&self, client: Guid, endpoint: &Arc<Endpoint>) {
        let mut clients = self.0.lock();
        let endpoints = clients.entry(client).or_default();
        if !endpoints.iter().any(|known| known.connection == endpoint.connection) {
            endpoints.push(Arc::clone(endpoint));
        }
    }

    /// Notes that a connection has ended. Returns true if the client was reachable over it and still is over others.
    pub(crate) fn leave(&self, client: Guid, connection: u64) -> bool {
        let mut clients = self.0.lock();
        let Some(endpoints) = clients.get_mut(&client) else { return false };
        let before = endpoints.len();
        endpoints.retain(|endpoint| endpoint.connection != connection);
        if endpoints.is_empty() {
            clients.remove(&client);
            return false;
        }
        endpoints.len() < before
    }

    /// Whether the connection belongs to the client.
    pub(crate) fn has(&self, client: Guid, connection: u64) -> bool {
        let clients = self.0.lock();
        clients.get(&client).is_some_and(|all| all.iter().any(|one| one.connection == connection))
    }

    /// How many frames have arrived over the client's connections.
    pub(crate) fn frames_of(&self, client: Guid) -> u64 {
        self.0.lock().get(&client).into_iter().flatten().map(|endpoint| endpoint.frames()).sum()
    }

    /// Sends a notification that belongs to no session, over the client's first connection that accepts it. 3.3.4.7:
    /// "The server MUST look up all the connections in ConnectionList where Connection.ClientGuid matches", and "MUST
    /// send Lease.BreakNotification using the first available connection". Returns that connection.
    ///
    /// # Errors
    /// [`NoChannel`] when no connection accepts it.
    pub(crate) fn notify(
        &self,
        client: Guid,
        notification: &Notification,
    ) -> Result<Arc<Endpoint>, NoChannel> {
        let endpoints = self.0.lock().get(&client).cloned().unwrap_or_default();
        let takes =
            |endpoint: &Arc<Endpoint>| !endpoint.ended.is_set() && notification::post(endpoint, notification);
        endpoints.into_iter().find(takes).ok_or(NoChannel)
    }
}
