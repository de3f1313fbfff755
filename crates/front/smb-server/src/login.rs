//! The user of a session. [MS-SMB2] 3.3.1.8.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use share::Caller;
use smb_proto::session::{Principal, SessionCrypto};

/// The user who has logged on, and how the session's messages are protected. Replaced as a whole when the user
/// authenticates again.
#[derive(Debug, Clone)]
pub(crate) struct Login {
    /// Session.UserName, as written in the account; empty for an anonymous session.
    pub(crate) user: String,
    /// The address from which the user first logged on.
    pub(crate) from: SocketAddr,
    /// When the user first logged on.
    pub(crate) since: SystemTime,
    /// The user in the terms of the shares.
    pub(crate) caller: Caller,
    /// Session.IsGuest, Session.IsAnonymous
    pub(crate) principal: Principal,
    /// Session.SigningRequired
    pub(crate) signing_required: bool,
    /// Session.EncryptData
    pub(crate) encrypt_data: bool,
    /// The keys; None if the authentication produced none.
    pub(crate) crypto: Option<Arc<SessionCrypto>>,
}
