//! Who administers the server with the password of an account.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use auth::{Account, Accounts, nt_hash};
use control::tokens::Scope;
use control::{Administrator, Administrators, Digest};
use kdc::ClientKeys;
use krb5::{Enctype, Key, string_to_key};
use parking_lot::RwLock;
use share::{Group, Identity, Names, Proof, Right, Role, Rules, Who};

use crate::accounts::AccountBook;

/// A user, or the users of a group, who may use the control address with their own password: `NAME`, `@GROUP` or a SID, and
/// after a colon what they may do. Without that, everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// The user or group.
    pub who: Who,
    /// What they may do.
    pub scope: Scope,
}

impl FromStr for Admin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (who, scope) = text.split_once(':').map_or((text, None), |(who, scope)| (who, Some(scope)));
        let who: Who = who.parse().map_err(|e| format!("{e}"))?;
        if matches!(&who, Who::User(name) if name.contains('@')) || matches!(&who, Who::OfDomain(_)) {
            return Err(format!(
                "{who} is of a domain, whose passwords this server cannot check: name an account, or a group of this machine"
            ));
        }
        let scope = match scope {
            None | Some("all") => Scope::All,
            Some("shares") => Scope::Shares,
            Some("read") => Scope::Read,
            Some(other) => {
                return Err(format!("{other:?} is no scope: expected {who}:read, {who}:shares or {who}:all"));
            }
        };
        Ok(Self { who, scope })
    }
}

impl fmt::Display for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scope {
            Scope::All => write!(f, "{}", self.who),
            scope => write!(f, "{}:{scope}", self.who),
        }
    }
}

/// The administrators of a running server.
#[derive(Debug)]
pub(crate) struct Admins {
    accounts: Arc<AccountBook>,
    /// Guards the list, replaced as a whole.
    list: RwLock<Vec<Admin>>,
    /// Guards what the groups in the list stand for.
    names: RwLock<Names>,
}

impl Admins {
    /// These administrators, whose groups are not known yet.
    pub(crate) fn new(accounts: &Arc<AccountBook>, list: Vec<Admin>) -> Self {
        Self { accounts: Arc::clone(accounts), list: RwLock::new(list), names: RwLock::default() }
    }

    /// Replaces the list. The groups in it are to be looked up again.
    pub(crate) fn use_list(&self, list: &[Admin]) {
        *self.list.write() = list.to_vec();
    }

    /// The groups that the list names.
    pub(crate) fn groups(&self) -> Vec<String> {
        let group = |admin: &Admin| match &admin.who {
            Who::Group(name) => Some(name.clone()),
            Who::User(_) | Who::Sid(_) | Who::OfDomain(_) => None,
        };
        self.list.read().iter().filter_map(group).collect()
    }

    /// Sets what these groups stand for from now on.
    pub(crate) fn set_groups(&self, groups: HashMap<String, Group>) {
        self.names.write().groups = groups;
    }

    fn scope_of(&self, account: &Account) -> Option<Scope> {
        let identity =
            Identity::unix(account.uid, account.gid, account.groups.clone()).with_sids(account.sid, []);
        self.scope_of_user(&identity, &Proof::Password(account.name.as_str().into()))
    }

    /// Whether a user who was proved so may change shares.
    pub(crate) fn change_shares(&self, identity: &Identity, proof: &Proof) -> bool {
        self.scope_of_user(identity, proof).is_some_and(|scope| scope >= Scope::Shares)
    }

    fn scope_of_user(&self, identity: &Identity, proof: &Proof) -> Option<Scope> {
        let (list, names) = (self.list.read(), self.names.read());
        // Whom an entry means is what the same entry in the user list of a share means.
        let is_meant = |admin: &&Admin| {
            let right = Right { who: admin.who.clone(), role: Role::Admin };
            let rules = Rules { rights: vec![right], ..Rules::default() };
            rules.role(&names, identity, proof).is_some()
        };
        list.iter().filter(is_meant).map(|admin| admin.scope).max()
    }

    fn account(&self, name: &str) -> Option<Account> {
        self.accounts.find(name).filter(|account| !account.disabled)
    }
}

impl Administrators for Admins {
    fn known(&self, name: &str, password: &str) -> Option<(Administrator, Scope)> {
        let account = self.account(name)?;
        let shown = shown(password, &account)?;
        if kept(&account)? != shown {
            return None;
        }
        let scope = self.scope_of(&account)?;
        Some((Administrator { name: account.name, password: shown }, scope))
    }

    fn scope(&self, administrator: &Administrator) -> Option<Scope> {
        let account = self.account(&administrator.name)?;
        if kept(&account)? == administrator.password { self.scope_of(&account) } else { None }
    }
}

/// What is kept of an account's password, as a digest. None: nothing is.
fn kept(account: &Account) -> Option<Digest> {
    match (&account.nt_hash, &account.keys) {
        (Some(hash), _) => Some(Digest::of(hash)),
        (None, Some(keys)) => Some(Digest::of(checked(keys)?.as_bytes())),
        (None, None) => None,
    }
}

/// The same of a password that is shown for an account. Without an NT hash it takes some 2 ms.
fn shown(password: &str, account: &Account) -> Option<Digest> {
    match (&account.nt_hash, &account.keys) {
        (Some(_), _) => Some(Digest::of(&nt_hash(password))),
        (None, Some(keys)) => {
            let made = string_to_key(checked(keys)?.enctype(), password, keys.salt.as_bytes()).ok()?;
            Some(Digest::of(made.as_bytes()))
        }
        (None, None) => None,
    }
}

/// The key with which passwords are compared: the one that takes least to derive.
fn checked(keys: &ClientKeys) -> Option<&Key> {
    keys.keys.iter().find(|key| key.enctype() == Enctype::Aes256Sha1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admins(list: &[&str]) -> Admins {
        let accounts = Arc::new(AccountBook::default());
        let account = |name: &str, gid| Account {
            name: name.to_owned(),
            nt_hash: Some(nt_hash("correct horse")),
            keys: None,
            uid: gid,
            gid,
            groups: Vec::new(),
            sid: None,
            disabled: name == "gone",
        };
        for (name, gid) in [("Anna", 1000), ("otto", 50), ("gone", 50), ("eve", 1001)] {
            accounts.enter(account(name, gid));
        }
        let admins = Admins::new(&accounts, list.iter().map(|text| text.parse().unwrap()).collect());
        let members = vec!["eve".to_owned()];
        admins.set_groups([("staff".to_owned(), Group { gid: 50, members })].into());
        admins
    }

    #[test]
    fn users_and_members_of_groups_may_with_their_password() {
        let admins = admins(&["anna", "@staff:read", "otto:shares", "gone", "nobody"]);
        let scope = |name: &str| admins.known(name, "correct horse").map(|(_, scope)| scope);
        let scopes = ["ANNA", "otto", "eve", "gone", "nobody"].map(scope);
        assert_eq!(scopes, [Some(Scope::All), Some(Scope::Shares), Some(Scope::Read), None, None]);
        assert_eq!(admins.known("anna", "wrong horse"), None);
        admins.use_list(&[]);
        assert_eq!(admins.known("anna", "correct horse"), None);
    }

    #[test]
    fn what_was_shown_counts_until_the_account_changes() {
        let admins = admins(&["anna"]);
        let (anna, _) = admins.known("anna", "correct horse").unwrap();
        assert_eq!(admins.scope(&anna), Some(Scope::All));
        let account = admins.accounts.find("anna").unwrap();
        admins.accounts.enter(Account { nt_hash: Some(nt_hash("another")), ..account.clone() });
        assert_eq!(admins.scope(&anna), None);
        admins.accounts.enter(Account { disabled: true, ..account.clone() });
        assert_eq!(admins.scope(&anna), None);
        admins.accounts.enter(account);
        assert_eq!(admins.scope(&anna), Some(Scope::All));
        admins.use_list(&["anna:read".parse().unwrap()]);
        assert_eq!(admins.scope(&anna), Some(Scope::Read));
    }

    #[test]
    fn without_nt_hashes_the_keys_of_the_password_count() {
        let admins = admins(&["anna"]);
        let with_keys = |password: &str| {
            let salt = "LAB.TESTanna".to_owned();
            let key = string_to_key(Enctype::Aes256Sha1, password, salt.as_bytes()).unwrap();
            let keys = Some(Arc::new(ClientKeys { salt, keys: vec![key] }));
            Account { nt_hash: None, keys, ..admins.accounts.find("anna").unwrap() }
        };
        admins.accounts.enter(with_keys("battery staple"));
        assert_eq!(admins.known("anna", "correct horse"), None);
        let (anna, scope) = admins.known("anna", "battery staple").unwrap();
        assert_eq!((scope, admins.scope(&anna)), (Scope::All, Some(Scope::All)));
        admins.accounts.enter(with_keys("another"));
        assert_eq!(admins.scope(&anna), None);
        admins.accounts.enter(Account { keys: None, ..with_keys("another") });
        assert_eq!(admins.known("anna", "another"), None);
    }

    #[test]
    fn what_is_read_is_written_the_same() {
        for text in ["anna", "@staff:read", "otto:shares", "S-1-5-21-1-2-3-1000"] {
            assert_eq!(text.parse::<Admin>().unwrap().to_string(), text);
        }
        assert_eq!("anna:all".parse::<Admin>().unwrap().to_string(), "anna");
        for (bad, why) in [
            ("anna:write", "no scope"),
            ("", "names nobody"),
            ("a@B.C", "is of a domain"),
            ("@AD\\a:read", "is of a domain"),
        ] {
            let refused = bad.parse::<Admin>().unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
