//! Who SIDs and names stand for, for clients that show and take names: the accounts of this server, users of domains who have come with
//! tickets, the users and groups of the machine's name service, and those of the domain's directory. Threads of their own ask the name service
//! and the directory, whose answers are kept for a while, so that no connection waits for them longer than [`PATIENCE`].

use std::io;
use std::sync::Arc;
use std::time::Instant;

use auth::Accounts;
use smb_server::{AccountEntry, Directory, Known, LookUp, Sid, SidKind};

use crate::accounts::{AccountBook, AccountNames};
use crate::acquaintances::Acquaintance;
use crate::asked::{Ask, Asked, Heard, Outcome, PATIENCE};
use crate::directory_names::{self, DirectoryNames};
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
    of_domain: Arc<DirectoryNames>,
}

/// Who is meant by a name.
struct Meant {
    outcome: Outcome<Known>,
    /// What the directory is asked if that is nobody.
    or_else: Option<directory_names::Question>,
}

impl Meant {
    fn here(known: Option<Known>) -> Self {
        Outcome::here(known).into()
    }
}

impl From<Outcome<Known>> for Meant {
    fn from(outcome: Outcome<Known>) -> Self {
        Self { outcome, or_else: None }
    }
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

    /// The same for a server of another name, whose accounts are the same. It has the same threads.
    pub(crate) fn named(&self, server: &str) -> Self {
        Self {
            accounts: Arc::clone(&self.accounts),
            server: server.to_owned(),
            machine: self.machine,
            asked: Arc::clone(&self.asked),
            of_domain: Arc::clone(&self.of_domain),
        }
    }

    fn asking(
        accounts: Arc<AccountBook>,
        server: &str,
        machine: Sid,
        ask: Arc<Ask<Question, Known>>,
    ) -> io::Result<Self> {
        let asked = Asked::start("sid names", ask, &accounts.lookups.names)?;
        let of_domain = Arc::new(DirectoryNames::new(&accounts.lookups.directory_names));
        Ok(Self { accounts, server: server.to_owned(), machine, asked, of_domain })
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
                None => self.of_system(Question::User(uid)),
            },
            (_, Some(gid)) => self.of_system(Question::Group(gid)),
            _ => {
                let account = accounts.by_sid.get(sid).map(|name| self.account(*sid, name.clone()));
                match account.or_else(|| of_domain(&*self.accounts.acquaintances.with_sid(sid)?)) {
                    None if self.is_of_another_domain(sid) => {
                        self.ask_directory(directory_names::Question::Sid(*sid))
                    }
                    known => Outcome::here(known),
                }
            }
        }
    }

    /// Whether this is a user or group neither of this machine nor of all machines.
    fn is_of_another_domain(&self, sid: &Sid) -> bool {
        sid.in_domain().is_some_and(|(domain, _)| domain != self.machine)
    }

    fn ask_directory(&self, question: directory_names::Question) -> Outcome<Known> {
        self.of_domain.ask(self.accounts.tickets().directory(), question)
    }

    fn of_name(&self, name: &str) -> Meant {
        let (domain, plain) =
            name.split_once('\\').map_or((None, name), |(domain, name)| (Some(domain), name));
        let is = |known: &str| domain.is_some_and(|domain| domain.eq_ignore_ascii_case(known));
        let is_principal = domain.is_none() && plain.contains('@');
        if plain.is_empty() || plain.contains(['\0', '\\']) || (plain.contains('@') && !is_principal) {
            return Meant::here(None);
        }
        if is(&self.server) {
            Meant::here(self.of_account(plain))
        } else if is(UNIX_USER) {
            match self.accounts.find(plain) {
                Some(account) => Meant::here(Some(user(account.uid, account.name))),
                None => self.of_system(Question::UserNamed(plain.to_owned())).into(),
            }
        } else if is(UNIX_GROUP) {
            self.of_system(Question::GroupNamed(plain.to_owned())).into()
        } else {
            self.of_any_domain(domain, plain, is_principal)
        }
    }

    /// A name without a domain, with another one, or of a user of Kerberos (`alice@EXAMPLE.ORG`).
    fn of_any_domain(&self, domain: Option<&str>, name: &str, is_principal: bool) -> Meant {
        let known = match domain {
            Some(domain) => match &*self.accounts.acquaintances.in_domain(Some(domain), name) {
                [known] => of_domain(known),
                _ => None,
            },
            None if is_principal => {
                self.accounts.acquaintances.named(name).and_then(|known| of_domain(&known))
            }
            None => self.of_account(name),
        };
        let is_plain = domain.is_none() && !is_principal;
        let outcome = match known {
            None if is_plain => self.of_system(Question::Named(name.to_owned())),
            known => Outcome::here(known),
        };
        let domain = domain.map(str::to_owned);
        Meant { outcome, or_else: Some(directory_names::Question::Name { domain, name: name.to_owned() }) }
    }

    fn of_system(&self, question: Question) -> Outcome<Known> {
        self.asked.ask(question, Instant::now())
    }

    /// The account with this name. One without a SID has that of its uid.
    fn of_account(&self, name: &str) -> Option<Known> {
        let account = self.accounts.find(name)?;
        Some(match account.sid {
            Some(sid) => self.account(sid, account.name),
            None => user(account.uid, account.name),
        })
    }
}

impl SidNames {
    /// All answers, within [`PATIENCE`] altogether.
    fn wait_for(&self, meant: Vec<Meant>) -> LookUp {
        let (of_domain, directory) = (Arc::clone(&self.of_domain), self.accounts.tickets().directory());
        Box::pin(async move {
            let deadline = tokio::time::Instant::now() + PATIENCE;
            let mut outcomes = Vec::with_capacity(meant.len());
            for Meant { outcome, or_else } in meant {
                // Whoever has not answered may know somebody of that name, who comes first.
                outcomes.push(match (outcome.heard_by(deadline).await, or_else) {
                    (Heard::Nobody, Some(question)) => of_domain.ask(directory.clone(), question),
                    (heard, _) => Outcome::Here(heard),
                });
            }
            let mut answers = Vec::with_capacity(outcomes.len());
            for outcome in outcomes {
                answers.push(outcome.by(deadline).await);
            }
            answers
        })
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
        let meant = sids.iter().map(|sid| self.of_sid(sid, &accounts).into()).collect();
        self.wait_for(meant)
    }

    fn of_names(&self, names: Vec<String>) -> LookUp {
        self.wait_for(names.iter().map(|name| self.of_name(name)).collect())
    }
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

    use auth::Account;

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
