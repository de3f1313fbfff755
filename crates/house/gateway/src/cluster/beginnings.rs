//! The vservers that begin here, each on a thread of its own: one whose storage does not answer delays no other.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use state::cluster::{Register, VserverRecord};

use super::{Seat, definition, troubles};
use crate::problem::{Cause, Problem};

/// How long to wait before a vserver that cannot be served is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// See the module. When this is dropped, it waits for the threads.
#[derive(Debug, Default)]
pub(super) struct Beginnings {
    /// What they return: whether the vserver is served.
    threads: BTreeMap<String, JoinHandle<bool>>,
    /// When vservers could not be served.
    failed: BTreeMap<String, Instant>,
}

impl Beginnings {
    /// Looks which have come to their end.
    pub(super) fn look(&mut self) {
        let over: Vec<_> = self.threads.extract_if(.., |_, thread| thread.is_finished()).collect();
        for (name, thread) in over {
            // A thread that has failed has said so.
            if thread.join().unwrap_or(false) {
                self.failed.remove(&name);
            } else {
                self.failed.insert(name, Instant::now());
            }
        }
    }

    /// Whether none begins.
    pub(super) fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Whether a vserver may be begun: it is not being begun, and has not failed a moment ago.
    pub(super) fn may_begin(&self, vserver: &str) -> bool {
        !self.threads.contains_key(vserver)
            && self.failed.get(vserver).is_none_or(|failed| failed.elapsed() >= AGAIN)
    }

    /// Notes that a vserver cannot be begun.
    pub(super) fn has_failed(&mut self, vserver: &str) {
        self.failed.insert(vserver.to_owned(), Instant::now());
    }

    /// Something has changed: what has failed is tried again.
    pub(super) fn try_again(&mut self) {
        self.failed.clear();
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
        let thread = thread.spawn(move || is_served(&seat, &register, &begun))?;
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

/// Begins a vserver, and says in the register why that fails.
fn is_served(seat: &Arc<Seat>, register: &Arc<Register>, record: &VserverRecord) -> bool {
    let begun = definition::definition(record)
        .map_err(|why| Problem::new(Cause::Settings, why, ""))
        .and_then(|new| seat.host.serve_vserver(new));
    match begun {
        Ok(()) => {
            troubles::write(register, &record.name, None);
            seat.tell(register);
            true
        }
        Err(problem) => {
            tracing::error!(vserver = record.name, "the vserver cannot be served here: {problem}");
            troubles::write(register, &record.name, Some((seat.name(), &problem)));
            false
        }
    }
}
