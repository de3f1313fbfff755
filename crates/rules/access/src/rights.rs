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

/// What a user on the list may do, from least to most. Within that, the permissions of each file decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// May change nothing.
    Reader,
    /// May change the contents of the share.
    Contributor,
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

/// What a user may do by this list; None: nothing. With an empty list everybody is a contributor.
pub(super) fn role(rights: &[Right], names: &Names, identity: &Identity, proof: &Proof) -> Option<Role> {
    if rights.is_empty() {
        return Some(Role::Contributor);
    }
    let of_account = |account: &str| {
        let own = rights.iter().filter(|right| right.who.is(names, account, identity));
        own.map(|right| right.role).max()
    };
    match proof {
        Proof::Password(name) | Proof::Ticket(name) => of_account(&folded_name(name)),
        Proof::Stated => {
            let accounts = names.accounts.get(&identity.uid()).into_iter().flatten();
            let by_sid = rights.iter().filter(|right| right.who.is_by_sid(identity)).map(|right| right.role);
            accounts.filter_map(|account| of_account(account)).chain(by_sid).max()
        }
        Proof::Guest => None,
    }
}

/// The text names no user or group.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names nobody: expected the name of a user (anna), of a user of a domain (anna@EXAMPLE.ORG), @ and the name of a group of this machine, or a SID (groups of a domain have no other name here)"
)]
pub struct NamesNobody(String);

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

    fn identity(uid: u32, gid: u32, groups: &[u32]) -> Identity {
        Identity::unix(uid, gid, groups.to_vec())
    }

    #[test]
    fn without_a_list_everybody_contributes_and_with_one_nobody_else() {
        let guest = |rights: &[Right]| role(rights, &names(), &identity(7, 7, &[]), &Proof::Guest);
        assert_eq!(guest(&[]), Some(Role::Contributor));
        assert_eq!(guest(&rights(&["anna"], &[])), None);
    }

    #[test]
    fn accounts_are_those_that_the_list_names_or_their_groups() {
        let list = rights(&["Anna", "@staff"], &["@Wheel", "otto"]);
        let asked = |name: &str, gid, groups: &[u32]| {
            role(&list, &names(), &identity(7, gid, groups), &Proof::Password(name.into()))
        };
        assert_eq!(asked("ANNA", 7, &[]), Some(Role::Reader));
        assert_eq!(asked("Otto", 7, &[]), Some(Role::Contributor), "the most that any entry gives");
        assert_eq!(asked("eve", 7, &[]), None);
        assert_eq!(asked("eve", 7, &[50]), Some(Role::Reader));
        assert_eq!(asked("eve", 10, &[50]), Some(Role::Contributor));
        let by_membership = rights(&["@staff"], &[]);
        let otto = Proof::Password("otto".into());
        assert_eq!(role(&by_membership, &names(), &identity(7, 7, &[]), &otto), Some(Role::Reader));
        let unknown = rights(&[], &["@nobody-knows"]);
        let anna = Proof::Password("anna".into());
        assert_eq!(role(&unknown, &names(), &identity(7, 0, &[]), &anna), None);
    }

    #[test]
    fn a_uid_is_that_of_an_account_or_of_nobody() {
        let list = rights(&["@staff"], &["anna"]);
        let asked = |uid, groups: &[u32]| role(&list, &names(), &identity(uid, 7, groups), &Proof::Stated);
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
            role(&list, &names(), &user, &proof(name.into()))
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
