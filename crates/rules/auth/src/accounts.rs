//! Accounts: who may log on, and as which user of this machine.

use std::sync::Arc;

use kdc::ClientKeys;
use md4::{Digest, Md4};

use crate::kerberos::Met;
use crate::numbers::DomainUser;

/// One account.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The name, as displayed; compared without regard to case.
    pub name: String,
    /// NTOWFv1: MD4 over the password in UTF-16LE ([`nt_hash`]). It is as good as the password, so it is never logged
    /// or shown. None: the account cannot be used with NTLM.
    pub nt_hash: Option<[u8; 16]>,
    /// The Kerberos keys of the password, with which this server's own KDC serves the account. None: it does not.
    pub keys: Option<Arc<ClientKeys>>,
    /// The account's user on this machine.
    pub uid: u32,
    /// The user's first group.
    pub gid: u32,
    /// The user's further groups.
    pub groups: Vec<u32>,
    /// The account's SID; None: it has no other than those of its numbers.
    pub sid: Option<acl::Sid>,
    /// Whether the account may not log on, even with the right password.
    pub disabled: bool,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account")
            .field("name", &self.name)
            .field("uid", &self.uid)
            .field("gid", &self.gid)
            .field("groups", &self.groups)
            .field("sid", &self.sid)
            .field("disabled", &self.disabled)
            .finish_non_exhaustive()
    }
}

/// Who a client is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// A user who has proved to be that of the account: with its password or, in a realm of accounts, with a ticket
    Account(Account),
    /// A user of a domain, who has shown a ticket
    Domain(DomainUser),
    /// A user without an account, admitted as this account; nothing was proved
    Guest(Account),
    /// A client that gave no name; nothing was proved
    Anonymous,
}

impl Identity {
    /// The user's name; empty for a client that gave none.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Account(account) | Self::Guest(account) => &account.name,
            Self::Domain(user) => &user.name,
            Self::Anonymous => "",
        }
    }
}

/// Where accounts are looked up.
pub trait Accounts {
    /// The account of this name, without regard to case ([`same_name`]).
    fn find(&self, name: &str) -> Option<Account>;

    /// Learns what became of a client with a ticket. This is called on the thread of a connection, so it must not wait.
    fn met(&self, _met: &Met<'_>) {}
}

/// A handful of accounts in memory.
#[derive(Clone, Debug, Default)]
pub struct AccountList(pub Vec<Account>);

impl Accounts for AccountList {
    fn find(&self, name: &str) -> Option<Account> {
        self.0.iter().find(|account| same_name(&account.name, name)).cloned()
    }
}

/// Whether two user names mean the same user.
pub fn same_name(left: &str, right: &str) -> bool {
    left.chars().map(upper_case).eq(right.chars().map(upper_case))
}

/// The account name that a client means by `alice@REALM` or `DOMAIN\alice`: there is no domain, so the account is the
/// local one. Account names contain neither character.
pub fn local_name(user: &str) -> &str {
    let user = user.rsplit_once('\\').map_or(user, |(_domain, user)| user);
    user.split_once('@').map_or(user, |(user, _realm)| user)
}

/// A user name in a form that is equal for names that mean the same user ([`same_name`]).
pub fn folded_name(name: &str) -> String {
    name.chars().map(upper_case).collect()
}

/// The NT hash of a password. [MS-NLMP] 3.3.1: NTOWFv1 is MD4(UNICODE(Passwd)).
pub fn nt_hash(password: &str) -> [u8; 16] {
    let mut md4 = Md4::new();
    for unit in password.encode_utf16() {
        md4.update(unit.to_le_bytes());
    }
    md4.finalize().into()
}

/// Upper case, one character for one: a character without a single upper-case form is unchanged (as on Windows).
pub(crate) fn upper_case(character: char) -> char {
    let mut upper = character.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(single), None) => single,
        _ => character,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// [MS-NLMP] 4.2.2.1.2: NTOWFv1 of "Password".
    #[test]
    fn the_nt_hash_is_that_of_the_specification() {
        let expected =
            [0xa4, 0xf4, 0x9c, 0x40, 0x65, 0x10, 0xbd, 0xca, 0xb6, 0x82, 0x4e, 0xe7, 0xc3, 0x0f, 0xd8, 0x52];
        assert_eq!(nt_hash("Password"), expected);
    }

    #[test]
    fn names_are_found_without_regard_to_case() {
        let account = |name: &str| Account {
            name: name.into(),
            nt_hash: None,
            keys: None,
            uid: 1,
            gid: 1,
            groups: vec![],
            sid: None,
            disabled: false,
        };
        let list = AccountList(vec![account("Ann"), account("J\u{f6}rg")]);
        for name in ["ann", "ANN", "Ann"] {
            assert_eq!(list.find(name).unwrap().name, "Ann");
        }
        assert_eq!(list.find("J\u{d6}RG").unwrap().name, "J\u{f6}rg");
        assert_eq!(list.find("anna"), None);
        assert_eq!(list.find(""), None);
        assert_eq!(folded_name("J\u{f6}rg"), folded_name("J\u{d6}RG"));
        assert!(!same_name("stra\u{df}e", "STRASSE"));
    }

    #[test]
    fn a_domain_or_realm_leads_to_the_local_account() {
        for user in ["alice", "alice@REALM", "alice@files.example.org", "DOMAIN\\alice", "A\\B\\alice@x@y"] {
            assert_eq!(local_name(user), "alice", "{user}");
        }
        assert_eq!((local_name("@REALM"), local_name("DOMAIN\\"), local_name("")), ("", "", ""));
    }

    #[test]
    fn an_account_does_not_show_its_hash() {
        let account = Account {
            name: "a".into(),
            nt_hash: Some([0xab; 16]),
            keys: None,
            uid: 1,
            gid: 1,
            groups: vec![],
            sid: None,
            disabled: false,
        };
        let shown = format!("{account:?}");
        assert!(
            !shown.contains("171") && !shown.to_lowercase().contains("ab, ab") && !shown.contains("hash")
        );
    }
}
