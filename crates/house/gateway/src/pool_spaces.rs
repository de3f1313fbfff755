//! What the file systems of pools hold, for those who wait for no storage: metrics. Each look has a thread ask, unless one still does, and
//! tells the last answer.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use storage_local::PoolSpace;

/// What the file system of a pool has answered, or why it has not.
pub(crate) type Answer = Result<PoolSpace, String>;

/// How long a file system may take before it is said not to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// The last answers.
#[derive(Debug, Default)]
pub(crate) struct PoolSpaces {
    /// Guards what is known of each pool, by its directory. Not held while one is asked.
    known: Arc<Mutex<HashMap<PathBuf, Known>>>,
}

#[derive(Debug, Default)]
struct Known {
    /// Since when a thread asks.
    asked: Option<Instant>,
    answer: Option<Answer>,
}

impl PoolSpaces {
    /// What is known of the pool in a directory; None: nothing yet. Has it asked again.
    pub(crate) fn look(
        &self,
        directory: &Path,
        ask: impl FnOnce() -> Answer + Send + 'static,
    ) -> Option<Answer> {
        let mut known = self.known.lock();
        let of_pool = known.entry(directory.to_owned()).or_default();
        match of_pool.asked {
            Some(since) if since.elapsed() >= PATIENCE => return Some(Err("it does not answer".to_owned())),
            Some(_) => {}
            None => {
                let (all, of) = (Arc::clone(&self.known), directory.to_owned());
                let answered = move || {
                    let answer = Some(ask());
                    all.lock().insert(of, Known { asked: None, answer });
                };
                let begun = std::thread::Builder::new().name("ask-pool".to_owned()).spawn(answered);
                of_pool.asked = begun.is_ok().then(Instant::now);
            }
        }
        of_pool.answer.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_pool_is_asked_once_at_a_time_and_its_last_answer_told() {
        let spaces = PoolSpaces::default();
        let (at, other) = (Path::new("/one"), Path::new("/other"));
        let (answer, answered) = mpsc::channel();
        let told = |total| Ok(PoolSpace { total, free: 0 });
        assert_eq!(spaces.look(at, move || answered.recv().unwrap()), None, "nothing is known yet");
        assert_eq!(spaces.look(at, || panic!("it is being asked")), None);
        let until = |at: &Path, is: &Option<Answer>| {
            let begun = Instant::now();
            while spaces.look(at, move || told(9)) != *is {
                assert!(begun.elapsed() < Duration::from_secs(60), "{at:?}");
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        until(other, &Some(told(9)));
        answer.send(told(7)).unwrap();
        let begun = Instant::now();
        while spaces.known.lock().get(at).unwrap().answer.is_none() {
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(spaces.look(at, move || told(8)), Some(told(7)), "the last, while it is asked again");
    }

    #[test]
    fn who_was_asked_for_long_does_not_answer() {
        let spaces = PoolSpaces::default();
        let at = Path::new("/one");
        let asked = Instant::now().checked_sub(PATIENCE);
        let known = Known { asked, answer: Some(Ok(PoolSpace { total: 1, free: 1 })) };
        spaces.known.lock().insert(at.to_owned(), known);
        assert_eq!(
            spaces.look(at, || panic!("it is being asked")),
            Some(Err("it does not answer".to_owned()))
        );
    }
}
