//! The steps of [MS-SMB2] 3.3.5.2, in the order of the specification, one function each.
//!
//! What breaks the transport's rules ends the connection ([`Violation`]); what breaks a request's rules is its
//! answer ([`Failure`](crate::status::Failure)).

pub(crate) mod request;
pub(crate) mod transport;

/// A client that breaks the rules of the transport: the connection ends, for the reason given (for the log).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Violation(pub(crate) String);

impl From<&str> for Violation {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}
