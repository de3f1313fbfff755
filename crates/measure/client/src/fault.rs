//! Why a client could not do what was asked of it: one kind, one sentence.

use std::io;

/// Why something could not be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Fault {
    /// What kind of thing it is.
    pub kind: FaultKind,
    /// In words: what and where.
    pub text: String,
}

/// Kinds of what goes wrong between a client and its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// Nobody answers at the address.
    Unreachable,
    /// The user or the password is not accepted.
    WrongPassword,
    /// There is no such share or export.
    NoSuchShare,
    /// It may not be written.
    ReadOnly,
    /// It is full.
    NoSpace,
    /// Fewer bytes came back, or were taken, than had to.
    ShortTransfer,
    /// A reply's signature or encryption is not right, or the server's certificate is not.
    WrongSignature,
    /// A reply that no request asked for, or that is none.
    Protocol,
    /// The server closed the connection.
    Closed,
    /// A request was not answered in time.
    NoReply,
    /// The server refused a request with an error of its own.
    Refused,
    /// This machine cannot do what is asked (randomness).
    ThisMachine,
}

/// The outcome of what may go wrong.
pub type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    /// A fault of this kind.
    pub fn new(kind: FaultKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// A reply that no client can make sense of.
    pub fn protocol(text: impl Into<String>) -> Self {
        Self::new(FaultKind::Protocol, text)
    }

    /// What a failed read or write of a connection means.
    #[must_use]
    pub fn of_connection(error: &io::Error) -> Self {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof, WouldBlock};
        match error.kind() {
            WouldBlock | TimedOut => Self::new(FaultKind::NoReply, "the server did not answer in time"),
            UnexpectedEof | ConnectionReset | ConnectionAborted | io::ErrorKind::BrokenPipe => {
                Self::new(FaultKind::Closed, "the server closed the connection")
            }
            _ => Self::new(FaultKind::Closed, format!("the connection failed: {error}")),
        }
    }
}
