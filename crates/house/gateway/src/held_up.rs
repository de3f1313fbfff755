//! Checks ten times a second for threads that a storage holds up. The calls to a store that does not answer are moved
//! to its own threads, and a shard that does not return is given up.
//!
//! A thread that sleeps in the kernel, and has not been awake since the last check, waits for something. A thread that
//! works, or is kept from the processor on a busy machine, does not wait. It is left alone, however late it is.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use net::Keeper;
use share::{ShareTable, StoreWatch};

use crate::vservers::Vservers;

const EVERY: Duration = Duration::from_millis(100);

/// Runs the checks as long as this value lives.
#[derive(Debug)]
pub(crate) struct HeldUp {
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HeldUp {
    /// Begins to check the shards and the stores of these shares and those of the vservers.
    ///
    /// # Errors
    /// When the system has no more threads.
    pub(crate) fn watch(
        mut shards: Keeper,
        shares: Arc<ShareTable>,
        vservers: Arc<Vservers>,
    ) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let look = move || {
            let mut stores = StoreWatch::default();
            while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                let now = Instant::now();
                // The stores first: requests that clients repeat after a shard was given up must not hold up the next
                // one.
                let tables: Vec<_> = vservers.tables().into_iter().chain([shares.present()]).collect();
                stores.look(&tables, now, waits);
                shards.look(now, waits);
            }
        };
        let thread = std::thread::Builder::new().name("watch".to_owned()).spawn(look)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for HeldUp {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the thread that looks after the others has failed");
        }
    }
}

/// How often a sleeping thread of this process has gone to sleep so far (proc_pid_status(5)); None while it does not
/// sleep.
fn waits(thread: i32) -> Option<u64> {
    of_status(&std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).ok()?)
}

fn of_status(status: &str) -> Option<u64> {
    let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim_start);
    field("State:")?.starts_with(['S', 'D']).then_some(())?;
    field("voluntary_ctxt_switches:")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_sleeps_waits() {
        let status = |state| {
            format!(
                "Name:\tshard-0\nState:\t{state}\nvoluntary_ctxt_switches:\t41\nnonvoluntary_ctxt_switches:\t7\n"
            )
        };
        assert_eq!(of_status(&status("D (disk sleep)")), Some(41));
        assert_eq!(of_status(&status("S (sleeping)")), Some(41));
        assert_eq!(of_status(&status("R (running)")), None);
        assert_eq!(of_status(""), None);
        assert_eq!(waits(i32::MAX), None);
    }
}
