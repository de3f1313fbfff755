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
            Self::Sid(_) => self.is_by_sid(identity),
            Self::User(name) => *name == account,
            Self::Group(name) => names.groups.get(name).is_some_and(|group| {
                identity.is_in_group(group.gid) || group.members.iter().any(|member| member == account)
            }),
        }
    }

    /// Whether whoever has this identity is meant, whatever the name.
    fn is_by_sid(&self, identity: &Identity) -> bool {
        match self {
            Self::Sid(sid) => identity.token().holds(sid),
            Self::User(_) | Self::Group(_) => false,
        }
    }
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
            let by_sid = rights.iter().filter(|right| right.who.is_by_sid(identity));
            highest(accounts.filter_map(|account| of_account(account)).chain(by_sid))
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
pub enum NamesNobody {
    /// It is no name.
    #[error(
        "{0:?} names nobody: expected the name of a user (anna), of a user of a domain (anna@EXAMPLE.ORG), @ and the name of a group of this machine, or a SID (groups of a domain have no other name here)"
    )]
    Unclear(String),
    /// It names a group of a domain, or a user in a form that only the domain can resolve.
    #[error(
        "{0:?} is a name that only a domain controller can look up, and this server asks none: write a user as anna@EXAMPLE.ORG, and a group as its SID. A member of the domain tells the SID: `wbinfo --name-to-sid GROUP`, `Get-ADGroup GROUP` in PowerShell, or `rpcclient DC -U USER -c 'lookupnames GROUP'`"
    )]
    OfDomain(String),
}

impl NamesNobody {
    fn of(text: &str) -> Self {
        let is_parted_by = |separator| {
            text.split_once(separator).is_some_and(|(one, two)| !one.is_empty() && !two.is_empty())
        };
        let is_of_domain = is_parted_by('\\')
            || text.strip_prefix('@').is_some_and(|group| group.contains('@') && !group.starts_with('@'));
        if is_of_domain { Self::OfDomain(text.to_owned()) } else { Self::Unclear(text.to_owned()) }
    }
}

impl FromStr for Who {
    type Err = NamesNobody;

    fn from_str(text: &str) -> Result<Self, NamesNobody> {
        let nobody = || NamesNobody::of(text);
        if text.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("S-"))
            && let Ok(sid) = text.parse()
        {
            return Ok(Self::Sid(sid));
        }
        let group = text.strip_prefix('@');
        let name = group.unwrap_or(text);
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
    fn groups_of_a_domain_are_not_looked_up_and_it_says_so() {
        for name in ["AD\\projects", "@AD\\projects", "@projects@AD.LAB.TEST"] {
            let refused = name.parse::<Who>().unwrap_err();
            assert_eq!(refused, NamesNobody::OfDomain(name.to_owned()));
            assert!(refused.to_string().contains("SID"), "{refused}");
        }
        assert_eq!("\\projects".parse::<Who>(), Err(NamesNobody::Unclear("\\projects".to_owned())));
        assert_eq!("@@staff".parse::<Who>(), Err(NamesNobody::Unclear("@@staff".to_owned())));
    }

    #[test]
    fn what_is_read_is_written_the_same() {
        for text in ["anna", "@Staff", "w.e-i_rd$", "anna@ad.lab.test", "S-1-5-21-1-2-3-1104", "s-team"] {
            assert_eq!(text.parse::<Who>().unwrap().to_string(), text);
        }
        assert_eq!("ANNA".parse::<Who>().unwrap().to_string(), "anna");
        for bad in ["", "@", "a b", "@@staff", "a,b", "DOMAIN\\anna", "anna@", "a@b@c", "@staff@REALM"] {
            assert!(bad.parse::<Who>().is_err(), "{bad:?}");
        }
    }
}
