//! Connections over QUIC (RFC 9000).
//!
//! Each shard has a socket and an endpoint of its own at the same address. The kernel gives all packets of one client's
//! address and port to the same socket, so a connection with everything that belongs to it lives on one shard, as over
//! TCP. That requires that clients keep their address: connections do not migrate. The rules that depend on a client's
//! address rely on that, too.
//!
//! A connection is the first bidirectional stream that its client opens; its bytes are served as those of a TCP
//! connection are. Nothing is kept for a client that has not shown that it has its address: its first packet is answered
//! with a Retry (RFC 9000 8.1.2), which is smaller. From then on it has a place, as over TCP, and its memory is part of what
//! strangers may have.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Connection, ConnectionError, Endpoint, EndpointConfig, IdleTimeout, Incoming, ServerConfig};
use quinn::{TokioRuntime, TransportConfig};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use socket2::{Domain, Socket, Type};

use crate::connection::serve;
use crate::crew::Crew;
use crate::ended::Ended;
use crate::places::Place;
use crate::quic_stream::{QuicStream, STRANGER_BYTES, STRANGER_WINDOW, WINDOW};
use crate::ration::Ration;
use crate::shards::{Door, tell};
use crate::stop::Stop;
use crate::{Outbox, Peer, Protocol, Service, Transport};

/// A client from which nothing has come for this long is gone. It need not say anything: the server asks.
const SILENT_MAX: Duration = Duration::from_secs(30);
/// How often an idle client is asked whether it is there.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Packets of clients that wait to be met: how many clients, bytes of one, and bytes of all.
const INCOMING_MAX: usize = 1024;
const INCOMING_BYTES: u64 = 16 * 1024;
const INCOMING_BYTES_TOTAL: u64 = 1 << 20;
/// How often to ask again for memory for a client that is met.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// How long the end of a shard waits for its clients to learn of it.
const LAST_PACKETS: Duration = Duration::from_secs(1);
/// What the socket should hold of packets that are not read yet, in bytes; the system may allow less.
const SOCKET_BYTES: usize = 2 << 20;

/// Why QUIC cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum QuicError {
    /// The configuration of TLS is not for QUIC.
    #[error("this configuration of TLS cannot be used for QUIC: {0}")]
    Tls(String),
}

/// An address at which QUIC connections arrive.
#[derive(Debug)]
pub struct QuicListener {
    socket: UdpSocket,
    config: Configuration,
}

/// How connections are served, and with which certificate.
#[derive(Debug, Clone)]
struct Configuration {
    quic: ServerConfig,
    tls: Arc<rustls::ServerConfig>,
}

impl Configuration {
    /// The configuration of one connection, which notes the certificate that is shown: the one of the moment may be another by
    /// the time that somebody asks.
    fn of_one(&self) -> Result<(Arc<ServerConfig>, Arc<ShownCertificate>), QuicError> {
        let shown =
            Arc::new(ShownCertificate { by: Arc::clone(&self.tls.cert_resolver), noted: OnceLock::new() });
        let mut tls = (*self.tls).clone();
        tls.cert_resolver = Arc::clone(&shown) as _;
        let mut quic = self.quic.clone();
        quic.crypto = Arc::new(crypto(tls)?);
        Ok((Arc::new(quic), shown))
    }
}

/// Which certificate a connection was shown.
#[derive(Debug)]
struct ShownCertificate {
    by: Arc<dyn ResolvesServerCert>,
    noted: OnceLock<Arc<CertifiedKey>>,
}

impl ShownCertificate {
    /// Its bytes; None: the handshake has shown none.
    fn certificate(&self) -> Option<&[u8]> {
        self.noted.get()?.cert.first().map(AsRef::as_ref)
    }
}

impl ResolvesServerCert for ShownCertificate {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let key = self.by.resolve(hello)?;
        Some(Arc::clone(self.noted.get_or_init(|| key)))
    }
}

fn crypto(tls: rustls::ServerConfig) -> Result<QuicServerConfig, QuicError> {
    QuicServerConfig::try_from(tls).map_err(|e| QuicError::Tls(e.to_string()))
}

impl QuicListener {
    /// A socket at this address, as a listener needs it: the other shards can have the same address. Other processes of the
    /// same user could have it, too; so this fails if one has it already.
    ///
    /// # Errors
    /// The address cannot be had.
    pub fn bind(address: SocketAddr, is_ipv6_only: bool) -> io::Result<UdpSocket> {
        if address.port() != 0 {
            let alone = socket(address, is_ipv6_only)?;
            alone.bind(&address.into())?;
        }
        bind_shared(address, is_ipv6_only)
    }

    /// A listener at a socket that [`QuicListener::bind`] has made. Clients must name one of the application protocols of
    /// the configuration.
    ///
    /// # Errors
    /// The configuration has no TLS 1.3, no application protocol, or takes early data.
    pub fn new(socket: UdpSocket, tls: Arc<rustls::ServerConfig>) -> Result<Self, QuicError> {
        // RFC 9001 8.1: without a common application protocol the connection ends. That is only so if there are any.
        if tls.alpn_protocols.is_empty() || tls.max_early_data_size > 0 {
            return Err(QuicError::Tls("no application protocol, or early data".to_owned()));
        }
        let mut quic = ServerConfig::with_crypto(Arc::new(crypto((*tls).clone())?));
        quic.transport_config(Arc::new(transport()))
            .migration(false)
            .max_incoming(INCOMING_MAX)
            .incoming_buffer_size(INCOMING_BYTES)
            .incoming_buffer_size_total(INCOMING_BYTES_TOTAL);
        Ok(Self { socket, config: Configuration { quic, tls } })
    }

    /// Serves what arrives, on all shards.
    pub(crate) fn open<S: Service>(self, crew: &Crew, door: &Door<S>) -> io::Result<()> {
        let address = self.socket.local_addr()?;
        let is_ipv6_only = address.is_ipv6() && socket2::SockRef::from(&self.socket).only_v6()?;
        let others = (1..crew.count()).map(|_| bind_shared(address, is_ipv6_only));
        let sockets: Vec<UdpSocket> =
            std::iter::once(Ok(self.socket)).chain(others).collect::<io::Result<_>>()?;
        for (shard, socket) in sockets.into_iter().enumerate() {
            // A shard that takes the place of this one has the same key. So it can tell clients of connections that it
            // does not know that these have ended (RFC 9000 10.3). Other shards have other keys (21.11).
            let (endpoint, config, door) = (EndpointConfig::default(), self.config.clone(), door.clone());
            crew.begin(
                door.group,
                shard,
                Box::new(move |stop| {
                    let (socket, endpoint, config) = (socket.try_clone()?, endpoint.clone(), config.clone());
                    let front = Front { door: door.clone(), shard, stop, config };
                    Ok(Box::new(move || {
                        tokio::task::spawn_local(front.accept_all(socket, endpoint));
                    }))
                }),
            )?;
        }
        Ok(())
    }
}

fn socket(address: SocketAddr, is_ipv6_only: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    if address.is_ipv6() {
        socket.set_only_v6(is_ipv6_only)?;
    }
    Ok(socket)
}

fn bind_shared(address: SocketAddr, is_ipv6_only: bool) -> io::Result<UdpSocket> {
    let socket = socket(address, is_ipv6_only)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    let _ = socket.set_recv_buffer_size(SOCKET_BYTES); // the system allows what it allows
    let _ = socket.set_send_buffer_size(SOCKET_BYTES);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// One stream, which the client opens; windows of a stranger.
fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(1_u8.into())
        .max_concurrent_uni_streams(0_u8.into())
        .datagram_receive_buffer_size(None)
        .allow_spin(false)
        .stream_receive_window(WINDOW)
        .receive_window(STRANGER_WINDOW)
        .send_window(STRANGER_WINDOW.into_inner())
        .max_idle_timeout(IdleTimeout::try_from(SILENT_MAX).ok())
        .keep_alive_interval(Some(KEEP_ALIVE));
    transport
}

/// The QUIC connections of one shard at one address.
struct Front<S> {
    door: Door<S>,
    shard: usize,
    stop: Stop,
    config: Configuration,
}

impl<S: Service> Front<S> {
    async fn accept_all(self, socket: UdpSocket, endpoint: EndpointConfig) {
        let config = self.config.quic.clone();
        let opened = socket.local_addr().and_then(|local| {
            Ok((local, Endpoint::new(endpoint, Some(config), socket, Arc::new(TokioRuntime))?))
        });
        let (local, endpoint) = match opened {
            Ok(opened) => opened,
            Err(e) => return tracing::error!("cannot accept QUIC connections: {e}"),
        };
        let mut stop = self.stop.clone();
        loop {
            tokio::select! {
                incoming = endpoint.accept() => match incoming {
                    Some(incoming) => self.meet(incoming, local),
                    None => break,
                },
                () = stop.given() => break,
            }
        }
        endpoint.set_server_config(None);
        let _ = tokio::time::timeout(LAST_PACKETS, endpoint.wait_idle()).await;
    }

    /// Meets a client that wants to connect.
    fn meet(&self, incoming: Incoming, local: SocketAddr) {
        if !incoming.remote_address_validated() {
            let _ = incoming.retry(); // it fails only for a client that has done what a Retry asks for
            return;
        }
        let address = incoming.remote_address();
        let Some(place) = self.door.take_place(address) else { return incoming.refuse() };
        // It was possible with the same configuration before.
        let Ok((config, shown)) = self.config.of_one() else { return incoming.refuse() };
        let ration = self.door.shared.rations.open(address.ip().into());
        let (door, shard, stop) = (self.door.clone(), self.shard, self.stop.clone());
        tokio::task::spawn_local(async move {
            let peer = Peer { address, local, shard, transport: Transport::Quic };
            let ended = serve_client(&door, Met { incoming, config, shown }, peer, place, ration, stop).await;
            door.shared.freed.note();
            tell(address, &ended, &door.shared.repeats);
        });
    }
}

/// A client that wants to connect, and how it is served.
struct Met {
    incoming: Incoming,
    config: Arc<ServerConfig>,
    shown: Arc<ShownCertificate>,
}

async fn serve_client<S: Service>(
    door: &Door<S>,
    Met { incoming, config, shown }: Met,
    mut peer: Peer,
    place: Place,
    mut ration: Ration,
    mut stop: Stop,
) -> Ended {
    let limits = door.service.limits();
    let stopped = ration.stopped();
    let met = tokio::select! {
        met = tokio::time::timeout(limits.handshake, shake_hands(incoming, config, &mut ration)) => met,
        () = place.given_away() => return Ended::GaveWay,
        () = stopped.given() => return Ended::Greedy,
        () = stop.given() => return Ended::Shutdown,
    };
    let stream = match met {
        Ok(Ok(stream)) => Rc::new(stream),
        Ok(Err(error)) => return of_handshake(error),
        Err(_) => return Ended::Handshake,
    };
    if let Some(ip) = stream.local_ip() {
        peer.local.set_ip(ip); // the socket's may stand for all addresses
    }
    let outbox = Outbox::new(limits.posted_frames);
    let connection = door.service.connected(peer, outbox.clone());
    if let Some(certificate) = shown.certificate() {
        connection.shown(certificate);
    }
    let ended = serve(Rc::clone(&stream), connection, outbox, limits, place, ration, stop).await;
    match ended {
        Ended::ByUs | Ended::Shutdown | Ended::Protocol(_) => stream.finish().await,
        _ => stream.close(),
    }
    ended
}

/// Completes the handshake as soon as there is memory for it, and waits for the stream.
async fn shake_hands(
    incoming: Incoming,
    config: Arc<ServerConfig>,
    ration: &mut Ration,
) -> Result<QuicStream, ConnectionError> {
    while !ration.ask(STRANGER_BYTES) {
        tokio::time::sleep(ASK_AGAIN).await;
    }
    let connection: Connection = incoming.accept_with(config)?.await?;
    let (send, receive) = connection.accept_bi().await?;
    Ok(QuicStream::new(connection, send, receive))
}

/// Why a handshake has failed. A client that leaves, or is not there any more, is nothing to tell.
fn of_handshake(error: ConnectionError) -> Ended {
    match error {
        ConnectionError::ConnectionClosed(_) | ConnectionError::ApplicationClosed(_) => Ended::ByPeer,
        error => Ended::Quic(error),
    }
}
