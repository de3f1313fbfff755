//! The user of a session. [MS-SMB2] 3.3.1.8.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::SystemTime;

use acl::Sid;
use auth::{Identity, Mechanism};
use share::Caller;
use smb_proto::durable;
use smb_proto::session::{Principal, SessionCrypto};

/// To whom a session belongs, in a form that is equal for the same user only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The account or the user of a domain with this SID.
    Sid(Sid),
    /// The account of this name, folded, where accounts have no SIDs.
    Account(String),
    /// A guest, or a client without a name. Neither can show that it is the same.
    Unproven,
}

impl Owner {
    /// The owner of a session in which this identity has authenticated.
    pub(crate) fn of(identity: &Identity) -> Self {
        match identity {
            Identity::Account(account) => match account.sid {
                Some(sid) => Self::Sid(sid),
                None => Self::Account(auth::folded_name(&account.name)),
            },
            Identity::Domain(user) => Self::Sid(user.sid),
            Identity::Guest(_) | Identity::Anonymous => Self::Unproven,
        }
    }

    /// Whether both have proved that they are the same user.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self == other && *self != Self::Unproven
    }
}

impl Login {
    /// The user as an owner of opens.
    pub(crate) fn opener(&self) -> durable::User<'_> {
        let sid = match self.owner {
            Owner::Sid(sid) => Some(sid),
            Owner::Account(_) | Owner::Unproven => None,
        };
        durable::User { name: &self.user, sid }
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
    /// How the user last proved to be this user.
    pub(crate) mechanism: Mechanism,
    /// When that proof ends: the end of the ticket.
    pub(crate) expires: Option<SystemTime>,
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
        let with_sid = |name: &str, sid: Option<&str>| auth::Account {
            name: name.to_owned(),
            nt_hash: None,
            keys: None,
            uid: 1,
            gid: 1,
            groups: Vec::new(),
            sid: sid.map(|sid| sid.parse().unwrap()),
            disabled: false,
        };
        let account = |name: &str| with_sid(name, None);
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
        let numbered = |name, sid| Owner::of(&Identity::Account(with_sid(name, Some(sid))));
        let (first, second) = ("S-1-5-21-9-9-9-1000", "S-1-5-21-9-9-9-1001");
        assert!(numbered("ann", first).is(&numbered("ann", first)));
        assert!(
            !numbered("ann", first).is(&numbered("ann", second)),
            "an account of the same name, made again"
        );
        for other in [Identity::Guest(account("Ann")), Identity::Anonymous] {
            let other = Owner::of(&other);
            assert!(!ann.is(&other) && !other.is(&ann) && !other.is(&other));
        }
    }
}
