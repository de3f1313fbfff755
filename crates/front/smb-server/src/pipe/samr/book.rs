//! Who is in the domains of this server.

use std::cell::OnceCell;
use std::collections::HashMap;

use acl::Sid;
use auth::{folded_name, same_name};
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

/// The accounts and groups of a server, as of now. There may be very many accounts, and a client may ask about a thousand
/// names in one call, so nothing goes through the accounts for each name.
pub(super) struct Book<'a> {
    host: &'a Host<'a>,
    machine: Option<Sid>,
    /// By RID, once somebody has asked.
    accounts: OnceCell<Vec<(u32, AccountEntry)>>,
    /// The RIDs of accounts by their folded names, once somebody has asked.
    rids: OnceCell<HashMap<String, u32>>,
}

impl<'a> Book<'a> {
    pub(super) fn of(host: &'a Host<'a>) -> Self {
        let machine = host.directory.machine();
        Self { host, machine, accounts: OnceCell::new(), rids: OnceCell::new() }
    }

    /// The accounts that have a SID of this machine, by RID.
    fn accounts(&self) -> &[(u32, AccountEntry)] {
        self.accounts.get_or_init(|| {
            let of_this_machine = |account: AccountEntry| {
                let (domain, rid) = account.sid.in_domain()?;
                (Some(domain) == self.machine).then_some((rid, account))
            };
            let found = self.host.directory.accounts().into_iter().filter_map(of_this_machine);
            let mut accounts: Vec<_> = found.collect();
            accounts.sort_unstable_by_key(|(rid, _)| *rid);
            accounts
        })
    }

    fn account(&self, rid: u32) -> Option<&AccountEntry> {
        let accounts = self.accounts();
        let at = accounts.binary_search_by_key(&rid, |(known, _)| *known).ok()?;
        accounts.get(at).map(|(_, account)| account)
    }

    /// The RID of the account with this name.
    fn rid_of(&self, name: &str) -> Option<u32> {
        let rids = self.rids.get_or_init(|| {
            self.accounts().iter().map(|(rid, account)| (folded_name(&account.name), *rid)).collect()
        });
        rids.get(&folded_name(name)).copied()
    }

    /// The domains, with their names.
    pub(super) fn domains(&self) -> Vec<(Domain, String)> {
        let accounts = self.machine.map(|_| (Domain::Accounts, self.host.name.to_owned()));
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
        let accounts = self.accounts_in(domain, kind).iter();
        let accounts = accounts.map(|(rid, account)| Entry { rid: *rid, name: account.name.clone() });
        let fixed = fixed(domain, kind).map(|(rid, name)| Entry { rid, name: name.to_owned() });
        accounts.chain(fixed).collect()
    }

    /// How many are in a domain.
    pub(super) fn count(&self, domain: Domain, kind: Kind) -> usize {
        self.accounts_in(domain, kind).len().saturating_add(fixed(domain, kind).count())
    }

    fn accounts_in(&self, domain: Domain, kind: Kind) -> &[(u32, AccountEntry)] {
        if (domain, kind) == (Domain::Accounts, Kind::User) { self.accounts() } else { &[] }
    }

    /// What a name of a domain stands for.
    pub(super) fn named(&self, domain: Domain, name: &str) -> Option<(u32, SidKind)> {
        let account = (domain == Domain::Accounts).then(|| self.rid_of(name)).flatten();
        account.map(|rid| (rid, SidKind::User)).or_else(|| {
            let (rid, _, kind) = all_fixed(domain).find(|(_, known, _)| same_name(known, name))?;
            Some((rid, kind))
        })
    }

    /// What a RID of a domain stands for.
    pub(super) fn with_rid(&self, domain: Domain, rid: u32) -> Option<(String, SidKind)> {
        let account = (domain == Domain::Accounts).then(|| self.account(rid)).flatten();
        account.map(|account| (account.name.clone(), SidKind::User)).or_else(|| {
            let (_, name, kind) = all_fixed(domain).find(|(known, ..)| *known == rid)?;
            Some((name.to_owned(), kind))
        })
    }

    /// The name of a member, if it is there.
    pub(super) fn name_of(&self, member: Member) -> Option<String> {
        let Member { domain, kind, rid } = member;
        if (domain, kind) == (Domain::Accounts, Kind::User) {
            return self.account(rid).map(|account| account.name.clone());
        }
        fixed(domain, kind).find(|(known, _)| *known == rid).map(|(_, name)| name.to_owned())
    }

    /// UserAccountControl of an account.
    pub(super) fn control(&self, rid: u32) -> u32 {
        let is_disabled = self.account(rid).is_some_and(|account| account.disabled);
        let disabled = if is_disabled { account_control::DISABLED } else { 0 };
        account_control::NORMAL | account_control::PASSWORD_DOES_NOT_EXPIRE | disabled
    }

    /// The RIDs of the members of a group: there is one, and every account is in it.
    pub(super) fn of_group(&self) -> Vec<u32> {
        self.accounts().iter().map(|(rid, _)| *rid).take(MEMBERS_MAX).collect()
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
        let aliases = fixed(domain, Kind::Alias).map(|(rid, _)| Member { domain, kind: Kind::Alias, rid });
        aliases
            .filter(|alias| sids.iter().any(|sid| self.is_in(*alias, sid)))
            .map(|alias| alias.rid)
            .collect()
    }

    fn is_in(&self, alias: Member, sid: &Sid) -> bool {
        let of_this_machine = sid.in_domain().filter(|(domain, _)| Some(*domain) == self.machine);
        let uid = of_this_machine.and_then(|(_, rid)| self.account(rid)).map(|account| account.uid);
        if is(alias, &Sid::ADMINISTRATORS) {
            uid == Some(ROOT)
        } else if is(alias, &Sid::USERS) {
            // Who has an account and is not nobody, is authenticated.
            *sid == Sid::AUTHENTICATED_USERS || uid.is_some_and(|uid| uid != NOBODY)
        } else {
            uid == Some(NOBODY)
        }
    }

    fn with_uid(&self, uid: u32) -> impl Iterator<Item = Sid> {
        self.accounts().iter().filter(move |(_, account)| account.uid == uid).map(|(_, account)| account.sid)
    }
}

/// Who is in a domain of every server: RIDs and names.
fn fixed(domain: Domain, kind: Kind) -> impl Iterator<Item = (u32, &'static str)> {
    let group =
        ((domain, kind) == (Domain::Accounts, Kind::Group)).then_some((ALL_ACCOUNTS, ALL_ACCOUNTS_NAME));
    let is_aliases = (domain, kind) == (Domain::Builtin, Kind::Alias);
    let aliases = ALIASES.iter().filter(move |_| is_aliases).map(|(sid, name)| (last(sid), *name));
    group.into_iter().chain(aliases)
}

/// The same of both kinds.
fn all_fixed(domain: Domain) -> impl Iterator<Item = (u32, &'static str, SidKind)> {
    let groups = fixed(domain, Kind::Group).map(|(rid, name)| (rid, name, SidKind::Group));
    groups.chain(fixed(domain, Kind::Alias).map(|(rid, name)| (rid, name, SidKind::Alias)))
}

fn is(alias: Member, sid: &Sid) -> bool {
    alias.domain == Domain::Builtin && alias.rid == last(sid)
}

fn last(sid: &Sid) -> u32 {
    sid.sub_authorities().last().copied().unwrap_or_default()
}
