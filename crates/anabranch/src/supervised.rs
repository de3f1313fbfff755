//! The service manager learns how the server is: a status line when that changes, and that the server is alive.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use control::Health;
use supervisor::{Environment, Supervisor};

use crate::problem::{Cause, Problem, Result};

/// How often the health is looked at, without a watchdog that asks for more.
const INTERVAL: Duration = Duration::from_secs(5);
const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// The service manager that started this program, if there is one.
///
/// # Errors
/// The environment names a socket that cannot be one.
pub(crate) fn supervisor() -> Result<Supervisor> {
    Supervisor::of(&Environment::own()).map_err(|e| {
        let what = format!("cannot use the socket that the variable NOTIFY_SOCKET names: {e}");
        Problem::new(Cause::Settings, what, "Start the server without that variable.")
    })
}

/// How long a takeover may take before the service manager may doubt that the process is alive: as long as a start, by default
/// (systemd-system.conf(5), DefaultTimeoutStartSec).
const TAKEOVER_MAX: Duration = Duration::from_secs(90);

/// A server that has stood by takes over. Its start was complete for the service manager, so that the watchdog runs: a thread says
/// that the process is alive until the value is dropped.
#[derive(Debug)]
pub(crate) struct TakingOver {
    _end: Option<Sender<()>>,
}

impl TakingOver {
    pub(crate) fn begin(supervisor: &Supervisor) -> Self {
        supervisor.status("taking over");
        let (end, ended) = channel::<()>();
        let Some(period) = supervisor.watchdog() else { return Self { _end: None } };
        let (interval, supervisor) = ((period / 2).max(INTERVAL_MIN), supervisor.clone());
        let run = move || {
            let begun = Instant::now();
            while begun.elapsed() < TAKEOVER_MAX
                && ended.recv_timeout(interval) == Err(RecvTimeoutError::Timeout)
            {
                supervisor.alive();
            }
        };
        let begun = std::thread::Builder::new().name("taking-over".to_owned()).spawn(run);
        Self { _end: begun.is_ok().then_some(end) }
    }
}

/// What the service manager was told last.
#[derive(Debug)]
pub(crate) struct Report {
    supervisor: Supervisor,
    status: String,
}

impl Report {
    /// Tells the service manager that the server serves.
    pub(crate) fn begin(supervisor: Supervisor, health: &Health) -> Self {
        let status = status(health);
        supervisor.ready(&status);
        Self { supervisor, status }
    }

    /// How often [`Report::tell`] is to be called: twice in the time of the watchdog.
    pub(crate) fn interval(&self) -> Duration {
        interval(&self.supervisor)
    }

    /// Tells the service manager that the server is alive, unless a shard is held up: a new process then serves the
    /// clients of that shard. A storage that does not answer is only told: it would not answer a new process either,
    /// whose start would interrupt the clients of all other shares.
    pub(crate) fn tell(&mut self, health: &Health) {
        let status = status(health);
        if status != self.status {
            self.supervisor.status(&status);
            self.status = status;
        }
        if self.supervisor.watchdog().is_some() && health.shards_answer() {
            self.supervisor.alive();
        }
    }
}

/// How often the service manager is to hear of the server: twice in the time of the watchdog.
pub(crate) fn interval(supervisor: &Supervisor) -> Duration {
    supervisor.watchdog().map_or(INTERVAL, |period| (period / 2).clamp(INTERVAL_MIN, INTERVAL))
}

fn status(health: &Health) -> String {
    match health.word() {
        "ok" => "serving".to_owned(),
        word => format!("{word}: {}", health.reasons()),
    }
}
