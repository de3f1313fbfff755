//! What goes wrong while load is made: one kind, one sentence.

use std::io;

use client::FaultKind;
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
        client::Fault::of_connection(error).into()
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

impl From<client::Fault> for Fault {
    fn from(fault: client::Fault) -> Self {
        let kind = match fault.kind {
            FaultKind::Unreachable => ProblemKind::Unreachable,
            FaultKind::WrongPassword => ProblemKind::WrongPassword,
            FaultKind::NoSuchShare => ProblemKind::NoSuchShare,
            FaultKind::ReadOnly => ProblemKind::ReadOnly,
            FaultKind::NoSpace => ProblemKind::NoSpace,
            FaultKind::ShortTransfer => ProblemKind::ShortTransfer,
            FaultKind::WrongSignature => ProblemKind::WrongSignature,
            FaultKind::Protocol => ProblemKind::Protocol,
            FaultKind::Closed => ProblemKind::Closed,
            FaultKind::NoReply => ProblemKind::NoReply,
            FaultKind::Refused => ProblemKind::Refused,
            FaultKind::ThisMachine => ProblemKind::ThisMachine,
        };
        Self { kind, text: fault.text }
    }
}
