//! The user of a session. [MS-SMB2] 3.3.1.8.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use acl::Sid;
use auth::Identity;
use share::Caller;
use smb_proto::session::{Principal, SessionCrypto};

/// To whom a session belongs, in a form that is equal for the same user only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The account of this name, folded.
    Account(String),
    /// The user of a domain with this SID.
    Domain(Sid),
    /// A guest, or a client without a name. Neither can show that it is the same.
    Unproven,
}

impl Owner {
    /// The owner of a session in which this identity has authenticated.
    pub(crate) fn of(identity: &Identity) -> Self {
        match identity {
            Identity::Account(account) => Self::Account(auth::folded_name(&account.name)),
            Identity::Domain(user) => Self::Domain(user.sid),
            Identity::Guest(_) | Identity::Anonymous => Self::Unproven,
        }
    }

    /// Whether both have proved that they are the same user.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self == other && *self != Self::Unproven
    }
}

/// The user who has logged on, and how the session's messages are protected. Replaced as a whole when the user
/// authenticates again.
#[derive(Debug, Clone)]
pub(crate) struct Login {
    /// Session.UserName, as written in the account; empty for an anonymous session.
    pub(crate) user: String,
    /// To whom the session belongs: the user, or the one before a client without a name.
    pub(crate) owner: Owner,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_proved_user_is_the_same_as_another() {
        let account = |name: &str| auth::Account {
            name: name.to_owned(),
            nt_hash: None,
            keys: None,
            uid: 1,
            gid: 1,
            groups: Vec::new(),
            sid: None,
            disabled: false,
        };
        let ann = Owner::of(&Identity::Account(account("Ann")));
        assert!(ann.is(&Owner::of(&Identity::Account(account("ANN")))));
        assert!(!ann.is(&Owner::of(&Identity::Account(account("Anna")))));
        let of_domain = |name: &str, sid: &str| {
            let (name, sid) = (name.to_owned(), sid.parse().unwrap());
            Owner::of(&Identity::Domain(auth::DomainUser {
                name,
                sid,
                uid: 1,
                gid: 1,
                groups: Vec::new(),
                group_sids: [].into(),
                foreign_sids: 0,
            }))
        };
        let (own, other) = ("S-1-5-21-1-2-3-1104", "S-1-5-21-1-2-3-1105");
        assert!(of_domain("ann@AD.TEST", own).is(&of_domain("anna@AD.TEST", own)), "who has been renamed");
        assert!(!of_domain("ann@AD.TEST", own).is(&of_domain("ann@AD.TEST", other)));
        assert!(!ann.is(&of_domain("Ann", own)));
        for other in [Identity::Guest(account("Ann")), Identity::Anonymous] {
            let other = Owner::of(&other);
            assert!(!ann.is(&other) && !other.is(&ann) && !other.is(&other));
        }
    }
}
