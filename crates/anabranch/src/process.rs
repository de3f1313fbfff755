//! What reaches the process from outside: signals; and whom it tells how it is.

use supervisor::Supervisor;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::problem::{Result, serving};
use crate::supervised::supervisor;

/// The signals of the process, with the runtime in which they arrive, and the service manager. Once it is there, no signal ends the
/// process by itself, and none is lost: one that nobody waits for is received later.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) runtime: Runtime,
    pub(crate) signals: Signals,
    pub(crate) supervisor: Supervisor,
}

impl Process {
    /// # Errors
    /// The system lacks descriptors, or the environment names a socket that cannot be one.
    pub(crate) fn begin() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(serving("cannot start a runtime"))?;
        let signals = runtime.block_on(async { Signals::new() })?;
        Ok(Self { runtime, signals, supervisor: supervisor()? })
    }
}

/// The signals that the server understands.
#[derive(Debug)]
pub(crate) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

/// The signal that has the configuration read again.
pub(crate) const HANGUP: &str = "SIGHUP";

impl Signals {
    fn new() -> Result<Self> {
        let catch = |kind| signal(kind).map_err(serving("cannot catch signals"));
        Ok(Self {
            terminate: catch(SignalKind::terminate())?,
            interrupt: catch(SignalKind::interrupt())?,
            hangup: catch(SignalKind::hangup())?,
        })
    }

    /// The name of the next one.
    pub(crate) async fn received(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.hangup.recv() => HANGUP,
        }
    }
}
