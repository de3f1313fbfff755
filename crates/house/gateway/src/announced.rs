//! The server in the network views of clients.

use std::net::SocketAddr;
use std::sync::Arc;

use discovery::{Announced, Discovery, Host, Listening, Protocols};
use share::{ShareTable, Terms};

use crate::prepared::Prepared;
use crate::problem::{Result, serving};
use crate::settings::Settings;
use crate::sockets::Addresses;

/// The port where Windows looks for SMB; it cannot be told another one.
const SMB_PORT: u16 = 445;

/// The shares that clients may know of.
struct Shares(Arc<ShareTable>);

impl Announced for Shares {
    fn nfs_shares(&self) -> Vec<String> {
        let shares = self.0.present();
        let is_public = |share: &&Arc<share::Share>| {
            !share.terms().contains(Terms::HIDDEN) && share.served_by().contains(share::Protocols::NFS)
        };
        shares.in_order().iter().filter(is_public).map(|share| share.name().to_owned()).collect()
    }
}

/// Announces the server, if the settings ask for that.
///
/// # Errors
/// The state cannot be read, or the system lacks threads or descriptors.
pub(crate) fn start(settings: &Settings, prepared: &Prepared, at: &Addresses) -> Result<Option<Discovery>> {
    let protocols = settings.discovery;
    if protocols == Protocols::default() {
        return Ok(None);
    }
    let (smb, nfs) = (listening(&at.smb), listening(&at.nfs));
    if protocols.wsd && smb.as_ref().is_none_or(|smb| smb.port != SMB_PORT) {
        tracing::warn!("WS-Discovery leads clients to port {SMB_PORT}, where SMB does not listen");
    }
    let host = Host { name: name(), id: prepared.state.server().server_guid()?, smb, nfs };
    tracing::info!(name = host.name, ?protocols, "the server is announced to its networks");
    let started = Discovery::start(protocols, host, Shares(Arc::clone(&prepared.shares)));
    started.map(Some).map_err(serving("cannot announce the server"))
}

fn listening(at: &[SocketAddr]) -> Option<Listening> {
    let port = at.first()?.port();
    Some(Listening { addresses: at.iter().map(SocketAddr::ip).collect(), port })
}

/// The name of this machine without its domain.
fn name() -> String {
    let system = rustix::system::uname();
    let name = system.nodename().to_string_lossy();
    name.split('.').next().filter(|name| !name.is_empty()).unwrap_or("anabranch").to_owned()
}
