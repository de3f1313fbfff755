//! What is written, and where.

use std::fmt;
use std::io;
use std::path::PathBuf;

use accounting::Outcome;

use crate::{Actor, Kinds};

/// What is written, and where. Nothing is written without a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The kinds of operations.
    pub kinds: Kinds,
    /// With which outcomes.
    pub outcomes: Outcomes,
    /// Of which users.
    pub users: Users,
    /// The file.
    pub file: Option<FileSettings>,
    /// The socket of a syslog daemon (`/dev/log`).
    pub syslog: Option<PathBuf>,
    /// The socket of systemd's journal (`/run/systemd/journal/socket`).
    pub journal: Option<PathBuf>,
}

/// Which operations are written, by their outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Outcomes {
    /// All.
    #[default]
    All,
    /// Those that were refused or failed.
    Failures,
}

/// Whose operations are written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Users {
    /// If there are any, only theirs are written.
    pub only: Vec<User>,
    /// Theirs are not written.
    pub except: Vec<User>,
}

/// A user of the access log: an account by its name, or a user by the uid by which permissions are checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum User {
    /// The name of an account or of a token, regardless of case. A logon that is refused has the name that the client gave.
    Name(String),
    /// A uid.
    Uid(u32),
}

/// The file that lines are appended to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSettings {
    /// Its path.
    pub path: PathBuf,
    /// The bytes that it may have; before it would have more, it is renamed to `PATH.1`. None: it is never renamed.
    pub bytes_max: Option<u64>,
    /// How many renamed files are kept, at least one: `PATH.1`, the newest, to `PATH.N`.
    pub kept: u32,
}

/// A sink that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the access log cannot be written to {}: {error}", path.display())]
pub struct OpenError {
    /// The file or socket.
    pub path: PathBuf,
    /// Why.
    pub error: io::Error,
}

impl Default for Settings {
    /// The usual kinds, and no sink.
    fn default() -> Self {
        let outcomes = Outcomes::All;
        let users = Users::default();
        Self { kinds: Kinds::USUAL, outcomes, users, file: None, syslog: None, journal: None }
    }
}

impl Settings {
    /// Whether there is a sink.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.file.is_some() || self.syslog.is_some() || self.journal.is_some()
    }
}

impl Outcomes {
    pub(crate) fn include(self, outcome: Outcome) -> bool {
        self == Self::All || outcome != Outcome::Done
    }
}

impl Users {
    pub(crate) fn include(&self, who: &Actor<'_>) -> bool {
        let has = |users: &[User]| users.iter().any(|user| user.is(who));
        (self.only.is_empty() || has(&self.only)) && !has(&self.except)
    }
}

impl User {
    fn is(&self, who: &Actor<'_>) -> bool {
        match self {
            Self::Name(name) => who.user.is_some_and(|user| user.to_lowercase() == name.to_lowercase()),
            Self::Uid(uid) => who.uid == Some(*uid),
        }
    }
}

/// Digits are a uid, anything else a name.
impl From<&str> for User {
    fn from(text: &str) -> Self {
        text.parse().map_or_else(|_| Self::Name(text.to_owned()), Self::Uid)
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Uid(uid) => write!(f, "{uid}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users(only: &[&str], except: &[&str]) -> Users {
        let of = |users: &[&str]| users.iter().map(|user| User::from(*user)).collect();
        Users { only: of(only), except: of(except) }
    }

    #[test]
    fn users_are_known_by_name_or_uid() {
        let anna = Actor { user: Some("Anna"), uid: Some(1000), authentication: None };
        let nfs = Actor { user: None, uid: Some(1000), authentication: None };
        let nobody = Actor::default();
        let wanted = |users: &Users| [&anna, &nfs, &nobody].map(|who| users.include(who));
        assert_eq!(wanted(&users(&[], &[])), [true; 3]);
        assert_eq!(wanted(&users(&["anna"], &[])), [true, false, false]);
        assert_eq!(wanted(&users(&["1000"], &[])), [true, true, false]);
        assert_eq!(wanted(&users(&[], &["ANNA"])), [false, true, true]);
        assert_eq!(wanted(&users(&["1000", "otto"], &["anna"])), [false, true, false]);
    }
}
