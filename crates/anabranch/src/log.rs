//! The log on standard error, and the few other words of a server.
//!
//! None of them may end or hold up what it tells of. Lines are written by a thread of their own, which a log on a file system
//! that does not answer holds up, and nobody else. What is not taken (by a pipe that nobody reads, a full disk) is lost, and
//! counted; so is what finds too much waiting.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use gateway::in_time;
use parking_lot::{Condvar, Mutex, MutexGuard};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::log_filter;
use crate::print::counted;
use crate::problem::{Cause, Problem, Result};
use crate::settings::{Given, LogFormat};

/// Bytes that a pipe, a socket or a terminal takes without waiting once it says that it takes any (pipe(7): `PIPE_BUF`).
const PIECE: usize = 4096;
/// How long the ready line, the last lines of the log and the last word of a program may wait for their reader.
const READER_PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of lines that wait to be written.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// Lines of the log that could not be written.
static LOST: AtomicU64 = AtomicU64::new(0);
/// Those of them that were spoken of.
static TOLD: AtomicU64 = AtomicU64::new(0);
static QUEUE: Queue = Queue::new();

/// The lines that wait to be written, in their order.
struct Queue {
    /// Guards the lines and what the thread does that writes them.
    state: Mutex<Waiting>,
    arrived: Condvar,
    /// None is left.
    is_done: Condvar,
}

struct Waiting {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// A line was taken out, and is not written yet.
    is_writing: bool,
}

impl Queue {
    const fn new() -> Self {
        let waiting = Waiting { lines: VecDeque::new(), bytes: 0, is_writing: false };
        Self { state: Mutex::new(waiting), arrived: Condvar::new(), is_done: Condvar::new() }
    }

    /// Enters a line; false: there is no room for it.
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

    /// Gives each line to `write`, for ever.
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

    /// Waits until all lines are written, if that is soon.
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

/// Lines of the log that could not be written since the program started.
pub(crate) fn lost_lines() -> u64 {
    LOST.load(Ordering::Relaxed)
}

/// Says how many lines were lost since this was last said.
pub(crate) fn tell_lost_lines() {
    let lost = lost_lines();
    let told = TOLD.swap(lost, Ordering::Relaxed);
    if lost > told {
        let lines = counted(lost - told, "line");
        tracing::warn!("{lines} of the log could not be written");
    }
}

/// Logs to standard error; standard output is for the ready line alone.
///
/// # Errors
/// What is to be logged names no level or no part of this program; the system has no more threads.
pub(crate) fn start(given: &Given) -> Result<()> {
    let filter = check(given)?;
    let mut is_cut = false;
    let write = move || QUEUE.serve(|line| write_line(io::stderr(), line, &mut is_cut));
    let writer = std::thread::Builder::new().name("log".to_owned()).spawn(write);
    writer.map_err(|e| Problem::new(Cause::Serving, format!("cannot start a thread: {e}"), ""))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::new(filter))
        // It would report with eprintln!, which panics where standard error takes nothing.
        .log_internal_errors(false)
        .with_writer(Lines);
    match given.log_format.unwrap_or(LogFormat::Text) {
        LogFormat::Text => log.with_ansi(false).init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}

/// The filter of what is to be logged.
///
/// # Errors
/// It names no level or no part of this program.
pub(crate) fn check(given: &Given) -> Result<String> {
    log_filter::parse(given.log.as_deref().unwrap_or("info"))
}

/// Waits a moment until all that was logged is written.
pub(crate) fn finish() {
    QUEUE.finish(READER_PATIENCE);
}

/// Says something to whoever started the program, if it is taken within a moment: the ready line, the last error.
pub(crate) fn say(to: impl AsFd + Send + 'static, text: &str) {
    let text = text.to_owned();
    in_time::answer_within(2 * READER_PATIENCE, move || write_taken(to, text.as_bytes(), READER_PATIENCE));
}

/// Takes lines, one a call; never fails, and never waits for who reads them.
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

/// Writes what is taken, waiting for each piece no longer than `patience`; how many bytes were.
fn write_taken(to: impl AsFd, text: &[u8], patience: Duration) -> usize {
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
