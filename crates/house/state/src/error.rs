//! Why the state cannot be used.

use std::fmt;

/// What is wrong with the state directory or its database, for the person who runs the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What was wrong, and where.
    pub what: String,
    /// What to do about it; empty when nothing sensible can be said.
    pub advice: String,
}

impl Error {
    /// An error of these words.
    pub fn new(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { what: what.into(), advice: advice.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.advice.is_empty() { Ok(()) } else { write!(f, "\n  {}", self.advice) }
    }
}

impl std::error::Error for Error {}

/// What succeeds unless the state cannot be used.
pub type Result<T> = std::result::Result<T, Error>;
