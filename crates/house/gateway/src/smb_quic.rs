//! SMB over QUIC, with the certificate that the control address shows.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use net::Listener;

use crate::control_tls::Identity;
use crate::problem::Result;

/// Whether the program was built with QUIC.
pub const HAS_QUIC: bool = cfg!(feature = "quic");

/// A socket for SMB over QUIC at this address.
///
/// # Errors
/// The address cannot be had, or the program was built without QUIC.
#[cfg(feature = "quic")]
pub fn quic_socket(address: SocketAddr, is_ipv6_only: bool) -> io::Result<UdpSocket> {
    net::QuicListener::bind(address, is_ipv6_only)
}

/// A socket for SMB over QUIC at this address.
///
/// # Errors
/// The program was built without QUIC.
#[cfg(not(feature = "quic"))]
pub fn quic_socket(_: SocketAddr, _: bool) -> io::Result<UdpSocket> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this program was built without QUIC"))
}

/// What listens at these sockets.
///
/// # Errors
/// There is no certificate, or TLS cannot be used.
#[cfg(feature = "quic")]
pub(crate) fn listeners(sockets: Vec<UdpSocket>, identity: Option<&Arc<Identity>>) -> Result<Vec<Listener>> {
    use crate::problem::{Cause, Problem};

    if sockets.is_empty() {
        return Ok(Vec::new());
    }
    let identity = identity.ok_or_else(|| {
        let what = "SMB over QUIC has no certificate".to_owned();
        Problem::new(Cause::Settings, what, "Give one: control-certificate and control-key")
    })?;
    let config = config(identity)?;
    let listener = |socket| {
        let made = net::QuicListener::new(socket, Arc::clone(&config)).map(Listener::Quic);
        made.map_err(|e| Problem::new(Cause::Serving, e.to_string(), ""))
    };
    sockets.into_iter().map(listener).collect()
}

/// What listens at no socket: [`quic_socket`] makes none.
///
/// # Errors
/// None.
#[cfg(not(feature = "quic"))]
pub(crate) fn listeners(_: Vec<UdpSocket>, _: Option<&Arc<Identity>>) -> Result<Vec<Listener>> {
    Ok(Vec::new())
}

/// The configuration of TLS. It shows the certificate of the moment, so that one that is renewed needs nothing else.
#[cfg(feature = "quic")]
fn config(identity: &Arc<Identity>) -> Result<Arc<rustls::ServerConfig>> {
    /// [MS-SMB2] 4.11: "'smb' is the ALPN used to differentiate SMB2 messages over QUIC."
    const APPLICATION_PROTOCOL: &[u8] = b"smb";

    let mut config = (*identity.config()?).clone();
    config.alpn_protocols = vec![APPLICATION_PROTOCOL.to_vec()];
    // Samba's client (4.25) ends a connection on which a ticket comes. Nothing needs one: there is no early data.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}
