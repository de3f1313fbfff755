//! Why a share is not replicated now.

use storage::Error;

/// The outcome of a step.
pub type Result<T> = std::result::Result<T, Failure>;

/// Why a share is not replicated now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The store of this side.
    #[error("{}{}", place(path), error)]
    Store {
        /// Where, from the root of the share; empty if that is not known.
        path: Vec<u8>,
        /// Why.
        error: Error,
    },
    /// The other side, or the way there.
    #[error("{0}")]
    Source(String),
    /// What the other side says makes no sense.
    #[error("the source says what makes no sense: {0}")]
    Nonsense(String),
    /// It was to stop.
    #[error("stopped")]
    Stopped,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store { path: Vec::new(), error }
    }
}

impl Failure {
    /// The same failure, of this place if it is of the store and says of none.
    #[must_use]
    pub(crate) fn at(self, place: &[Vec<u8>]) -> Self {
        match self {
            Self::Store { path, error } if path.is_empty() => Self::Store { path: place.join(&b'/'), error },
            other => other,
        }
    }
}

fn place(path: &[u8]) -> String {
    if path.is_empty() { String::new() } else { format!("{}: ", String::from_utf8_lossy(path)) }
}
