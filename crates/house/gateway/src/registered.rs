//! Keeps the NFS programs registered with the machine's rpcbind as long as the gateway runs.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use nfs_server::portmap::{RegisterError, Registrar, Registration};

/// How often it is looked whether everything is still registered.
const EVERY: Duration = Duration::from_secs(60);
/// The same while something is not.
const AGAIN: Duration = Duration::from_secs(5);

/// Registers as long as this value lives, and then removes what it has registered.
#[derive(Debug)]
pub(crate) struct Registered {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Registered {
    /// Registers these programs on a thread of its own. `fails` tells whether something is not registered.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn start(wanted: Vec<Registration>, fails: Arc<AtomicBool>) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let keep = move || {
            let registrar = Registrar::new(wanted);
            let mut said = None;
            loop {
                let registered = registrar.register();
                fails.store(registered.is_err(), Ordering::Relaxed);
                tell(&registered, &mut said);
                let pause = if registered.is_ok() { EVERY } else { AGAIN };
                if stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
            if let Err(error) = registrar.unregister() {
                tracing::debug!("the NFS programs stay registered: {error}");
            }
        };
        let thread = std::thread::Builder::new().name("rpcbind".to_owned()).spawn(keep)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

/// Logs what has changed.
fn tell(registered: &Result<usize, RegisterError>, said: &mut Option<String>) {
    match registered {
        Ok(0) => *said = None,
        Ok(count) => {
            tracing::info!("registered {count} NFS programs with rpcbind");
            *said = None;
        }
        Err(error) => {
            let now = error.to_string();
            if said.as_ref() != Some(&now) {
                tracing::warn!(
                    "clients of NFSv3 cannot find this server by themselves: {now}. {}",
                    advice(error)
                );
                *said = Some(now);
            }
        }
    }
}

fn advice(error: &RegisterError) -> &'static str {
    match error {
        RegisterError::Absent(_) => {
            "Start rpcbind, or have this server answer port 111 itself: --portmap serve"
        }
        RegisterError::Taken(_) => {
            "Stop that program (rpc.statd or nfsd; `rpcinfo` lists them), or pass --portmap off"
        }
        RegisterError::Refused(_) => {
            "Rpcbind may refuse programs that are not root's: start the server as root, or pass --portmap serve"
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
