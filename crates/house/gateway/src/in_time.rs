//! Questions to a storage that may never answer: a thread asks, and is left behind when no answer comes in time.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long a storage may take to answer.
const STORAGE_PATIENCE: Duration = Duration::from_secs(10);
/// When no answer has come for this long, another thread asks the next question.
const STEP: Duration = Duration::from_millis(100);

/// The answer, if it comes in time.
pub(crate) fn answer<T: Send + 'static>(ask: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    answer_within(STORAGE_PATIENCE, ask)
}

/// The answer, if it comes within this time.
pub fn answer_within<T: Send + 'static>(
    patience: Duration,
    ask: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (answer, answered) = mpsc::channel();
    begin(move || drop(answer.send(ask()))).ok()?;
    answered.recv_timeout(patience).ok()
}

/// The answers about each item, in their order, if they come in time. A thread that waits for one storage does not hold
/// up questions to another, and each answer restarts the time limit.
pub(crate) fn answers<T, R>(about: Vec<T>, ask: impl Fn(T) -> R + Send + Sync + 'static) -> Vec<Option<R>>
where
    T: Send + 'static,
    R: Send + 'static,
{
    answers_within(STORAGE_PATIENCE, about, ask)
}

fn answers_within<T, R>(
    patience: Duration,
    about: Vec<T>,
    ask: impl Fn(T) -> R + Send + Sync + 'static,
) -> Vec<Option<R>>
where
    T: Send + 'static,
    R: Send + 'static,
{
    let mut answers: Vec<Option<R>> = about.iter().map(|_| None).collect();
    let mut missing = about.len();
    let (answer, answered) = mpsc::channel();
    // Guards the items that no thread has asked about yet.
    let left = Arc::new(Mutex::new(about.into_iter().enumerate()));
    let ask = Arc::new(ask);
    let begin_next = || {
        let (left, ask, answer) = (Arc::clone(&left), Arc::clone(&ask), answer.clone());
        let Some((place, next)) = left.lock().next() else { return Ok(()) };
        begin(move || {
            let mut next = Some((place, next));
            while let Some((place, about)) = next {
                if answer.send((place, ask(about))).is_err() {
                    return; // the caller no longer waits
                }
                next = left.lock().next();
            }
        })
    };
    let mut last = Instant::now();
    let mut begun = begin_next();
    while missing > 0 && begun.is_ok() && last.elapsed() < patience {
        match answered.recv_timeout(STEP) {
            Ok((place, answer)) => {
                if let Some(answers) = answers.get_mut(place) {
                    *answers = Some(answer);
                }
                (missing, last) = (missing - 1, Instant::now());
            }
            Err(RecvTimeoutError::Timeout) => begun = begin_next(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    answers
}

/// The storages that owe somebody an answer who no longer waits for it. They are asked nothing else until it comes: each question would leave a
/// thread behind.
#[derive(Debug, Default)]
pub(crate) struct Silent(Mutex<HashSet<PathBuf>>);

impl Silent {
    /// The answer of the storage with this directory, if it comes in time. None at once from one that owes an answer.
    pub(crate) fn answer<T: Send + 'static>(
        self: &Arc<Self>,
        storage: &Path,
        ask: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        self.answer_within(STORAGE_PATIENCE, storage, ask)
    }

    /// The same with another patience.
    pub(crate) fn answer_within<T: Send + 'static>(
        self: &Arc<Self>,
        patience: Duration,
        storage: &Path,
        ask: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        if self.0.lock().contains(storage) {
            return None;
        }
        let (answer, answered) = mpsc::channel();
        let owes = Owes { silent: Arc::clone(self), storage: storage.to_owned() };
        begin(move || {
            let _owes = owes;
            drop(answer.send(ask()));
        })
        .ok()?;
        if let Ok(answer) = answered.recv_timeout(patience) {
            return Some(answer);
        }
        let mut silent = self.0.lock();
        // Whoever answers meanwhile does so before it looks at this set.
        match answered.try_recv() {
            Ok(answer) => return Some(answer),
            Err(TryRecvError::Empty) => _ = silent.insert(storage.to_owned()),
            Err(TryRecvError::Disconnected) => {}
        }
        None
    }
}

/// A storage that owes an answer until this is dropped.
struct Owes {
    silent: Arc<Silent>,
    storage: PathBuf,
}

impl Drop for Owes {
    fn drop(&mut self) {
        self.silent.0.lock().remove(&self.storage);
    }
}

fn begin(ask: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let begun = std::thread::Builder::new().name("ask-storage".to_owned()).spawn(ask);
    begun.map(drop).inspect_err(|e| tracing::error!("no thread to ask a storage: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_does_not_come_is_waited_for_for_a_while() {
        let (_never, said) = mpsc::channel::<()>();
        assert_eq!(answer(|| 7), Some(7));
        assert_eq!(answer_within(Duration::from_millis(10), move || said.recv()), None);
    }

    #[test]
    fn a_storage_that_owes_an_answer_is_asked_nothing_else() {
        let silent = Arc::<Silent>::default();
        let ((say, said), (tell, told)) = (mpsc::channel::<()>(), mpsc::channel());
        let patience = Duration::from_millis(10);
        let (here, there) = (Path::new("/here"), Path::new("/there"));
        let asked = silent.answer_within(patience, here, move || said.recv());
        assert_eq!(asked, None);
        let again = tell.clone();
        assert_eq!(silent.answer(here, move || again.send(())), None);
        assert_eq!((told.try_recv().is_err(), silent.answer(there, || 7)), (true, Some(7)));
        say.send(()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while silent.answer(here, || 8) != Some(8) {
            assert!(Instant::now() < deadline);
            std::thread::sleep(patience);
        }
        // One that fails owes nothing.
        assert_eq!(silent.answer(here, || panic!("the storage fails")), None::<()>);
        assert_eq!(silent.answer(here, || 9), Some(9));
    }

    #[test]
    fn who_does_not_answer_keeps_nobody_else_waiting() {
        let (never, said) = mpsc::channel::<()>();
        let said = Mutex::new(said);
        let ask =
            move |number: i32| if number % 3 == 0 { said.lock().recv().map(|()| 0) } else { Ok(number) };
        // Each answer restarts the time limit. Even on a machine that stands still for long, only the deadline can make
        // this fail.
        let answered = answers_within(Duration::from_secs(5), (1..8).collect(), ask);
        let answered: Vec<Option<i32>> = answered.into_iter().map(|said| said.and_then(Result::ok)).collect();
        assert_eq!(answered, [Some(1), Some(2), None, Some(4), Some(5), None, Some(7)]);
        drop(never);
        assert_eq!(answers(Vec::new(), |number: i32| number), []);
    }
}
