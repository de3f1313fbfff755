//! The numbers of users of domains: they follow from SIDs, or somebody has to be asked for them.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use acl::Sid;
use identity::{Domains, may_be_given};
use krb5::{LogonInfo, Principal};

use crate::accounts::{Accounts, Identity};
use crate::failure::Reason;
use crate::kerberos::Met;

/// Where the numbers of the users and groups of domains come from.
#[derive(Clone, Debug)]
pub enum Numbering {
    /// They follow from the SIDs
    Formula(Arc<Domains>),
    /// Somebody is asked for them
    Asked {
        /// Who is asked
        source: Arc<dyn NumberSource>,
        /// The domains whose users may have numbers; empty: any
        domains: Vec<Sid>,
    },
}

impl Numbering {
    /// Whether the users of a domain may have numbers.
    #[must_use]
    pub fn has(&self, domain: &Sid) -> bool {
        match self {
            Self::Formula(domains) => domains.has(domain),
            Self::Asked { domains, .. } => domains.is_empty() || domains.contains(domain),
        }
    }
}

/// The numbers of a user, or the reason why it has none. They come after a wait that ends.
pub type Numbers = Pin<Box<dyn Future<Output = Result<Ids, Reason>> + Send>>;

/// Knows the numbers of users of domains, or whom to ask for them.
pub trait NumberSource: fmt::Debug + Send + Sync {
    /// The numbers of a user. This is called on the thread of a connection, so the call itself must not wait.
    fn numbers_of(&self, user: &Unnumbered) -> Numbers;
}

/// The numbers of a user on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ids {
    /// The user
    pub uid: u32,
    /// The user's first group
    pub gid: u32,
    /// The user's further groups
    pub groups: Vec<u32>,
}

impl Ids {
    /// The numbers of somebody who was asked for them: those of the system are no user's of a domain, and no group's.
    ///
    /// # Errors
    /// The number of the user or of its first group is one of the system's.
    pub fn checked(mut self) -> Result<Self, Reason> {
        if !may_be_given(self.uid) || !may_be_given(self.gid) {
            return Err(Reason::SystemNumber);
        }
        self.groups.retain(|gid| may_be_given(*gid));
        Ok(self.in_order())
    }

    /// Each further group once.
    pub(crate) fn in_order(mut self) -> Self {
        self.groups.sort_unstable();
        self.groups.dedup();
        self.groups.retain(|gid| *gid != self.gid);
        self
    }
}

/// A user of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainUser {
    /// The user's name with the realm: `alice@EXAMPLE.ORG`. No account has such a name.
    pub name: String,
    /// Who the user is, whatever the name
    pub sid: Sid,
    /// The user on this machine
    pub uid: u32,
    /// The user's first group
    pub gid: u32,
    /// The user's further groups
    pub groups: Vec<u32>,
    /// The SIDs of the user's groups in the user's own domain and in trusted ones, and those that the user had there before
    pub group_sids: Arc<[Sid]>,
    /// How many SIDs of other domains the ticket has, which do not count
    pub foreign_sids: usize,
}

/// A user of a domain whose numbers are not known yet.
#[derive(Clone, Debug)]
pub struct Unnumbered {
    /// The user, by the word of the KDC
    pub(crate) client: Principal,
    pub(crate) service: Principal,
    /// What the domain says of the user
    pub(crate) logon: LogonInfo,
    pub(crate) group_sids: Arc<[Sid]>,
    pub(crate) foreign_sids: usize,
}

impl Unnumbered {
    /// The user's name with the realm: `alice@EXAMPLE.ORG`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}@{}", self.logon.account, self.client.realm())
    }

    /// The realm in which the user has a ticket.
    #[must_use]
    pub fn realm(&self) -> &str {
        self.client.realm()
    }

    /// What the domain says of the user.
    #[must_use]
    pub fn logon(&self) -> &LogonInfo {
        &self.logon
    }

    /// The user with these numbers.
    pub(crate) fn with(self, ids: Ids) -> DomainUser {
        let name = self.name();
        let Self { logon, group_sids, foreign_sids, .. } = self;
        let Ids { uid, gid, groups } = ids;
        DomainUser { name, sid: logon.sid, uid, gid, groups, group_sids, foreign_sids }
    }
}

/// Who a client with a ticket is.
#[derive(Clone, Debug)]
pub enum Identified {
    /// A user who is known
    Known(Identity),
    /// A user for whose numbers somebody must be asked
    Unnumbered(Box<(Unnumbered, Arc<dyn NumberSource>)>),
}

impl Identified {
    /// The user's name.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Known(identity) => identity.name().to_owned(),
            Self::Unnumbered(asking) => asking.0.name(),
        }
    }

    /// The service for which the user has shown a ticket, if somebody must be asked; for the log.
    pub(crate) fn service(&self) -> Option<String> {
        match self {
            Self::Known(_) => None,
            Self::Unnumbered(asking) => Some(asking.0.service.to_string()),
        }
    }

    /// The user with numbers. Waits for whoever is asked for them.
    ///
    /// # Errors
    /// The user has no number, or nobody says which.
    pub async fn numbered(self, accounts: &dyn Accounts) -> Result<Identity, Reason> {
        let (user, source) = match self {
            Self::Known(identity) => return Ok(identity),
            Self::Unnumbered(asking) => *asking,
        };
        let ids = source.numbers_of(&user).await.and_then(Ids::checked);
        let (client, logon) = (user.client.clone(), user.logon.clone());
        let identity = ids.map(|ids| Identity::Domain(user.with(ids)));
        let outcome = identity.as_ref().map_err(|reason| *reason);
        accounts.met(&Met { client: &client, logon: Some(&logon), outcome });
        identity
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(uid: u32, gid: u32, groups: &[u32]) -> Ids {
        Ids { uid, gid, groups: groups.to_vec() }
    }

    #[test]
    fn a_domain_gives_no_number_of_the_system() {
        let given = ids(1000, 4_294_967_294, &[11_000, 999, 0, 11_000, 4_294_967_294, 4_294_967_295, 5000]);
        assert_eq!(given.checked(), Ok(ids(1000, 4_294_967_294, &[5000, 11_000])));
        for (uid, gid) in [(0, 1000), (999, 1000), (u32::MAX, 1000), (1000, 0), (1000, 999), (1000, u32::MAX)]
        {
            assert_eq!(ids(uid, gid, &[]).checked(), Err(Reason::SystemNumber), "{uid} {gid}");
        }
    }
}
