//! What an administrator has done to shares and users: what the API asks for, and what carries it out.

use axum::http::StatusCode;

use crate::shares::{NewShare, Share, ShareChange, Shares};
use crate::tokens::{MadeToken, NewToken, TokenInfo, Tokens};
use crate::users::{NewUser, User, UserChange, Users};

/// Carries out what the API asks for. Its calls wait for the disk: they are made on threads of their own.
pub trait Administration: Send + Sync {
    /// All shares, by name.
    ///
    /// # Errors
    /// [`Refusal`], as in all these.
    fn shares(&self) -> Result<Shares, Refusal>;
    /// One share.
    ///
    /// # Errors
    /// There is none of this name.
    fn share(&self, name: &str) -> Result<Share, Refusal>;
    /// Makes a share and serves it.
    ///
    /// # Errors
    /// The name is taken or cannot be one, the directory cannot be served.
    fn create_share(&self, new: NewShare) -> Result<Share, Refusal>;
    /// Changes a share that was made by command.
    ///
    /// # Errors
    /// There is none of this name, the configuration declares it, or a value is impossible.
    fn change_share(&self, name: &str, change: ShareChange) -> Result<Share, Refusal>;
    /// Serves a share that was made by command no more; its directory stays as it is.
    ///
    /// # Errors
    /// There is none of this name, or the configuration declares it.
    fn remove_share(&self, name: &str) -> Result<Share, Refusal>;
    /// All users, by name.
    ///
    /// # Errors
    /// [`Refusal`].
    fn users(&self) -> Result<Users, Refusal>;
    /// One user.
    ///
    /// # Errors
    /// There is none of this name.
    fn user(&self, name: &str) -> Result<User, Refusal>;
    /// Adds a user.
    ///
    /// # Errors
    /// The name is taken or cannot be one, the password cannot be one.
    fn add_user(&self, new: NewUser) -> Result<User, Refusal>;
    /// Changes a user who was added by command. The sessions of one who is disabled end.
    ///
    /// # Errors
    /// There is none of this name, the configuration declares it, or a value is impossible.
    fn change_user(&self, name: &str, change: UserChange) -> Result<User, Refusal>;
    /// Removes a user who was added by command, and ends the user's sessions.
    ///
    /// # Errors
    /// There is none of this name, or the configuration declares it.
    fn remove_user(&self, name: &str) -> Result<User, Refusal>;
    /// All tokens that were made, by name.
    ///
    /// # Errors
    /// [`Refusal`].
    fn tokens(&self) -> Result<Tokens, Refusal>;
    /// Makes a token, and takes it from now on.
    ///
    /// # Errors
    /// The name is taken or cannot be one, or there are too many.
    fn make_token(&self, new: NewToken) -> Result<MadeToken, Refusal>;
    /// Withdraws a token: from now on it is not taken.
    ///
    /// # Errors
    /// There is none of this name.
    fn remove_token(&self, name: &str) -> Result<TokenInfo, Refusal>;
}

/// Of what kind a refusal is. The names are what programs see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// There is no such share, user or token.
    NotFound,
    /// The name is taken.
    NameTaken,
    /// The configuration declares it: it is changed there.
    Declared,
    /// A value is impossible.
    Invalid,
    /// The directory cannot be served.
    Directory,
    /// The share would lie in another one, or around it.
    Overlap,
    /// What is provisioned may not be changed so now.
    Plan,
    /// It is under way already.
    Busy,
    /// There are as many as there may be.
    TooMany,
    /// It failed on the server's side.
    Failed,
}

/// Why something is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// For programs.
    pub kind: RefusalKind,
    /// What was wrong, and where.
    pub what: String,
    /// What to do; may be empty.
    pub advice: String,
}

impl Refusal {
    /// A refusal.
    #[must_use]
    pub fn new(kind: RefusalKind, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { kind, what: what.into(), advice: advice.into() }
    }

    pub(crate) fn status(&self) -> StatusCode {
        match self.kind {
            RefusalKind::NotFound => StatusCode::NOT_FOUND,
            RefusalKind::NameTaken
            | RefusalKind::Declared
            | RefusalKind::Overlap
            | RefusalKind::Plan
            | RefusalKind::Busy
            | RefusalKind::TooMany => StatusCode::CONFLICT,
            RefusalKind::Invalid | RefusalKind::Directory => StatusCode::UNPROCESSABLE_ENTITY,
            RefusalKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub(crate) fn code(&self) -> &'static str {
        match self.kind {
            RefusalKind::NotFound => "not-found",
            RefusalKind::NameTaken => "name-taken",
            RefusalKind::Declared => "declared",
            RefusalKind::Invalid => "invalid",
            RefusalKind::Directory => "directory",
            RefusalKind::Overlap => "overlap",
            RefusalKind::Plan => "plan",
            RefusalKind::Busy => "busy",
            RefusalKind::TooMany => "too-many",
            RefusalKind::Failed => "failed",
        }
    }
}
