//! A running server's account of some clients at one moment.

use std::collections::BTreeSet;
use std::time::Instant;

use control::activity::{Activity, ClientActivity};
use control::clients::Clients;
use control_client::path_part;
use gateway::control_access::Access;

use crate::error::{Error, Result};

/// The server's account at one moment.
#[derive(Debug)]
pub struct Look {
    /// The moment.
    pub at: Instant,
    /// All connected clients.
    pub clients: Clients,
    /// The activity of all shares.
    pub shares: Activity,
    /// The activity of the clients that were asked for.
    pub activity: Vec<ClientActivity>,
}

/// The server's account of the clients with this name, now.
///
/// # Errors
/// No such client is connected, or the server cannot be asked.
pub fn look(access: &Access, client: &str) -> Result<Look> {
    let clients: Clients = control_client::get(access, "/v1/clients")?;
    // The activity is that of the server's own shares.
    let clients = clients.without_vservers();
    let known = connected(&clients, client);
    if known.is_empty() {
        return Err(Error::NoSuchClient { client: client.to_owned() });
    }
    let mut activity = Vec::new();
    let mut refused = None;
    for key in known {
        match control_client::get(access, &format!("/v1/clients/{}/activity", path_part(&key))) {
            Ok(of_client) => activity.push(of_client),
            // A connected client may not have called anything yet.
            Err(error @ control_client::Error::Refused(_)) => refused = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    match refused {
        Some(error) if activity.is_empty() => Err(error.into()),
        _ => Ok(Look {
            at: Instant::now(),
            clients,
            shares: control_client::get(access, "/v1/activity")?,
            activity,
        }),
    }
}

/// The clients that this name denotes, as the accounts name them. The name is an address, a ClientGuid, a session, a user, or the
/// name that an NFSv4 client gives itself.
fn connected(clients: &Clients, name: &str) -> BTreeSet<String> {
    let is_at =
        |address: Option<std::net::IpAddr>| address.is_some_and(|address| address.to_string() == name);
    let smb = clients.smb_sessions.iter().filter(|session| {
        [&session.client_guid, &session.id].iter().any(|id| id.eq_ignore_ascii_case(name))
            || session.user == name
            || is_at(session.client())
    });
    let nfs = clients.nfs_clients.iter().filter(|client| {
        is_at(Some(client.address)) || client.sessions.iter().any(|session| session.client == name)
    });
    smb.map(|session| session.client_guid.clone())
        .chain(nfs.map(|client| client.address.to_string()))
        .collect()
}
