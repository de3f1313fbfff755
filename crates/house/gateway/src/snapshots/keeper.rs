//! The thread that carries out the policies, has restores go on that were interrupted, and forgets deleted shares whose time is over.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Notes, Runners, now};
use crate::administration::Administration;

/// How often the policies are looked at, also if nothing is due: the clock may be set, and a policy given to a share.
const EVERY: Duration = Duration::from_secs(10);
/// How often the shares are asked for their snapshots: others may make and remove some.
const COUNTED_EVERY: Duration = Duration::from_secs(60);

/// Does the work as long as this value lives. A snapshot that is being taken is finished, with its hooks; what is being restored stops,
/// and goes on with the next start.
#[derive(Debug)]
pub(crate) struct Keeper {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    administration: Arc<Administration>,
}

impl Keeper {
    /// Begins the work.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(administration: Arc<Administration>, mut runners: Runners) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let of_thread = Arc::clone(&administration);
        let run = move || {
            let administration = of_thread;
            let mut counted: Option<Instant> = None;
            loop {
                administration.resume_restores();
                administration.purge_expired(now().secs_since_1970(), Instant::now());
                if counted.is_none_or(|counted| counted.elapsed() >= COUNTED_EVERY) {
                    administration.count_snapshots();
                    counted = Some(Instant::now());
                }
                administration.run_policies(&mut runners, || {
                    stopped.try_recv() == Err(mpsc::TryRecvError::Disconnected)
                });
                let wait = until_next(administration.snapshot_notes());
                if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("snapshots".to_owned()).spawn(run)?;
        Ok(Self { stop: Some(stop), thread: Some(thread), administration })
    }
}

/// How long nothing is due.
fn until_next(notes: &Notes) -> Duration {
    let secs = notes.next().map(|next| next.secs().saturating_sub(now().secs()));
    let due_in = secs.map(|secs| Duration::from_secs(u64::try_from(secs).unwrap_or(0)));
    due_in.map_or(EVERY, |due_in| due_in.clamp(Duration::from_millis(500), EVERY))
}

impl Drop for Keeper {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that takes snapshots has failed");
        }
        self.administration.stop_restores();
    }
}
