//! Administrators: users who use the control address with the password of their account.

use crate::token::Digest;
use crate::tokens::Scope;

/// A user who has shown the password of an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Administrator {
    /// The name of the account.
    pub name: String,
    /// What changes with the password, so that a sign-in ends with it.
    pub password: Digest,
}

/// Knows who administers the server with an account. No call waits.
pub trait Administrators: Send + Sync {
    /// The administrator with this account and this password, and what the administrator may do. None: the account or its
    /// password is another, or its user is no administrator.
    fn known(&self, name: &str, password: &str) -> Option<(Administrator, Scope)>;

    /// What a user who was known before may do now. None: the account or its password has changed, or its user is no
    /// administrator any more.
    fn scope(&self, administrator: &Administrator) -> Option<Scope>;
}
