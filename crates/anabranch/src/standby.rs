//! `serve --wait-for-state`: what can be wrong without the state is found at once; then the server waits until no other one has its
//! state directory. Meanwhile it listens nowhere, and changes nothing in the state directory.

use std::path::Path;
use std::time::Duration;

use gateway::Subject;
use state::lock::{Holder, Lock};
use supervisor::Supervisor;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::place::{self, Mistake, Places};
use crate::problem::{Cause, Problem, Result, serving};
use crate::process::{HANGUP, Process, Signals};
use crate::serve::LOST_LINES_INTERVAL;
use crate::settings::{Given, Settings};
use crate::sources::Sources;
use crate::{log, supervised};

/// How often the lock is tried. A call that waits for it (flock(2)) would save half of this at a takeover on a local file system; but
/// over NFS the kernel itself tries again ever more seldom, and a call that waits keeps the file system in use, so that it could not be
/// unmounted.
const INTERVAL: Duration = Duration::from_millis(50);
/// How many news may wait to be told.
const NEWS_MAX: usize = 4;

/// A server that waits for its state directory.
#[derive(Debug)]
pub(crate) struct Standby {
    pub(crate) settings: Settings,
    pub(crate) sources: Sources,
}

/// What is new about a state directory.
#[derive(Debug)]
enum News {
    /// This process has it.
    Free(Lock),
    Seen(Seen),
}

/// Why a state directory is not free.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    Held(Holder),
    /// It cannot be looked at, or is not what it was.
    Trouble(String),
}

/// Waits until no other process has the state directory: what the server starts with by then, and the lock. None: a signal has
/// asked to end.
///
/// # Errors
/// The settings would be refused, the state directory cannot be used, or the system has no more threads.
pub(crate) fn wait(process: &mut Process, mut standby: Standby) -> Result<Option<(Standby, Lock)>> {
    check(&standby.settings, &standby.sources.started_with().from.places)?;
    let Process { runtime, signals, supervisor } = process;
    let lock = runtime.block_on(standby.until_free(signals, supervisor))?;
    Ok(lock.map(|lock| (standby, lock)))
}

/// Checks what would be refused at the takeover, as far as it can be known before.
fn check(settings: &Settings, places: &Places) -> Result<()> {
    let state = &settings.gateway.state;
    if !state.exists() {
        let state = state.display();
        let what = format!(
            "the state directory {state} does not exist, and a server that waits for it does not create it"
        );
        let advice = format!("Mount its file system first. For a new server: mkdir -m 700 {state}");
        return Err(Problem::new(Cause::State, what, advice));
    }
    state::directory::check(state)?;
    service_address::check(&settings.service_addresses)?;
    let errors: Vec<_> =
        gateway::findings(&settings.gateway).into_iter().filter(|finding| finding.is_error).collect();
    let is_of_directories =
        errors.iter().all(|finding| matches!(finding.subject, Subject::Share(_, "directory")));
    let mistakes = errors.into_iter().map(|finding| Mistake::found(finding, places)).collect();
    match place::problem(mistakes) {
        None => Ok(()),
        // A file system that is not mounted yet does not stay so, as a wrong configuration does.
        Some(problem) if is_of_directories => Err(Problem { cause: Cause::Directory, ..problem }),
        Some(problem) => Err(problem),
    }
}

impl Standby {
    async fn until_free(&mut self, signals: &mut Signals, supervisor: &Supervisor) -> Result<Option<Lock>> {
        let mut status = "standing by".to_owned();
        let mut news = self.look()?;
        let mut alive = tokio::time::interval(supervised::interval(supervisor));
        let mut lost_lines = tokio::time::interval(LOST_LINES_INTERVAL);
        loop {
            tokio::select! {
                signal = signals.received() => {
                    if signal != HANGUP {
                        supervisor.stopping(&format!("{signal}: ending"));
                        tracing::info!("{signal}: ending; the server has not served");
                        return Ok(None);
                    }
                    let before = self.settings.gateway.state.clone();
                    supervisor.reloading();
                    let outcome = self.read_again();
                    supervisor.ready(&format!("{status}; {outcome}"));
                    if self.settings.gateway.state != before {
                        news = self.look()?;
                    }
                }
                Some(new) = news.recv() => match new {
                    News::Free(lock) => return Ok(Some(lock)),
                    News::Seen(seen) => {
                        status = told(&self.settings.gateway.state, &seen);
                        if matches!(&seen, Seen::Held(holder) if holder.is_elsewhere()) {
                            self.withdraw_left();
                        }
                        supervisor.ready(&status);
                    }
                },
                _ = alive.tick() => if supervisor.watchdog().is_some() { supervisor.alive() },
                _ = lost_lines.tick() => log::tell_lost_lines(),
            }
        }
    }

    /// Begins to look at the state directory, on a thread: its storage may be silent.
    fn look(&self) -> Result<Receiver<News>> {
        let (tell, news) = channel(NEWS_MAX);
        let directory = self.settings.gateway.state.clone();
        let thread = std::thread::Builder::new().name("standby".to_owned());
        thread.spawn(move || look(&directory, &tell)).map_err(serving("cannot start a thread"))?;
        Ok(news)
    }

    /// Another machine serves: what a server on this one, which was killed, has left would answer for the addresses, too.
    fn withdraw_left(&self) {
        match service_address::withdraw_left(&self.settings.service_addresses) {
            Ok(gone) => {
                for address in gone {
                    tracing::info!("{address} was still here: a server that was killed had left it");
                }
            }
            Err(e) => tracing::error!("cannot take service addresses away that a server has left: {e}"),
        }
    }

    /// Reads the configuration again. One that is wrong changes nothing. What became of it.
    fn read_again(&mut self) -> String {
        let given = self.sources.given();
        let places = given.from.places.clone();
        let settings = self.sources.settings(given.clone());
        let settings = settings
            .map_err(|mistakes| place::problem(mistakes).map_or(String::new(), |problem| problem.what));
        let checked = settings.and_then(|settings| match check(&settings, &places) {
            Ok(()) => Ok(settings),
            Err(problem) => Err(problem.what),
        });
        match checked {
            Ok(settings) => {
                given.from.warn();
                let started = self.sources.started_with().clone();
                // The log was begun with these.
                let given = Given { log: started.log, log_format: started.log_format, ..given };
                self.sources.start_with(given);
                self.settings = settings;
                tracing::info!("{HANGUP}: the configuration was read again");
                "the configuration was read again".to_owned()
            }
            Err(why) => {
                tracing::error!("{HANGUP}: the configuration is unchanged: {why}");
                format!("the configuration is unchanged: {}", why.lines().next().unwrap_or_default())
            }
        }
    }
}

/// Says in the log why the server stands by; the same for the service manager.
fn told(directory: &Path, seen: &Seen) -> String {
    let directory = directory.display();
    match seen {
        Seen::Held(holder) => {
            let status = format!("standing by: the state directory {directory} is in use by {holder}");
            tracing::info!("{status}");
            status
        }
        Seen::Trouble(why) => {
            let status = format!("standing by: the state directory {directory} cannot be used: {why}");
            tracing::error!("{status}");
            status
        }
    }
}

/// Tries to take the directory until that succeeds, or nobody wants to know. What was seen twice is told once.
fn look(directory: &Path, tell: &Sender<News>) {
    let (mut before, mut told) = (None, None);
    let mut was_held = false;
    while !tell.is_closed() {
        let seen = match Lock::take(directory, Duration::ZERO) {
            Ok(Ok(lock)) if !was_held || state::exists(directory) => {
                // Nobody who wants to know: the lock is dropped with the news.
                let _ = tell.blocking_send(News::Free(lock));
                return;
            }
            Ok(Ok(_)) => {
                Seen::Trouble("it has no state database any more; is its file system mounted?".to_owned())
            }
            Ok(Err(holder)) => {
                was_held = true;
                Seen::Held(holder)
            }
            Err(e) => Seen::Trouble(e.to_string()),
        };
        if before.as_ref() == Some(&seen) && told.as_ref() != Some(&seen) {
            if tell.blocking_send(News::Seen(seen.clone())).is_err() {
                return;
            }
            told = Some(seen.clone());
        }
        before = Some(seen);
        std::thread::sleep(INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looking(directory: &Path) -> Receiver<News> {
        let (tell, news) = channel(NEWS_MAX);
        let directory = directory.to_owned();
        std::thread::spawn(move || look(&directory, &tell));
        news
    }

    #[test]
    fn a_free_directory_is_taken_at_once_and_one_that_is_held_later() {
        let directory = tempfile::tempdir().unwrap();
        let mut news = looking(directory.path());
        let Some(News::Free(lock)) = news.blocking_recv() else { panic!("not free") };
        std::fs::write(state::file(directory.path()), "").unwrap();
        let mut later = looking(directory.path());
        let Some(News::Seen(Seen::Held(holder))) = later.blocking_recv() else { panic!("not held") };
        assert!(holder.to_string().ends_with(&format!("(process {})", std::process::id())), "{holder}");
        drop(lock);
        assert!(matches!(later.blocking_recv(), Some(News::Free(_))));
    }

    #[test]
    fn a_directory_that_has_lost_its_database_is_not_taken() {
        let directory = tempfile::tempdir().unwrap();
        let lock = Lock::take(directory.path(), Duration::ZERO).unwrap().unwrap();
        let mut news = looking(directory.path());
        assert!(matches!(news.blocking_recv(), Some(News::Seen(Seen::Held(_)))));
        drop(lock);
        let Some(News::Seen(Seen::Trouble(why))) = news.blocking_recv() else { panic!("taken") };
        assert!(why.contains("mounted"), "{why}");
        std::fs::write(state::file(directory.path()), "").unwrap();
        assert!(matches!(news.blocking_recv(), Some(News::Free(_))));
    }
}
