//! Who is in the domains of this server.

use acl::Sid;
use auth::same_name;
use smb_wire::lsarpc::SidKind;
use smb_wire::samr::{Entry, Kind, account_control};

use super::object::{Domain, Member};
use crate::directory::AccountEntry;
use crate::pipe::Host;

/// The group that all accounts of a server have: DOMAIN_GROUP_RID_USERS, which is called None where there is no domain.
const ALL_ACCOUNTS: u32 = 513;
const ALL_ACCOUNTS_NAME: &str = "None";
/// The domain of the aliases that every server has.
const BUILTIN: &str = "Builtin";
/// These aliases. Whom an access list means by them is said in `acl` (`Token::holds`).
const ALIASES: [(Sid, &str); 3] =
    [(Sid::ADMINISTRATORS, "Administrators"), (Sid::USERS, "Users"), (Sid::GUESTS, "Guests")];
/// The superuser, and the user nobody.
const ROOT: u32 = 0;
const NOBODY: u32 = 65_534;
/// The most members of a group or alias in an answer, which has no way to go on.
const MEMBERS_MAX: usize = 1000;

/// The accounts and groups of a server, as of now.
pub(super) struct Book<'a> {
    name: &'a str,
    machine: Option<Sid>,
    /// By RID.
    accounts: Vec<(u32, AccountEntry)>,
}

impl<'a> Book<'a> {
    pub(super) fn of(host: &Host<'a>) -> Self {
        let machine = host.directory.machine();
        let of_this_machine = |account: AccountEntry| {
            let (domain, rid) = account.sid.in_domain()?;
            (Some(domain) == machine).then_some((rid, account))
        };
        let mut accounts: Vec<_> =
            host.directory.accounts().into_iter().filter_map(of_this_machine).collect();
        accounts.sort_unstable_by_key(|(rid, _)| *rid);
        Self { name: host.name, machine, accounts }
    }

    /// The domains, with their names.
    pub(super) fn domains(&self) -> Vec<(Domain, String)> {
        let accounts = self.machine.map(|_| (Domain::Accounts, self.name.to_owned()));
        accounts.into_iter().chain([(Domain::Builtin, BUILTIN.to_owned())]).collect()
    }

    pub(super) fn sid(&self, domain: Domain) -> Option<Sid> {
        match domain {
            Domain::Accounts => self.machine,
            Domain::Builtin => Sid::new(Sid::USERS.authority(), &[32]).ok(),
        }
    }

    /// Who is in a domain, by RID.
    pub(super) fn members(&self, domain: Domain, kind: Kind) -> Vec<Entry> {
        let entry = |rid, name: &str| Entry { rid, name: name.to_owned() };
        match (domain, kind) {
            (Domain::Accounts, Kind::User) => {
                self.accounts.iter().map(|(rid, account)| entry(*rid, &account.name)).collect()
            }
            (Domain::Accounts, Kind::Group) => vec![entry(ALL_ACCOUNTS, ALL_ACCOUNTS_NAME)],
            (Domain::Builtin, Kind::Alias) => {
                ALIASES.iter().map(|(sid, name)| entry(last(sid), name)).collect()
            }
            (Domain::Accounts, Kind::Alias) | (Domain::Builtin, Kind::User | Kind::Group) => Vec::new(),
        }
    }

    /// What a name of a domain stands for.
    pub(super) fn named(&self, domain: Domain, name: &str) -> Option<(u32, SidKind)> {
        self.all(domain)
            .into_iter()
            .find(|(entry, _)| same_name(&entry.name, name))
            .map(|(e, kind)| (e.rid, kind))
    }

    /// What a RID of a domain stands for.
    pub(super) fn with_rid(&self, domain: Domain, rid: u32) -> Option<(String, SidKind)> {
        self.all(domain).into_iter().find(|(entry, _)| entry.rid == rid).map(|(e, kind)| (e.name, kind))
    }

    fn all(&self, domain: Domain) -> Vec<(Entry, SidKind)> {
        let kinds =
            [(Kind::User, SidKind::User), (Kind::Group, SidKind::Group), (Kind::Alias, SidKind::Alias)];
        let of =
            |(kind, sid_kind)| self.members(domain, kind).into_iter().map(move |entry| (entry, sid_kind));
        kinds.into_iter().flat_map(of).collect()
    }

    /// The name of a member, if it is there.
    pub(super) fn name_of(&self, member: Member) -> Option<String> {
        let Member { domain, kind, rid } = member;
        self.members(domain, kind).into_iter().find(|entry| entry.rid == rid).map(|entry| entry.name)
    }

    /// UserAccountControl of an account.
    pub(super) fn control(&self, rid: u32) -> u32 {
        let is_disabled = self.accounts.iter().any(|(known, account)| *known == rid && account.disabled);
        let disabled = if is_disabled { account_control::DISABLED } else { 0 };
        account_control::NORMAL | account_control::PASSWORD_DOES_NOT_EXPIRE | disabled
    }

    /// The RIDs of the members of a group: there is one, and every account is in it.
    pub(super) fn of_group(&self) -> Vec<u32> {
        self.accounts.iter().map(|(rid, _)| *rid).take(MEMBERS_MAX).collect()
    }

    /// The RIDs of the groups of a user.
    pub(super) fn groups_of_user(&self) -> Vec<u32> {
        vec![ALL_ACCOUNTS]
    }

    /// The members of an alias.
    pub(super) fn of_alias(&self, alias: Member) -> Vec<Sid> {
        if is(alias, &Sid::ADMINISTRATORS) {
            self.with_uid(ROOT).take(MEMBERS_MAX).collect()
        } else if is(alias, &Sid::USERS) {
            vec![Sid::AUTHENTICATED_USERS]
        } else {
            self.with_uid(NOBODY).take(MEMBERS_MAX).collect()
        }
    }

    /// The RIDs of the aliases in which any of these SIDs is.
    pub(super) fn aliases_of(&self, domain: Domain, sids: &[Sid]) -> Vec<u32> {
        let holds = |alias: &Entry| {
            let alias = Member { domain, kind: Kind::Alias, rid: alias.rid };
            let members = self.of_alias(alias);
            // Who has an account and is not nobody, is authenticated.
            let is_user = |sid: &Sid| {
                self.accounts.iter().any(|(_, account)| account.sid == *sid && account.uid != NOBODY)
            };
            sids.iter().any(|sid| members.contains(sid) || (is(alias, &Sid::USERS) && is_user(sid)))
        };
        self.members(domain, Kind::Alias).iter().filter(|alias| holds(alias)).map(|alias| alias.rid).collect()
    }

    fn with_uid(&self, uid: u32) -> impl Iterator<Item = Sid> {
        self.accounts.iter().filter(move |(_, account)| account.uid == uid).map(|(_, account)| account.sid)
    }
}

fn is(alias: Member, sid: &Sid) -> bool {
    alias.domain == Domain::Builtin && alias.rid == last(sid)
}

fn last(sid: &Sid) -> u32 {
    sid.sub_authorities().last().copied().unwrap_or_default()
}
