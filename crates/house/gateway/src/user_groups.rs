//! The groups of users of NFS by the word of this machine: accounts of the server, users of domains who have come with tickets, and users
//! whom the machine's name service knows.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use nfs_server::{Groups, UserDirectory, UserGroups};

use crate::accounts::AccountBook;
use crate::asked::{Ask, Asked, Outcome, PATIENCE};
use crate::name_service::{self, NameAnswer};

/// How long the groups of a ticket count: as long as a ticket does in most domains.
const TICKET_COUNTS: Duration = Duration::from_secs(10 * 60 * 60);

/// See the module.
#[derive(Debug)]
pub(crate) struct GroupsHere {
    accounts: Arc<AccountBook>,
    asked: Arc<Asked<u32, Arc<UserGroups>>>,
    /// A user whom nobody knows.
    unknown: Arc<UserGroups>,
}

impl GroupsHere {
    /// Starts the threads that ask the name service. They end with this value.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(accounts: Arc<AccountBook>) -> io::Result<Self> {
        Self::asking(accounts, Arc::new(|uid| of_system(*uid)))
    }

    fn asking(accounts: Arc<AccountBook>, ask: Arc<Ask<u32, Arc<UserGroups>>>) -> io::Result<Self> {
        let asked = Asked::start("user groups", ask, &accounts.lookups.groups)?;
        Ok(Self { accounts, asked, unknown: Arc::default() })
    }

    /// The groups of a user who is known without asking anybody.
    fn known(&self, uid: u32) -> Option<Arc<UserGroups>> {
        if let Some(of_account) = self.accounts.groups_of(uid) {
            return Some(of_account);
        }
        let known = self.accounts.acquaintances.with_uid(uid)?;
        let age = SystemTime::now().duration_since(known.at).unwrap_or_default();
        known.groups.clone().filter(|_| age < TICKET_COUNTS)
    }
}

impl UserDirectory for GroupsHere {
    fn groups_of(&self, uid: u32) -> Groups {
        if let Some(known) = self.known(uid) {
            return Groups::Here(known);
        }
        let unknown = Arc::clone(&self.unknown);
        match self.asked.ask(uid, Instant::now()) {
            Outcome::Here(answer) => Groups::Here(answer.somebody().unwrap_or(unknown)),
            later @ Outcome::Later(..) => Groups::Later(Box::pin(async move {
                let deadline = tokio::time::Instant::now() + PATIENCE;
                later.by(deadline).await.unwrap_or(unknown)
            })),
        }
    }
}

fn of_system(uid: u32) -> NameAnswer<Arc<UserGroups>> {
    name_service::user_of(uid).map(|user| {
        let all = [user.gid].into_iter().chain(user.groups).collect();
        Arc::new(UserGroups { primary: Some(user.gid), all })
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use auth::Account;
    use parking_lot::Mutex;

    use super::*;

    fn account(name: &str, uid: u32, groups: &[u32]) -> Account {
        let (name, groups) = (name.to_owned(), groups.to_vec());
        Account { name, nt_hash: None, keys: None, uid, gid: 100, groups, disabled: false, sid: None }
    }

    fn groups(directory: &GroupsHere, uid: u32) -> (Option<u32>, Vec<u32>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let groups = match directory.groups_of(uid) {
            Groups::Here(groups) => groups,
            Groups::Later(groups) => runtime.block_on(groups),
        };
        (groups.primary, groups.all.clone())
    }

    #[test]
    fn accounts_are_asked_before_the_name_service() {
        let accounts = Arc::new(AccountBook::default());
        accounts.enter(account("otto", 0, &[50]));
        accounts.enter(account("anna", 0, &[51]));
        let directory = GroupsHere::start(Arc::clone(&accounts)).unwrap();
        assert_eq!(groups(&directory, 0), (Some(100), vec![50, 51, 100]), "both accounts are this user");
        accounts.take("otto");
        accounts.take("anna");
        let (primary, all) = groups(&directory, 0);
        assert!(primary == Some(0) && all.contains(&0), "root of this machine");
        assert_eq!(groups(&directory, 4_294_000_000), (None, vec![]));
    }

    #[test]
    fn the_same_groups_are_the_same_value() {
        let accounts = Arc::new(AccountBook::default());
        accounts.enter(account("anna", 7, &[]));
        let directory = GroupsHere::start(accounts).unwrap();
        let here = |uid| match directory.groups_of(uid) {
            Groups::Here(groups) => Some(groups),
            Groups::Later(_) => None,
        };
        assert!(Arc::ptr_eq(&here(7).unwrap(), &here(7).unwrap()));
        groups(&directory, 0);
        assert!(Arc::ptr_eq(&here(0).unwrap(), &here(0).unwrap()));
    }

    #[test]
    fn a_name_service_that_is_silent_holds_up_a_call_for_a_while_only() {
        let (answer, answers) = mpsc::channel::<()>();
        let answers = Mutex::new(answers);
        let ask = move |_: &u32| {
            let _ = answers.lock().recv();
            NameAnswer::Known(Arc::new(UserGroups { primary: Some(9), all: vec![9] }))
        };
        let directory = GroupsHere::asking(Arc::default(), Arc::new(ask)).unwrap();
        let begun = Instant::now();
        assert_eq!(
            groups(&directory, 7),
            (None, vec![]),
            "nobody's groups, and not those that the client states"
        );
        assert!(begun.elapsed() >= PATIENCE);
        drop(answer);
        let deadline = Instant::now() + Duration::from_secs(60);
        while groups(&directory, 7) != (Some(9), vec![9]) {
            assert!(Instant::now() < deadline);
        }
    }
}
