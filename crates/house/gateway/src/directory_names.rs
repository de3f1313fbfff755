//! What users and groups of a domain are called, by the word of its directory, for clients that show and take names. Threads of their own
//! ask, and the answers are kept for a while.

use std::sync::Arc;
use std::time::Instant;

use directory::{Directory, Kind, Named};
use parking_lot::Mutex;
use smb_server::{Known, Sid, SidKind};

use crate::asked::{Asked, Outcome};
use crate::lookups::Tally;
use crate::name_service::NameAnswer;

/// What the directory is asked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Question {
    /// The name of a user or group.
    Sid(Sid),
    /// The user or group of a name; the domain is that before the backslash.
    Name {
        /// None: the name had none.
        domain: Option<String>,
        /// As it was written.
        name: String,
    },
}

/// See the module.
#[derive(Debug)]
pub(crate) struct DirectoryNames {
    tally: Arc<Tally>,
    /// Guards who is asked now; None: nobody was to be asked yet. Not held while the directory is asked.
    asking: Mutex<Option<Asking>>,
}

/// The questions to one directory.
#[derive(Debug)]
struct Asking {
    directory: Arc<Directory>,
    asked: Arc<Asked<Question, Known>>,
}

impl DirectoryNames {
    /// No directory is asked yet.
    pub(crate) fn new(tally: &Arc<Tally>) -> Self {
        Self { tally: Arc::clone(tally), asking: Mutex::default() }
    }

    /// What this directory says; None: there is none, and so it is nobody.
    pub(crate) fn ask(&self, directory: Option<Arc<Directory>>, question: Question) -> Outcome<Known> {
        match directory.and_then(|directory| self.of(directory)) {
            Some(asked) => asked.ask(question, Instant::now()),
            None => Outcome::here(None),
        }
    }

    /// The questions to this directory. What another one has said is forgotten.
    fn of(&self, directory: Arc<Directory>) -> Option<Arc<Asked<Question, Known>>> {
        let mut asking = self.asking.lock();
        if let Some(asking) = asking.as_ref().filter(|asking| Arc::ptr_eq(&asking.directory, &directory)) {
            return Some(Arc::clone(&asking.asked));
        }
        let of_threads = Arc::clone(&directory);
        let ask = move |question: &Question| ask(&of_threads, question);
        match Asked::start("domain names", Arc::new(ask), &self.tally) {
            Ok(asked) => {
                *asking = Some(Asking { directory, asked: Arc::clone(&asked) });
                Some(asked)
            }
            Err(error) => {
                tracing::error!("cannot start a thread that asks for the names of a domain: {error}");
                None
            }
        }
    }
}

fn ask(directory: &Directory, question: &Question) -> NameAnswer<Known> {
    let found = match question {
        Question::Sid(sid) => directory.name_of(sid),
        Question::Name { domain, name } => directory.named(domain.as_deref(), name),
    };
    match found {
        Ok(found) => found.map_or(NameAnswer::Unknown, |named| NameAnswer::Known(known(named))),
        Err(error) => NameAnswer::Unavailable(error.to_string()),
    }
}

fn known(Named { sid, domain, name, kind }: Named) -> Known {
    let kind = match kind {
        Kind::User => SidKind::User,
        Kind::Group => SidKind::Group,
        Kind::Alias => SidKind::Alias,
    };
    Known { sid, kind, domain, name }
}
