//! What is being restored into shares: a thread for each, and what is remembered of it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use control::RefusalKind;
use parking_lot::{Mutex, MutexGuard};
use share::{
    Answering, Error, Restoration, RestoreFailure, RestoreFigures, RestoreProgress, Restored, Share,
    folded_name,
};
use state::{RestoreEnd, RestoreRecord, State};
use storage::{SnapshotId, StoreThread};

use super::{asked, now};
use crate::waiting::wait_for;

/// How long a client is waited for before it is asked whether the restore is to stop.
const STOP_ASKED_EVERY: Duration = Duration::from_secs(1);

/// How long a restore may take to stop, when the server ends: one call to the storage.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// The restores that go on.
#[derive(Debug, Default)]
pub(crate) struct Restores {
    /// Guards the restores that go on, by folded name of the share.
    running: Mutex<HashMap<String, Arc<Running>>>,
    /// Held while what is remembered of a restore is changed by others than the one who orders it. It guards no data.
    remembering: Mutex<()>,
}

/// A restore that goes on.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) record: RestoreRecord,
    pub(crate) progress: RestoreProgress,
    /// An administrator has cancelled it: it is not to go on later.
    cancelled: AtomicBool,
    /// Guards itself alone.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Running {
    fn cancel(&self) {
        self.cancelled.store(true, Ordering::Release);
        self.progress.stop();
    }
}

impl Restores {
    /// The restore of a share that goes on.
    pub(crate) fn of(&self, share: &str) -> Option<Arc<Running>> {
        self.running.lock().get(&folded_name(share)).cloned()
    }

    /// Begins a restore, or goes on with it, unless it goes on already.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(
        self: &Arc<Self>,
        state: &Arc<State>,
        share: &Arc<Share>,
        record: RestoreRecord,
    ) -> io::Result<()> {
        let key = folded_name(&record.share);
        let running = Arc::new(Running {
            record,
            progress: RestoreProgress::default(),
            cancelled: AtomicBool::new(false),
            thread: Mutex::default(),
        });
        match self.running.lock().entry(key.clone()) {
            Entry::Occupied(_) => return Ok(()),
            Entry::Vacant(free) => _ = free.insert(Arc::clone(&running)),
        }
        let over = Over { restores: Arc::clone(self), key };
        let (state, share, of_thread) = (Arc::clone(state), Arc::clone(share), Arc::clone(&running));
        let thread = StoreThread::spawn("restore", move |thread| {
            let over = over;
            if let Some(end) = carry_out(&share, &of_thread, thread) {
                let _remembering = over.restores.remembering.lock();
                keep_end(&state, &of_thread.record, end);
            }
        })?;
        *running.thread.lock() = Some(thread);
        Ok(())
    }

    /// Held while it is looked at what is remembered of a restore, and something follows from that.
    pub(crate) fn remembering(&self) -> MutexGuard<'_, ()> {
        self.remembering.lock()
    }

    /// Has a restore stop, and remembers that it does not go on, whatever becomes of the server.
    ///
    /// # Errors
    /// The state database cannot be used.
    pub(crate) fn cancel(&self, state: &State, running: &Running) -> state::Result<()> {
        let _remembering = self.remembering.lock();
        let known = state.restore_of(&running.record.share)?;
        if let Some(known) = known.filter(|known| *known == running.record) {
            state.keep_restore(&RestoreRecord { cancelled: true, ..known })?;
        }
        running.cancel();
        Ok(())
    }

    /// Has all restores stop, and waits for them, unless their storages do not answer. They go on when the server starts again.
    pub(crate) fn stop(&self) {
        let running: Vec<_> = self.running.lock().values().cloned().collect();
        running.iter().for_each(|running| running.progress.stop());
        for running in running {
            let Some(thread) = running.thread.lock().take() else { continue };
            let begun = Instant::now();
            while !thread.is_finished() && begun.elapsed() < STOPS_WITHIN {
                std::thread::sleep(Duration::from_millis(20));
            }
            let share = &running.record.share;
            if !thread.is_finished() {
                tracing::error!(share, "a restore does not stop: the storage does not answer");
            } else if thread.join().is_err() {
                tracing::error!(share, "a thread that restores has failed");
            }
        }
    }
}

/// Ends a restore, whatever becomes of its thread.
struct Over {
    restores: Arc<Restores>,
    key: String,
}

impl Drop for Over {
    fn drop(&mut self) {
        self.restores.running.lock().remove(&self.key);
    }
}

/// The order that a record is about.
pub(crate) fn order(record: &RestoreRecord, from: SnapshotId) -> Restoration {
    Restoration {
        from,
        source: names(&record.source),
        target: names(&record.target),
        replace: record.replace,
        ordered: Duration::from_nanos(record.ordered),
        number: record.ordered,
    }
}

fn names(path: &str) -> Vec<Vec<u8>> {
    path.split('/').filter(|name| !name.is_empty()).map(|name| name.as_bytes().to_vec()).collect()
}

/// Carries a restore out. None: it has not ended, and is to go on later.
fn carry_out(share: &Arc<Share>, running: &Arc<Running>, thread: &StoreThread) -> Option<RestoreEnd> {
    let record = &running.record;
    let failed =
        |problem: String| Some(RestoreEnd { problem: Some(problem), ..end(running.progress.figures()) });
    let listed = match asked(share, |snapshots, may| snapshots.list(may)) {
        Ok(listed) => listed,
        Err(refusal) if refusal.kind == RefusalKind::NoSnapshots => return failed(refusal.what),
        Err(refusal) => {
            if !share.is_withdrawn() {
                tracing::warn!(share = record.share, "a restore waits: {}", refusal.what);
            }
            return None;
        }
    };
    let Some(snapshot) = listed.into_iter().find(|snapshot| snapshot.name == record.snapshot) else {
        return failed(format!("the snapshot {} is gone", record.snapshot));
    };
    let order = order(record, snapshot.id);
    let counting = count(share, running, &order);
    let outcome = share.restore_from(&order, &running.progress, &wait, thread);
    // Whatever is not counted yet is of no use any more.
    let figures = running.progress.figures();
    running.progress.stop();
    if counting.is_some_and(|thread| thread.join().is_err()) {
        tracing::error!(share = record.share, "a thread that counts has failed");
    }
    match outcome {
        Ok(Restored::Whole) => Some(end(figures)),
        Ok(Restored::Stopped) if running.cancelled.load(Ordering::Acquire) => {
            Some(RestoreEnd { cancelled: true, ..end(figures) })
        }
        Ok(Restored::Stopped) => None,
        Err(failure) => Some(RestoreEnd { problem: Some(words(&failure)), ..end(figures) }),
    }
}

/// Counts what there is to restore, beside the restore.
fn count(share: &Arc<Share>, running: &Arc<Running>, order: &Restoration) -> Option<JoinHandle<()>> {
    let (share, running, order) = (Arc::clone(share), Arc::clone(running), order.clone());
    let count = move |thread: &StoreThread| share.count_restoration(&order, &running.progress, thread);
    StoreThread::spawn("restore-count", count)
        .inspect_err(|e| tracing::warn!("what there is to restore is not counted: {e}"))
        .ok()
}

fn wait(answering: Answering) {
    let _ = wait_for(async { tokio::time::timeout(STOP_ASKED_EVERY, answering.over()).await });
}

fn end(figures: RestoreFigures) -> RestoreEnd {
    let RestoreFigures { restored, unchanged, left, named, bytes, .. } = figures;
    let named = named.iter().map(|left| (path(&left.path), why(left.error))).collect();
    RestoreEnd {
        at: now().secs_since_1970(),
        cancelled: false,
        problem: None,
        restored,
        unchanged,
        left,
        named,
        bytes,
    }
}

fn words(failure: &RestoreFailure) -> String {
    match failure.error {
        Error::Storage(storage::Error::Stale) => {
            "the snapshot, or the place, was removed meanwhile".to_owned()
        }
        error => format!("{}: {}", path(&failure.path), why(error)),
    }
}

/// A path for people.
pub(crate) fn path(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// Why something was left alone, for people.
pub(crate) fn why(error: Error) -> String {
    use storage::Error as E;
    match error {
        Error::SharingViolation => "a client has it open and lets nobody replace it".to_owned(),
        Error::DeletePending => "a client is deleting it".to_owned(),
        Error::PlanFull => "the share would hold more than its plan allows".to_owned(),
        Error::Storage(E::Exists) => "something is there already".to_owned(),
        Error::Storage(E::IsDirectory) => "a directory is in its place".to_owned(),
        Error::Storage(E::NotDirectory) => "something that is no directory is in its place".to_owned(),
        Error::Storage(E::Stale) => "it was removed meanwhile".to_owned(),
        Error::Storage(E::NoSpace) => "the file system is full".to_owned(),
        error => error.to_string(),
    }
}

/// Keeps how a restore has ended, unless its share was removed meanwhile.
fn keep_end(state: &State, record: &RestoreRecord, end: RestoreEnd) {
    let (share, from) = (&record.share, &record.snapshot);
    match &end.problem {
        Some(problem) => tracing::error!(share, from, "a restore has failed: {problem}"),
        None if end.cancelled => tracing::info!(share, from, "a restore was cancelled"),
        None => tracing::info!(share, from, files = end.restored, left = end.left, "a restore has ended"),
    }
    let kept = state.restore_of(share).and_then(|known| match known {
        Some(known) if known.ordered == record.ordered => {
            state.keep_restore(&RestoreRecord { ended: Some(end), ..record.clone() })
        }
        _ => Ok(()),
    });
    if let Err(error) = kept {
        tracing::error!("how a restore has ended is not kept, and it will go on again: {}", error.what);
    }
}
