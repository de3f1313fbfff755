//! The thread that removes directories in pools that belong to no share any more.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::administration::Administration;

/// Removes directories as long as this value lives. What is not gone by then goes on with the next start.
#[derive(Debug)]
pub(crate) struct Remover {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    administration: Arc<Administration>,
}

impl Remover {
    /// Begins the work.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(administration: Arc<Administration>) -> io::Result<Self> {
        let stop = Arc::<AtomicBool>::default();
        let (of_thread, stopped) = (Arc::clone(&administration), Arc::clone(&stop));
        let run = move || {
            while !stopped.load(Ordering::Relaxed) {
                for directory in of_thread.abandoned_directories() {
                    if stopped.load(Ordering::Relaxed) {
                        return;
                    }
                    if of_thread.abandoned.remove(&directory, &of_thread.silent, &stopped) {
                        of_thread.forget_abandoned(&directory);
                    }
                }
                of_thread.abandoned.wait();
            }
        };
        let thread = std::thread::Builder::new().name("remove".to_owned()).spawn(run)?;
        Ok(Self { stop, thread: Some(thread), administration })
    }
}

impl Drop for Remover {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.administration.abandoned.wake();
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that removes directories has failed");
        }
    }
}
