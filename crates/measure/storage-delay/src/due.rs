//! Answers that are given when they are due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// The nanoseconds by which the kernel may be late on purpose: otherwise 50,000.
const SLACK: NonZeroU64 = NonZeroU64::MIN;

type Answer = Box<dyn FnOnce() + Send>;

/// Answers that wait for their time. Those that are left when this is dropped are given at once.
#[derive(Debug)]
pub(crate) struct Due {
    shared: Arc<Shared>,
    /// None once it has ended.
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// Guards what waits.
    waiting: Mutex<Waiting>,
    has_changed: Condvar,
}

#[derive(Default)]
struct Waiting {
    /// By time, and then in the order in which they came.
    answers: BinaryHeap<Reverse<Entry>>,
    /// How many have come.
    count: u64,
    has_ended: bool,
}

struct Entry {
    at: Instant,
    number: u64,
    answer: Answer,
}

impl Due {
    /// Starts the thread that gives the answers.
    ///
    /// # Errors
    /// There are no more threads.
    pub(crate) fn start() -> io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        let thread = thread::Builder::new().name("delayed-answers".to_owned());
        Ok(Self { shared, thread: Some(thread.spawn(move || give(&of_thread))?) })
    }

    /// Gives an answer at a time; at once if that has come.
    pub(crate) fn at(&self, at: Instant, answer: impl FnOnce() + Send + 'static) {
        if at <= Instant::now() {
            return answer();
        }
        let mut waiting = self.shared.waiting.lock();
        waiting.count += 1;
        let number = waiting.count;
        waiting.answers.push(Reverse(Entry { at, number, answer: Box::new(answer) }));
        let is_next = waiting.answers.peek().is_some_and(|Reverse(next)| next.number == number);
        drop(waiting);
        if is_next {
            self.shared.has_changed.notify_one();
        }
    }
}

impl Drop for Due {
    fn drop(&mut self) {
        self.shared.waiting.lock().has_ended = true;
        self.shared.has_changed.notify_one();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn give(shared: &Shared) {
    // Without it, answers are up to 50 us late, which a calibration shows.
    let _ = rustix::thread::set_current_timer_slack(Some(SLACK));
    let mut waiting = shared.waiting.lock();
    loop {
        let has_ended = waiting.has_ended;
        match waiting.answers.peek().map(|Reverse(next)| next.at) {
            Some(at) if has_ended || at <= Instant::now() => {
                let next = waiting.answers.pop();
                drop(waiting);
                if let Some(Reverse(entry)) = next {
                    (entry.answer)();
                }
                waiting = shared.waiting.lock();
            }
            Some(at) => {
                shared.has_changed.wait_until(&mut waiting, at);
            }
            None if has_ended => return,
            None => shared.has_changed.wait(&mut waiting),
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("waiting", &self.waiting.lock().answers.len()).finish()
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn answers_come_in_the_order_of_their_times_and_none_is_early() {
        let due = Due::start().unwrap();
        let (said, heard) = mpsc::channel();
        let begun = Instant::now();
        for millis in [30, 10, 20, 0] {
            let (said, at) = (said.clone(), begun + Duration::from_millis(millis));
            due.at(at, move || said.send((millis, Instant::now() >= at)).unwrap());
        }
        let order: Vec<_> = heard.iter().take(4).collect();
        assert_eq!(order, [(0, true), (10, true), (20, true), (30, true)]);
    }

    #[test]
    fn what_is_left_at_the_end_is_answered() {
        let due = Due::start().unwrap();
        let (said, heard) = mpsc::channel();
        due.at(Instant::now() + Duration::from_secs(3600), move || said.send(()).unwrap());
        drop(due);
        heard.try_recv().unwrap();
    }
}
