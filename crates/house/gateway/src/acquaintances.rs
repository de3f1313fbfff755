//! The users of domains who have come with tickets since the start. Nobody has to be asked for what is known of them: a ticket says
//! who its user is and in which groups, and only a ticket says it here.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use acl::Sid;
use auth::{DomainUser, Identity, Met, Reason, folded_name};
use nfs_server::UserGroups;
use parking_lot::Mutex;
use share::{SeenIds, may_be_given};

/// The most users who are remembered. After that, those who came longest ago are forgotten.
const USERS_MAX: usize = 10_000;
/// How many are forgotten at a time, so that not every new user causes a search for the oldest.
const FORGOTTEN_AT_ONCE: usize = USERS_MAX / 10;

/// A user of a domain who has come with a ticket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Acquaintance {
    /// `alice@EXAMPLE.ORG`, as the domain writes it.
    pub(crate) name: String,
    /// The name of the domain before `\`; None: the domain has said nothing of the user.
    pub(crate) domain: Option<String>,
    /// Who the user is; None: the domain has said nothing of the user.
    pub(crate) sid: Option<Sid>,
    /// Who the user was here at the last ticket, or why nobody.
    pub(crate) outcome: Result<DomainUser, Reason>,
    /// The numbers of the user's groups; None: the user is nobody.
    pub(crate) groups: Option<Arc<UserGroups>>,
    /// When the last ticket came.
    pub(crate) at: SystemTime,
}

impl Acquaintance {
    fn of(met: &Met<'_>, at: SystemTime) -> Option<Self> {
        let outcome = match met.outcome {
            Ok(Identity::Domain(user)) => Ok(user.clone()),
            // The accounts know their users by themselves.
            Ok(Identity::Account(_) | Identity::Guest(_) | Identity::Anonymous) => return None,
            Err(reason) => Err(reason),
        };
        let name = match (&outcome, met.logon) {
            (Ok(user), _) => user.name.clone(),
            (Err(_), Some(logon)) => format!("{}@{}", logon.account, met.client.realm()),
            (Err(_), None) => met.client.to_string(),
        };
        let (domain, sid) = (met.logon.map(|logon| logon.domain.clone()), met.logon.map(|logon| logon.sid));
        let groups = outcome.as_ref().ok().map(|user| Arc::new(groups(user)));
        Some(Self { name, domain, sid, outcome, groups, at })
    }

    /// The name of the user in the domain, without the domain.
    pub(crate) fn account(&self) -> &str {
        self.name.split_once('@').map_or(&*self.name, |(account, _)| account)
    }
}

fn groups(user: &DomainUser) -> UserGroups {
    let all = [user.gid].into_iter().chain(user.groups.iter().copied()).collect();
    UserGroups { primary: Some(user.gid), all }
}

/// The most groups whose numbers are remembered. After that, all are forgotten, and remembered as their members come.
const GROUPS_MAX: usize = 100_000;

/// The numbers of groups, by the word of a directory.
#[derive(Debug, Default)]
struct KnownGroups {
    by_sid: HashMap<Sid, u32>,
    by_gid: HashMap<u32, Sid>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Acquaintances {
    /// Guards the numbers of groups. Held for one look-up.
    groups: Mutex<KnownGroups>,
    /// Guards the table. Held for one look-up, or for one search of it.
    known: Mutex<Known>,
}

/// By several keys. A SID has one name, and a number one user.
#[derive(Debug, Default)]
struct Known {
    by_name: HashMap<String, Arc<Acquaintance>>,
    by_sid: HashMap<Sid, String>,
    by_uid: HashMap<u32, String>,
}

impl Acquaintances {
    /// Remembers a user.
    pub(crate) fn met(&self, met: &Met<'_>, at: SystemTime) {
        if let Some(acquaintance) = Acquaintance::of(met, at) {
            self.known.lock().enter(acquaintance);
        }
    }

    /// Remembers the numbers of groups.
    pub(crate) fn saw_groups(&self, groups: impl Iterator<Item = (Sid, u32)>) {
        let mut known = self.groups.lock();
        for (sid, gid) in groups {
            if known.by_sid.len() >= GROUPS_MAX {
                *known = KnownGroups::default();
            }
            if let Some(before) = known.by_sid.insert(sid, gid)
                && before != gid
            {
                known.by_gid.remove(&before);
            }
            known.by_gid.insert(gid, sid);
        }
    }

    /// Forgets everybody: they have other numbers from now on.
    pub(crate) fn forget_all(&self) {
        *self.known.lock() = Known::default();
        *self.groups.lock() = KnownGroups::default();
    }

    /// The user with this name: `alice@EXAMPLE.ORG`, in any case.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Acquaintance>> {
        self.known.lock().by_name.get(&folded_name(name)).cloned()
    }

    /// The user with this SID.
    pub(crate) fn with_sid(&self, sid: &Sid) -> Option<Arc<Acquaintance>> {
        let known = self.known.lock();
        known.by_name.get(known.by_sid.get(sid)?).cloned()
    }

    /// The user who has this number here.
    pub(crate) fn with_uid(&self, uid: u32) -> Option<Arc<Acquaintance>> {
        let known = self.known.lock();
        known.by_name.get(known.by_uid.get(&uid)?).cloned()
    }

    /// The users with this name in any domain, or in the domain with this NetBIOS name, by their names.
    pub(crate) fn in_domain(&self, domain: Option<&str>, account: &str) -> Vec<Arc<Acquaintance>> {
        let is_meant = |known: &&Arc<Acquaintance>| {
            let has_domain =
                |domain: &str| known.domain.as_deref().is_some_and(|of| auth::same_name(of, domain));
            auth::same_name(known.account(), account) && domain.is_none_or(has_domain)
        };
        let mut found: Vec<_> = self.known.lock().by_name.values().filter(is_meant).cloned().collect();
        found.sort_by(|one, other| one.name.cmp(&other.name));
        found
    }
}

/// The numbers of those who were seen, where no formula gives them. A name service does not say which SIDs the groups of a user have, so
/// numbers of groups are known from a directory only. No number of the system is anybody's.
impl SeenIds for Acquaintances {
    fn uid_of(&self, sid: &Sid) -> Option<u32> {
        self.with_sid(sid)?.outcome.as_ref().ok().map(|user| user.uid)
    }

    fn user_of(&self, uid: u32) -> Option<Sid> {
        self.with_uid(uid)?.sid
    }

    fn gid_of(&self, sid: &Sid) -> Option<u32> {
        self.groups.lock().by_sid.get(sid).copied().filter(|gid| may_be_given(*gid))
    }

    fn group_of(&self, gid: u32) -> Option<Sid> {
        self.groups.lock().by_gid.get(&gid).copied().filter(|_| may_be_given(gid))
    }
}

impl Known {
    fn enter(&mut self, acquaintance: Acquaintance) {
        let name = folded_name(&acquaintance.name);
        if !self.by_name.contains_key(&name) && self.by_name.len() >= USERS_MAX {
            self.forget_oldest();
        }
        if let Some(sid) = acquaintance.sid
            && let Some(before) = self.by_sid.insert(sid, name.clone())
            && before != name
        {
            self.by_name.remove(&before); // the user was renamed
        }
        if let Ok(user) = &acquaintance.outcome {
            self.by_uid.insert(user.uid, name.clone());
        }
        if let Some(before) = self.by_name.insert(name.clone(), Arc::new(acquaintance)) {
            self.forget_keys(&before, &name);
        }
    }

    /// Removes the keys that no longer lead to the user of this name.
    fn forget_keys(&mut self, before: &Acquaintance, name: &str) {
        let now = self.by_name.get(name);
        let sid = before.sid.filter(|sid| now.is_none_or(|now| now.sid != Some(*sid)));
        if let Some(sid) = sid {
            self.by_sid.remove(&sid);
        }
        let uid_of = |known: &Acquaintance| known.outcome.as_ref().ok().map(|user| user.uid);
        let uid = uid_of(before).filter(|uid| now.and_then(|now| uid_of(now)) != Some(*uid));
        if let Some(uid) = uid.filter(|uid| self.by_uid.get(uid).is_some_and(|of| of == name)) {
            self.by_uid.remove(&uid);
        }
    }

    fn forget_oldest(&mut self) {
        let mut times: Vec<_> = self.by_name.iter().map(|(name, known)| (known.at, name.clone())).collect();
        times.sort_unstable();
        for (_, name) in times.into_iter().take(FORGOTTEN_AT_ONCE) {
            if let Some(gone) = self.by_name.remove(&name) {
                self.forget_keys(&gone, &name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn user(name: &str, rid: u32) -> Acquaintance {
        let sid = format!("S-1-5-21-1-2-3-{rid}").parse().unwrap();
        let name = format!("{name}@AD.TEST");
        let user = DomainUser {
            name: name.clone(),
            sid,
            uid: 1_000_000 + rid,
            gid: 1_000_513,
            groups: Vec::new(),
            group_sids: [].into(),
            foreign_sids: 0,
        };
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(rid.into());
        let groups = Some(Arc::new(groups(&user)));
        Acquaintance { name, domain: Some("AD".to_owned()), sid: Some(sid), outcome: Ok(user), groups, at }
    }

    fn names(found: &[Arc<Acquaintance>]) -> Vec<&str> {
        found.iter().map(|known| &*known.name).collect()
    }

    #[test]
    fn a_user_is_found_by_every_key() {
        let all = Acquaintances::default();
        all.known.lock().enter(user("Alice", 1104));
        all.known.lock().enter(Acquaintance { domain: Some("OTHER".to_owned()), ..user("bob", 1105) });
        let alice = all.named("alice@ad.test").unwrap();
        assert_eq!((&*alice.name, alice.account()), ("Alice@AD.TEST", "Alice"));
        assert_eq!(all.with_sid(&alice.sid.unwrap()), Some(Arc::clone(&alice)));
        assert_eq!(all.with_uid(1_001_104), Some(alice));
        assert_eq!(names(&all.in_domain(Some("ad"), "ALICE")), ["Alice@AD.TEST"]);
        assert_eq!(names(&all.in_domain(None, "bob")), ["bob@AD.TEST"]);
        assert!(all.in_domain(Some("ad"), "bob").is_empty() && all.with_uid(7).is_none());
        let sid = all.user_of(1_001_104).unwrap();
        assert_eq!((all.uid_of(&sid), all.user_of(7)), (Some(1_001_104), None));
        assert_eq!((all.gid_of(&sid), all.group_of(1_001_104)), (None, None), "a user is no group");
    }

    #[test]
    fn groups_are_known_by_their_numbers_and_back_and_bounded() {
        let all = Acquaintances::default();
        let group = |rid: u32| format!("S-1-5-21-1-2-3-{rid}").parse::<Sid>().unwrap();
        all.saw_groups([(group(1200), 11_000), (group(1201), 7)].into_iter());
        assert_eq!((all.gid_of(&group(1200)), all.group_of(11_000)), (Some(11_000), Some(group(1200))));
        assert_eq!((all.gid_of(&group(1201)), all.group_of(7)), (None, None), "a number of the system");
        all.saw_groups([(group(1200), 11_001)].into_iter());
        assert_eq!((all.group_of(11_000), all.group_of(11_001)), (None, Some(group(1200))));
        all.saw_groups((0..u32::try_from(GROUPS_MAX).unwrap()).map(|n| (group(10_000 + n), 20_000 + n)));
        assert!(all.groups.lock().by_sid.len() <= GROUPS_MAX);
        all.forget_all();
        assert_eq!(all.group_of(11_001), None);
    }

    #[test]
    fn who_is_renamed_is_the_same_and_who_takes_the_name_is_not() {
        let all = Acquaintances::default();
        let enter = |known: Acquaintance| all.known.lock().enter(known);
        let of = |rid: u32| all.with_uid(1_000_000 + rid).map(|known| known.name.clone());
        enter(user("alice", 1104));
        enter(user("alina", 1104));
        assert!(all.named("alice@AD.TEST").is_none());
        assert_eq!(of(1104), Some("alina@AD.TEST".to_owned()));
        enter(user("alina", 1106));
        assert_eq!((of(1104), of(1106)), (None, Some("alina@AD.TEST".to_owned())));
        // who no longer has a number has none
        let refused = Acquaintance { outcome: Err(Reason::ReservedId), ..user("alina", 1106) };
        enter(refused);
        assert_eq!(of(1106), None);
        assert!(all.named("alina@AD.TEST").is_some_and(|known| known.outcome == Err(Reason::ReservedId)));
    }

    #[test]
    fn the_oldest_are_forgotten_when_there_are_too_many() {
        let mut known = Known::default();
        for rid in 0..10_000 {
            known.enter(user(&format!("u{rid}"), rid));
        }
        assert_eq!(known.by_name.len(), USERS_MAX);
        known.enter(user("u9999", 9999));
        assert_eq!(known.by_name.len(), USERS_MAX, "one who is known takes no more room");
        known.enter(user("one more", 20_000));
        assert_eq!(known.by_name.len(), USERS_MAX - FORGOTTEN_AT_ONCE + 1);
        assert_eq!((known.by_sid.len(), known.by_uid.len()), (known.by_name.len(), known.by_name.len()));
        assert!(!known.by_name.contains_key("U999@AD.TEST") && known.by_name.contains_key("U1000@AD.TEST"));
    }
}
