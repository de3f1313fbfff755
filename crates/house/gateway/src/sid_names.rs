//! Who SIDs and names stand for, for clients that show and take names: the accounts of this server, and the users and
//! groups of the machine's name service. Threads of its own ask the name service, and its answers are kept for a while,
//! so that no connection waits for it longer than [`PATIENCE`].

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use auth::{Account, Accounts};
use parking_lot::Mutex;
use smb_server::{Directory, Known, LookUp, Sid, SidKind};
use tokio::sync::oneshot;

use crate::accounts::{AccountBook, AccountNames};
use crate::name_service::{self, NameAnswer};

/// How long a client waits for names. Then it gets SIDs.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the answer of the name service about somebody is kept.
const KEPT: Duration = Duration::from_secs(15 * 60);
/// How long it is kept that there is nobody.
const NOBODY_KEPT: Duration = Duration::from_secs(60);
/// The most answers that are kept, and the most questions that wait.
const ENTRIES_MAX: usize = 10_000;
/// The threads that ask the name service.
const THREADS: usize = 2;

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

type Answer = Option<Known>;

/// Asks the name service, which may take long.
type Ask = dyn Fn(&Question) -> NameAnswer<Known> + Send + Sync;

/// See the module.
pub(crate) struct SidNames {
    accounts: Arc<AccountBook>,
    /// The name of this server, which is the domain of its accounts.
    server: String,
    /// The SID of that domain.
    machine: Sid,
    asked: Arc<Asked>,
}

impl std::fmt::Debug for SidNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SidNames").finish_non_exhaustive()
    }
}

/// The questions, and the answers so far.
struct Asked {
    questions: SyncSender<Question>,
    /// Guards the answers and those who wait. Not held while the name service is asked.
    entries: Mutex<HashMap<Question, Entry>>,
}

/// What is known about a question.
#[derive(Default)]
struct Entry {
    /// The last answer, and until when it counts. It is still better than none after that.
    answer: Option<(Answer, Instant)>,
    /// Who waits for an answer; the question is on its way if there is anybody.
    waiting: Vec<oneshot::Sender<Answer>>,
}

/// An answer, or where it will come from.
enum Outcome {
    Here(Answer),
    Later(oneshot::Receiver<Answer>, Answer),
}

impl SidNames {
    /// Starts the threads, which end with the directory.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(accounts: Arc<AccountBook>, server: &str, machine: Sid) -> io::Result<Self> {
        Self::asking(accounts, server, machine, Arc::new(ask_system))
    }

    fn asking(accounts: Arc<AccountBook>, server: &str, machine: Sid, ask: Arc<Ask>) -> io::Result<Self> {
        let (questions, waiting) = sync_channel(ENTRIES_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        let asked = Arc::new(Asked { questions, entries: Mutex::default() });
        for _ in 0..THREADS {
            let (asked, waiting, ask) = (Arc::downgrade(&asked), Arc::clone(&waiting), Arc::clone(&ask));
            let run = move || {
                while let Some(question) = next(&waiting) {
                    let answer = ask(&question);
                    let Some(asked) = asked.upgrade() else { return };
                    asked.take(question, answer, Instant::now());
                }
            };
            std::thread::Builder::new().name("sid names".to_owned()).spawn(run)?;
        }
        Ok(Self { accounts, server: server.to_owned(), machine, asked })
    }

    /// An account of this server.
    fn account(&self, sid: Sid, name: String) -> Known {
        Known { sid, kind: SidKind::User, domain: self.server.clone(), name }
    }

    /// Accounts know their users' names, whatever the name service says.
    fn of_sid(&self, sid: &Sid, accounts: &AccountNames) -> Outcome {
        match (sid.uid(), sid.gid()) {
            (Some(uid), _) => match accounts.by_uid.get(&uid) {
                Some(name) => Outcome::Here(Some(user(uid, name.clone()))),
                None => self.asked.ask(Question::User(uid), Instant::now()),
            },
            (_, Some(gid)) => self.asked.ask(Question::Group(gid), Instant::now()),
            _ => Outcome::Here(accounts.by_sid.get(sid).map(|name| self.account(*sid, name.clone()))),
        }
    }

    fn of_name(&self, name: &str) -> Outcome {
        let (domain, plain) =
            name.split_once('\\').map_or((None, name), |(domain, name)| (Some(domain), name));
        let is = |known: &str| domain.is_some_and(|domain| domain.eq_ignore_ascii_case(known));
        if plain.is_empty() || plain.contains(['\0', '\\', '@']) {
            return Outcome::Here(None);
        }
        let account = self.accounts.find(plain);
        let question = if domain.is_none() || is(&self.server) {
            match account {
                Some(Account { sid: Some(sid), name, .. }) => {
                    return Outcome::Here(Some(self.account(sid, name)));
                }
                Some(account) => return Outcome::Here(Some(user(account.uid, account.name))),
                None if domain.is_some() => return Outcome::Here(None),
                None => Question::Named(plain.to_owned()),
            }
        } else if is(UNIX_USER) {
            match account {
                Some(account) => return Outcome::Here(Some(user(account.uid, account.name))),
                None => Question::UserNamed(plain.to_owned()),
            }
        } else if is(UNIX_GROUP) {
            Question::GroupNamed(plain.to_owned())
        } else {
            return Outcome::Here(None);
        };
        self.asked.ask(question, Instant::now())
    }
}

impl Directory for SidNames {
    fn machine(&self) -> Option<Sid> {
        Some(self.machine)
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
fn wait_for(outcomes: Vec<Outcome>) -> LookUp {
    Box::pin(async move {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        let mut answers = Vec::with_capacity(outcomes.len());
        for outcome in outcomes {
            answers.push(match outcome {
                Outcome::Here(answer) => answer,
                Outcome::Later(answer, stale) => match tokio::time::timeout_at(deadline, answer).await {
                    Ok(Ok(answer)) => answer,
                    _ => stale,
                },
            });
        }
        answers
    })
}

/// The next question; None when the directory is gone.
fn next(waiting: &Mutex<Receiver<Question>>) -> Option<Question> {
    waiting.lock().recv().ok()
}

impl Asked {
    /// The answer that is known, or asks for it. Each question is on its way once.
    fn ask(&self, question: Question, now: Instant) -> Outcome {
        let mut entries = self.entries.lock();
        if entries.len() >= ENTRIES_MAX && !entries.contains_key(&question) {
            // Answers that are still wanted are soon here again.
            entries.retain(|_, entry| !entry.waiting.is_empty());
            if entries.len() >= ENTRIES_MAX {
                return Outcome::Here(None);
            }
        }
        let entry = entries.entry(question.clone()).or_default();
        let stale = match &entry.answer {
            Some((answer, until)) if now < *until => return Outcome::Here(answer.clone()),
            Some((answer, _)) => answer.clone(),
            None => None,
        };
        let (answer, comes) = oneshot::channel();
        entry.waiting.retain(|waiting| !waiting.is_closed());
        if entry.waiting.is_empty() && self.questions.try_send(question).is_err() {
            return Outcome::Here(stale);
        }
        entry.waiting.push(answer);
        Outcome::Later(comes, stale)
    }

    /// Keeps the answer of the name service, and tells those who wait.
    fn take(&self, question: Question, answer: NameAnswer<Known>, now: Instant) {
        let mut entries = self.entries.lock();
        let entry = entries.entry(question).or_default();
        let answer = match answer {
            NameAnswer::Known(known) => {
                entry.answer = Some((Some(known.clone()), now + KEPT));
                Some(known)
            }
            NameAnswer::Unknown => {
                entry.answer = Some((None, now + NOBODY_KEPT));
                None
            }
            NameAnswer::Unavailable(error) => {
                tracing::debug!("the name service cannot answer: {error}");
                entry.answer.as_ref().and_then(|(answer, _)| answer.clone())
            }
        };
        for waiting in entry.waiting.drain(..) {
            let _ = waiting.send(answer.clone()); // who waited may have gone
        }
    }
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

    use super::*;

    fn look_up(directory: &SidNames, names: &[&str]) -> Vec<Option<(String, String)>> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        run(directory.of_names(names))
            .into_iter()
            .map(|known| known.map(|k| (k.sid.to_string(), k.name)))
            .collect()
    }

    fn run(look_up: LookUp) -> Vec<Answer> {
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
            nt_hash: [0; 16],
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

    #[test]
    fn an_answer_counts_for_a_while_and_is_better_than_none_after_that() {
        let directory = directory(|_| NameAnswer::Unavailable("out".to_owned()));
        let asked = &directory.asked;
        let (question, now) = (Question::User(7), Instant::now());
        asked.take(question.clone(), NameAnswer::Known(user(7, "otto".to_owned())), now);
        let here = |outcome| matches!(outcome, Outcome::Here(Some(_)));
        assert!(here(asked.ask(question.clone(), now + KEPT - Duration::from_secs(1))));
        let Outcome::Later(answer, stale) = asked.ask(question.clone(), now + KEPT) else { panic!() };
        assert!(stale.is_some());
        assert_eq!(answer.blocking_recv().unwrap(), stale, "the last answer, while there is no other");
        asked.take(question.clone(), NameAnswer::Unknown, now);
        assert!(matches!(asked.ask(question, now), Outcome::Here(None)), "there is nobody");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let directory = directory(|_| NameAnswer::Unknown);
        let now = Instant::now();
        for uid in 0..u32::try_from(ENTRIES_MAX).unwrap() + 10 {
            directory.asked.take(Question::User(uid), NameAnswer::Unknown, now);
            let _ = directory.asked.ask(Question::Group(uid), now);
        }
        assert!(directory.asked.entries.lock().len() <= ENTRIES_MAX + 1);
    }
}
