//! The numbers of users of domains by the word of this machine's name service. A user of a domain is asked for by a name that no user of this
//! machine alone has: the name of the domain is in it.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use auth::{Ids, NumberSource, Numbers, Reason, Unnumbered};

use crate::asked::{Ask, Asked, Heard, Outcome, PATIENCE};
use crate::lookups::Tally;
use crate::name_service::{self, NameAnswer};

/// How the name service calls the users of a domain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NssNames {
    /// `AD\alice`, with the NetBIOS name of the domain.
    #[default]
    Netbios,
    /// `alice@AD.EXAMPLE.ORG`, with the realm.
    Realm,
}

impl NssNames {
    /// The name of a user of a domain; None: the parts are no names, and together they might be somebody else's.
    fn of(self, account: &str, realm: &str, domain: &str) -> Option<String> {
        let is_plain = |part: &str| {
            !part.is_empty() && !part.contains(['@', '\\', '/', ':']) && !part.contains(char::is_control)
        };
        let (around, name) = match self {
            Self::Realm => (realm, format!("{account}@{realm}")),
            Self::Netbios => (domain, format!("{domain}\\{account}")),
        };
        (is_plain(account) && is_plain(around)).then_some(name)
    }

    /// The form of the names, for people.
    pub(crate) fn form(self) -> &'static str {
        match self {
            Self::Realm => "alice@AD.EXAMPLE.ORG",
            Self::Netbios => "AD\\alice",
        }
    }
}

/// A user, and the name by which the name service is asked. Somebody else of the same name is another question.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Question {
    user: acl::Sid,
    name: String,
}

/// See the module. Threads of its own ask, and the answers are kept for a while.
#[derive(Debug)]
pub(crate) struct NssNumbers {
    names: NssNames,
    asked: Arc<Asked<Question, Ids>>,
}

impl NssNumbers {
    /// Starts the threads, which end with this value.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(names: NssNames, tally: &Arc<Tally>) -> io::Result<Self> {
        Self::asking(names, Arc::new(|question: &Question| ask(&question.name)), tally)
    }

    fn asking(names: NssNames, ask: Arc<Ask<Question, Ids>>, tally: &Arc<Tally>) -> io::Result<Self> {
        Ok(Self { names, asked: Asked::start("domain numbers", ask, tally)? })
    }

    fn of(&self, user: acl::Sid, account: &str, realm: &str, domain: &str) -> Numbers {
        let Some(name) = self.names.of(account, realm, domain) else {
            return Box::pin(std::future::ready(Err(Reason::NoNumber)));
        };
        heard(self.asked.ask(Question { user, name }, Instant::now()))
    }
}

impl NumberSource for NssNumbers {
    fn numbers_of(&self, user: &Unnumbered) -> Numbers {
        let logon = user.logon();
        self.of(logon.sid, &logon.account, user.realm(), &logon.domain)
    }
}

/// The numbers that are heard of in time.
pub(crate) fn heard(outcome: Outcome<Ids>) -> Numbers {
    Box::pin(async move {
        match outcome.heard_by(tokio::time::Instant::now() + PATIENCE).await {
            Heard::Somebody(ids) => Ok(ids),
            Heard::Nobody => Err(Reason::NoNumber),
            Heard::Nothing => Err(Reason::NumbersUnavailable),
        }
    })
}

fn ask(name: &str) -> NameAnswer<Ids> {
    name_service::user_called(name).map(|user| Ids { uid: user.uid, gid: user.gid, groups: user.groups })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use parking_lot::Mutex;

    use super::*;
    use crate::lookups::Lookups;

    fn numbers(source: &NssNumbers, account: &str) -> Result<Ids, Reason> {
        let user = "S-1-5-21-1-2-3-1104".parse().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async { source.of(user, account, "AD.TEST", "AD").await })
    }

    #[test]
    fn a_user_is_asked_for_by_a_name_with_the_domain() {
        assert_eq!(NssNames::Realm.of("alice", "AD.TEST", "AD").as_deref(), Some("alice@AD.TEST"));
        assert_eq!(NssNames::Netbios.of("alice", "AD.TEST", "AD").as_deref(), Some("AD\\alice"));
        for account in ["", "alice@AD", "OTHER\\alice", "a/b", "a:b", "a\0", "a\n"] {
            for names in [NssNames::Realm, NssNames::Netbios] {
                assert_eq!(names.of(account, "AD.TEST", "AD"), None, "{account:?}");
            }
        }
        assert_eq!(
            NssNames::Netbios.of("alice", "AD.TEST", ""),
            None,
            "that would be a user of this machine"
        );
        assert_eq!(NssNames::Realm.of("alice", "", "AD"), None);
    }

    #[test]
    fn a_user_of_this_machine_alone_is_no_user_of_a_domain() {
        let source = NssNumbers::start(NssNames::Realm, &Lookups::default().numbers).unwrap();
        assert_eq!(numbers(&source, "root"), Err(Reason::NoNumber));
        assert_eq!(numbers(&source, "root@LOCAL"), Err(Reason::NoNumber));
    }

    #[test]
    fn a_name_service_that_is_silent_is_asked_once_and_the_last_answer_counts() {
        let ids = Ids { uid: 10_001, gid: 10_000, groups: vec![11_000] };
        let (answer, answers) = mpsc::channel();
        let (tell, questions) = mpsc::channel();
        let answers = Mutex::new(answers);
        let ask = move |question: &Question| {
            tell.send(question.name.clone()).unwrap();
            answers.lock().recv().unwrap_or_else(|_| NameAnswer::Unavailable("the test is over".to_owned()))
        };
        let lookups = Lookups::default();
        let source = NssNumbers::asking(NssNames::Netbios, Arc::new(ask), &lookups.numbers).unwrap();
        let begun = Instant::now();
        assert_eq!(numbers(&source, "alice"), Err(Reason::NumbersUnavailable));
        assert!(begun.elapsed() >= PATIENCE);
        answer.send(NameAnswer::Known(ids.clone())).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while numbers(&source, "alice") != Ok(ids.clone()) {
            assert!(Instant::now() < deadline);
        }
        assert_eq!(questions.try_iter().collect::<Vec<_>>(), ["AD\\alice"]);
        answer.send(NameAnswer::Unavailable("out".to_owned())).unwrap();
        assert_eq!(numbers(&source, "bob"), Err(Reason::NumbersUnavailable));
        answer.send(NameAnswer::Unknown).unwrap();
        assert_eq!(numbers(&source, "carol"), Err(Reason::NoNumber));
        let [told] = &lookups.at(Instant::now())[..] else { panic!("only the numbers are asked for") };
        assert_eq!((told.found, told.absent, told.failed), (1, 1, 1), "{told:?}");
        assert!(told.timed_out >= 1 && told.stale_used == 0, "{told:?}");
        assert_eq!(told.failure.as_ref().map(|(_, why)| why.as_str()), Some("out"));
        assert_eq!(told.held.map(|held| held.fresh), Some(2), "alice, and that there is no carol");
    }
}
