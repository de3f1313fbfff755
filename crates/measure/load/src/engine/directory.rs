//! The same load on a directory of this machine, mounted or local: one thread a place, as applications do it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::meter::Meter;
use super::place::{CYCLE, Doing, Place, cycle_name};
use super::replay::Next;
use super::{Block, CYCLE_NAMES, Measured, Shared, watch};
use crate::fault::Fault;
use crate::files::Files;
use crate::result::{Operation, ProblemKind};
use crate::server::{Moment, Server};
use crate::workload::Workload;

/// Threads that are started at most.
const THREADS_MAX: usize = 1024;

/// Load on a directory.
pub(crate) struct Load<'a> {
    /// The directory that the run has made.
    pub(crate) directory: &'a Path,
    pub(crate) files: &'a Files,
    pub(crate) workload: &'a Workload,
    pub(crate) fill: bool,
    pub(crate) stop: &'a AtomicBool,
    pub(crate) server: &'a Server,
    pub(crate) round: u32,
}

/// The path of a file of the run.
pub(crate) fn file_path(directory: &Path, file: usize) -> PathBuf {
    directory.join(format!("f{file}"))
}

/// The directory of a thread of the metadata workload.
pub(crate) fn thread_path(directory: &Path, thread: usize) -> PathBuf {
    directory.join(format!("t{thread}"))
}

/// What an error of the file system means; `what` was done.
pub(crate) fn fault(what: &str, error: &io::Error) -> Fault {
    let kind = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ProblemKind::NoSpace,
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => ProblemKind::ReadOnly,
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ProblemKind::NoSuchShare,
        io::ErrorKind::UnexpectedEof | io::ErrorKind::WriteZero => ProblemKind::ShortTransfer,
        _ => ProblemKind::Refused,
    };
    Fault::new(kind, format!("{what}: {error}"))
}

/// Runs load and measures it.
pub(crate) fn run(load: &Load<'_>) -> Measured {
    let shared =
        Shared::new(load.files, load.workload, load.fill, load.stop, Duration::from_secs(60), load.round);
    let places = load.workload.places().min(THREADS_MAX);
    let threads = load.workload.key.threads.max(1) as usize;
    let mut meters = Vec::new();
    let mut moments = (Moment::default(), Moment::default());
    thread::scope(|scope| {
        let (ended, all_ended) = mpsc::channel::<()>();
        let mut running = Vec::new();
        for number in 0..places {
            let (shared, ended) = (&shared, ended.clone());
            running.push(scope.spawn(move || {
                let mut meter = Meter::default();
                let now = Instant::now();
                let place = Place::new(number, number % threads, now);
                let runner = Runner { shared, directory: load.directory, place, places, now };
                meter.fault = runner.run(&mut meter).err();
                drop(ended);
                meter
            }));
        }
        drop(ended);
        moments = watch(&all_ended, &shared, load.server);
        meters.extend(running.into_iter().filter_map(|thread| thread.join().ok()));
    });
    let mut measured = Meter::merged(meters);
    moments.0.until(&moments.1, &mut measured.repetition);
    measured
}

struct Runner<'a> {
    shared: &'a Shared<'a>,
    directory: &'a Path,
    place: Place,
    places: usize,
    /// When the last operation ended. The next one may begin later: it is filled and checked in between.
    now: Instant,
}

impl Runner<'_> {
    fn run(mut self, meter: &mut Meter) -> Result<(), Fault> {
        let open = |file| OpenOptions::new().read(true).write(true).open(file_path(self.directory, file));
        let files: Vec<File> = match self.shared.workload.reads() {
            Some(_) => (0..self.shared.files.count())
                .map(open)
                .collect::<io::Result<_>>()
                .map_err(|e| fault("open", &e))?,
            None => Vec::new(),
        };
        let longest = self.shared.replaying.as_ref().map(|r| u64::from(r.longest()));
        let mut buffer =
            vec![0; usize::try_from(longest.unwrap_or_else(|| self.shared.block_bytes())).unwrap_or(0)];
        self.now = Instant::now();
        let mut scheduled = self.now;
        let outcome = loop {
            if self.now >= self.shared.end || self.shared.stop.load(Ordering::Relaxed) {
                break Ok(());
            }
            let due = self.wait(&mut scheduled);
            let step = match self.shared.workload.reads() {
                _ if self.shared.replaying.is_some() => self.replayed(meter, &files, &mut buffer),
                Some(reads) => self.block(meter, &files, &mut buffer, due, reads),
                None => self.cycle(meter, due).map(|()| true),
            };
            match step {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(fault) => break Err(fault),
            }
        };
        let now = Instant::now();
        meter.measured = now.min(self.shared.end).saturating_duration_since(self.shared.begin);
        outcome
    }

    /// Waits as the workload wants it. With a fixed rate: when the next operation is due, which is `scheduled` from now on.
    fn wait(&self, scheduled: &mut Instant) -> Option<Instant> {
        let workload = self.shared.workload;
        if !workload.think.is_zero() {
            thread::sleep(workload.think);
        }
        let rate = workload.rate.filter(|_| !self.shared.fill)?;
        #[expect(clippy::cast_precision_loss, reason = "a number of threads")]
        let next = *scheduled + Duration::from_secs_f64(self.places as f64 / rate);
        thread::sleep(next.saturating_duration_since(Instant::now()));
        *scheduled = next;
        Some(next)
    }

    /// One read or write; false when there is none left.
    fn block(
        &mut self,
        meter: &mut Meter,
        files: &[File],
        buffer: &mut [u8],
        due: Option<Instant>,
        reads: u8,
    ) -> Result<bool, Fault> {
        let writes = self.shared.fill || self.place.next_random() % 100 >= u64::from(reads);
        let random = self.place.next_random();
        let Some(block) = self.shared.next_block(self.place.thread, random) else { return Ok(false) };
        let Some(file) = files.get(block.file) else { return Ok(false) };
        if !writes {
            self.read(meter, file, block, buffer, due)?;
        } else if self.shared.files.claim(block.file, block.offset, buffer.len()) {
            self.write(meter, file, block, buffer, due)?;
        } else {
            self.now = Instant::now();
        }
        Ok(true)
    }

    /// The next operation of a replay, when it is due; false when there is none left.
    fn replayed(&mut self, meter: &mut Meter, files: &[File], buffer: &mut [u8]) -> Result<bool, Fault> {
        /// So long a place sleeps at most before it looks whether it is to end.
        const LOOK: Duration = Duration::from_millis(100);
        let Some(replaying) = &self.shared.replaying else { return Ok(false) };
        let now = Instant::now();
        let (doing, due) = match replaying.next(self.shared, now) {
            Next::Do(doing, due) => (doing, Some(due)),
            Next::At(due) => {
                thread::sleep(due.saturating_duration_since(now).min(LOOK));
                self.now = Instant::now();
                return Ok(true);
            }
            Next::Over => return Ok(false),
        };
        let (Doing::Read(block) | Doing::Write(block)) = doing else { return Ok(false) };
        let Some(file) = files.get(block.file) else { return Ok(false) };
        let buffer = buffer.get_mut(..block.length as usize).unwrap_or_default();
        match doing {
            Doing::Write(_) => self.write(meter, file, block, buffer, due)?,
            _ => self.read(meter, file, block, buffer, due)?,
        }
        Ok(true)
    }

    /// Writes a block that is claimed.
    fn write(
        &mut self,
        meter: &mut Meter,
        file: &File,
        block: Block,
        buffer: &mut [u8],
        due: Option<Instant>,
    ) -> Result<(), Fault> {
        self.shared.files.fill(block.file, block.offset, buffer);
        let due = due.unwrap_or_else(Instant::now);
        file.write_all_at(buffer, block.offset).map_err(|e| fault("write", &e))?;
        self.now = Instant::now();
        self.shared.files.written(block.file, block.offset, buffer.len());
        self.count(meter, Operation::Write, buffer.len(), due);
        Ok(())
    }

    fn read(
        &mut self,
        meter: &mut Meter,
        file: &File,
        block: Block,
        buffer: &mut [u8],
        due: Option<Instant>,
    ) -> Result<(), Fault> {
        self.shared.files.before_read(block.file, block.offset, buffer.len(), &mut self.place.before);
        let due = due.unwrap_or_else(Instant::now);
        file.read_exact_at(buffer, block.offset).map_err(|e| fault("read", &e))?;
        self.now = Instant::now();
        if self.is_right(meter, block, buffer) {
            self.count(meter, Operation::Read, buffer.len(), due);
        }
        Ok(())
    }

    fn is_right(&self, meter: &mut Meter, block: Block, data: &[u8]) -> bool {
        if !self.shared.workload.check {
            return true;
        }
        let Some(wrong) = self.shared.files.check(block.file, block.offset, data, &self.place.before) else {
            return true;
        };
        meter.wrong_blocks += 1;
        let text = format!(
            "a read of file {} brought {} wrong bytes, the first at {}",
            block.file, wrong.bytes, wrong.at
        );
        meter.problem(Fault::new(ProblemKind::WrongData, text));
        false
    }

    /// A whole cycle of the metadata workload.
    fn cycle(&mut self, meter: &mut Meter, due: Option<Instant>) -> Result<(), Fault> {
        let directory = thread_path(self.directory, self.place.thread);
        let path =
            directory.join(cycle_name(self.shared.round, self.place.number, self.place.cycles % CYCLE_NAMES));
        self.place.cycles += 1;
        let mut open = None;
        let mut begin = Instant::now();
        let due = due.unwrap_or(begin);
        for operation in CYCLE {
            let done = match operation {
                Operation::Create => File::create_new(&path).map(|file| open = Some(file)),
                Operation::Open => File::open(&path).map(|file| open = Some(file)),
                Operation::Stat => fs::metadata(&path).map(drop),
                Operation::List => fs::read_dir(&directory).map(|entries| entries.for_each(drop)),
                Operation::Delete => fs::remove_file(&path),
                _ => {
                    open = None;
                    Ok(())
                }
            };
            done.map_err(|e| fault(&format!("{operation:?}").to_lowercase(), &e))?;
            self.now = Instant::now();
            self.count(meter, operation, 0, begin);
            begin = self.now;
        }
        drop(open);
        self.count(meter, Operation::Cycle, 0, due);
        Ok(())
    }

    /// Counts an operation that ended now.
    fn count(&self, meter: &mut Meter, operation: Operation, bytes: usize, due: Instant) {
        if self.now >= self.shared.begin && self.now < self.shared.end {
            meter.count(operation, bytes as u64, self.now.saturating_duration_since(due));
        }
    }
}
