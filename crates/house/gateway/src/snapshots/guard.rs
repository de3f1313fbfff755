//! The thread that acts on ransomware alarms.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Crew;
use crate::administration::Administration;

/// How often the shares are asked for alarms.
const EVERY: Duration = Duration::from_secs(1);

/// Does the work as long as this value lives. A snapshot that is being taken is finished.
#[derive(Debug)]
pub(crate) struct Guard {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Guard {
    /// Begins the work.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(administration: Arc<Administration>) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let run = move || {
            let mut crew = Crew::new("alarms");
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                administration.answer_ransomware_alarms(&mut crew);
            }
        };
        let thread = std::thread::Builder::new().name("guard".to_owned()).spawn(run)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that acts on ransomware alarms has failed");
        }
    }
}
