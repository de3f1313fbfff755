//! Who uses a session. [MS-SMB2] 3.3.1.8.

use std::sync::Arc;
use std::time::SystemTime;

use share::Caller;
use smb_proto::session::{Principal, SessionCrypto};

/// Who has logged on, and how the session's messages are protected. Replaced as a whole when the user authenticates
/// again.
#[derive(Debug, Clone)]
pub(crate) struct Login {
    /// Session.UserName, as the account has it; empty for an anonymous session.
    pub(crate) user: String,
    /// When the user logged on first.
    pub(crate) since: SystemTime,
    /// The user in the terms of the shares.
    pub(crate) caller: Caller,
    /// Session.IsGuest, Session.IsAnonymous
    pub(crate) principal: Principal,
    /// Session.SigningRequired
    pub(crate) signing_required: bool,
    /// Session.EncryptData
    pub(crate) encrypt_data: bool,
    /// The keys; none where authentication gave none.
    pub(crate) crypto: Option<Arc<SessionCrypto>>,
}
