//! Why clients have no more connections: `/v1/findings`. [`crate::explain`] derives it from the facts of `/v1/clients`.

use serde::Serialize;

use crate::clients::Clients;
use crate::explain::{self, Finding};

/// All clients.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Findings {
    /// The SMB sessions, oldest first; then the NFS clients, by address.
    pub clients: Vec<ClientFindings>,
}

/// One SMB session, or one NFS client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ClientFindings {
    /// The vserver of which it is a client; none: the server itself.
    pub vserver: Option<String>,
    /// The SMB session or the address, as in `/v1/clients`.
    pub client: String,
    /// Its channels or connections.
    pub connections: u64,
    /// How many it could have; none where nothing but the client limits them.
    pub possible: Option<u64>,
    /// Why it does not have more, and what else is worth knowing.
    pub findings: Vec<Finding>,
}

/// What is found of these clients.
pub(crate) fn of(clients: &Clients) -> Findings {
    let sessions = clients.smb_sessions.iter().map(|session| {
        let offer = clients.smb_offer_to(session);
        ClientFindings {
            vserver: session.vserver.clone(),
            client: session.id.clone(),
            connections: session.channels.len() as u64,
            possible: Some(explain::channels_possible(offer, session).into()),
            findings: explain::smb_session(offer, session),
        }
    });
    let nfs = clients.nfs_clients.iter().map(|client| ClientFindings {
        vserver: client.vserver.clone(),
        client: client.address.to_string(),
        connections: client.connections.len() as u64,
        possible: None,
        findings: explain::nfs_client(client),
    });
    Findings { clients: sessions.chain(nfs).collect() }
}
