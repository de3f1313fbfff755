//! The outcome of a call that may take long, and is then made again ([`crate::long_call`]).

use crate::{Error, Result};

/// Why an attempt has no result.
#[derive(Debug)]
pub(crate) enum Stopped {
    /// The thread must not be held up ([`Effort::Brief`]), and a step would take long. Nothing was changed.
    TooLong,
    /// The call has failed.
    Failed(Error),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<storage::Error> for Stopped {
    fn from(error: storage::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<cache::Stopped> for Stopped {
    fn from(stopped: cache::Stopped) -> Self {
        match stopped {
            cache::Stopped::TooLong => Self::TooLong,
            cache::Stopped::Failed(error) => Self::Failed(error.into()),
        }
    }
}

/// The outcome of a call that may take long.
pub(crate) type Attempt<T> = std::result::Result<T, Stopped>;

/// The result of an attempt; None when a step would take long.
pub(crate) fn unless_too_long<T>(attempt: Attempt<T>) -> Result<Option<T>> {
    match attempt {
        Ok(result) => Ok(Some(result)),
        Err(Stopped::TooLong) => Ok(None),
        Err(Stopped::Failed(error)) => Err(error),
    }
}
