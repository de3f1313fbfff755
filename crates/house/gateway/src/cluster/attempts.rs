//! What is done with vservers, for each on a thread of its own: one whose storage does not answer does not keep the gateway from looking
//! after others.

use std::collections::BTreeMap;
use std::io;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long to wait after a failure before it is tried again.
pub(super) const AGAIN: Duration = Duration::from_secs(5);

/// See the module. When this is dropped, it waits for the threads.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    /// What they return: how long to wait until it is tried again; None: it is done.
    threads: BTreeMap<String, JoinHandle<Option<Duration>>>,
    /// When what has failed is tried again.
    again: BTreeMap<String, Instant>,
}

impl Attempts {
    /// Looks which of them have ended.
    pub(super) fn look(&mut self) {
        let over: Vec<_> = self.threads.extract_if(.., |_, thread| thread.is_finished()).collect();
        for (name, thread) in over {
            // A thread that has failed has said so.
            match thread.join().unwrap_or(Some(AGAIN)) {
                None => self.again.remove(&name),
                Some(wait) => self.again.insert(name, Instant::now() + wait),
            };
        }
    }

    /// Whether nothing is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Whether it may be tried for a vserver: it is not under way, and has not just failed.
    pub(super) fn may_begin(&self, vserver: &str) -> bool {
        !self.threads.contains_key(vserver)
            && self.again.get(vserver).is_none_or(|again| Instant::now() >= *again)
    }

    /// Notes that it cannot be tried for a vserver.
    pub(super) fn has_failed(&mut self, vserver: &str) {
        self.again.insert(vserver.to_owned(), Instant::now() + AGAIN);
    }

    /// Something has changed: what has failed is tried again.
    pub(super) fn try_again(&mut self) {
        self.again.clear();
    }

    /// Tries it for a vserver. What `attempt` returns: how long to wait until it is tried again; None: it is done.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(super) fn begin(
        &mut self,
        vserver: &str,
        attempt: impl FnOnce() -> Option<Duration> + Send + 'static,
    ) -> io::Result<()> {
        let thread = std::thread::Builder::new().name("vserver".to_owned());
        self.threads.insert(vserver.to_owned(), thread.spawn(attempt)?);
        Ok(())
    }
}

impl Drop for Attempts {
    fn drop(&mut self) {
        for thread in std::mem::take(&mut self.threads).into_values() {
            // A thread that has failed has said so.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn until_over(attempts: &mut Attempts) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !attempts.is_empty() {
            assert!(Instant::now() < deadline);
            attempts.look();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn one_that_waits_delays_no_other_and_is_not_tried_twice_at_a_time() {
        let (mut attempts, (say, said)) = (Attempts::default(), mpsc::channel::<()>());
        attempts.begin("slow", move || said.recv().err().map(|_| AGAIN)).unwrap();
        assert!(!attempts.may_begin("slow") && attempts.may_begin("other"));
        let (tell, told) = mpsc::channel();
        attempts.begin("other", move || tell.send(()).err().map(|_| AGAIN)).unwrap();
        told.recv().unwrap();
        assert!(!attempts.may_begin("slow"));
        say.send(()).unwrap();
        until_over(&mut attempts);
        assert!(attempts.may_begin("slow") && attempts.may_begin("other"));
    }

    #[test]
    fn what_has_failed_waits_unless_something_has_changed() {
        let mut attempts = Attempts::default();
        let long = Duration::from_secs(3600);
        attempts.begin("fails", move || Some(long)).unwrap();
        attempts.begin("panics", || panic!("as this test wants it")).unwrap();
        until_over(&mut attempts);
        assert!(!attempts.may_begin("fails"));
        attempts.begin("fails", || None).unwrap();
        until_over(&mut attempts);
        assert!(attempts.may_begin("fails"), "it was done");
        attempts.begin("fails", move || Some(long)).unwrap();
        until_over(&mut attempts);
        attempts.try_again();
        assert!(attempts.may_begin("fails") && attempts.may_begin("panics"));
    }
}
