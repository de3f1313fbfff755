//! The lines that wait for a sink, and the thread that passes them on.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::FileSettings;

/// The most bytes of lines that wait for one sink. With more, lines are dropped.
pub const WAITING_BYTES_MAX: usize = 4 << 20;

/// After a failure, a line is tried again so often.
const RETRY: Duration = Duration::from_millis(200);

/// Where lines go.
pub(crate) trait Output: Send {
    /// Writes a line, or goes on with a line of which a part was written. It may wait for [`RETRY`].
    fn put(&mut self, line: &[u8]) -> Put;

    /// Opens everything anew, with these settings if it is a file. A line that was begun is begun again.
    fn reopen(&mut self, file: Option<FileSettings>);
}

/// What became of a line.
#[derive(Debug)]
pub(crate) enum Put {
    /// It is written.
    Written,
    /// The reader takes no more now.
    Full,
    /// It cannot be written now.
    Failed(io::Error),
    /// It can never be written.
    Impossible(io::Error),
}

/// Lines of all sinks.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) written: AtomicU64,
    pub(crate) dropped: AtomicU64,
}

/// The lines that wait for one sink.
#[derive(Debug)]
pub(crate) struct Queue {
    totals: Arc<Totals>,
    /// Guards the lines, and what the thread is asked for.
    state: Mutex<Waiting>,
    /// Notified when there is something to do.
    asked: Condvar,
    /// Notified when no line is left, and when the thread ends.
    is_done: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Lines that were dropped since the last one that was entered.
    dropped: u64,
    /// Whether a line was taken out and is not written yet.
    is_writing: bool,
    reopen: Option<Option<FileSettings>>,
    /// Until when the thread may go on writing. None: as long as it likes.
    until: Option<Instant>,
    has_ended: bool,
}

impl Queue {
    pub(crate) fn new(totals: Arc<Totals>) -> Self {
        Self { totals, state: Mutex::default(), asked: Condvar::new(), is_done: Condvar::new() }
    }

    /// Enters the line that `line` makes, for which it is told how many lines were dropped before. If there is no room, the
    /// line is dropped.
    pub(crate) fn enter(&self, line: impl FnOnce(u64) -> Vec<u8>) {
        let mut state = self.state.lock();
        let line = line(state.dropped);
        if state.bytes.saturating_add(line.len()) > WAITING_BYTES_MAX || state.until.is_some() {
            return self.drop_lines(&mut state, 1);
        }
        state.dropped = 0;
        state.bytes += line.len();
        state.lines.push_back(line);
        drop(state);
        self.asked.notify_one();
    }

    fn drop_lines(&self, state: &mut Waiting, count: u64) {
        state.dropped = state.dropped.saturating_add(count);
        self.totals.dropped.fetch_add(count, Ordering::Relaxed);
    }

    /// Has the sink opened anew, before the next line.
    pub(crate) fn reopen(&self, file: Option<FileSettings>) {
        self.state.lock().reopen = Some(file);
        self.asked.notify_one();
    }

    /// Takes no more lines. Those that wait are dropped if they are not written by then.
    pub(crate) fn end(&self, until: Instant) {
        self.state.lock().until = Some(until);
        self.asked.notify_one();
    }

    /// Waits until all lines are written or dropped, after [`Queue::end`]. A thread that hangs in a call of the system is not
    /// waited for.
    pub(crate) fn wait(&self, until: Instant) {
        let mut state = self.state.lock();
        while !state.has_ended {
            if self.is_done.wait_until(&mut state, until).timed_out() {
                return;
            }
        }
    }

    /// Passes the lines to a sink, until it is ended.
    pub(crate) fn serve(&self, name: &str, output: &mut dyn Output) {
        let mut state = self.state.lock();
        let mut has_failed = false;
        loop {
            let line = match state.lines.pop_front() {
                Some(line) => line,
                None if state.until.is_some() => break,
                None => {
                    self.take_reopen(&mut state, output);
                    self.asked.wait(&mut state);
                    continue;
                }
            };
            state.bytes -= line.len();
            state.is_writing = true;
            self.write(&mut state, (name, &mut has_failed), &line, output);
            state.is_writing = false;
        }
        state.has_ended = true;
        self.is_done.notify_all();
    }

    fn take_reopen(&self, state: &mut MutexGuard<'_, Waiting>, output: &mut dyn Output) {
        if let Some(file) = state.reopen.take() {
            MutexGuard::unlocked(state, || output.reopen(file));
        }
    }

    /// Writes one line, however often that has to be tried.
    fn write(
        &self,
        state: &mut MutexGuard<'_, Waiting>,
        (name, has_failed): (&str, &mut bool),
        line: &[u8],
        output: &mut dyn Output,
    ) {
        loop {
            self.take_reopen(state, output);
            match MutexGuard::unlocked(state, || output.put(line)) {
                Put::Written => {
                    if std::mem::take(has_failed) {
                        tracing::info!("the access log is written to {name} again");
                    }
                    self.totals.written.fetch_add(1, Ordering::Relaxed);
                    return;
                }
                Put::Full => {}
                Put::Impossible(error) => {
                    tracing::warn!(
                        "a line of {} bytes of the access log is left out of {name}: {error}",
                        line.len()
                    );
                    return self.drop_lines(state, 1);
                }
                Put::Failed(error) => {
                    if !std::mem::replace(has_failed, true) {
                        tracing::error!("the access log cannot be written to {name}: {error}");
                    }
                    if state.reopen.is_none() && state.until.is_none() {
                        self.asked.wait_for(state, RETRY);
                    }
                }
            }
            if state.until.is_some_and(|until| Instant::now() >= until) {
                let left = u64::try_from(state.lines.len()).unwrap_or(u64::MAX).saturating_add(1);
                state.lines.clear();
                state.bytes = 0;
                return self.drop_lines(state, left);
            }
        }
    }
}

/// How long [`Output::put`] may wait for a reader.
pub(crate) const READER_PATIENCE: Duration = RETRY;

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// Tells when it is asked to write, and writes what it is allowed to.
    struct Gate {
        asked: Sender<()>,
        answers: Receiver<Put>,
        written: Sender<Vec<u8>>,
    }

    impl Output for Gate {
        fn put(&mut self, line: &[u8]) -> Put {
            // A test that does not wait for this has no receiver.
            let _ = self.asked.send(());
            let answer = self.answers.recv().unwrap();
            if matches!(answer, Put::Written) {
                self.written.send(line.to_vec()).unwrap();
            }
            answer
        }

        fn reopen(&mut self, _: Option<FileSettings>) {}
    }

    fn failure() -> io::Error {
        io::ErrorKind::StorageFull.into()
    }

    struct Served {
        queue: Arc<Queue>,
        totals: Arc<Totals>,
        asked: Receiver<()>,
        answer: Sender<Put>,
        written: Receiver<Vec<u8>>,
    }

    fn serve() -> Served {
        let totals = Arc::new(Totals::default());
        let queue = Arc::new(Queue::new(Arc::clone(&totals)));
        let ((ask, asked), (answer, answers), (write, written)) = (channel(), channel(), channel());
        let served = Arc::clone(&queue);
        let mut gate = Gate { asked: ask, answers, written: write };
        std::thread::spawn(move || served.serve("a test", &mut gate));
        Served { queue, totals, asked, answer, written }
    }

    fn counts(totals: &Totals) -> (u64, u64) {
        (totals.written.load(Ordering::Relaxed), totals.dropped.load(Ordering::Relaxed))
    }

    #[test]
    fn lines_that_do_not_fit_are_counted_and_the_next_line_says_how_many() {
        let Served { queue, totals, asked, answer, written } = serve();
        let long = vec![b'x'; WAITING_BYTES_MAX / 4];
        queue.enter(|_| long.clone());
        // The sink has this line, so that it takes no room from those that wait.
        asked.recv().unwrap();
        for _ in 0..7 {
            queue.enter(|_| long.clone());
        }
        assert_eq!(counts(&totals), (0, 3));
        for _ in 0..5 {
            answer.send(Put::Written).unwrap();
            assert_eq!(written.recv().unwrap(), long);
        }
        queue.enter(|dropped| dropped.to_string().into_bytes());
        queue.enter(|dropped| dropped.to_string().into_bytes());
        (0..2).for_each(|_| answer.send(Put::Written).unwrap());
        assert_eq!(written.recv().unwrap(), b"3");
        assert_eq!(written.recv().unwrap(), b"0");
        queue.end(Instant::now() + Duration::from_secs(60));
        queue.wait(Instant::now() + Duration::from_secs(60));
        assert_eq!(counts(&totals), (7, 3));
    }

    #[test]
    fn a_line_is_tried_until_it_is_written() {
        let Served { queue, totals, answer, written, .. } = serve();
        queue.enter(|_| b"first".to_vec());
        queue.enter(|_| b"second".to_vec());
        for put in [Put::Full, Put::Failed(failure()), Put::Full, Put::Written, Put::Written] {
            answer.send(put).unwrap();
        }
        assert_eq!(
            (written.recv().unwrap(), written.recv().unwrap()),
            (b"first".to_vec(), b"second".to_vec())
        );
        queue.enter(|_| b"too long".to_vec());
        queue.enter(|_| b"third".to_vec());
        answer.send(Put::Impossible(failure())).unwrap();
        answer.send(Put::Written).unwrap();
        assert_eq!(written.recv().unwrap(), b"third");
        let soon = Instant::now() + Duration::from_secs(60);
        queue.end(soon);
        queue.wait(soon);
        assert_eq!(counts(&totals), (3, 1));
    }

    #[test]
    fn the_end_waits_only_so_long() {
        let Served { queue, totals, answer, written: _written, .. } = serve();
        (0..3).for_each(|_| queue.enter(|_| b"x".to_vec()));
        let now = Instant::now();
        queue.end(now);
        queue.enter(|_| b"late".to_vec());
        answer.send(Put::Failed(failure())).unwrap();
        queue.wait(now + Duration::from_secs(60));
        assert_eq!(counts(&totals), (0, 4));
    }
}
