//! Threads that do the work on single shares, so that one that takes long holds up no other.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;

/// How many shares are worked on at a time. So many hooks or storages that hang hold up the others, for as long as each may take.
const THREADS_MAX: usize = 16;

type Job = Box<dyn FnOnce() + Send>;
/// Starts a thread with this name that does the work.
type Start = fn(&str, Arc<Mutex<Work>>) -> io::Result<JoinHandle<()>>;

/// The threads, which end when there is nothing to do. When it is dropped, what was begun is finished, and the rest is not done.
#[derive(Debug)]
pub(crate) struct Crew {
    name: &'static str,
    work: Arc<Mutex<Work>>,
    threads: Vec<JoinHandle<()>>,
    start: Start,
}

/// What there is to do. Its lock is not held while a job is done.
#[derive(Default)]
struct Work {
    waiting: VecDeque<(String, Job)>,
    /// The shares of which a job waits or is being done.
    busy: HashSet<String>,
    threads: usize,
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work")
            .field("busy", &self.busy)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl Crew {
    /// The threads have this name.
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, work: Arc::default(), threads: Vec::new(), start }
    }

    /// Whether a job of a share waits or is being done.
    pub(crate) fn is_busy(&self, share: &str) -> bool {
        self.work.lock().busy.contains(share)
    }

    /// Has a job of a share done, which is not busy. If the system has no thread for it, it is not done, and the share is not busy.
    pub(crate) fn give(&mut self, share: String, job: Job) {
        let mut work = self.work.lock();
        work.busy.insert(share.clone());
        work.waiting.push_back((share, job));
        if work.threads >= THREADS_MAX {
            return;
        }
        self.threads.retain(|thread| !thread.is_finished());
        match (self.start)(self.name, Arc::clone(&self.work)) {
            Ok(thread) => {
                work.threads += 1;
                self.threads.push(thread);
            }
            Err(e) => {
                tracing::error!("a thread of {}: {e}", self.name);
                if work.threads == 0 {
                    let taken_back = work.waiting.pop_back();
                    taken_back.iter().for_each(|(share, _)| _ = work.busy.remove(share));
                }
            }
        }
    }
}

fn start(name: &str, work: Arc<Mutex<Work>>) -> io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(move || run(&work))
}

fn run(work: &Mutex<Work>) {
    loop {
        let mut present = work.lock();
        let Some((share, job)) = present.waiting.pop_front() else {
            present.threads -= 1;
            return;
        };
        drop(present);
        if catch_unwind(AssertUnwindSafe(job)).is_err() {
            tracing::error!(share, "work on the snapshots of a share has failed");
        }
        work.lock().busy.remove(&share);
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        self.work.lock().waiting.clear();
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // what it did is caught
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    use super::*;

    fn wait_until_idle(crew: &Crew, share: &str) {
        let until = Instant::now() + Duration::from_secs(600);
        while crew.is_busy(share) {
            assert!(Instant::now() < until, "{share} stays busy");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_job_without_a_thread_is_given_again() {
        let mut crew = Crew::new("test");
        crew.start = |_, _| Err(io::ErrorKind::WouldBlock.into());
        crew.give("data".to_owned(), Box::new(|| panic!("there is no thread")));
        assert!(!crew.is_busy("data"));
        crew.start = start;
        let (done, is_done) = mpsc::channel();
        crew.give("data".to_owned(), Box::new(move || done.send(()).unwrap()));
        assert_eq!(is_done.recv(), Ok(()));
        wait_until_idle(&crew, "data");
    }

    #[test]
    fn a_job_that_takes_long_holds_up_no_other() {
        let mut crew = Crew::new("test");
        let (go_on, may_go_on) = mpsc::channel::<()>();
        let (done, is_done) = mpsc::channel();
        crew.give("slow".to_owned(), Box::new(move || assert!(may_go_on.recv().is_err())));
        for number in 0..100 {
            let done = done.clone();
            crew.give(format!("share {number}"), Box::new(move || done.send(number).unwrap()));
        }
        let mut seen: Vec<i32> = is_done.iter().take(100).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..100).collect::<Vec<_>>());
        assert!(crew.is_busy("slow") && !crew.is_busy("other"));
        drop(go_on);
        wait_until_idle(&crew, "slow");
    }

    #[test]
    fn what_has_failed_keeps_no_thread_and_what_was_begun_is_finished() {
        let mut crew = Crew::new("test");
        crew.give("bad".to_owned(), Box::new(|| panic!("it is to be caught")));
        wait_until_idle(&crew, "bad");
        let (begun, has_begun) = mpsc::channel();
        let (done, is_done) = mpsc::channel();
        let job = move || {
            begun.send(()).unwrap();
            done.send(()).unwrap();
        };
        crew.give("last".to_owned(), Box::new(job));
        has_begun.recv().unwrap();
        drop(crew);
        assert_eq!(is_done.try_recv(), Ok(()));
    }
}
