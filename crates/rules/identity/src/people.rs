//! For whom numbers and SIDs stand.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use acl::Sid;

use crate::{Domains, Identity};

/// The numbers of users and groups of domains that somebody was asked for. Only those that were seen are known. This is called on the
/// thread of a connection, so it must not wait, and asks nobody.
pub trait SeenIds: fmt::Debug + Send + Sync {
    /// The uid of the user with this SID.
    fn uid_of(&self, sid: &Sid) -> Option<u32>;
    /// The user with this uid.
    fn user_of(&self, uid: u32) -> Option<Sid>;
    /// The gid of the group with this SID.
    fn gid_of(&self, sid: &Sid) -> Option<u32>;
    /// The group with this gid.
    fn group_of(&self, gid: u32) -> Option<Sid>;
}

/// What is known of the numbers of domains.
#[derive(Clone, Debug, Default)]
pub enum DomainIds {
    /// Nothing: no number leads to a SID, and no SID to a number.
    #[default]
    Unknown,
    /// They follow from the SIDs.
    Formula(Arc<Domains>),
    /// Those that were seen.
    Seen(Arc<dyn SeenIds>),
}

/// The same numbers are known, or will be.
impl PartialEq for DomainIds {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unknown, Self::Unknown) => true,
            (Self::Formula(one), Self::Formula(other)) => one == other,
            (Self::Seen(one), Self::Seen(other)) => Arc::ptr_eq(one, other),
            (Self::Unknown | Self::Formula(_) | Self::Seen(_), _) => false,
        }
    }
}

impl Eq for DomainIds {}

impl DomainIds {
    fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown)
    }

    fn uid_of(&self, sid: &Sid) -> Option<u32> {
        match self {
            Self::Unknown => None,
            Self::Formula(domains) => domains.id_of(sid),
            Self::Seen(seen) => seen.uid_of(sid),
        }
    }

    fn gid_of(&self, sid: &Sid) -> Option<u32> {
        match self {
            Self::Unknown => None,
            Self::Formula(domains) => domains.id_of(sid),
            Self::Seen(seen) => seen.gid_of(sid),
        }
    }

    fn user_of(&self, uid: u32) -> Option<Sid> {
        match self {
            Self::Unknown => None,
            Self::Formula(domains) => domains.sid_of(uid),
            Self::Seen(seen) => seen.user_of(uid),
        }
    }

    fn group_of(&self, gid: u32) -> Option<Sid> {
        match self {
            Self::Unknown => None,
            Self::Formula(domains) => domains.sid_of(gid),
            Self::Seen(seen) => seen.group_of(gid),
        }
    }
}

/// The accounts of a server, and the domains that it knows: which numbers and which SIDs are the same user or group.
/// Replaced as a whole when they change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct People {
    domains: DomainIds,
    /// Several accounts may act as one user of the machine.
    accounts: HashMap<u32, Vec<Sid>>,
    uids: HashMap<Sid, u32>,
}

impl People {
    /// These domains, and accounts with these uids and SIDs.
    #[must_use]
    pub fn new(domains: DomainIds, accounts: impl IntoIterator<Item = (u32, Sid)>) -> Self {
        let mut people = Self { domains, ..Self::default() };
        for (uid, sid) in accounts {
            people.accounts.entry(uid).or_default().push(sid);
            people.uids.insert(sid, uid);
        }
        people.accounts.values_mut().for_each(|sids| sids.sort_unstable());
        people
    }

    /// The user of this machine that a SID stands for.
    #[must_use]
    pub fn uid_of(&self, sid: &Sid) -> Option<u32> {
        sid.uid().or_else(|| self.uids.get(sid).copied()).or_else(|| self.domains.uid_of(sid))
    }

    /// The user of this machine for whom the account with this SID stands.
    #[must_use]
    pub fn account_uid(&self, sid: &Sid) -> Option<u32> {
        self.uids.get(sid).copied()
    }

    /// The group of this machine that a SID stands for.
    #[must_use]
    pub fn gid_of(&self, sid: &Sid) -> Option<u32> {
        sid.gid().or_else(|| self.domains.gid_of(sid))
    }

    /// The user or group of a domain that has the number for which a SID stands (S-1-22).
    #[must_use]
    pub fn domain_sid_of(&self, number: &Sid) -> Option<Sid> {
        match number.uid() {
            Some(uid) => self.domains.user_of(uid),
            None => self.domains.group_of(number.gid()?),
        }
    }

    /// A user who is known by numbers only, with the SIDs that these numbers have.
    #[must_use]
    pub fn known(&self, identity: Identity) -> Identity {
        if self.domains.is_unknown() && self.accounts.is_empty() {
            return identity;
        }
        let of_accounts = self.accounts.get(&identity.uid()).into_iter().flatten().copied();
        let gids = identity.groups().iter().copied().chain([identity.gid()]);
        let of_groups = gids.filter_map(|gid| self.domains.group_of(gid));
        let own = self.domains.user_of(identity.uid());
        let sids: Vec<Sid> = of_accounts.chain(of_groups).collect();
        identity.with_sids(own, sids)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Slice;

    fn sid(text: &str) -> Sid {
        text.parse().unwrap()
    }

    fn people() -> People {
        let slice = Slice { first: 1_000_000, len: 100_000 };
        let domains = Domains::of(vec![(sid("S-1-5-21-1-2-3"), slice)]).unwrap();
        let accounts =
            [(1000, "S-1-5-21-9-9-9-1000"), (1001, "S-1-5-21-9-9-9-1001"), (1000, "S-1-5-21-9-9-9-1002")];
        People::new(DomainIds::Formula(Arc::new(domains)), accounts.map(|(uid, text)| (uid, sid(text))))
    }

    #[test]
    fn a_number_has_the_sids_of_its_accounts_or_of_its_domain() {
        let sids = |uid, gid, groups: &[u32]| {
            let identity = people().known(Identity::unix(uid, gid, groups.to_vec()));
            identity.sids().iter().map(Sid::to_string).collect::<Vec<_>>()
        };
        assert_eq!(sids(1000, 1000, &[]), ["S-1-5-21-9-9-9-1000", "S-1-5-21-9-9-9-1002"]);
        assert_eq!(sids(1002, 1000, &[7]), [""; 0]);
        let alice = sids(1_001_104, 1_000_513, &[1_001_110, 50]);
        assert_eq!(alice, ["S-1-5-21-1-2-3-513", "S-1-5-21-1-2-3-1104", "S-1-5-21-1-2-3-1110"]);
    }

    /// alice alone was seen, with one group.
    #[derive(Debug)]
    struct Alice;

    impl SeenIds for Alice {
        fn uid_of(&self, of: &Sid) -> Option<u32> {
            (*of == sid("S-1-5-21-1-2-3-1104")).then_some(10_001)
        }

        fn user_of(&self, uid: u32) -> Option<Sid> {
            (uid == 10_001).then(|| sid("S-1-5-21-1-2-3-1104"))
        }

        fn gid_of(&self, of: &Sid) -> Option<u32> {
            (*of == sid("S-1-5-21-1-2-3-1110")).then_some(10_001)
        }

        fn group_of(&self, gid: u32) -> Option<Sid> {
            (gid == 10_001).then(|| sid("S-1-5-21-1-2-3-1110"))
        }
    }

    #[test]
    fn a_number_that_was_seen_is_a_user_or_a_group() {
        let people = People::new(DomainIds::Seen(Arc::new(Alice)), []);
        let (alice, staff) = (sid("S-1-5-21-1-2-3-1104"), sid("S-1-5-21-1-2-3-1110"));
        assert_eq!((people.uid_of(&alice), people.gid_of(&alice)), (Some(10_001), None));
        assert_eq!((people.uid_of(&staff), people.gid_of(&staff)), (None, Some(10_001)));
        assert_eq!(people.domain_sid_of(&Sid::of_user(10_001)), Some(alice));
        assert_eq!(people.domain_sid_of(&Sid::of_group(10_001)), Some(staff));
        assert_eq!(people.domain_sid_of(&Sid::of_user(10_002)), None);
        let known = people.known(Identity::unix(10_001, 10_000, vec![10_001]));
        assert_eq!((known.sid(), known.sids()), (Some(alice), &[alice, staff][..]));
        assert_eq!(people.known(Identity::unix(7, 10_000, vec![])).sids(), []);
    }

    #[test]
    fn a_sid_stands_for_the_same_number() {
        let people = people();
        assert_eq!(people.uid_of(&sid("S-1-22-1-7")), Some(7));
        assert_eq!(people.uid_of(&sid("S-1-5-21-9-9-9-1002")), Some(1000));
        assert_eq!(people.uid_of(&sid("S-1-5-21-1-2-3-1104")), Some(1_001_104));
        assert_eq!(people.gid_of(&sid("S-1-5-21-1-2-3-513")), Some(1_000_513));
        assert_eq!(people.gid_of(&sid("S-1-5-21-9-9-9-1002")), None);
        for nobody in ["S-1-5-21-1-2-4-1104", "S-1-5-32-544", "S-1-1-0", "S-1-5-21-9-9-9-1003"] {
            assert_eq!((people.uid_of(&sid(nobody)), people.gid_of(&sid(nobody))), (None, None), "{nobody}");
        }
    }
}
