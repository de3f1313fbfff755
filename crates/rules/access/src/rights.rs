//! What users may do in a share: its user list, asked before the permissions of any file.

use std::fmt;
use std::str::FromStr;

use crate::Names;
use acl::Sid;
use identity::{Identity, Proof};

use crate::folded_name;

/// Entries of a share's user list.
pub const RIGHTS_MAX: usize = 1024;

/// Longest name of a user or a group, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// What a user on the list may do, from least to most. Up to [`Role::Elevated`], the permissions of each file decide within
/// that. The roles are those of Azure Files: SMB Share Reader, Contributor and Elevated Contributor, and SMB Admin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// May change nothing.
    Reader,
    /// May change the contents of the share, but no permissions and owners.
    Contributor,
    /// May also change permissions and owners.
    Elevated,
    /// May do all of this whatever the permissions say, and give files to others.
    Admin,
}

impl Role {
    /// All roles, from least to most.
    pub const ALL: [Self; 4] = [Self::Reader, Self::Contributor, Self::Elevated, Self::Admin];

    /// The name of the role.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Contributor => "contributor",
            Self::Elevated => "elevated",
            Self::Admin => "admin",
        }
    }

    /// The list of a share whose users and groups have the role.
    #[must_use]
    pub fn list(self) -> &'static str {
        match self {
            Self::Reader => "read",
            Self::Contributor => "write",
            Self::Elevated => "elevated",
            Self::Admin => "admin",
        }
    }

    /// Whether this role may change permissions and owners.
    #[must_use]
    pub fn changes_permissions(self) -> bool {
        self >= Self::Elevated
    }
}

/// The user or group that an entry of the list names. Names are folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Who {
    /// The account of this name, or the user of a domain: `NAME@REALM`.
    User(String),
    /// The members of this group of the system: `@NAME`.
    Group(String),
    /// The user or the members of the group with this SID, from wherever.
    Sid(Sid),
    /// A user or the members of a group of a domain, by a name that somebody must look up there.
    OfDomain(DomainName),
}

/// The name of a user or a group of a domain: `DOMAIN\NAME`, or for groups alone `@DOMAIN\NAME` or `@NAME@DOMAIN`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DomainName {
    /// The domain by its NetBIOS name or its DNS name.
    pub domain: String,
    /// The account name there (`sAMAccountName`).
    pub name: String,
    /// Whether only a group may be meant.
    pub is_group: bool,
}

/// An entry of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Right {
    /// The user or group.
    pub who: Who,
    /// What the user or group may do.
    pub role: Role,
}

/// A group of the system.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// The gid.
    pub gid: u32,
    /// The members that the system lists, folded.
    pub members: Vec<String>,
}

impl Who {
    /// Whether an account, or a user of a domain, with this name and identity is meant.
    fn is(&self, names: &Names, account: &str, identity: &Identity) -> bool {
        match self {
            Self::Sid(_) | Self::OfDomain(_) => self.is_by_identity(names, identity),
            Self::User(name) => *name == account,
            Self::Group(name) => names.groups.get(name).is_some_and(|group| {
                identity.is_in_group(group.gid) || group.members.iter().any(|member| member == account)
            }),
        }
    }

    /// Whether whoever has this identity is meant, whatever the name.
    fn is_by_identity(&self, names: &Names, identity: &Identity) -> bool {
        match self {
            Self::Sid(sid) => identity.token().holds(sid),
            Self::OfDomain(name) => match names.of_domains.get(name) {
                Some(InDomain::Sid(sid)) => identity.token().holds(sid),
                Some(InDomain::Gid(gid)) => identity.is_in_group(*gid),
                Some(InDomain::Uid(uid)) => identity.uid() == *uid,
                None => false,
            },
            Self::User(_) | Self::Group(_) => false,
        }
    }
}

/// What the name of a user or a group of a domain stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InDomain {
    /// The user or group with this SID: the directory of the domain says so.
    Sid(Sid),
    /// The group with this gid: the name service of the machine says so.
    Gid(u32),
    /// The user with this uid: the name service of the machine says so.
    Uid(u32),
}

/// The entry of this list that gives a user the most; None: none gives anything.
pub(super) fn listed<'r>(
    rights: &'r [Right],
    names: &Names,
    identity: &Identity,
    proof: &Proof,
) -> Option<&'r Right> {
    let of_account =
        |account: &str| highest(rights.iter().filter(|right| right.who.is(names, account, identity)));
    match proof {
        Proof::Password(name) | Proof::Ticket(name) => of_account(&folded_name(name)),
        Proof::Stated => {
            let accounts = names.accounts.get(&identity.uid()).into_iter().flatten();
            let by_identity = rights.iter().filter(|right| right.who.is_by_identity(names, identity));
            highest(accounts.filter_map(|account| of_account(account)).chain(by_identity))
        }
        Proof::Guest => None,
    }
}

/// The entry with the highest role, and the first of several.
fn highest<'r>(rights: impl Iterator<Item = &'r Right>) -> Option<&'r Right> {
    rights.reduce(|first, next| if next.role > first.role { next } else { first })
}

/// Whether the server knows the user: an account, or the user of a domain. A uid that a client states is known if an account
/// or a user of a domain has it.
pub(super) fn is_known(names: &Names, identity: &Identity, proof: &Proof) -> bool {
    match proof {
        Proof::Password(_) | Proof::Ticket(_) => true,
        Proof::Stated => names.accounts.contains_key(&identity.uid()) || identity.sid().is_some(),
        Proof::Guest => false,
    }
}

/// The text names no user or group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names nobody: expected the name of a user (anna), of a user of a domain (anna@EXAMPLE.ORG or EXAMPLE\\anna), @ and the name of a group of this machine, a group of a domain (EXAMPLE\\staff), or a SID"
)]
pub struct NamesNobody(pub String);

impl DomainName {
    /// The name in a text without the `@` of groups. None: it has no domain, or is none.
    fn parse(text: &str, is_group: bool) -> Option<Self> {
        let (domain, name) = match text.split_once('\\') {
            Some(parts) => parts,
            None => text.rsplit_once('@').filter(|_| is_group).map(|(name, domain)| (domain, name))?,
        };
        // The schema of Active Directory forbids these in sAMAccountName, except @. A space is common, as in "Domain Users".
        let bad = |c: char| c.is_control() || "\"/\\[]:|<>+=;?,*@".contains(c);
        let is_name = |part: &str| !part.is_empty() && part.trim() == part && !part.contains(bad);
        let is_good = is_name(domain) && !domain.contains(' ') && is_name(name);
        is_good.then(|| Self { domain: domain.to_owned(), name: name.to_owned(), is_group })
    }

    /// The name as winbind and Samba know it: `DOMAIN\NAME`.
    #[must_use]
    pub fn plain(&self) -> String {
        format!("{}\\{}", self.domain, self.name)
    }
}

impl fmt::Display for DomainName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}\\{}", if self.is_group { "@" } else { "" }, self.domain, self.name)
    }
}

impl FromStr for Who {
    type Err = NamesNobody;

    fn from_str(text: &str) -> Result<Self, NamesNobody> {
        let nobody = || NamesNobody(text.to_owned());
        if text.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("S-"))
            && let Ok(sid) = text.parse()
        {
            return Ok(Self::Sid(sid));
        }
        let group = text.strip_prefix('@');
        let name = group.unwrap_or(text);
        if name.len() <= NAME_BYTES_MAX
            && let Some(name) = DomainName::parse(name, group.is_some())
        {
            return Ok(Self::OfDomain(name));
        }
        let bad = |c: char| c.is_control() || c.is_whitespace() || matches!(c, ',' | '@' | ':' | '\\' | '/');
        let is_bad = |part: &str| part.is_empty() || part.chars().any(bad);
        let (local, realm) = match name.split_once('@').filter(|_| group.is_none()) {
            Some((local, realm)) => (local, Some(realm)),
            None => (name, None),
        };
        if name.len() > NAME_BYTES_MAX || is_bad(local) || realm.is_some_and(is_bad) {
            return Err(nobody());
        }
        // Group names belong to the system, which distinguishes their case.
        Ok(group.map_or_else(|| Self::User(folded_name(name)), |group| Self::Group(group.to_owned())))
    }
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(name) => f.write_str(name),
            Self::Group(name) => write!(f, "@{name}"),
            Self::Sid(sid) => write!(f, "{sid}"),
            Self::OfDomain(name) => write!(f, "{name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Rules;

    fn rights(read: &[&str], write: &[&str]) -> Vec<Right> {
        let of = |names: &[&str], role| {
            names.iter().map(|name| Right { who: name.parse().unwrap(), role }).collect::<Vec<_>>()
        };
        [of(read, Role::Reader), of(write, Role::Contributor)].concat()
    }

    fn names() -> Names {
        let account = |uid, name: &str| (uid, vec![name.to_owned()]);
        let group = |name: &str, gid, members: &[&str]| {
            (name.to_owned(), Group { gid, members: members.iter().map(|&name| name.to_owned()).collect() })
        };
        Names {
            groups: [group("staff", 50, &["otto"]), group("Wheel", 10, &[])].into(),
            accounts: [account(1000, "anna"), account(1001, "otto")].into(),
            ..Names::default()
        }
    }

    fn listed_role(rights: &[Right], names: &Names, identity: &Identity, proof: &Proof) -> Option<Role> {
        listed(rights, names, identity, proof).map(|right| right.role)
    }

    #[test]
    fn what_gives_a_role_is_told() {
        let by = |list: &[(&str, Role)], default_role, name: &str, groups: &[u32]| {
            let rights = list.iter().map(|&(who, role)| Right { who: who.parse().unwrap(), role }).collect();
            let rules = Rules { rights, default_role, ..Rules::default() };
            let grant =
                rules.grant(&names(), &identity(7, 7, groups), &Proof::Password(name.into())).unwrap();
            (grant.role, grant.by.to_string().to_ascii_lowercase())
        };
        let told = |role, by: &str| (role, by.to_owned());
        assert_eq!(by(&[], None, "eve", &[]), told(Role::Elevated, "no list"));
        let list = [("@staff", Role::Reader), ("@Wheel", Role::Reader), ("eve", Role::Elevated)];
        assert_eq!(by(&list, None, "otto", &[10, 50]), told(Role::Reader, "@staff"), "the first of several");
        assert_eq!(by(&list, None, "eve", &[50]), told(Role::Elevated, "eve"), "the most");
        let contributors = Some(Role::Contributor);
        assert_eq!(by(&list, contributors, "otto", &[50]), told(Role::Contributor, "default-role"));
        assert_eq!(by(&list, Some(Role::Elevated), "eve", &[]), told(Role::Elevated, "eve"), "as good");
    }

    fn identity(uid: u32, gid: u32, groups: &[u32]) -> Identity {
        Identity::unix(uid, gid, groups.to_vec())
    }

    #[test]
    fn without_a_list_everybody_does_everything_and_with_one_nobody_else() {
        let guest = |rights: Vec<Right>| {
            let rules = Rules { rights, ..Rules::default() };
            rules.role(&names(), &identity(7, 7, &[]), &Proof::Guest)
        };
        assert_eq!(guest(Vec::new()), Some(Role::Elevated));
        assert_eq!(guest(rights(&["anna"], &[])), None);
    }

    #[test]
    fn contributors_change_permissions_until_a_role_is_named_for_that() {
        let of = |list: &[(&str, Role)], default_role, name: &str| {
            let rights = list.iter().map(|&(who, role)| Right { who: who.parse().unwrap(), role }).collect();
            let rules = Rules { rights, default_role, ..Rules::default() };
            rules.role(&names(), &identity(7, 7, &[]), &Proof::Password(name.into()))
        };
        let writer = ("anna", Role::Contributor);
        assert_eq!(of(&[writer], None, "anna"), Some(Role::Elevated));
        for more in [Role::Elevated, Role::Admin] {
            let list = [writer, ("otto", more)];
            assert_eq!(of(&list, None, "anna"), Some(Role::Contributor), "{more:?}");
            assert_eq!((of(&list, None, "otto"), of(&list, None, "eve")), (Some(more), None));
        }
        let elevated = ("otto", Role::Elevated);
        assert_eq!(of(&[elevated], Some(Role::Reader), "eve"), Some(Role::Reader));
        assert_eq!(of(&[elevated], Some(Role::Reader), "otto"), Some(Role::Elevated));
        assert_eq!(of(&[], Some(Role::Contributor), "eve"), Some(Role::Elevated), "as without a list");
        assert_eq!(of(&[], Some(Role::Admin), "eve"), Some(Role::Admin));
    }

    #[test]
    fn a_default_role_is_that_of_everybody_whom_the_server_knows() {
        let rules = Rules { default_role: Some(Role::Reader), ..Rules::default() };
        let asked = |identity: &Identity, proof| rules.role(&names(), identity, &proof);
        let (anna, eve) = (identity(1000, 7, &[]), identity(7, 7, &[]));
        assert_eq!(asked(&eve, Proof::Password("eve".into())), Some(Role::Reader));
        assert_eq!(asked(&eve, Proof::Ticket("eve@AD.LAB.TEST".into())), Some(Role::Reader));
        assert_eq!(asked(&anna, Proof::Stated), Some(Role::Reader), "the uid of an account");
        assert_eq!(asked(&eve, Proof::Stated), None, "no account has this uid");
        let of_domain = eve.clone().with_sids(Some("S-1-5-21-1-2-3-1104".parse().unwrap()), []);
        assert_eq!(asked(&of_domain, Proof::Stated), Some(Role::Reader));
        assert_eq!(asked(&eve, Proof::Guest), None);
    }

    #[test]
    fn accounts_are_those_that_the_list_names_or_their_groups() {
        let list = rights(&["Anna", "@staff"], &["@Wheel", "otto"]);
        let asked = |name: &str, gid, groups: &[u32]| {
            listed_role(&list, &names(), &identity(7, gid, groups), &Proof::Password(name.into()))
        };
        assert_eq!(asked("ANNA", 7, &[]), Some(Role::Reader));
        assert_eq!(asked("Otto", 7, &[]), Some(Role::Contributor), "the most that any entry gives");
        assert_eq!(asked("eve", 7, &[]), None);
        assert_eq!(asked("eve", 7, &[50]), Some(Role::Reader));
        assert_eq!(asked("eve", 10, &[50]), Some(Role::Contributor));
        let by_membership = rights(&["@staff"], &[]);
        let otto = Proof::Password("otto".into());
        assert_eq!(listed_role(&by_membership, &names(), &identity(7, 7, &[]), &otto), Some(Role::Reader));
        let unknown = rights(&[], &["@nobody-knows"]);
        let anna = Proof::Password("anna".into());
        assert_eq!(listed_role(&unknown, &names(), &identity(7, 0, &[]), &anna), None);
    }

    #[test]
    fn a_uid_is_that_of_an_account_or_of_nobody() {
        let list = rights(&["@staff"], &["anna"]);
        let asked =
            |uid, groups: &[u32]| listed_role(&list, &names(), &identity(uid, 7, groups), &Proof::Stated);
        assert_eq!(asked(1000, &[]), Some(Role::Contributor));
        assert_eq!(asked(1001, &[]), Some(Role::Reader), "a member, whatever groups the client states");
        assert_eq!(asked(1002, &[50]), None, "no account has this uid");
        assert_eq!(asked(0, &[0, 50]), None);
    }

    #[test]
    fn people_of_a_domain_are_named_by_principal_or_by_sid() {
        let list = rights(&["alice@AD.LAB.TEST", "S-1-5-21-1-2-3-513"], &["S-1-5-21-1-2-3-1110"]);
        let sid = |rid: u32| format!("S-1-5-21-1-2-3-{rid}").parse::<Sid>().unwrap();
        let asked = |name: &str, rids: &[u32], proof: fn(Arc<str>) -> Proof| {
            let sids: Vec<Sid> = rids.iter().map(|rid| sid(*rid)).collect();
            let user = identity(1_000_001, 7, &[]).with_sids(None, sids);
            listed_role(&list, &names(), &user, &proof(name.into()))
        };
        assert_eq!(asked("Alice@AD.LAB.TEST", &[], Proof::Ticket), Some(Role::Reader));
        assert_eq!(asked("alice", &[], Proof::Password), None, "the account is another user");
        assert_eq!(asked("bob@AD.LAB.TEST", &[513], Proof::Ticket), Some(Role::Reader));
        assert_eq!(asked("bob@AD.LAB.TEST", &[513, 1110], Proof::Ticket), Some(Role::Contributor));
        assert_eq!(asked("bob@AD.LAB.TEST", &[1111], Proof::Ticket), None);
        // Over NFS there is a number, and with the number the SIDs that it has; a guest has nothing.
        assert_eq!(asked("", &[1110], |_| Proof::Stated), Some(Role::Contributor));
        assert_eq!(asked("", &[1111], |_| Proof::Stated), None);
        assert_eq!(asked("", &[1110], |_| Proof::Guest), None);
    }

    #[test]
    fn names_of_a_domain_mean_whom_the_domain_says() {
        let sid = |rid: u32| format!("S-1-5-21-1-2-3-{rid}").parse::<Sid>().unwrap();
        let of = |text: &str| match text.parse() {
            Ok(Who::OfDomain(name)) => name,
            other => panic!("{text}: {other:?}"),
        };
        let list = rights(&["AD\\projects", "@AD\\Domain Users"], &["AD\\alice", "AD\\unknown"]);
        let known = [
            (of("AD\\projects"), InDomain::Sid(sid(1110))),
            (of("@AD\\Domain Users"), InDomain::Gid(10_000)),
            (of("AD\\alice"), InDomain::Sid(sid(1104))),
        ];
        let names = Names { of_domains: known.into(), ..names() };
        let asked = |user: Option<u32>, groups: &[u32], gids: &[u32], proof: &Proof| {
            let sids: Vec<Sid> = groups.iter().map(|rid| sid(*rid)).collect();
            listed_role(&list, &names, &identity(5000, 7, gids).with_sids(user.map(sid), sids), proof)
        };
        let ticket = Proof::Ticket("somebody@AD.LAB.TEST".into());
        for proof in [&ticket, &Proof::Stated] {
            assert_eq!(asked(Some(1105), &[1110], &[], proof), Some(Role::Reader), "{proof:?}");
            assert_eq!(asked(Some(1104), &[1110], &[], proof), Some(Role::Contributor), "{proof:?}");
            assert_eq!(asked(Some(1105), &[], &[10_000], proof), Some(Role::Reader), "{proof:?}");
            assert_eq!(asked(Some(1105), &[1111], &[10_001], proof), None, "{proof:?}");
        }
        assert_eq!(asked(Some(1104), &[1110], &[10_000], &Proof::Guest), None);
        assert_eq!(of("@projects@ad.lab.test"), of("@ad.lab.test\\projects"));
        assert!(of("@AD\\x").is_group && !of("AD\\x").is_group);
    }

    #[test]
    fn what_is_read_is_written_the_same() {
        for text in ["anna", "@Staff", "w.e-i_rd$", "anna@ad.lab.test", "S-1-5-21-1-2-3-1104", "s-team"]
            .into_iter()
            .chain(["AD\\Alice", "@ad.lab.test\\Domain Users"])
        {
            assert_eq!(text.parse::<Who>().unwrap().to_string(), text);
        }
        assert_eq!("ANNA".parse::<Who>().unwrap().to_string(), "anna");
        for bad in
            ["", "@", "a b", "@@staff", "a,b", "anna@", "a@b@c", "\\anna", "AD\\", "@AD\\", "A D\\anna"]
        {
            assert_eq!(bad.parse::<Who>(), Err(NamesNobody(bad.to_owned())));
        }
        for bad in ["AD\\a\\b", "AD\\ anna", "AD\\an*a", "AD\\anna@x", "@staff@", "@a@b@c"] {
            assert!(bad.parse::<Who>().is_err(), "{bad:?}");
        }
    }
}
