//! The lines of the log, and the thread that writes them.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Bytes that a pipe, a socket or a terminal takes without waiting once it says that it takes any (pipe(7): `PIPE_BUF`).
const PIECE: usize = 4096;
/// Bytes of lines that wait to be written.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// Lines of the log that could not be written.
static LOST: AtomicU64 = AtomicU64::new(0);
/// The part of these that was reported.
static TOLD: AtomicU64 = AtomicU64::new(0);
static QUEUE: Queue = Queue::new();

/// The form of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One line of text for each event.
    Text,
    /// One JSON object for each event.
    Json,
}

/// The lines that wait to be written, in their order.
struct Queue {
    /// Guards the lines, and whether the thread is writing one.
    state: Mutex<Waiting>,
    arrived: Condvar,
    /// Notified when no line is left.
    is_done: Condvar,
}

struct Waiting {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Whether a line was taken out and is not written yet.
    is_writing: bool,
}

impl Queue {
    const fn new() -> Self {
        let waiting = Waiting { lines: VecDeque::new(), bytes: 0, is_writing: false };
        Self { state: Mutex::new(waiting), arrived: Condvar::new(), is_done: Condvar::new() }
    }

    /// Enters a line. Returns false if there is no room for it.
    fn enter(&self, line: &[u8]) -> bool {
        let mut state = self.state.lock();
        if state.bytes + line.len() > WAITING_BYTES_MAX {
            return false;
        }
        state.bytes += line.len();
        state.lines.push_back(line.to_vec());
        self.arrived.notify_one();
        true
    }

    /// Passes each line to `write`, forever.
    fn serve(&self, mut write: impl FnMut(&[u8])) {
        let mut state = self.state.lock();
        loop {
            state.is_writing = false;
            let Some(line) = state.lines.pop_front() else {
                self.is_done.notify_all();
                self.arrived.wait(&mut state);
                continue;
            };
            state.bytes -= line.len();
            state.is_writing = true;
            MutexGuard::unlocked(&mut state, || write(&line));
        }
    }

    /// Waits until all lines are written, but no longer than `patience`.
    fn finish(&self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let mut state = self.state.lock();
        while state.is_writing || !state.lines.is_empty() {
            if self.is_done.wait_until(&mut state, deadline).timed_out() {
                return;
            }
        }
    }
}

/// The lines of the log that could not be written since the program started.
#[must_use]
pub fn lost_lines() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// The lines that were lost since the previous call of this function.
pub fn newly_lost_lines() -> u64 {
    let lost = lost_lines();
    lost.saturating_sub(TOLD.swap(lost, Ordering::Relaxed))
}

/// Starts the log of the process: events that pass `filter` go to standard error.
///
/// # Errors
/// The system has no more threads.
///
/// # Panics
/// The process logs already.
pub fn start(filter: &str, format: Format) -> io::Result<()> {
    let mut is_cut = false;
    let write = move || QUEUE.serve(|line| write_line(io::stderr(), line, &mut is_cut));
    std::thread::Builder::new().name("log".to_owned()).spawn(write)?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        // It would report with eprintln!, which panics where standard error takes nothing.
        .log_internal_errors(false)
        .with_writer(Lines);
    match format {
        Format::Text => log.with_ansi(false).init(),
        Format::Json => log.json().init(),
    }
    Ok(())
}

/// Waits until all that was logged is written, but no longer than `patience`.
pub fn finish(patience: Duration) {
    QUEUE.finish(patience);
}

/// Takes one line for each call. Never fails, and never waits for a reader.
#[derive(Debug, Clone, Copy)]
struct Lines;

impl MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        *self
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        crate::recent::keep(line);
        if !QUEUE.enter(line) {
            LOST.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_line(to: impl AsFd, line: &[u8], is_cut: &mut bool) {
    if *is_cut && write_taken(&to, b"\n", Duration::ZERO) == 0 {
        LOST.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let written = write_taken(&to, line, Duration::ZERO);
    *is_cut = written > 0 && written < line.len();
    if written < line.len() {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
}

/// Writes as much as the reader takes, and waits no longer than `patience` for each piece. Returns the number of bytes written.
pub fn write_taken(to: impl AsFd, text: &[u8], patience: Duration) -> usize {
    let mut written = 0;
    while let Some(rest) = text.get(written..).filter(|rest| !rest.is_empty()) {
        if !takes_more(&to, patience) {
            break;
        }
        match rustix::io::write(&to, rest.get(..PIECE).unwrap_or(rest)) {
            Ok(0) => break,
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            Err(_) => break,
        }
    }
    written
}

/// Whether a write would not wait. One that would fail does not.
fn takes_more(to: impl AsFd, patience: Duration) -> bool {
    let patience = Timespec::try_from(patience).ok();
    let mut asked = [PollFd::new(&to, PollFlags::OUT)];
    poll(&mut asked, patience.as_ref()).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_pipe_that_nobody_reads_loses_lines_and_keeps_them_whole_afterwards() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut is_cut = false;
        let line = [vec![b'x'; 9_999], vec![b'\n']].concat();
        let before = lost_lines();
        for _ in 0..100 {
            write_line(&writer, &line, &mut is_cut);
        }
        assert!(lost_lines() - before > 50, "a pipe holds no megabyte");
        let mut held = vec![0; 1 << 20];
        let count = reader.read(&mut held).unwrap();
        let whole = held[..count].split(|byte| *byte == b'\n').filter(|line| line.len() == 9_999).count();
        assert!(whole > 0);
        write_line(&writer, b"afterwards\n", &mut is_cut);
        drop(writer);
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        assert!(rest.ends_with(b"\nafterwards\n") || rest == b"afterwards\n", "{rest:?}");
    }

    #[test]
    fn lines_wait_in_order_while_none_can_be_written_and_those_beyond_are_refused() {
        static QUEUE: Queue = Queue::new();
        let line = |number: usize| [format!("{number:8}").into_bytes(), vec![b'x'; 1000]].concat();
        let taken = (0..2000).take_while(|number| QUEUE.enter(&line(*number))).count();
        assert_eq!(taken, WAITING_BYTES_MAX / 1008);
        let (written, read) = std::sync::mpsc::channel();
        let (go_on, may_go_on) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            QUEUE.serve(|line| {
                may_go_on.recv().unwrap();
                written.send(line.to_vec()).unwrap();
            });
        });
        QUEUE.finish(Duration::from_millis(1));
        assert!(read.try_recv().is_err(), "nothing is written yet");
        (0..taken).for_each(|_| go_on.send(()).unwrap());
        QUEUE.finish(Duration::from_secs(60));
        assert_eq!(read.try_iter().collect::<Vec<_>>(), (0..taken).map(line).collect::<Vec<_>>());
        assert!(QUEUE.enter(&line(0)), "there is room again");
    }

    #[test]
    fn who_takes_nothing_is_not_waited_for() {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        assert_eq!(write_taken(&full, b"line\n", Duration::ZERO), 0);
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        assert_eq!(write_taken(&writer, b"line\n", Duration::ZERO), 0);
    }
}
