//! What goes wrong while load is made: one kind, one sentence.

use std::io;

use serde::{Deserialize, Serialize};

use crate::result::{Problem, ProblemKind};

/// Why something could not be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{text}")]
pub struct Fault {
    /// What kind of thing it is.
    pub kind: ProblemKind,
    /// In words: what and where.
    pub text: String,
}

/// The outcome of what may go wrong.
pub type Result<T> = std::result::Result<T, Fault>;

impl Fault {
    /// A fault of this kind.
    pub fn new(kind: ProblemKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// A reply that no client can make sense of.
    pub fn protocol(text: impl Into<String>) -> Self {
        Self::new(ProblemKind::Protocol, text)
    }

    /// What a failed read or write of a socket means.
    #[must_use]
    pub fn of_socket(error: &io::Error) -> Self {
        use io::ErrorKind::{ConnectionAborted, ConnectionReset, TimedOut, UnexpectedEof, WouldBlock};
        match error.kind() {
            WouldBlock | TimedOut => Self::new(ProblemKind::NoReply, "the server did not answer in time"),
            UnexpectedEof | ConnectionReset | ConnectionAborted | io::ErrorKind::BrokenPipe => {
                Self::new(ProblemKind::Closed, "the server closed the connection")
            }
            _ => Self::new(ProblemKind::Closed, format!("the connection failed: {error}")),
        }
    }

    /// The connection is gone, or a reply is: another connection may help.
    #[must_use]
    pub fn is_of_connection(&self) -> bool {
        matches!(self.kind, ProblemKind::Closed | ProblemKind::NoReply | ProblemKind::Unreachable)
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self { kind: fault.kind, text: fault.text, count: 1 }
    }
}
