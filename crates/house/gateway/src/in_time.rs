//! Questions to a storage that may never answer: a thread asks, and is left behind when no answer comes in time.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
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
