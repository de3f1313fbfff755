//! The thread that begins transfers to replicas.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use replica::{Converged, Takes};
use share::Terms;
use storage::StoreThread;

use super::Remote;
use super::transfer::{Ended, Run};
use crate::administration::Administration;

/// How often it is looked whether one is due.
const EVERY: Duration = Duration::from_millis(500);
/// How often it is told which destinations were not heard of.
const TOLD_EVERY: Duration = Duration::from_secs(24 * 3600);

/// Begins transfers as long as this value lives. One that goes on stops, and is gone on with at the next start.
#[derive(Debug)]
pub(crate) struct Replicator {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    administration: Arc<Administration>,
}

impl Replicator {
    /// Begins the work.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(administration: Arc<Administration>) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let of_thread = Arc::clone(&administration);
        let run = move || {
            let mut told = None;
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                of_thread.replicate();
                if told.is_none_or(|told: Instant| told.elapsed() >= TOLD_EVERY) {
                    told = Some(Instant::now());
                    of_thread.tell_lost_destinations();
                }
            }
        };
        let thread = std::thread::Builder::new().name("replicas".to_owned()).spawn(run)?;
        Ok(Self { stop: Some(stop), thread: Some(thread), administration })
    }
}

impl Drop for Replicator {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that begins transfers to replicas has failed");
        }
        self.administration.replications().walks.end_all();
        self.administration.replications().stop_all();
    }
}

/// What a transfer has come to. One that panics has failed: otherwise it would count as going on, and no other would begin.
fn caught<T>(transfer: impl FnOnce() -> Result<T, Ended>) -> Result<T, Ended> {
    catch_unwind(AssertUnwindSafe(transfer))
        .unwrap_or_else(|_| Err(Ended::Failed("a mistake of this program, which the log has".to_owned())))
}

/// Tells what a transfer has brought, and what is not in the replica.
fn tell(share: &str, of: &str, figures: Converged, took: Duration) {
    let Converged { files, bytes, left_out, too_deep, .. } = figures;
    tracing::info!(share, of, files, bytes, seconds = took.as_secs_f64(), "a replica is up to date");
    if left_out > 0 {
        tracing::warn!(share, devices = left_out, "devices of the source are not in a replica");
    }
    if too_deep > 0 {
        let (directories, deepest) = (too_deep, replica_wire::DEPTH_MAX);
        tracing::warn!(share, directories, deepest, "what is too deep at the source is not in a replica");
    }
}

impl Administration {
    /// Begins the transfers that are due.
    fn replicate(&self) {
        let Some(remote) = self.remote() else { return };
        let records = match self.state().replications() {
            Ok(records) => records,
            Err(error) => return tracing::error!("the replicas: {}", error.what),
        };
        for record in records.into_iter().filter(|record| !record.broken) {
            if !self.replications().of(&record.share).is_due(Instant::now()) {
                continue;
            }
            // Whoever breaks a replica off comes later.
            let Some(_orders) = self.replications().orders.try_lock() else { return };
            let now = self.state().replication_of(&record.share);
            if now.is_ok_and(|now| now.as_ref() == Some(&record))
                && let Err(e) = self.begin_run(&record, Arc::clone(&remote))
            {
                tracing::error!(share = record.share, "a transfer is not begun: {e}");
            }
        }
    }

    fn begin_run(&self, record: &state::ReplicationRecord, remote: Arc<dyn Remote>) -> io::Result<()> {
        let known = self.replications().of(&record.share);
        let progress = known.begins();
        let mirrors = self.mirrors();
        let served = self.served(&record.share).ok();
        let (Some(shown), Some(served)) = (mirrors.of(&record.share), served) else {
            let why = "the share is not served".to_owned();
            tracing::warn!(share = record.share, "a replica is not brought up to date: {why}");
            known.ended(Some(why), Instant::now(), Duration::from_secs(record.every));
            return Ok(());
        };
        let terms = served.terms();
        let served = Arc::downgrade(&served);
        let takes = Takes { devices: terms.contains(Terms::DEVICES), set_id: terms.contains(Terms::SET_ID) };
        let (state, snapshotting) = (Arc::clone(self.state()), Arc::clone(self.snapshotting()));
        let (mut record, of_thread) = (record.clone(), Arc::clone(&known));
        let administration = self.this();
        let spawned = StoreThread::spawn("replica", move |thread| {
            let (share, begun) = (record.share.clone(), Instant::now());
            let every = Duration::from_secs(record.every);
            let transfer = || {
                if let Some(administration) = administration.upgrade() {
                    let still = administration.end_former(&share);
                    // The transfer keeps this record: what is not known must not be forgotten.
                    record.former = still.map_err(|why| Ended::Failed(why.what))?;
                }
                let run = Run {
                    state: &state,
                    snapshotting: &snapshotting,
                    remote: &*remote,
                    mirrors: &mirrors,
                    shown: &shown,
                    share: &served,
                    record,
                    takes,
                    progress: &progress,
                };
                run.carry_out(thread)
            };
            match caught(transfer) {
                Ok(record) => {
                    tell(&share, &record.of, progress.figures(), begun.elapsed());
                    of_thread.ended(None, begun, every);
                }
                Err(Ended::Stopped) => of_thread.stopped(),
                Err(Ended::Failed(why)) => {
                    tracing::error!(share, "a replica is not brought up to date: {why}");
                    of_thread.ended(Some(why), begun, every);
                }
            }
        });
        match spawned {
            Ok(thread) => known.runs_on(thread),
            Err(e) => {
                known.stopped();
                return Err(e);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_that_panics_has_failed() {
        let outcome = caught::<()>(|| panic!("it is to be caught"));
        assert!(matches!(&outcome, Err(Ended::Failed(why)) if why.contains("mistake")), "{outcome:?}");
        assert!(matches!(caught(|| Ok(7)), Ok(7)));
    }
}
