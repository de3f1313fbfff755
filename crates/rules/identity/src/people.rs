//! For whom numbers and SIDs stand.

use std::collections::HashMap;
use std::sync::Arc;

use acl::Sid;

use crate::{Domains, Identity};

/// The accounts of a server, and the domains that it knows: which numbers and which SIDs are the same user or group.
/// Replaced as a whole when they change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct People {
    domains: Option<Arc<Domains>>,
    /// Several accounts may act as one user of the machine.
    accounts: HashMap<u32, Vec<Sid>>,
    uids: HashMap<Sid, u32>,
}

impl People {
    /// These domains, and accounts with these uids and SIDs.
    #[must_use]
    pub fn new(domains: Option<Arc<Domains>>, accounts: impl IntoIterator<Item = (u32, Sid)>) -> Self {
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
        sid.uid().or_else(|| self.uids.get(sid).copied()).or_else(|| self.of_domain(sid))
    }

    /// The user of this machine for whom the account with this SID stands.
    #[must_use]
    pub fn account_uid(&self, sid: &Sid) -> Option<u32> {
        self.uids.get(sid).copied()
    }

    /// The group of this machine that a SID stands for.
    #[must_use]
    pub fn gid_of(&self, sid: &Sid) -> Option<u32> {
        sid.gid().or_else(|| self.of_domain(sid))
    }

    fn of_domain(&self, sid: &Sid) -> Option<u32> {
        self.domains.as_ref()?.id_of(sid)
    }

    /// The user or group of a domain that has this number.
    #[must_use]
    pub fn domain_sid_of(&self, id: u32) -> Option<Sid> {
        self.domains.as_ref()?.sid_of(id)
    }

    /// A user who is known by numbers only, with the SIDs that these numbers have.
    #[must_use]
    pub fn known(&self, identity: Identity) -> Identity {
        if self.domains.is_none() && self.accounts.is_empty() {
            return identity;
        }
        let of_accounts = self.accounts.get(&identity.uid()).into_iter().flatten().copied();
        let gids = identity.groups().iter().copied().chain([identity.gid()]);
        let of_groups = gids.filter_map(|gid| self.domain_sid_of(gid));
        let own = self.domain_sid_of(identity.uid());
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
        People::new(Some(Arc::new(domains)), accounts.map(|(uid, text)| (uid, sid(text))))
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
