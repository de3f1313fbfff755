//! TLS on a connection that has begun without it.
//!
//! The loop of the connection encrypts and decrypts itself, with rustls, between the socket and its own buffers: there are
//! no further tasks, and nothing blocks. What is sent is encrypted when the socket has taken what was encrypted before, so
//! a peer that reads nothing holds one send of ciphertext besides its replies.

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, BytesMut};
use rustls::pki_types::CertificateDer;
use rustls::{ServerConfig, ServerConnection};

use crate::Outbox;
use crate::outbox::SEND_BYTES;
use crate::socket::Socket;

/// Ciphertext that is read from the socket at once, in bytes.
const READ_BYTES: usize = 128 * 1024;
/// The same before the client has identified itself.
const STRANGER_READ_BYTES: usize = 16 * 1024;
/// What a session of a stranger holds, in bytes: what was read and not decrypted, a record or the messages of a handshake,
/// and the state of rustls.
const STRANGER_BYTES: usize = 48 * 1024;
/// Ciphertext that may wait to be sent, in bytes: one send, with what records add to it.
const SEALED_BYTES_MAX: usize = SEND_BYTES + 16 * 1024;

/// What the handshake has shown of a peer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secured {
    /// The cipher suite: TLS13_AES_256_GCM_SHA384 is TLS_AES_256_GCM_SHA384 of RFC 8446 B.4.
    pub cipher: String,
    /// The peer's certificate, if it has shown one; it was verified.
    pub certificate: Option<PeerCertificate>,
}

/// The verified certificate of a peer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PeerCertificate {
    /// Its DNS names (subjectAltName), in lower case. There may be none.
    pub names: Vec<String>,
    /// Its SHA-256 in hexadecimal digits.
    pub fingerprint: String,
}

impl PeerCertificate {
    fn new(certificate: &CertificateDer<'_>) -> Self {
        let names = webpki::EndEntityCert::try_from(certificate)
            .map(|parsed| parsed.valid_dns_names().map(str::to_ascii_lowercase).collect())
            .unwrap_or_default();
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, certificate);
        let fingerprint = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { names, fingerprint }
    }
}

/// Why a connection with TLS cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Protocol(#[from] rustls::Error),
}

/// What has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// Something, or nothing at all.
    Bytes,
    /// The peer has ended its direction.
    End,
}

/// The TLS session of one connection.
#[derive(Debug)]
pub(crate) struct Session {
    tls: ServerConnection,
    /// What was read and not decrypted yet.
    encrypted: BytesMut,
    /// Bytes at the front of the outbox that are encrypted and not sent completely.
    sealed: usize,
    /// By when the handshake must be complete; None: it is.
    pub(crate) handshake_until: Option<Instant>,
    /// Whether the peer has ended the session.
    is_ended: bool,
}

impl Session {
    /// A session whose handshake begins now, and takes this long at most.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub(crate) fn new(config: Arc<ServerConfig>, handshake: Duration) -> Result<Self, TlsError> {
        let mut tls = ServerConnection::new(config)?;
        tls.set_buffer_limit(Some(SEALED_BYTES_MAX));
        Ok(Self {
            tls,
            encrypted: BytesMut::new(),
            sealed: 0,
            handshake_until: Some(Instant::now() + handshake),
            is_ended: false,
        })
    }

    /// Reads from the socket once, and appends what could be decrypted to `received`.
    ///
    /// # Errors
    /// The socket fails, or what has arrived is no TLS. The alert for the peer is queued.
    pub(crate) fn receive(
        &mut self,
        socket: &impl Socket,
        received: &mut BytesMut,
        is_known: bool,
    ) -> Result<Arrived, TlsError> {
        self.encrypted.reserve(if is_known { READ_BYTES } else { STRANGER_READ_BYTES });
        match socket.try_read(&mut self.encrypted) {
            Ok(0) => return Ok(Arrived::End),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Arrived::Bytes),
            Err(e) => return Err(e.into()),
        }
        self.decrypt(received)?;
        Ok(Arrived::Bytes)
    }

    /// Takes in bytes that were received before the session began. They follow the request for TLS, so they are part of the
    /// session or nothing: they are never answered as plain ones.
    ///
    /// # Errors
    /// They are no TLS.
    pub(crate) fn take_in(&mut self, early: BytesMut, received: &mut BytesMut) -> Result<(), TlsError> {
        self.encrypted = early;
        self.decrypt(received)
    }

    fn decrypt(&mut self, received: &mut BytesMut) -> Result<(), TlsError> {
        while !self.encrypted.is_empty() && !self.is_ended {
            let mut rest = &self.encrypted[..];
            let count = self.tls.read_tls(&mut rest)?;
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::InvalidData).into()); // it must not go round for ever
            }
            self.encrypted.advance(count);
            let state = self.tls.process_new_packets()?;
            let begin = received.len();
            received.resize(begin.saturating_add(state.plaintext_bytes_to_read()), 0);
            self.tls.reader().read_exact(&mut received[begin..])?;
            self.is_ended = state.peer_has_closed();
        }
        Ok(())
    }

    /// What the handshake has shown, once it is complete.
    pub(crate) fn completed(&mut self) -> Option<Secured> {
        if self.handshake_until.is_none() || self.tls.is_handshaking() {
            return None;
        }
        self.handshake_until = None;
        let suite = self.tls.negotiated_cipher_suite().map(|suite| suite.suite());
        let certificate = self.tls.peer_certificates().and_then(<[_]>::first).map(PeerCertificate::new);
        Some(Secured { cipher: suite.map(|suite| format!("{suite:?}")).unwrap_or_default(), certificate })
    }

    /// Whether the peer has ended the session. What it has sent before is received.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Whether there is something that can be sent now.
    pub(crate) fn has_to_send(&self, outbox: &Outbox) -> bool {
        self.tls.wants_write() || !self.tls.is_handshaking() && !outbox.is_empty()
    }

    /// Memory that counts for a stranger, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        STRANGER_BYTES.max(self.encrypted.capacity())
    }

    /// Frees what an idle connection does not need.
    pub(crate) fn rest(&mut self) {
        if self.encrypted.is_empty() {
            self.encrypted = BytesMut::new();
        }
    }

    /// Sends as much as the socket takes now. Returns true when everything is sent.
    ///
    /// # Errors
    /// The socket fails.
    pub(crate) fn flush(&mut self, outbox: &Outbox, socket: &impl Socket) -> io::Result<bool> {
        loop {
            while self.tls.wants_write() {
                match self.tls.write_tls(&mut Sending(socket)) {
                    Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                    Ok(_) => {}
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                    Err(e) => return Err(e),
                }
            }
            outbox.advance(std::mem::take(&mut self.sealed));
            if outbox.is_empty() {
                return Ok(true);
            }
            if self.tls.is_handshaking() {
                return Ok(false);
            }
            self.sealed = outbox.next_slices(|slices| self.tls.writer().write_vectored(slices))?;
            if !self.tls.wants_write() {
                return Err(io::ErrorKind::WriteZero.into()); // it must not go round for ever
            }
        }
    }

    /// Tells the peer that nothing follows, as far as the socket takes that now.
    pub(crate) fn say_end(&mut self, socket: &impl Socket) {
        self.tls.send_close_notify();
        while self.tls.wants_write() && self.tls.write_tls(&mut Sending(socket)).is_ok_and(|count| count > 0)
        {
        }
    }
}

/// Writes to a socket.
struct Sending<'a, S>(&'a S);

impl<S: Socket> Write for Sending<'_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
