//! Who SIDs and names stand for, for clients that show and take names: the accounts of this server, users of domains who have come with
//! tickets, and the users and groups of the machine's name service. Threads of its own ask the name service, and its answers are kept for a while,
//! so that no connection waits for it longer than [`PATIENCE`].

use std::io;
use std::sync::Arc;
use std::time::Instant;

use auth::{Account, Accounts};
use smb_server::{AccountEntry, Directory, Known, LookUp, Sid, SidKind};

use crate::accounts::{AccountBook, AccountNames};
use crate::acquaintances::Acquaintance;
use crate::asked::{Ask, Asked, Outcome, PATIENCE};
use crate::name_service::{self, NameAnswer};

/// The domains of the machine's users and groups, with the names that Samba gives them.
const UNIX_USER: &str = "Unix User";
const UNIX_GROUP: &str = "Unix Group";

/// What the name service is asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Question {
    /// The name of a uid.
    User(u32),
    /// The name of a gid.
    Group(u32),
    /// The user of a name.
    UserNamed(String),
    /// The group of a name.
    GroupNamed(String),
    /// The user of a name, or else its group.
    Named(String),
}

/// See the module.
pub(crate) struct SidNames {
    accounts: Arc<AccountBook>,
    /// The name of this server, which is the domain of its accounts.
    server: String,
    /// The SID of that domain.
    machine: Sid,
    asked: Arc<Asked<Question, Known>>,
}

impl std::fmt::Debug for SidNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SidNames").finish_non_exhaustive()
    }
}

impl SidNames {
    /// Starts the threads, which end with the directory.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(accounts: Arc<AccountBook>, server: &str, machine: Sid) -> io::Result<Self> {
        Self::asking(accounts, server, machine, Arc::new(ask_system))
    }

    fn asking(
        accounts: Arc<AccountBook>,
        server: &str,
        machine: Sid,
        ask: Arc<Ask<Question, Known>>,
    ) -> io::Result<Self> {
        let asked = Asked::start("sid names", ask, &accounts.lookups.names)?;
        Ok(Self { accounts, server: server.to_owned(), machine, asked })
    }

    /// An account of this server.
    fn account(&self, sid: Sid, name: String) -> Known {
        Known { sid, kind: SidKind::User, domain: self.server.clone(), name }
    }

    /// Accounts know their users' names, whatever the name service says.
    fn of_sid(&self, sid: &Sid, accounts: &AccountNames) -> Outcome<Known> {
        match (sid.uid(), sid.gid()) {
            (Some(uid), _) => match accounts.by_uid.get(&uid) {
                Some(name) => Outcome::here(Some(user(uid, name.clone()))),
                None => self.asked.ask(Question::User(uid), Instant::now()),
            },
            (_, Some(gid)) => self.asked.ask(Question::Group(gid), Instant::now()),
            _ => {
                let account = accounts.by_sid.get(sid).map(|name| self.account(*sid, name.clone()));
                Outcome::here(account.or_else(|| of_domain(&*self.accounts.acquaintances.with_sid(sid)?)))
            }
        }
    }

    fn of_name(&self, name: &str) -> Outcome<Known> {
        let (domain, plain) =
            name.split_once('\\').map_or((None, name), |(domain, name)| (Some(domain), name));
        let is = |known: &str| domain.is_some_and(|domain| domain.eq_ignore_ascii_case(known));
        if plain.is_empty() || plain.contains(['\0', '\\', '@']) {
            return Outcome::here(None);
        }
        let account = self.accounts.find(plain);
        let question = if domain.is_none() || is(&self.server) {
            match account {
                Some(Account { sid: Some(sid), name, .. }) => {
                    return Outcome::here(Some(self.account(sid, name)));
                }
                Some(account) => return Outcome::here(Some(user(account.uid, account.name))),
                None if domain.is_some() => return Outcome::here(None),
                None => Question::Named(plain.to_owned()),
            }
        } else if is(UNIX_USER) {
            match account {
                Some(account) => return Outcome::here(Some(user(account.uid, account.name))),
                None => Question::UserNamed(plain.to_owned()),
            }
        } else if is(UNIX_GROUP) {
            Question::GroupNamed(plain.to_owned())
        } else {
            return Outcome::here(match &*self.accounts.acquaintances.in_domain(domain, plain) {
                [known] => of_domain(known),
                _ => None,
            });
        };
        self.asked.ask(question, Instant::now())
    }
}

impl Directory for SidNames {
    fn machine(&self) -> Option<Sid> {
        Some(self.machine)
    }

    fn accounts(&self) -> Vec<AccountEntry> {
        self.accounts.entries()
    }

    fn of_sids(&self, sids: Vec<Sid>) -> LookUp {
        // Once for all of them: there may be many of both.
        let accounts = self.accounts.names();
        wait_for(sids.iter().map(|sid| self.of_sid(sid, &accounts)).collect())
    }

    fn of_names(&self, names: Vec<String>) -> LookUp {
        wait_for(names.iter().map(|name| self.of_name(name)).collect())
    }
}

/// All answers, within [`PATIENCE`] altogether.
fn wait_for(outcomes: Vec<Outcome<Known>>) -> LookUp {
    Box::pin(async move {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let mut answers = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            answers.push(outcome.by(deadline).await);
        }
        answers
    })
}

/// A user of a domain who has come with a ticket.
fn of_domain(known: &Acquaintance) -> Option<Known> {
    let (sid, domain) = (known.sid?, known.domain.clone()?);
    Some(Known { sid, kind: SidKind::User, domain, name: known.account().to_owned() })
}

fn user(uid: u32, name: String) -> Known {
    Known { sid: Sid::of_user(uid), kind: SidKind::User, domain: UNIX_USER.to_owned(), name }
}

fn group(gid: u32, name: String) -> Known {
    Known { sid: Sid::of_group(gid), kind: SidKind::Group, domain: UNIX_GROUP.to_owned(), name }
}

fn ask_system(question: &Question) -> NameAnswer<Known> {
    match question {
        Question::User(uid) => name_service::user_name(*uid).map(|name| user(*uid, name)),
        Question::Group(gid) => name_service::group_name(*gid).map(|name| group(*gid, name)),
        Question::UserNamed(name) => name_service::uid_of(name).map(|uid| user(uid, name.clone())),
        Question::GroupNamed(name) => name_service::gid_of(name).map(|gid| group(gid, name.clone())),
        Question::Named(name) => match name_service::uid_of(name) {
            NameAnswer::Unknown => name_service::gid_of(name).map(|gid| group(gid, name.clone())),
            answer => answer.map(|uid| user(uid, name.clone())),
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use parking_lot::Mutex;

    use super::*;

    fn look_up(directory: &SidNames, names: &[&str]) -> Vec<Option<(String, String)>> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        run(directory.of_names(names))
            .into_iter()
            .map(|known| known.map(|k| (k.sid.to_string(), k.name)))
            .collect()
    }

    fn run(look_up: LookUp) -> Vec<Option<Known>> {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(look_up)
    }

    fn directory(ask: impl Fn(&Question) -> NameAnswer<Known> + Send + Sync + 'static) -> SidNames {
        let accounts = AccountBook::default();
        let (name, groups) = ("Anna".to_owned(), Vec::new());
        accounts.enter(Account {
            name,
            uid: 1000,
            gid: 100,
            groups,
            nt_hash: None,
            keys: None,
            disabled: false,
            sid: None,
        });
        let machine = "S-1-5-21-1-2-3".parse().unwrap();
        SidNames::asking(Arc::new(accounts), "HERE", machine, Arc::new(ask)).unwrap()
    }

    fn known(sid: &str, name: &str) -> Option<(String, String)> {
        Some((sid.to_owned(), name.to_owned()))
    }

    #[test]
    fn accounts_come_first_and_the_machine_knows_the_others() {
        let directory = directory(ask_system);
        let names = [
            "anna",
            r"Unix User\ANNA",
            "root",
            r"unix user\root",
            r"Unix Group\root",
            r"OTHER\anna",
            "no/one",
        ];
        let anna = known("S-1-22-1-1000", "Anna");
        let root = known("S-1-22-1-0", "root");
        let expected = [anna.clone(), anna, root.clone(), root, known("S-1-22-2-0", "root"), None, None];
        assert_eq!(look_up(&directory, &names), expected);
        assert_eq!(look_up(&directory, &["", "a@b", r"Unix User\a\b", "a\0"]), [const { None }; 4]);
        let sids =
            ["S-1-22-1-1000", "S-1-22-1-0", "S-1-22-2-0", "S-1-22-1-4294000000", "S-1-5-21-1-2-3-1000"];
        let sids = sids.iter().map(|sid| sid.parse().unwrap()).collect();
        let names: Vec<_> = run(directory.of_sids(sids)).into_iter().map(|known| Some(known?.name)).collect();
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(names, [named("Anna"), named("root"), named("root"), None, None]);
    }

    #[test]
    fn a_name_service_that_is_silent_is_asked_once_and_waited_for_in_vain() {
        let (tell, asked) = mpsc::channel();
        let (answer, answers) = mpsc::channel::<()>();
        let answers = Mutex::new(answers);
        let directory = directory(move |question| {
            tell.send(question.clone()).unwrap();
            let _ = answers.lock().recv();
            ask_system(question)
        });
        let begun = Instant::now();
        assert_eq!(look_up(&directory, &["root", "root"]), [None, None]);
        assert!(begun.elapsed() >= PATIENCE);
        assert_eq!(asked.try_iter().collect::<Vec<_>>(), [Question::Named("root".to_owned())]);
        drop(answer);
        let deadline = Instant::now() + Duration::from_secs(60);
        while look_up(&directory, &["root"]) != [known("S-1-22-1-0", "root")] {
            assert!(Instant::now() < deadline);
        }
    }
}
