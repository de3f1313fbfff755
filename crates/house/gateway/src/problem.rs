//! Messages for the person who runs a gateway: what is wrong, where, and what to do.

use std::fmt;

/// The kind of a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Something failed while serving.
    Serving,
    /// The settings are wrong.
    Settings,
    /// The state directory cannot be used.
    State,
    /// The directory of a share cannot be used.
    Directory,
    /// The directory of a share cannot be used now, but may be later, without anything done here.
    Silent,
    /// The running server cannot be asked.
    Asking,
}

/// A message for the person who runs the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The kind of the problem.
    pub cause: Cause,
    /// What was wrong, and where.
    pub what: String,
    /// What to do about it; empty when nothing sensible can be said.
    pub advice: String,
}

/// A result that fails with a [`Problem`].
pub type Result<T> = std::result::Result<T, Problem>;

impl Problem {
    pub(crate) fn new(cause: Cause, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { cause, what: what.into(), advice: advice.into() }
    }

    /// The same, of a vserver.
    pub(crate) fn of_vserver(self, name: &str) -> Self {
        Self { what: format!("the vserver {name}: {}", self.what), ..self }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.advice.is_empty() { Ok(()) } else { write!(f, "\n  {}", self.advice) }
    }
}

impl std::error::Error for Problem {}

impl From<state::Error> for Problem {
    fn from(state::Error { what, advice }: state::Error) -> Self {
        Self { cause: Cause::State, what, advice }
    }
}

/// Turns an error of the system into a [`Problem`].
pub(crate) fn serving<E: fmt::Display>(what: &str) -> impl Fn(E) -> Problem {
    move |error| Problem::new(Cause::Serving, format!("{what}: {error}"), "")
}
