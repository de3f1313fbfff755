//! What a protocol tells the loop of a connection, and the limits of a connection.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use rustls::ServerConfig;

use crate::Buffer;
use crate::tls::Secured;

/// The length of the prefix of every frame: Direct TCP ([MS-SMB2] 2.1) and record marking (RFC 5531 section 11) both
/// have four bytes.
pub(crate) const PREFIX_BYTES: usize = 4;

/// The meaning of the four bytes in front of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// Bytes that follow the prefix.
    pub length: usize,
    /// Whether these bytes end the frame; if not, another fragment follows.
    pub last: bool,
}

/// A prefix that the protocol does not allow: the connection ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PrefixError(pub String);

/// A reply that is not ready yet. It resolves to None when there is nothing to send.
pub type Later = Pin<Box<dyn Future<Output = Option<Buffer>>>>;

/// How a frame is answered.
pub enum Answer {
    /// A framed reply, ready to be sent.
    Now(Buffer),
    /// A reply that may have to wait. It is polled once immediately, so that a reply that need not wait stays in order.
    /// It is dropped if the connection ends first.
    Later(Later),
    /// Like `Later`, but once begun it runs to its end, even if the connection ends. A client that asks whether the
    /// operation is over must be able to rely on the reply.
    Certainly(Later),
    /// A framed reply, after which the peer begins TLS. It ends the connection if other replies are under way: it could not
    /// be told which of them the peer has received before.
    StartTls(Buffer, Arc<ServerConfig>),
    /// No reply.
    Nothing,
    /// The frame violates the protocol: the connection ends, for the given reason (for the log).
    Close(String),
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Now(reply) => f.debug_tuple("Now").field(&reply.len()).finish(),
            Self::Later(_) => f.write_str("Later"),
            Self::Certainly(_) => f.write_str("Certainly"),
            Self::StartTls(reply, _) => f.debug_tuple("StartTls").field(&reply.len()).finish(),
            Self::Nothing => f.write_str("Nothing"),
            Self::Close(reason) => f.debug_tuple("Close").field(reason).finish(),
        }
    }
}

/// How a protocol handles the frames of one connection. The state lives on one shard.
pub trait Protocol: 'static {
    /// Parses the prefix of a frame. This decides the largest frame that is accepted.
    ///
    /// # Errors
    /// The prefix is invalid: the connection ends.
    fn prefix(&self, prefix: [u8; PREFIX_BYTES]) -> Result<Prefix, PrefixError>;

    /// Whether a frame of several fragments can begin with this one. This detects a peer that speaks another protocol
    /// before the rest of the frame, which may never come.
    fn can_begin(&self, _fragment: &[u8]) -> bool {
        true
    }

    /// Answers a frame (without its prefix). The protocol owns the memory: it may decrypt the frame in place, and
    /// freeze it to keep parts of it without copying.
    fn answer(self: Rc<Self>, frame: BytesMut) -> Answer;

    /// The TLS handshake that [`Answer::StartTls`] has begun is complete. Frames come encrypted from now on.
    fn secured(&self, _with: Secured) {}

    /// The connection is one of QUIC, in whose handshake the server has shown this certificate (DER). Called before the
    /// first frame.
    fn shown(&self, _certificate: &[u8]) {}

    /// Whether the client has identified itself. Until then it is a stranger, which gives way to others and gets little
    /// memory.
    fn is_known(&self) -> bool {
        true
    }

    /// Memory that the protocol keeps for a client that has not identified itself, beyond what an ordinary one needs, in
    /// bytes. A stranger gets nothing more, and none of its frames is answered, while the memory of strangers has no room
    /// for it.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Whether the client may stay: it has identified itself, or need not. A client that has not done so within
    /// [`Limits::greeting`] is disconnected, so that clients that merely hold a connection open do not keep others out.
    fn is_welcome(&self) -> bool {
        self.is_known()
    }

    /// Whether the client may stay silent for as long as it likes. If not, it is disconnected after
    /// [`Limits::silence`].
    fn may_be_silent(&self) -> bool {
        true
    }

    /// The connection has ended and its waiting replies are gone. Frees everything that the connection held.
    fn closed(self: Rc<Self>) -> Pin<Box<dyn Future<Output = ()>>>;
}

/// The limits of one connection.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of a frame, all fragments together.
    pub frame_bytes: usize,
    /// Fragments of a frame.
    pub fragments: usize,
    /// Frames whose replies wait. Beyond that nothing more is read.
    pub pending_frames: usize,
    /// Bytes of frames whose replies wait. Beyond that nothing more is read.
    pub pending_frame_bytes: usize,
    /// Memory of replies that wait to be sent, in bytes. Beyond that nothing more is read. One further reply may exceed
    /// it.
    pub pending_bytes: usize,
    /// Messages from other shards that wait to be moved into the outbox. They are not moved while the outbox holds more
    /// than `pending_bytes`.
    pub posted_frames: usize,
    /// How long a client may stay without being welcome ([`Protocol::is_welcome`]).
    pub greeting: Duration,
    /// How long a client may stay silent, unless [`Protocol::may_be_silent`] allows it.
    pub silence: Duration,
    /// How long a TLS handshake may take.
    pub handshake: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes: (8 << 20) + 64 * 1024,
            fragments: 512,
            pending_frames: 2048,
            pending_frame_bytes: 64 << 20,
            pending_bytes: 3 << 20,
            posted_frames: 1024,
            greeting: Duration::from_secs(60),
            silence: Duration::from_secs(300),
            handshake: Duration::from_secs(10),
        }
    }
}
