//! The steps of [MS-SMB2] 3.3.5.2, in the order of the specification, one function each.
//!
//! A violation of the transport's rules ends the connection ([`Violation`]). A violation of a request's rules is
//! answered ([`Failure`](crate::status::Failure)).

pub(crate) mod request;
pub(crate) mod transport;

/// The client violates the rules of the transport: the connection ends, for the given reason (for the log).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Violation(pub(crate) String);

impl From<&str> for Violation {
    fn from(reason: &str) -> Self {
        Self(reason.to_owned())
    }
}
