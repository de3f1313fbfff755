//! The configuration is read again while clients work: on SIGHUP, and by command.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use control::configuration::{Configuration, ConfigurationMistake, Configured, Reload, Reloads};
use control::{Refusal, RefusalKind};
use gateway::Administration;
use parking_lot::Mutex;
use supervisor::Supervisor;

use crate::effective;
use crate::place::Mistake;
use crate::settings::{Given, Settings};
use crate::sources::Sources;

/// Asks for the configuration to be read again on SIGHUP, on a thread of its own, so that a directory that hangs holds up
/// no other signal. The thread ends some time after the value is dropped.
#[derive(Debug)]
pub(crate) struct OnHangUp(SyncSender<()>);

impl OnHangUp {
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(reloader: Arc<Reloader>) -> io::Result<Self> {
        // One that waits reads what is there by then: more need not wait.
        let (ask, asked) = sync_channel(1);
        let run = move || serve(&asked, &reloader);
        std::thread::Builder::new().name("reload".to_owned()).spawn(run)?;
        Ok(Self(ask))
    }

    /// Has the configuration read again, soon.
    pub(crate) fn ask(&self) {
        // A full channel: somebody has asked, and it was not begun yet.
        let _ = self.0.try_send(());
    }
}

fn serve(asked: &Receiver<()>, reloader: &Reloader) {
    while asked.recv().is_ok() {
        // What is wrong was logged.
        let result = reloader.read_again("SIGHUP");
        reloader.tell_access_log(result.is_ok());
    }
}

/// Reads the configuration of a running server again.
#[derive(Debug)]
pub(crate) struct Reloader {
    /// Guards the sources, and is held while they are read and used: one attempt at a time.
    sources: Mutex<Sources>,
    /// Guards the configuration in effect.
    shown: Mutex<Configuration>,
    reloads: Reloads,
    /// The service manager, which is told of each attempt.
    supervisor: Supervisor,
    /// The administration knows the reloader, too.
    administration: Weak<Administration>,
}

impl Reloader {
    /// The reloader of a server that has just started.
    pub(crate) fn new(
        sources: Sources,
        administration: &Arc<Administration>,
        supervisor: Supervisor,
    ) -> Self {
        let shown = Mutex::new(effective::of(sources.started_with()));
        let reloads = Reloads::new(SystemTime::now());
        let administration = Arc::downgrade(administration);
        Self { sources: Mutex::new(sources), shown, reloads, supervisor, administration }
    }

    /// Reads the configuration again and uses it; logs what becomes of that.
    fn read_again(&self, by: &str) -> Result<(), Vec<Mistake>> {
        let mut sources = self.sources.lock();
        self.supervisor.reloading();
        match self.take_effect(&mut sources) {
            Ok(late) => {
                if !late.is_empty() {
                    tracing::warn!("{by}: these changes take effect at the next start: {}", late.join(", "));
                }
                self.reloads.succeed(SystemTime::now(), late);
                tracing::info!("{by}: the configuration was read again");
                self.supervisor.ready("serving; the configuration was read again");
                Ok(())
            }
            Err(mistakes) => {
                for mistake in &mistakes {
                    let (what, advice) = (mistake.what(), &mistake.advice);
                    tracing::error!("{by}: the configuration is unchanged: {what}. {advice}");
                }
                self.reloads.fail(SystemTime::now(), mistakes.iter().map(written).collect());
                let first = mistakes.first().map(Mistake::what).unwrap_or_default();
                self.supervisor.ready(&format!("serving; the configuration is unchanged: {first}"));
                Err(mistakes)
            }
        }
    }

    /// Tells the access log that somebody who may signal the process had the configuration read again.
    fn tell_access_log(&self, is_done: bool) {
        if let Some(administration) = self.administration.upgrade() {
            administration.tell_signal("reload", is_done);
        }
    }

    /// Returns the settings that differ and take effect at the next start.
    fn take_effect(&self, sources: &mut Sources) -> Result<Vec<String>, Vec<Mistake>> {
        let given = sources.given();
        let settings = sources.settings(given.clone())?;
        given.from.warn();
        let Some(administration) = self.administration.upgrade() else { return Ok(Vec::new()) };
        administration.use_settings(&settings.gateway).map_err(|problem| all(problem, &settings, &given))?;
        let started = sources.started_with();
        let late = started.differs_until_restart(&given).into_iter().map(str::to_owned).collect();
        *self.shown.lock() = effective::of(&in_effect(started, given));
        Ok(late)
    }
}

/// All that is wrong with settings that were refused for one reason.
fn all(problem: gateway::Problem, settings: &Settings, given: &Given) -> Vec<Mistake> {
    let places = &given.from.places;
    let errors = gateway::findings(&settings.gateway).into_iter().filter(|finding| finding.is_error);
    let mut mistakes: Vec<Mistake> = errors.map(|finding| Mistake::found(finding, places)).collect();
    if mistakes.is_empty() {
        mistakes.push(Mistake { place: None, what: problem.what, advice: problem.advice });
    }
    mistakes.sort();
    mistakes
}

/// What is in effect after the configuration was read again: the shares and users of now, and the rest as at the start.
fn in_effect(started: &Given, now: Given) -> Given {
    let certificate_of = if started.is_certificate_used_at_once(&now) { &now } else { started };
    let (control_certificate, control_key) =
        (certificate_of.control_certificate.clone(), certificate_of.control_key.clone());
    let used_at_once = started.used_at_once(&now);
    let mut from = now.from;
    from.places.take_server_from(&started.from.places, &used_at_once);
    Given {
        from,
        share: now.share,
        pool: now.pool,
        snapshot_policy: now.snapshot_policy,
        deleted_shares: now.deleted_shares,
        admins: now.admins,
        user: now.user,
        continuous_availability: now.continuous_availability,
        password_file: now.password_file,
        control_certificate,
        control_key,
        kerberos: now.kerberos,
        access_log: now.access_log,
        ..started.clone()
    }
}

fn written(Mistake { place, what, advice }: &Mistake) -> ConfigurationMistake {
    ConfigurationMistake {
        file: place.as_ref().map(|place| place.file.display().to_string()),
        line: place.as_ref().and_then(|place| u64::try_from(place.line).ok()),
        message: what.clone(),
        advice: advice.clone(),
    }
}

impl Configured for Reloader {
    fn configuration(&self) -> Configuration {
        Configuration { reload: Some(self.reloads.status()), ..self.shown.lock().clone() }
    }

    fn reload(&self) -> Result<Reload, Refusal> {
        self.read_again("reload").map_err(|mistakes| {
            let listed: Vec<String> = mistakes.iter().map(Mistake::what).collect();
            let what = format!("the configuration is unchanged: {}", listed.join("; "));
            Refusal::new(RefusalKind::Invalid, what, "GET /v1/configuration has each mistake with advice.")
        })?;
        Ok(self.reloads.status())
    }

    fn reloads(&self) -> Reload {
        self.reloads.status()
    }
}
