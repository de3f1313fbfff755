//! The accounts that may log on. They can change while clients work.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use acl::Sid;
use auth::{Account, Accounts, Met, Numbering, folded_name, same_name};
use nfs_server::{OwnerNames, UserGroups};
use parking_lot::{Mutex, RwLock};
use share::{DomainIds, People};
use smb_server::AccountEntry;
use state::{AccountDomain, Secrets, State, UserRecord};

use crate::acquaintances::Acquaintances;
use crate::declared::Declared;
use crate::identities::{self, NoUser};
use crate::kerberos::Tickets;
use crate::lookups::Lookups;
use crate::passwords;
use crate::problem::{Cause, Problem, Result};
use crate::settings::{Settings, UserSettings};

/// The accounts by folded name, and for whom numbers and SIDs stand. Each lock guards its field.
#[derive(Debug, Default)]
pub(crate) struct AccountBook {
    by_name: RwLock<HashMap<String, Account>>,
    /// What becomes of users with tickets. All books of a process have the same.
    tickets: Arc<RwLock<Arc<Tickets>>>,
    /// The users of domains who have come: the same in all books. It has a lock of its own.
    pub(crate) acquaintances: Arc<Acquaintances>,
    /// What becomes of questions about users and groups: the same in all books.
    pub(crate) lookups: Arc<Lookups>,
    /// Made of the accounts and these tickets when somebody asks; None: an account has changed since.
    people: Mutex<Option<(Arc<Tickets>, Arc<People>)>>,
    /// How often an account has changed.
    changes: AtomicU64,
    /// The users for whom accounts stand, by uid, made when somebody asks; None: an account has changed since.
    users: Mutex<Option<HashMap<u32, AccountUser>>>,
    /// In which the accounts have SIDs; None: they have none, or others say which.
    domain: Option<AccountDomain>,
    /// None: it has accounts of its own. Else the folded names of those that are accounts of another book, which says what they are.
    of_other: Option<(Arc<Self>, RwLock<HashSet<String>>)>,
}

/// The names of accounts, by what their users are known by.
#[derive(Debug, Default)]
pub(crate) struct AccountNames {
    /// By uid; the first by name, if several accounts have it.
    pub(crate) by_uid: HashMap<u32, String>,
    pub(crate) by_sid: HashMap<Sid, String>,
}

impl AccountBook {
    /// A book without accounts, whose accounts have SIDs.
    fn of(state: &State) -> Self {
        Self { domain: Some(state.account_domain()), ..Self::default() }
    }

    /// An empty book for accounts in another domain, some of which are in this book: who enters them says which SIDs they have.
    pub(crate) fn beside(self: &Arc<Self>) -> Self {
        Self {
            tickets: Arc::clone(&self.tickets),
            acquaintances: Arc::clone(&self.acquaintances),
            lookups: Arc::clone(&self.lookups),
            of_other: Some((Arc::clone(self), RwLock::default())),
            ..Self::default()
        }
    }

    /// All accounts, and how often one had changed before.
    pub(crate) fn all(&self) -> (Vec<Account>, u64) {
        let changes = self.changes();
        (self.by_name.read().values().cloned().collect(), changes)
    }

    /// How often an account has changed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Has these accounts, and no others; those of the other book last. The names of those who could log on, and cannot any more, or are
    /// others now.
    pub(crate) fn replace(&self, own: Vec<Account>, of_other: Vec<Account>) -> Vec<String> {
        let folded = |account: Account| (folded_name(&account.name), account);
        let mut new: HashMap<_, _> = of_other.into_iter().map(folded).collect();
        let names_of_other = new.keys().cloned().collect();
        new.extend(own.into_iter().map(folded));
        // Both at once: nobody is found with the SID of another.
        let mut by_name = self.by_name.write();
        if let Some((_, names)) = &self.of_other {
            *names.write() = names_of_other;
        }
        let before = std::mem::replace(&mut *by_name, new);
        drop(by_name);
        self.changed();
        let now = self.by_name.read();
        let is_there = |folded: &String, before: &Account| {
            let is_same = |account: &Account| (account.sid, account.uid) == (before.sid, before.uid);
            now.get(folded).is_some_and(|account| !account.disabled && is_same(account))
        };
        let gone =
            before.into_iter().filter(|(folded, account)| !account.disabled && !is_there(folded, account));
        gone.map(|(_, account)| account.name).collect()
    }

    /// Takes its own accounts away, but for these (folded names). The names of those who could log on.
    pub(crate) fn keep_own(&self, kept: &HashSet<String>) -> Vec<String> {
        let is_of_other =
            |name: &String| self.of_other.as_ref().is_some_and(|(_, names)| names.read().contains(name));
        let stays = |name: &String| kept.contains(name) || is_of_other(name);
        let gone = self.by_name.write().extract_if(|name, _| !stays(name)).collect::<Vec<_>>();
        self.changed();
        gone.into_iter().filter(|(_, account)| !account.disabled).map(|(_, account)| account.name).collect()
    }

    /// Enters an account, in place of any account with the same name.
    pub(crate) fn enter(&self, mut account: Account) {
        account.sid = self.make_sid(&account.name);
        self.by_name.write().insert(folded_name(&account.name), account);
        self.changed();
    }

    /// Removes an account.
    pub(crate) fn take(&self, name: &str) -> Option<Account> {
        let taken = self.by_name.write().remove(&folded_name(name));
        self.changed();
        taken
    }

    /// What was made of the accounts is to be made again.
    fn changed(&self) {
        self.changes.fetch_add(1, Ordering::Release);
        *self.people.lock() = None;
        *self.users.lock() = None;
    }

    /// The groups of the user of this machine for whom accounts stand; None: none does. The same value is given until an account
    /// changes.
    pub(crate) fn groups_of(&self, uid: u32) -> Option<Arc<UserGroups>> {
        self.with_user(uid, |user| Arc::clone(&user.groups))
    }

    /// The name of the first account by name that stands for a user of this machine.
    fn name_of(&self, uid: u32) -> Option<String> {
        self.with_user(uid, |user| user.name.clone())
    }

    fn with_user<T>(&self, uid: u32, look: impl FnOnce(&AccountUser) -> T) -> Option<T> {
        let mut users = self.users.lock();
        users.get_or_insert_with(|| of_accounts(&self.by_name.read())).get(&uid).map(look)
    }

    /// The account that a principal of Kerberos is: its realm is one of accounts.
    fn of_principal(&self, name: &str) -> Option<Account> {
        let (account, realm) = name.split_once('@')?;
        let tickets = self.tickets();
        let is_of_accounts =
            tickets.settings.account_realms.iter().any(|known| known.eq_ignore_ascii_case(realm));
        self.find(account).filter(|account| is_of_accounts && !account.disabled)
    }

    /// Without a SID, an account has the rights that its numbers give.
    fn make_sid(&self, name: &str) -> Option<Sid> {
        let numbered = |domain: &AccountDomain| Ok::<_, state::Error>((domain.sid()?, domain.rids(&[name])?));
        match self.domain.as_ref().map(numbered)? {
            Ok((machine, rids)) => machine.member(*rids.first()?),
            Err(problem) => {
                tracing::error!("the account {name} has no SID: {}", problem.what);
                None
            }
        }
    }

    /// From now on, this becomes of users with tickets, and these domains have numbers and SIDs.
    pub(crate) fn use_tickets(&self, tickets: Tickets) {
        if !self.tickets().settings.numbers_as(&tickets.settings) {
            self.acquaintances.forget_all();
        }
        *self.tickets.write() = Arc::new(tickets);
    }

    /// What becomes of users with tickets.
    pub(crate) fn tickets(&self) -> Arc<Tickets> {
        Arc::clone(&self.tickets.read())
    }

    /// For whom numbers and SIDs stand. The same value is given until an account or what becomes of tickets changes.
    pub(crate) fn people(&self) -> Arc<People> {
        let tickets = self.tickets();
        let mut made = self.people.lock();
        if let Some((of, people)) = &*made
            && Arc::ptr_eq(of, &tickets)
        {
            return Arc::clone(people);
        }
        let accounts = self.by_name.read();
        let sids = accounts.values().filter_map(|account| Some((account.uid, account.sid?)));
        let people = Arc::new(People::new(self.domain_ids(&tickets), sids));
        *made = Some((tickets, Arc::clone(&people)));
        people
    }

    /// What is known of the numbers of domains.
    fn domain_ids(&self, tickets: &Tickets) -> DomainIds {
        let Some(numbers) = &tickets.numbers else { return DomainIds::Unknown };
        match &numbers.numbering {
            Numbering::Formula(domains) if numbers.is_known() => DomainIds::Formula(Arc::clone(domains)),
            Numbering::Formula(_) => DomainIds::Unknown,
            Numbering::Asked { .. } => DomainIds::Seen(Arc::clone(&self.acquaintances) as _),
        }
    }

    /// The folded names of the accounts that may log on, by uid, as shares need them.
    pub(crate) fn by_uid(&self) -> HashMap<u32, Vec<String>> {
        let mut names: HashMap<u32, Vec<String>> = HashMap::new();
        for account in self.by_name.read().values().filter(|account| !account.disabled) {
            names.entry(account.uid).or_default().push(share::folded_name(&account.name));
        }
        names.values_mut().for_each(|names| names.sort_unstable());
        names
    }

    /// The names of all accounts.
    pub(crate) fn names(&self) -> AccountNames {
        let mut names = AccountNames::default();
        for Account { name, uid, sid, .. } in self.by_name.read().values() {
            let first = names.by_uid.entry(*uid).or_insert_with(|| name.clone());
            if name < first {
                first.clone_from(name);
            }
            names.by_sid.extend(sid.map(|sid| (sid, name.clone())));
        }
        names
    }

    /// The accounts that have a SID, for clients that list them.
    pub(crate) fn entries(&self) -> Vec<AccountEntry> {
        let accounts = self.by_name.read();
        let entry = |Account { name, uid, sid, disabled, .. }: &Account| {
            Some(AccountEntry { sid: (*sid)?, name: name.clone(), uid: *uid, disabled: *disabled })
        };
        accounts.values().filter_map(entry).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_name.read().is_empty()
    }
}

impl Accounts for AccountBook {
    fn find(&self, name: &str) -> Option<Account> {
        let name = folded_name(name);
        let by_name = self.by_name.read();
        let account = by_name.get(&name)?.clone();
        let of_other = self.of_other.as_ref().filter(|(_, names)| names.read().contains(&name));
        drop(by_name);
        match of_other {
            Some((other, _)) => {
                // The other book may have changed since.
                Some(Account { sid: account.sid, ..other.find(&name)? })
            }
            None => Some(account),
        }
    }

    fn met(&self, met: &Met<'_>) {
        self.acquaintances.met(met, SystemTime::now());
    }
}

/// Over NFS, owners are accounts and users of domains.
impl OwnerNames for AccountBook {
    fn of_uid(&self, uid: u32) -> Option<Arc<str>> {
        if let Some(known) = self.acquaintances.with_uid(uid) {
            return Some(known.name.as_str().into());
        }
        let name = self.name_of(uid)?;
        let tickets = self.tickets();
        let realm = tickets.settings.account_realms.first()?;
        Some(format!("{name}@{realm}").into())
    }

    fn of_sid(&self, sid: &Sid) -> Option<Arc<str>> {
        match self.acquaintances.with_sid(sid) {
            Some(known) => Some(known.name.as_str().into()),
            None => self.of_uid(self.people().account_uid(sid)?),
        }
    }

    fn uid_of(&self, name: &str) -> Option<u32> {
        if let Some(known) = self.acquaintances.named(name) {
            return known.outcome.as_ref().ok().map(|user| user.uid);
        }
        self.of_principal(name).map(|account| account.uid)
    }

    fn sid_of(&self, name: &str) -> Option<Sid> {
        if let Some(known) = self.acquaintances.named(name) {
            return known.sid;
        }
        self.of_principal(name).map(|account| account.sid.unwrap_or_else(|| Sid::of_user(account.uid)))
    }
}

/// A user of this machine for whom there are accounts.
#[derive(Debug)]
struct AccountUser {
    /// The name of the first account.
    name: String,
    groups: Arc<UserGroups>,
}

/// The users for whom there are accounts. Several accounts may stand for one user, who is then in the groups of all; the primary group is
/// that of the first by name.
fn of_accounts(by_name: &HashMap<String, Account>) -> HashMap<u32, AccountUser> {
    let mut accounts: Vec<&Account> = by_name.values().filter(|account| !account.disabled).collect();
    accounts.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    let mut users: HashMap<u32, (String, UserGroups)> = HashMap::new();
    for Account { name, uid, gid, groups, .. } in accounts {
        let (_, user) = users.entry(*uid).or_insert_with(|| (name.clone(), UserGroups::default()));
        user.primary = user.primary.or(Some(*gid));
        user.all.extend(groups.iter().chain([gid]));
    }
    let finished = |(uid, (name, mut user)): (u32, (String, UserGroups))| {
        user.all.sort_unstable();
        user.all.dedup();
        (uid, AccountUser { name, groups: Arc::new(user) })
    };
    users.into_iter().map(finished).collect()
}

/// The accounts that the configuration declares. Their passwords are stored.
///
/// # Errors
/// An account has no password or no user, or the state database cannot be used.
pub(crate) fn declared(settings: &Settings, state: &State) -> Result<Vec<Account>> {
    if let Some(realm) = &settings.kerberos.realm {
        state.set_realm(realm)?;
    }
    let added = state.added_users()?;
    let open = |user: &UserSettings| {
        let stored = added.iter().find(|record| same_name(&record.name, &user.name));
        let identity =
            identities::of_account(user, stored).map_err(|why| stands_for_nobody(&user.name, &why))?;
        Ok(account(&user.name, &secrets_of(user, stored, state)?, &identity))
    };
    settings.users.iter().map(open).collect()
}

/// The problem of a user without a uid.
pub(crate) fn stands_for_nobody(name: &str, why: &NoUser) -> Problem {
    let why = match why {
        NoUser::Unknown => "on this machine the user does not exist or is root".to_owned(),
        NoUser::Unavailable(error) => format!("the name service of this machine does not answer: {error}"),
    };
    Problem::new(
        Cause::Settings,
        format!("the user {name} has no uid: none is given, and {why}"),
        format!(
            "Give it a uid: --user {name}=UID[:GID]:PASSWORD, or uid = N in its [[user]] of the file given by --config"
        ),
    )
}

/// What is kept of the password of a declared user, from now on.
fn secrets_of(user: &UserSettings, stored: Option<&UserRecord>, state: &State) -> Result<Secrets> {
    let kept = state.account(&user.name)?;
    let new = if let Some(password) = user.password.as_deref() {
        passwords::secrets(&user.name, password, kept.as_ref(), state)?
    } else if let Some(hash) = user.nt_hash
        && state.keeps_nt_hashes()?
    {
        let of_it = kept.as_ref().filter(|kept| kept.nt_hash == Some(hash));
        Secrets { nt_hash: Some(hash), keys: of_it.and_then(|kept| kept.keys.clone()) }
    } else {
        let declared = user.nt_hash.map(|_| Secrets::default());
        let known = kept.or_else(|| stored.map(UserRecord::secrets)).or(declared);
        return known.ok_or_else(|| no_password(&user.name));
    };
    if kept.as_ref() != Some(&new) {
        state.set_account(&user.name, &new)?;
    }
    Ok(new)
}

/// The problem of a user without a password.
pub(crate) fn no_password(name: &str) -> Problem {
    Problem::new(
        Cause::Settings,
        format!("the user {name} has no password, and the state database holds none"),
        format!(
            "Give the user a password once: --password-file {name}=FILE, or password = \"...\" in the file given by --config"
        ),
    )
}

/// The declared accounts, and those added by command whose names the configuration does not use.
///
/// # Errors
/// The state database cannot be read.
pub(crate) fn open(declared: &Declared, state: &Arc<State>) -> Result<Arc<AccountBook>> {
    let book = AccountBook::of(state);
    let added = state.added_users()?;
    // All at once: each new number alone would be a commit of its own.
    let added_names = added.iter().map(|user| &*user.name);
    let names: Vec<&str> =
        added_names.chain(declared.accounts.iter().map(|account| &*account.name)).collect();
    state.account_domain().rids(&names)?;
    for user in added {
        let account = of_record(&user).unwrap_or_else(|why| {
            if !user.disabled {
                let problem = stands_for_nobody(&user.name, &why);
                tracing::warn!("nobody can log on as {} until SIGHUP: {}", user.name, problem.what);
            }
            powerless(&user)
        });
        book.enter(account);
    }
    for account in &declared.accounts {
        if book.take(&account.name).is_some() {
            let (name, place) = (&account.name, declared.account_place(&account.name));
            tracing::warn!("{place} declares a user {name}, overriding the one added by command");
        }
        book.enter(account.clone());
    }
    Ok(Arc::new(book))
}

/// The account of a user who was added by command. The account cannot log on if it no longer stands for a user of this
/// machine. May wait for the name service.
pub(crate) fn added(user: &UserRecord) -> Account {
    of_record(user).unwrap_or_else(|_| powerless(user))
}

fn of_record(user: &UserRecord) -> std::result::Result<Account, NoUser> {
    let identity = identities::of_record(user)?;
    Ok(Account { disabled: user.disabled, ..account(&user.name, &user.secrets(), &identity) })
}

/// The account of a user who is nobody on this machine.
fn powerless(user: &UserRecord) -> Account {
    Account { disabled: true, ..account(&user.name, &user.secrets(), &identities::nobody()) }
}

/// An account that acts as this user, and may log on.
fn account(name: &str, secrets: &Secrets, identity: &share::Identity) -> Account {
    let nt_hash = secrets.nt_hash;
    let keys = secrets.keys.as_ref().and_then(passwords::for_kdc).map(Arc::new);
    let (uid, gid, groups) = (identity.uid(), identity.gid(), identity.groups().to_vec());
    Account { name: name.to_owned(), nt_hash, keys, uid, gid, groups, sid: None, disabled: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kerberos::KerberosSettings;

    fn account(name: &str, uid: u32) -> Account {
        Account {
            name: name.to_owned(),
            nt_hash: None,
            keys: None,
            uid,
            gid: uid,
            groups: Vec::new(),
            sid: None,
            disabled: false,
        }
    }

    #[test]
    fn accounts_come_and_go_whatever_the_case() {
        let book = AccountBook::default();
        book.enter(account("Anna", 1));
        book.enter(account("ANNA", 2));
        assert_eq!(book.find("anna").map(|found| found.uid), Some(2));
        assert_eq!(book.by_uid(), [(2, vec!["anna".to_owned()])].into());
        book.enter(Account { disabled: true, ..account("Otto", 3) });
        assert!(book.by_uid().len() == 1 && book.take("Otto").is_some());
        assert!(book.take("aNNa").is_some() && book.find("Anna").is_none() && book.is_empty());
    }

    #[test]
    fn a_book_that_is_replaced_tells_who_may_not_log_on_any_more() {
        let own = Arc::new(AccountBook::default());
        let book = own.beside();
        let sid = |rid: u32| "S-1-5-21-1-2-3".parse::<Sid>().unwrap().member(rid);
        let with_sid = |name: &str, rid| Account { sid: sid(rid), ..account(name, 7) };
        let all = [("anna", 1000), ("Otto", 1001), ("zoe", 1002), ("kim", 1003)];
        let all = all.map(|(name, rid)| with_sid(name, rid)).to_vec();
        assert_eq!(book.replace(all.clone(), Vec::new()), [""; 0]);
        let before = book.changes();
        assert_eq!(book.people().uid_of(&sid(1000).unwrap()), Some(7));
        let new = vec![
            Account { name: "ANNA".to_owned(), gid: 8, ..all[0].clone() },
            Account { disabled: true, ..all[1].clone() },
            with_sid("zoe", 1004),
        ];
        let mut gone = book.replace(new, Vec::new());
        gone.sort_unstable();
        assert_eq!(gone, ["Otto", "kim", "zoe"]);
        assert!(book.changes() > before && book.find("kim").is_none());
        let other_uid = vec![Account { uid: 8, ..all[0].clone() }];
        let mut gone = book.replace(other_uid, Vec::new());
        gone.sort_unstable();
        assert_eq!(gone, ["ANNA", "zoe"], "one was disabled before");
        assert_eq!(book.people().uid_of(&sid(1000).unwrap()), Some(8));
    }

    #[test]
    fn what_becomes_of_an_account_of_the_other_book_counts_at_once() {
        let own = Arc::new(AccountBook::default());
        own.enter(account("otto", 7));
        own.enter(account("anna", 8));
        let book = own.beside();
        let sid = "S-1-5-21-1-2-3-1000".parse().ok();
        let in_domain = |name: &str, uid| Account { sid, ..account(name, uid) };
        book.replace(vec![in_domain("Anna", 9)], vec![in_domain("otto", 7)]);
        assert_eq!(book.find("OTTO"), Some(in_domain("otto", 7)));
        assert_eq!(book.find("anna"), Some(in_domain("Anna", 9)), "the name is taken");
        own.enter(Account { disabled: true, ..account("otto", 7) });
        assert!(book.find("otto").unwrap().disabled);
        own.take("otto");
        own.take("anna");
        assert!(book.find("otto").is_none() && book.find("anna").is_some());
        own.enter(account("otto", 7));
        assert_eq!(book.keep_own(&HashSet::new()), ["Anna"]);
        assert!(book.find("otto").is_some() && book.find("anna").is_none());
    }

    #[test]
    fn an_account_has_a_sid_of_this_machine_and_keeps_it() {
        let directory = tempfile::tempdir().unwrap();
        let state = Arc::new(State::open(&directory.path().join("state")).unwrap());
        let machine = state.account_domain().sid().unwrap();
        let book = AccountBook::of(&state);
        let account = account("Anna", 1000);
        book.enter(Account { name: "otto".to_owned(), uid: 7, ..account.clone() });
        book.enter(account.clone());
        let sid = book.find("anna").unwrap().sid.unwrap();
        assert_eq!(Some(sid), machine.member(1001));
        assert_eq!(book.people().uid_of(&sid), Some(1000));
        book.enter(Account { uid: 1001, ..account });
        assert_eq!((book.find("ANNA").unwrap().sid, book.people().uid_of(&sid)), (Some(sid), Some(1001)));
        book.take("anna").unwrap();
        assert_eq!(book.people().uid_of(&sid), None);
    }

    #[test]
    fn owners_over_nfs_are_accounts_of_a_realm_and_users_of_domains() {
        let book = AccountBook::default();
        book.enter(account("otto", 7));
        book.enter(Account { disabled: true, ..account("gone", 8) });
        let names = |uid| book.of_uid(uid).map(|name| name.to_string());
        assert_eq!((names(7), book.uid_of("otto@LAB.TEST")), (None, None), "no realm is one of accounts");
        let account_realms = vec!["LAB.TEST".to_owned()];
        let settings = KerberosSettings { account_realms, ..KerberosSettings::default() };
        book.use_tickets(Tickets { settings, ..Tickets::default() });
        assert_eq!((names(7), names(8), names(9)), (Some("otto@LAB.TEST".to_owned()), None, None));
        assert_eq!((book.uid_of("OTTO@lab.test"), book.uid_of("otto@OTHER.TEST")), (Some(7), None));
        assert_eq!((book.uid_of("gone@LAB.TEST"), book.uid_of("otto"), book.uid_of("")), (None, None, None));
        assert_eq!(book.sid_of("otto@LAB.TEST"), Some(Sid::of_user(7)));
    }
}
