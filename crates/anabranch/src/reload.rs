//! SIGHUP: the configuration is read again, on a thread of its own, so that a directory that hangs holds up no other signal.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use gateway::Administration;
use supervisor::Supervisor;

use crate::log;
use crate::problem::Result;
use crate::sources::Sources;

/// The thread that reads the configuration again. It ends some time after the value is dropped.
#[derive(Debug)]
pub(crate) struct Reloader(SyncSender<()>);

impl Reloader {
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(
        sources: Sources,
        administration: Arc<Administration>,
        supervisor: Supervisor,
    ) -> io::Result<Self> {
        // One that waits reads what is there by then: more need not wait.
        let (ask, asked) = sync_channel(1);
        let run = move || serve(&asked, sources, &administration, &supervisor);
        std::thread::Builder::new().name("reload".to_owned()).spawn(run)?;
        Ok(Self(ask))
    }

    /// Has the configuration read again, soon.
    pub(crate) fn ask(&self) {
        // A full channel: somebody has asked, and it was not begun yet.
        let _ = self.0.try_send(());
    }
}

fn serve(
    asked: &Receiver<()>,
    mut sources: Sources,
    administration: &Arc<Administration>,
    supervisor: &Supervisor,
) {
    while asked.recv().is_ok() {
        supervisor.reloading();
        match reload(&mut sources, administration) {
            Ok(()) => {
                tracing::info!("SIGHUP: the configuration was read again");
                supervisor.ready("serving; the configuration was read again");
            }
            Err(problem) => {
                tracing::error!(
                    "SIGHUP: the configuration is unchanged: {} {}",
                    problem.what,
                    problem.advice
                );
                supervisor.ready(&format!("serving; the configuration is unchanged: {}", problem.what));
            }
        }
    }
}

fn reload(sources: &mut Sources, administration: &Arc<Administration>) -> Result<()> {
    let given = sources.given()?;
    log::check(&given)?;
    given.from.warn();
    let late = sources.started_with().differs_until_restart(&given);
    let settings = sources.settings(given)?;
    administration.use_settings(&settings.gateway)?;
    if !late.is_empty() {
        tracing::warn!("SIGHUP: these changes take effect at the next start: {}", late.join(", "));
    }
    Ok(())
}
