//! SMB over QUIC for clients that have a TCP connection: a thread stands between.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use krb5::ChannelBindings;
use net::QuicListener;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint};
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;

const PROTOCOL: &[u8] = b"smb";
const NAME: &str = "files.test";

/// Where SMB over QUIC is served, and the certificate that the server shows.
pub(crate) struct Quic {
    address: SocketAddr,
    certificate: CertificateDer<'static>,
}

impl Quic {
    /// A free port, and what listens there.
    pub(super) fn listen() -> (Self, QuicListener) {
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let tls = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .unwrap();
        let mut tls = tls.with_no_client_auth().with_single_cert(vec![certificate.clone()], key).unwrap();
        tls.alpn_protocols = vec![PROTOCOL.to_vec()];
        let socket = QuicListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), false).unwrap();
        let address = socket.local_addr().unwrap();
        (Self { address, certificate }, QuicListener::new(socket, Arc::new(tls)).unwrap())
    }

    /// What a client is bound to that has seen the server's certificate.
    pub(crate) fn channel_bindings(&self) -> ChannelBindings {
        ChannelBindings::tls_server_end_point(&self.certificate).unwrap()
    }

    fn config(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let tls = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .unwrap();
        let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![PROTOCOL.to_vec()];
        ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()))
    }

    /// A connection whose bytes go over QUIC.
    pub(crate) fn connect(&self) -> TcpStream {
        let between = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = TcpStream::connect(between.local_addr().unwrap()).unwrap();
        let (server, config) = (self.address, self.config());
        let inner = between.accept().unwrap().0;
        inner.set_nonblocking(true).unwrap();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let endpoint = Endpoint::client(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
                let connection = endpoint.connect_with(config, server, NAME).unwrap().await.unwrap();
                let (mut send, mut receive) = connection.open_bi().await.unwrap();
                let mut inner = tokio::net::TcpStream::from_std(inner).unwrap();
                let (mut read, mut write) = inner.split();
                tokio::select! {
                    _ = tokio::io::copy(&mut read, &mut send) => {}
                    _ = tokio::io::copy(&mut receive, &mut write) => {}
                }
                connection.close(0_u32.into(), b"");
                endpoint.wait_idle().await;
            });
        });
        client
    }
}
