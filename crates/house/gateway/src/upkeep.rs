//! Periodic work of a gateway: records values that change by themselves, and checks the alarms of its shares.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Instant;

use share::ShareTable;
use state::{State, burst_credits, copies};

/// Does the work as long as this value lives.
#[derive(Debug)]
pub(crate) struct Upkeep {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Upkeep {
    /// Begins the work.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(shares: Arc<ShareTable>, state: Arc<State>) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let run = move || {
            // A copy was made at the start.
            let mut copied = Instant::now();
            loop {
                look(&shares, &state);
                if copied.elapsed() >= copies::INTERVAL {
                    copied = Instant::now();
                    let state = Arc::clone(&state);
                    // Runs on a separate thread, so that a hanging disk holds up nothing else.
                    std::thread::spawn(move || state.keep_copy());
                }
                if stopped.recv_timeout(burst_credits::INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("upkeep".to_owned()).spawn(run)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

fn look(shares: &ShareTable, state: &State) {
    shares.present().iter().for_each(|share| share.review_alarms());
    if let Err(error) = burst_credits::keep(&shares.present(), state, burst_credits::RESERVE) {
        tracing::error!("{}", error.what);
    }
}

impl Drop for Upkeep {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that keeps things up has failed");
        }
    }
}
