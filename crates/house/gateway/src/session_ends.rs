//! The ends of sessions that gateways have left in CephFS. A cluster that does not answer holds up a thread, one for each session:
//! whoever asks for the same end meanwhile waits for the same thread.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::problem::{Cause, Problem, Result, serving};

/// The ends that are under way.
#[derive(Debug, Default)]
pub(crate) struct SessionEnds {
    /// Guards the list, by session.
    under_way: Mutex<HashMap<String, Arc<End>>>,
}

#[derive(Debug, Default)]
struct End {
    /// Guards what has become of it; None: nothing yet.
    outcome: Mutex<Option<Result<()>>>,
    is_over: Condvar,
}

/// Notes what has become of an end, also if the thread fails.
struct Noting {
    ends: Arc<SessionEnds>,
    session: String,
    end: Arc<End>,
    outcome: Result<()>,
}

impl SessionEnds {
    /// Ends a session by calling `end` on a thread, unless a thread does so already. The thread goes on when the patience is over.
    ///
    /// # Errors
    /// Those of `end`. [`Cause::Silent`]: it is not done in time.
    pub(crate) fn ended(
        self: &Arc<Self>,
        session: &str,
        patience: Duration,
        end: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let deadline = Instant::now() + patience;
        let under_way = self.begun(session, end)?;
        let mut outcome = under_way.outcome.lock();
        while outcome.is_none() {
            if under_way.is_over.wait_until(&mut outcome, deadline).timed_out() {
                break;
            }
        }
        outcome.clone().unwrap_or_else(|| {
            let what = format!(
                "the session of {session} in CephFS is not ended yet: the Ceph cluster has not answered"
            );
            Err(Problem::new(
                Cause::Silent,
                what,
                "Look whether it is well, and a metadata server active: ceph status, ceph fs status",
            ))
        })
    }

    /// The end of a session, which is under way.
    fn begun(
        self: &Arc<Self>,
        session: &str,
        end: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<Arc<End>> {
        let mut under_way = self.under_way.lock();
        if let Some(found) = under_way.get(session) {
            return Ok(Arc::clone(found));
        }
        let begun = Arc::<End>::default();
        let noting = Noting {
            ends: Arc::clone(self),
            session: session.to_owned(),
            end: Arc::clone(&begun),
            outcome: Err(Problem::new(
                Cause::Serving,
                format!("the end of the session of {session} has failed"),
                "",
            )),
        };
        under_way.insert(session.to_owned(), Arc::clone(&begun));
        drop(under_way);
        let work = move || {
            let mut noting = noting;
            noting.outcome = end();
        };
        let thread = std::thread::Builder::new().name("ceph-end-session".to_owned());
        thread.spawn(work).map_err(serving("cannot start a thread"))?;
        Ok(begun)
    }
}

impl Drop for Noting {
    fn drop(&mut self) {
        self.ends.under_way.lock().remove(&self.session);
        *self.end.outcome.lock() = Some(self.outcome.clone());
        self.end.is_over.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const SHORT: Duration = Duration::from_millis(10);
    /// Longer than any of this takes.
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn who_does_not_answer_holds_up_one_thread() {
        let ends = Arc::<SessionEnds>::default();
        let (answer, answered) = mpsc::channel::<()>();
        let silent = ends.ended("a", SHORT, move || {
            answered.recv().unwrap();
            Ok(())
        });
        assert_eq!(silent.unwrap_err().cause, Cause::Silent);
        let again = ends.ended("a", SHORT, || panic!("a thread ends it already"));
        assert_eq!(again.unwrap_err().cause, Cause::Silent);
        ends.ended("b", LONG, || Ok(())).unwrap();
        answer.send(()).unwrap();
        // Whoever comes now waits for the same thread, or begins anew.
        ends.ended("a", LONG, || Ok(())).unwrap();
        let begun = Instant::now();
        while !ends.under_way.lock().is_empty() {
            assert!(begun.elapsed() < LONG);
            std::thread::sleep(SHORT);
        }
    }

    #[test]
    fn a_failure_is_told_and_the_next_one_tries_again() {
        let ends = Arc::<SessionEnds>::default();
        let refused = || Err(Problem::new(Cause::Directory, "no key", ""));
        assert_eq!(ends.ended("a", LONG, refused).unwrap_err().what, "no key");
        assert_eq!(ends.ended("a", LONG, || panic!("it fails")).unwrap_err().cause, Cause::Serving);
        ends.ended("a", LONG, || Ok(())).unwrap();
    }
}
