//! Connections over QUIC, with quinn as the client. The protocol of these tests: a frame is answered with itself.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::Cell;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anabranch_net::{
    Answer, Buffer, ConnectionLimits, Limits, Outbox, Peer, Prefix, PrefixError, Protocol, QuicListener,
    Service, Shards, Transport,
};
use bytes::BytesMut;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, RecvStream, SendStream, VarInt};
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::watch;

const FRAME_MAX: usize = 8 << 20;
/// No wait in these tests takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// What does not happen would have happened by then, unless the machine is busy: then a test sees less.
const MOMENT: Duration = Duration::from_millis(300);
const PROTOCOL: &[u8] = b"test";

/// `k`: the client has identified itself; `b`: the last request.
struct Echo {
    peer: Peer,
    outbox: Outbox,
    known: Cell<bool>,
}

fn framed(data: &[u8]) -> Buffer {
    let mut frame = Buffer::from(data);
    frame.prepend(&u32::try_from(data.len()).unwrap().to_be_bytes());
    frame
}

impl Protocol for Echo {
    fn prefix(&self, prefix: [u8; 4]) -> Result<Prefix, PrefixError> {
        Ok(Prefix { length: u32::from_be_bytes(prefix) as usize, last: true })
    }

    fn is_known(&self) -> bool {
        self.known.get()
    }

    fn is_welcome(&self) -> bool {
        true
    }

    fn answer(self: Rc<Self>, frame: BytesMut) -> Answer {
        match frame.first() {
            Some(b'k') => self.known.set(true),
            Some(b'b') => self.outbox.close(),
            Some(b'?') => {
                return Answer::Now(framed(
                    format!("{:?} {}", self.peer.transport, self.peer.local).as_bytes(),
                ));
            }
            _ => {}
        }
        Answer::Now(framed(&frame))
    }

    fn closed(self: Rc<Self>) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(std::future::ready(()))
    }
}

struct Echoes {
    connections: ConnectionLimits,
    handshake: Duration,
}

impl Service for Echoes {
    type Connection = Echo;

    fn connected(&self, peer: Peer, outbox: Outbox) -> Rc<Echo> {
        Rc::new(Echo { peer, outbox, known: Cell::new(false) })
    }

    fn limits(&self) -> Limits {
        Limits { frame_bytes: FRAME_MAX, handshake: self.handshake, ..Limits::default() }
    }

    fn connections(&self) -> ConnectionLimits {
        self.connections
    }

    fn name(&self) -> &'static str {
        "test"
    }
}

struct Server {
    shards: Shards,
    address: SocketAddr,
    certificate: CertificateDer<'static>,
}

impl Server {
    fn start(shards: usize) -> Self {
        let connections = ConnectionLimits { max: 100, of_one_address: None };
        Self::with(shards, Echoes { connections, handshake: Duration::from_secs(10) })
    }

    fn with(shards: usize, echoes: Echoes) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["files.test".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let tls = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap();
        let mut tls = tls.with_no_client_auth().with_single_cert(vec![certificate.clone()], key).unwrap();
        tls.alpn_protocols = vec![PROTOCOL.to_vec()];
        let socket = QuicListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), false).unwrap();
        let address = socket.local_addr().unwrap();
        let listener = QuicListener::new(socket, Arc::new(tls)).unwrap();
        let shards = Shards::start(shards).unwrap();
        shards.listen_at_all([anabranch_net::Listener::Quic(listener)], Arc::new(echoes)).unwrap();
        Self { shards, address, certificate }
    }

    /// A client that names these application protocols.
    fn client(&self, protocols: &[&[u8]]) -> Endpoint {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let tls = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap();
        let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        let config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
        let mut endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
        endpoint.set_default_client_config(config);
        endpoint
    }

    async fn try_connect(&self, client: &Endpoint) -> Result<Connection, ConnectionError> {
        let connecting = client.connect(self.address, "files.test").unwrap();
        tokio::time::timeout(PATIENCE, connecting).await.unwrap()
    }

    async fn connect(&self, client: &Endpoint) -> Stream {
        let connection = self.try_connect(client).await.unwrap();
        let (send, receive) = connection.open_bi().await.unwrap();
        Stream { connection, send, receive }
    }

    fn connections(&self) -> usize {
        self.shards.occupancy().now()[0].connections
    }
}

struct Stream {
    connection: Connection,
    send: SendStream,
    receive: RecvStream,
}

impl Stream {
    async fn send(&mut self, data: &[u8]) {
        let frame = framed(data);
        let sent = self.send.write_all(&frame);
        tokio::time::timeout(PATIENCE, sent).await.unwrap().unwrap();
    }

    async fn receive(&mut self) -> Vec<u8> {
        let receive = async {
            let mut length = [0; 4];
            self.receive.read_exact(&mut length).await.unwrap();
            let mut answer = vec![0; u32::from_be_bytes(length) as usize];
            self.receive.read_exact(&mut answer).await.unwrap();
            answer
        };
        tokio::time::timeout(PATIENCE, receive).await.unwrap()
    }

    async fn ask(&mut self, data: &[u8]) -> Vec<u8> {
        self.send(data).await;
        self.receive().await
    }

    async fn closed(&self) -> ConnectionError {
        tokio::time::timeout(PATIENCE, self.connection.closed()).await.unwrap()
    }
}

/// Bytes that show when some are missing or in another place.
fn data(length: usize) -> Vec<u8> {
    (0..length).map(|n| u8::try_from(n % 251).unwrap()).collect()
}

#[tokio::test]
async fn a_stream_is_served_as_a_connection_is() {
    let server = Server::start(2);
    let client = server.client(&[PROTOCOL]);
    let mut stream = server.connect(&client).await;
    assert_eq!(stream.ask(b"hello").await, b"hello");
    let told = String::from_utf8(stream.ask(b"?").await).unwrap();
    assert_eq!(told, format!("{:?} {}", Transport::Quic, server.address));
    assert_eq!(server.connections(), 1);
    stream.connection.close(VarInt::from_u32(0), b"");
    let none = async {
        while server.connections() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, none).await.unwrap();
}

#[tokio::test]
async fn much_goes_both_ways_before_and_after_the_client_is_known() {
    let server = Server::start(2);
    let client = server.client(&[PROTOCOL]);
    let mut stream = server.connect(&client).await;
    // A stranger's window is much smaller than this frame.
    let large = data(1 << 20);
    assert!(stream.ask(&large).await == large);
    assert_eq!(stream.ask(b"k").await, b"k");
    let (first, second) = (data(FRAME_MAX), data(3 << 20));
    let Stream { send, receive, connection } = stream;
    let mut sending = Stream { connection: connection.clone(), send, receive };
    for _ in 0..3 {
        assert!(sending.ask(&first).await == first);
        assert!(sending.ask(&second).await == second);
    }
    for n in 0..2000_u32 {
        assert_eq!(sending.ask(&n.to_be_bytes()).await, n.to_be_bytes());
    }
}

#[tokio::test]
async fn many_clients_are_served_on_all_shards() {
    let server = Server::start(3);
    let mut streams = Vec::new();
    for _ in 0..20 {
        let client = server.client(&[PROTOCOL]);
        streams.push((server.connect(&client).await, client));
    }
    for (stream, _) in &mut streams {
        assert_eq!(stream.ask(b"here").await, b"here");
    }
    assert_eq!(server.connections(), 20);
}

#[tokio::test]
async fn a_client_of_another_protocol_is_refused() {
    let server = Server::start(1);
    for protocols in [&[][..], &[&b"h3"[..]]] {
        let refused = server.try_connect(&server.client(protocols)).await.unwrap_err();
        // RFC 9001 8.1: "no_application_protocol TLS alert (QUIC error code 0x178)"
        let ConnectionError::ConnectionClosed(close) = refused else { panic!("{refused}") };
        assert_eq!(u64::from(close.error_code), 0x178);
    }
    let both = server.client(&[b"h3", PROTOCOL]);
    assert_eq!(server.connect(&both).await.ask(b"both").await, b"both");
}

#[tokio::test]
async fn there_is_one_stream() {
    let server = Server::start(1);
    let client = server.client(&[PROTOCOL]);
    let mut stream = server.connect(&client).await;
    assert_eq!(stream.ask(b"k").await, b"k");
    assert!(tokio::time::timeout(MOMENT, stream.connection.open_bi()).await.is_err());
    assert!(tokio::time::timeout(MOMENT, stream.connection.open_uni()).await.is_err());
    assert_eq!(stream.connection.max_datagram_size(), None);
    assert_eq!(stream.ask(b"first").await, b"first");
    // The end of the stream is the end of the connection.
    stream.send.finish().unwrap();
    stream.closed().await;
}

#[tokio::test]
async fn an_address_has_its_part_of_the_places_and_who_is_refused_learns_it() {
    let connections = ConnectionLimits { max: 100, of_one_address: Some(2) };
    let server = Server::with(2, Echoes { connections, handshake: Duration::from_secs(10) });
    let clients: Vec<Endpoint> = (0..3).map(|_| server.client(&[PROTOCOL])).collect();
    let (mut first, mut second) = (server.connect(&clients[0]).await, server.connect(&clients[1]).await);
    assert_eq!(first.ask(b"1").await, b"1");
    assert_eq!(second.ask(b"2").await, b"2");
    let refused = server.try_connect(&clients[2]).await.unwrap_err();
    let ConnectionError::ConnectionClosed(close) = refused else { panic!("{refused}") };
    assert_eq!(close.error_code, quinn_refused());
    assert_eq!(server.shards.refused_connections().load(Ordering::Relaxed), 1);
}

/// RFC 9000 20.1: CONNECTION_REFUSED.
fn quinn_refused() -> quinn::TransportErrorCode {
    quinn::TransportErrorCode::CONNECTION_REFUSED
}

#[tokio::test]
async fn the_oldest_client_that_opens_no_stream_gives_way() {
    let connections = ConnectionLimits { max: 4, of_one_address: Some(4) };
    let server = Server::with(1, Echoes { connections, handshake: PATIENCE });
    let client = server.client(&[PROTOCOL]);
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(server.try_connect(&client).await.unwrap());
    }
    let mut fourth = server.connect(&client).await;
    assert_eq!(fourth.ask(b"k").await, b"k");
    tokio::time::timeout(PATIENCE, held[0].closed()).await.unwrap();
    assert!(held[1].close_reason().is_none() && held[2].close_reason().is_none());
}

#[tokio::test]
async fn a_client_that_opens_no_stream_in_time_has_to_go() {
    let connections = ConnectionLimits { max: 100, of_one_address: None };
    let server = Server::with(1, Echoes { connections, handshake: MOMENT });
    let connection = server.try_connect(&server.client(&[PROTOCOL])).await.unwrap();
    tokio::time::timeout(PATIENCE, connection.closed()).await.unwrap();
    assert_eq!(server.connections(), 0);
}

/// Strangers share a budget of memory; an address has a quarter of it. Those for whom nothing is left wait, and then one
/// that holds some has to go.
#[tokio::test]
async fn an_address_has_its_part_of_the_memory_of_strangers() {
    const MORE_THAN_FIT: usize = anabranch_net::STRANGERS_OF_ORIGIN_BYTES_MAX / (60 * 1024) + 1;
    let connections = ConnectionLimits { max: 10_000, of_one_address: None };
    let server = Server::with(2, Echoes { connections, handshake: PATIENCE });
    let client = server.client(&[PROTOCOL]);
    let mut held = Vec::new();
    for _ in 0..MORE_THAN_FIT {
        held.push(server.try_connect(&client).await.unwrap());
    }
    let gone = held.iter().filter(|connection| connection.close_reason().is_some()).count();
    assert!(gone > 0, "of {MORE_THAN_FIT}");
}

/// Passes packets on between clients and a server, from one of two addresses.
async fn relay(server: SocketAddr, from: watch::Receiver<usize>) -> SocketAddr {
    let bind = || tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0));
    let (inner, outer) = (bind().await.unwrap(), [bind().await.unwrap(), bind().await.unwrap()]);
    let address = inner.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut out, mut first, mut second) = ([0; 2048], [0; 2048], [0; 2048]);
        let mut client = None;
        loop {
            tokio::select! {
                Ok((count, address)) = inner.recv_from(&mut out) => {
                    client = Some(address);
                    let from = *from.borrow();
                    outer[from].send_to(&out[..count], server).await.unwrap();
                }
                Ok(count) = outer[0].recv(&mut first) => {
                    inner.send_to(&first[..count], client.unwrap()).await.unwrap();
                }
                Ok(count) = outer[1].recv(&mut second) => {
                    inner.send_to(&second[..count], client.unwrap()).await.unwrap();
                }
            }
        }
    });
    address
}

#[tokio::test]
async fn a_client_keeps_its_address() {
    for shards in [1, 4] {
        let mut server = Server::start(shards);
        let (moves, from) = watch::channel(0);
        server.address = relay(server.address, from).await;
        let client = server.client(&[PROTOCOL]);
        let mut stream = server.connect(&client).await;
        assert_eq!(stream.ask(b"k").await, b"k");
        moves.send(1).unwrap();
        stream.send(b"from elsewhere").await;
        assert!(tokio::time::timeout(MOMENT, stream.receive.read(&mut [0; 1])).await.is_err());
        // What was lost is sent again from the first address, and answered.
        moves.send(0).unwrap();
        assert_eq!(stream.receive().await, b"from elsewhere");
    }
}

/// RFC 9000 8.1: a client that has not shown that it has its address gets no more than three times what it has sent.
#[tokio::test]
async fn a_stranger_address_is_asked_to_show_itself_and_holds_nothing() {
    let server = Server::start(1);
    let between = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let client = server.client(&[PROTOCOL]);
    let _connecting = client.connect(between.local_addr().unwrap(), "files.test").unwrap();
    let mut packet = [0; 2048];
    let (sent, _) = tokio::time::timeout(PATIENCE, between.recv_from(&mut packet)).await.unwrap().unwrap();
    let forger = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    for _ in 0..3 {
        forger.send_to(&packet[..sent], server.address).await.unwrap();
        let mut answer = [0; 2048];
        let received = tokio::time::timeout(PATIENCE, forger.recv(&mut answer)).await.unwrap().unwrap();
        // RFC 9000 17.2.5: a long header (1), the fixed bit (1), the type of Retry (11).
        assert_eq!(answer[0] & 0xf0, 0xf0);
        assert!(received < sent / 4, "{received} of {sent}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn the_last_answer_arrives_before_the_end() {
    let server = Server::start(1);
    let client = server.client(&[PROTOCOL]);
    let mut stream = server.connect(&client).await;
    assert_eq!(stream.ask(b"k").await, b"k");
    let last = [&b"b"[..], &data(1 << 20)].concat();
    assert!(stream.ask(&last).await == last);
    assert!(matches!(stream.closed().await, ConnectionError::ApplicationClosed(_)));
}

#[tokio::test]
async fn the_end_of_the_server_is_told() {
    let server = Server::start(2);
    let client = server.client(&[PROTOCOL]);
    let mut stream = server.connect(&client).await;
    assert_eq!(stream.ask(b"k").await, b"k");
    let Server { shards, .. } = server;
    let stopped = tokio::task::spawn_blocking(move || shards.shutdown());
    assert!(matches!(stream.closed().await, ConnectionError::ApplicationClosed(_)));
    stopped.await.unwrap();
}

#[test]
fn who_has_the_address_already_is_found() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let error = QuicListener::bind(taken.local_addr().unwrap(), false).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
    let ours = QuicListener::bind("127.0.0.1:0".parse().unwrap(), false).unwrap();
    let again = QuicListener::bind(ours.local_addr().unwrap(), false).unwrap_err();
    assert_eq!(again.kind(), std::io::ErrorKind::AddrInUse, "another server of the same user");
}
