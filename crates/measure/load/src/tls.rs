//! TLS on a socket of the load generator: the client's side, by rustls.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use client::{Fault, FaultKind, NfsTls, Result};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

/// The certificates that Debian, Ubuntu and Alpine trust, and those that Fedora and RHEL trust.
const SYSTEM_AUTHORITIES: [&str; 2] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];
/// RFC 9289 4.2.
const ALPN: &[u8] = b"sunrpc";

/// What TLS has of a connection.
#[derive(Debug)]
pub(crate) struct Session(ClientConnection);

impl Session {
    /// Shakes hands on a socket that waits.
    ///
    /// # Errors
    /// [`FaultKind::WrongSignature`] if the server's certificate is not accepted; [`FaultKind::ThisMachine`] if the
    /// certificates that are trusted cannot be read.
    pub(crate) fn begin(stream: &mut TcpStream, host: &str, tls: &NfsTls) -> Result<Self> {
        let not_here = |text: String| Fault::new(FaultKind::ThisMachine, text);
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| not_here(format!("{host} is not a name that a certificate can have")))?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .map_err(|e| not_here(e.to_string()))?
            .with_root_certificates(authorities(tls)?)
            .with_no_client_auth();
        config.alpn_protocols = vec![ALPN.to_vec()];
        let mut session =
            ClientConnection::new(Arc::new(config), name).map_err(|e| not_here(e.to_string()))?;
        while session.is_handshaking() {
            session.complete_io(stream).map_err(|e| match e.kind() {
                ErrorKind::InvalidData => {
                    Fault::new(FaultKind::WrongSignature, format!("TLS with {host}: {e}"))
                }
                _ => Fault::of_connection(&e),
            })?;
        }
        Ok(Self(session))
    }

    /// The cipher suite, as RFC 8446 B.4 writes it.
    pub(crate) fn cipher(&self) -> String {
        let suite = self.0.negotiated_cipher_suite();
        suite.and_then(|suite| suite.suite().as_str()).unwrap_or_default().replace("TLS13_", "TLS_")
    }

    /// Reads what has arrived and could be decrypted.
    pub(crate) fn read(&mut self, stream: &mut TcpStream, room: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.reader().read(room) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                outcome => return outcome,
            }
            if self.0.read_tls(stream)? == 0 {
                return Ok(0);
            }
            self.0.process_new_packets().map_err(|e| io::Error::new(ErrorKind::InvalidData, e))?;
        }
    }

    /// Takes bytes to send, unless others still wait for the socket.
    pub(crate) fn write(&mut self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
        self.flush(stream)?;
        let taken = self.0.writer().write(bytes)?;
        match self.flush(stream) {
            Err(e) if e.kind() != ErrorKind::WouldBlock => Err(e),
            _ => Ok(taken),
        }
    }

    /// Sends what was taken.
    pub(crate) fn flush(&mut self, stream: &mut TcpStream) -> io::Result<()> {
        while self.0.wants_write() {
            self.0.write_tls(stream)?;
        }
        Ok(())
    }

    /// Whether bytes that were taken still wait for the socket.
    pub(crate) fn has_output(&self) -> bool {
        self.0.wants_write()
    }
}

fn authorities(tls: &NfsTls) -> Result<RootCertStore> {
    let given = tls.authority.as_deref();
    let system = || SYSTEM_AUTHORITIES.map(Path::new).into_iter().find(|path| path.exists());
    let none = |why: &str| Fault::new(FaultKind::ThisMachine, format!("{why}: name a file with ca=/PATH"));
    let path = given
        .or_else(system)
        .ok_or_else(|| none("this machine has no list of certificates that it trusts"))?;
    let unusable = |e: &dyn std::fmt::Display| none(&format!("the certificates in {}: {e}", path.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| unusable(&e))? {
        roots.add(certificate.map_err(|e| unusable(&e))?).map_err(|e| unusable(&e))?;
    }
    if roots.is_empty() { Err(unusable(&"there are none")) } else { Ok(roots) }
}
