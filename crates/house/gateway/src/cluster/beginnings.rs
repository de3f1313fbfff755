//! The vservers that begin here, each on a thread of its own: one whose storage does not answer delays no other.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use state::cluster::{Register, VserverRecord};

use super::{Seat, definition, troubles};
use crate::problem::{Cause, Problem};

/// How long to wait before a vserver that cannot be served is tried again, and how long if a storage did not answer: that has been waited for
/// already.
const AGAIN: Duration = Duration::from_secs(5);
const AGAIN_IF_SILENT: Duration = Duration::from_secs(1);

/// See the module. When this is dropped, it waits for the threads.
#[derive(Debug, Default)]
pub(super) struct Beginnings {
    /// What they return: how long to wait until the vserver is tried again; None: it is served.
    threads: BTreeMap<String, JoinHandle<Option<Duration>>>,
    /// When vservers that could not be served are tried again.
    again: BTreeMap<String, Instant>,
}

impl Beginnings {
    /// Looks which have come to their end.
    pub(super) fn look(&mut self) {
        let over: Vec<_> = self.threads.extract_if(.., |_, thread| thread.is_finished()).collect();
        for (name, thread) in over {
            // A thread that has failed has said so.
            match thread.join().unwrap_or(Some(AGAIN)) {
                None => self.again.remove(&name),
                Some(wait) => self.again.insert(name, Instant::now() + wait),
            };
        }
    }

    /// Whether none begins.
    pub(super) fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Whether a vserver may be begun: it is not being begun, and has not failed a moment ago.
    pub(super) fn may_begin(&self, vserver: &str) -> bool {
        !self.threads.contains_key(vserver)
            && self.again.get(vserver).is_none_or(|again| Instant::now() >= *again)
    }

    /// Notes that a vserver cannot be begun.
    pub(super) fn has_failed(&mut self, vserver: &str) {
        self.again.insert(vserver.to_owned(), Instant::now() + AGAIN);
    }

    /// Something has changed: what has failed is tried again.
    pub(super) fn try_again(&mut self) {
        self.again.clear();
    }

    /// Begins a vserver.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(super) fn begin(
        &mut self,
        seat: &Arc<Seat>,
        register: &Arc<Register>,
        record: &VserverRecord,
    ) -> io::Result<()> {
        let (seat, register, begun) = (Arc::clone(seat), Arc::clone(register), record.clone());
        let thread = std::thread::Builder::new().name("vserver".to_owned());
        let thread = thread.spawn(move || serve(&seat, &register, &begun))?;
        self.threads.insert(record.name.clone(), thread);
        Ok(())
    }
}

impl Drop for Beginnings {
    fn drop(&mut self) {
        for thread in std::mem::take(&mut self.threads).into_values() {
            // A thread that has failed has said so.
            let _ = thread.join();
        }
    }
}

/// Begins a vserver, and says in the register why that fails. How long to wait until it is tried again; None: it is served.
fn serve(seat: &Arc<Seat>, register: &Arc<Register>, record: &VserverRecord) -> Option<Duration> {
    let begun = definition::definition(record)
        .map_err(|why| Problem::new(Cause::Settings, why, ""))
        .and_then(|new| seat.host.serve_vserver(new));
    match begun {
        Ok(()) => {
            troubles::write(register, &record.name, None);
            seat.tell(register);
            None
        }
        Err(problem) => {
            tracing::error!(vserver = record.name, "the vserver cannot be served here: {problem}");
            troubles::write(register, &record.name, Some((seat.name(), &problem)));
            Some(if problem.cause == Cause::Silent { AGAIN_IF_SILENT } else { AGAIN })
        }
    }
}
