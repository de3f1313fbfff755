//! Why a server cannot be had.

/// Why a server cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Error {
    /// What kind of thing it is.
    pub cause: Cause,
    /// What was wrong, and where.
    pub what: String,
    /// What to do about it, or what the server said; empty when there is nothing to say.
    pub advice: String,
}

/// Kinds of what may be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A package is not installed.
    Missing,
    /// A directory or file cannot be made.
    Directory,
    /// There is no port.
    Address,
    /// A server does not start, or something else fails.
    Serving,
}

/// The outcome of what may be wrong.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(cause: Cause, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { cause, what: what.into(), advice: advice.into() }
    }
}
