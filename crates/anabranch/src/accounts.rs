//! The accounts that may log on. They change while clients do.

use std::collections::HashMap;

use auth::{Account, Accounts, folded_name};
use parking_lot::RwLock;

/// The accounts by folded name, behind their lock.
#[derive(Debug, Default)]
pub(crate) struct AccountBook(RwLock<HashMap<String, Account>>);

impl AccountBook {
    /// Enters an account, in place of the one of its name.
    pub(crate) fn enter(&self, account: Account) {
        self.0.write().insert(folded_name(&account.name), account);
    }

    /// Takes an account out.
    pub(crate) fn take(&self, name: &str) -> Option<Account> {
        self.0.write().remove(&folded_name(name))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.read().is_empty()
    }
}

impl Accounts for AccountBook {
    fn find(&self, name: &str) -> Option<Account> {
        self.0.read().get(&folded_name(name)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_come_and_go_whatever_the_case() {
        let book = AccountBook::default();
        let account = |name: &str, uid| Account {
            name: name.to_owned(),
            nt_hash: [0; 16],
            uid,
            gid: uid,
            groups: Vec::new(),
            disabled: false,
        };
        book.enter(account("Anna", 1));
        book.enter(account("ANNA", 2));
        assert_eq!(book.find("anna").map(|found| found.uid), Some(2));
        assert!(book.take("aNNa").is_some() && book.find("Anna").is_none() && book.is_empty());
    }
}
